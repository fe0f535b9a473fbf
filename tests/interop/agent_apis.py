"""The APIs that agents ask: each streams the same words, whatever it is asked, and writes down with which key."""
import json

WORDS = b"hello from the server of a test"


def event(data, named=True):
    name = b"event: %s\n" % data["type"].encode() if named else b""
    return name + b"data: " + json.dumps(data).encode() + b"\n\n"


class AgentApi:
    """seen: by the way that the prompt names, the key."""

    def __init__(self):
        self.seen, self.asked = {}, []

    def __call__(self, request):
        asked = bytearray()
        request.body(asked.extend)
        self.asked.append((request.method, request.path, bytes(asked)))
        if request.method != "POST" or not self.is_prompt(request.path):
            request.answer("404 Not Found", b"{}", [("Content-Type", "application/json")])
            return
        for way in ("environment", "captured", "both"):
            if b"say hello, " + way.encode() in asked:
                self.seen[way] = self.key(request.fields)
        request.answer(body=self.stream(), fields=[("Content-Type", "text/event-stream")])


class Anthropic(AgentApi):
    @staticmethod
    def is_prompt(path):
        return path == "/v1/messages"

    @staticmethod
    def key(fields):
        return fields.get("x-api-key")

    @staticmethod
    def stream():
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "model-x", "content": [], "stop_reason": None,
                   "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        return b"".join(map(event, [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS.decode()}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"}]))


class OpenAi(AgentApi):
    @staticmethod
    def is_prompt(path):
        return path == "/v1/responses"

    @staticmethod
    def key(fields):
        return fields.get("authorization", "").removeprefix("Bearer ")

    @staticmethod
    def stream():
        item = {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": WORDS.decode()}]}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        return b"".join(map(event, [
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}]))


class Gemini(AgentApi):
    @staticmethod
    def is_prompt(path):
        return path.endswith(":streamGenerateContent")

    @staticmethod
    def key(fields):
        return fields.get("x-goog-api-key")

    @staticmethod
    def stream():
        return event({"candidates": [{"content": {"role": "model", "parts": [{"text": WORDS.decode()}]}, "finishReason": "STOP", "index": 0}],
                      "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}, named=False)
