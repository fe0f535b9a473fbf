"""A resolver that says what a case tells it to, turn by turn.

    dns NAME TYPE WORD...           TYPE: A, AAAA, or both with "any". Each line is a turn: the first line answers the first
                                    question of that name and type, the last line all that follow
        ADDRESS                     a record of the current name, where the question is of the address's type
        cname=NAME                  an alias of the current name, which NAME then is
        owner=NAME                  NAME is then the current name
        kind=65                     the number of the next records' type, in place of the question's
        data="BYTES"                such a record with any content
        count=5000                  all records so many times
        code=3                      response code;  flags=0x8580: the whole second word of the header
        id=+1                       the question's id and one
        asks=NAME                   another question is repeated
        class=3                     of the records
        truncated                   so says the header; the question may come again by TCP, where it has turns of its own
        cut=N                       the last N bytes are missing;  raw="BYTES": more bytes behind the records
        first                       a datagram with what stood before; what follows is another one
        silent | slow=SECONDS       no answer at all, or a late one

    resolver nothing | asked N ["NAME"] | tcp N     how often it was asked (by names; AAAA and A are two questions)
"""
import socket
import struct
import threading
import time

from place import Listener, Resolver, free_port

TYPES = {"A": 1, "AAAA": 28}


def encode(name):
    """A name in labels; an escape makes any byte of one, as in "a\\.b.test"."""
    labels, label, rest = [], b"", iter(name)
    for c in rest:
        if c == ".":
            labels, label = labels + [label], b""
        else:
            label += (next(rest) if c == "\\" else c).encode("latin-1")
    return b"".join(bytes([len(x)]) + x for x in labels + [label] if x) + b"\0"


class Answer:
    """One datagram in the making."""

    def __init__(self, query, question, kind):
        self.query, self.question, self.kind = query, question, kind
        self.type, self.owner, self.records = kind, b"\xc0\x0c", []
        self.word, self.id, self.class_number, self.count, self.cut, self.tail = 0x8180, 0, 1, 1, 0, b""

    def add(self, data):
        self.records.append(self.owner + struct.pack(">HHIH", self.type, self.class_number, 0, len(data)) + data)

    def take(self, word, value):
        if word == "cname":
            kind, self.type = self.type, 5
            self.add(encode(value))
            self.type, self.owner = kind, encode(value)
        elif word == "owner":
            self.owner = encode(value)
        elif word == "kind":
            self.type = int(value)
        elif word == "data":
            self.add(value)
        elif word in ("count", "cut"):
            setattr(self, word, int(value))
        elif word == "code":
            self.word |= int(value)
        elif word == "flags":
            self.word = int(value, 0)
        elif word == "id":
            self.id = int(value)
        elif word == "class":
            self.class_number = int(value)
        elif word == "asks":
            self.question = encode(value) + self.question[-4:]
        elif word == "truncated":
            self.word |= 0x0200
        elif word == "raw":
            self.tail = value
        else:
            family = socket.AF_INET6 if ":" in word else socket.AF_INET
            if (family == socket.AF_INET6) == (self.kind == TYPES["AAAA"]):
                self.add(socket.inet_pton(family, word))

    def bytes(self):
        number = (int.from_bytes(self.query[:2], "big") + self.id) & 0xffff
        records = self.records * self.count
        message = struct.pack(">HHHHHH", number, self.word, 1, len(records), 0, 0) + self.question + b"".join(records)
        message = message[:len(message) - self.cut] + self.tail
        return message


class ScriptedResolver(Resolver):
    """answers: of names that no case tells about."""

    def __init__(self, answers):
        self.turns, self.tcp = {}, []
        super().__init__(answers, free_port())
        self.listener = Listener(self._converse, self.port)

    def script(self, lines):
        """lines: (name, type, words), words being (word, value)."""
        self.turns, self.asked, self.tcp = {}, [], []
        for name, kind, words in lines:
            for number in TYPES.values() if kind == "any" else [TYPES[kind]]:
                self.turns.setdefault((name, number), []).append(words)

    def _words(self, name, kind):
        turns = self.turns.get((name, kind))
        if turns:
            return turns.pop(0) if len(turns) > 1 else turns[0]
        if name not in self.answers and not any(known == name for known, _ in self.turns):
            return [("code", "3")]
        return [(a, "") for a in self.answers.get(name, []) if (":" in a) == (kind == 28)]

    def _answer(self, query, send, by_tcp):
        name, kind, end = self.question(query)
        kind = int.from_bytes(kind, "big")
        self.asked.append((name, kind))
        if by_tcp:
            self.tcp.append((name, kind))
        answer = Answer(query, query[12:end], kind)
        for word, value in self._words(name, kind):
            if word == "silent":
                return
            if word == "slow":
                time.sleep(float(value))
            elif word == "first":
                send(answer.bytes())
                answer = Answer(query, query[12:end], kind)
            elif not (by_tcp and word == "truncated"):
                answer.take(word, value)
        send(answer.bytes())

    def take(self, query, send):
        threading.Thread(target=self._answer, daemon=True, args=(query, send, False)).start()

    def _converse(self, stream):
        with stream, stream.makefile("rb") as f:
            while True:
                size = f.read(2)
                if len(size) < 2:
                    return
                self._answer(f.read(int.from_bytes(size, "big")),
                             lambda data: stream.sendall(struct.pack(">H", min(len(data), 65535)) + data[:65535]), True)

    def close(self):
        super().close()
        self.listener.close()
