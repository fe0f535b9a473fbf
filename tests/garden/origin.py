"""The garden's servers that are Python: python3 origin.py KIND CLEAR-PORT TLS-PORT CERT KEY

Each writes one JSON line a request into the file $GARDEN_LOG: method, target, length and digest of the body as its
handler saw them. wsgi and asgi are the applications that gunicorn, waitress and uvicorn run.
"""
import asyncio
import gzip
import hashlib
import http.server
import json
import os
import ssl
import sys
import threading

PACKED = gzip.compress(b"packed " * 100)


def note(method, target, body):
    """Writes the line down; what is answered by default."""
    digest = hashlib.sha256(body).hexdigest()
    line = json.dumps([method, target, len(body), digest]) + "\n"
    with open(os.environ["GARDEN_LOG"], "ab", 0) as log:
        log.write(line.encode())
    return ("%s %s %d %s\n" % (method, target, len(body), digest)).encode()


def odd(target, text):
    """(status, fields, body) of what a target asks for."""
    kind = target.rpartition("/answer-")[2]
    known = {
        "empty": (200, {}, b""), "204": (204, {}, b""), "304": (304, {"ETag": '"a"'}, b""), "404": (404, {}, b"gone\n"),
        "gzip": (200, {"Content-Encoding": "gzip"}, PACKED),
        "partial": (206, {"Content-Range": "bytes 0-4/11"}, b"hello"),
        "like-an-answer": (200, {}, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfoo\n"),
    }
    status, fields, body = known.get(kind, (200, {}, text))
    fields = dict(fields, **{"Content-Type": "text/plain"})
    # A body of a length that the server is not told is chunked, or ends with the connection.
    streams = kind in ("chunked", "trailers", "close", "http10", "hints", "empty-chunked")
    if status not in (204, 304) and not streams:
        fields["Content-Length"] = str(len(body))
    return status, fields, body


# ---- applications ----

def wsgi(environ, start_response):
    target = environ.get("RAW_URI") or environ["REQUEST_URI"]
    body = environ["wsgi.input"].read()
    status, fields, answer = odd(target, note(environ["REQUEST_METHOD"], target, body))
    if environ["REQUEST_METHOD"] == "HEAD":
        # waitress sends what it is given, and counts it.
        answer = b""
        if "waitress" in environ["SERVER_SOFTWARE"]:
            fields.pop("Content-Length", None)
    start_response("%d Said" % status, list(fields.items()))
    return iter((answer[:5], answer[5:]))


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message.get("body", b""), message.get("more_body", False)
    query = scope["query_string"].decode("latin-1")
    # uvicorn's raw_path is what was sent, up to the query.
    target = scope["raw_path"].decode("latin-1").partition("?")[0] + ("?" + query if query else "")
    status, fields, answer = odd(target, note(scope["method"], target, body))
    await send({"type": "http.response.start", "status": status,
                "headers": [(k.encode(), v.encode()) for k, v in fields.items()]})
    await send({"type": "http.response.body", "body": answer})


# ---- http.server ----

class Handler(http.server.BaseHTTPRequestHandler):
    """http.server leaves bodies to the handler: this one takes Content-Length and chunked."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def _chunks(self):
        body = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            if size == 0:
                while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                    pass
                return body
            body += self.rfile.read(size)
            self.rfile.readline()

    def serve(self):
        if self.headers.get("Transfer-Encoding"):
            body = self._chunks()
        else:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True
                return
        # self.path has one slash where several began it.
        target = self.requestline.split(" ")[1]
        status, fields, answer = odd(target, note(self.command, target, body))
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if "Content-Length" not in fields and status not in (204, 304):
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def log_message(self, *ignored):
        pass


class PlainServer(http.server.ThreadingHTTPServer):
    def shutdown_request(self, request):
        """An end of TLS that nobody made up, which http.server leaves out: without it a body without length counts as cut."""
        if isinstance(request, ssl.SSLSocket):
            try:
                request.unwrap()
            except (OSError, ValueError):
                pass
        super().shutdown_request(request)


def run_plain(clear, tls, context):
    for port, secure in ((clear, None), (tls, context)):
        server = PlainServer(("127.0.0.1", port), Handler)
        if secure:
            server.socket = secure.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever).start()


# ---- servers that are libraries ----

def run_aiohttp(clear, tls, context):
    from aiohttp import web

    async def handle(request):
        target = request.raw_path
        status, fields, answer = odd(target, note(request.method, target, await request.read()))
        if "Content-Length" in fields or status in (204, 304):
            fields.pop("Content-Length", None)
            return web.Response(status=status, headers=fields, body=answer if status not in (204, 304) else None)
        response = web.StreamResponse(status=status, headers=fields)
        await response.prepare(request)
        if request.method != "HEAD":
            await response.write(answer)
        await response.write_eof()
        return response

    async def serve():
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{tail:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", clear).start()
        await web.TCPSite(runner, "127.0.0.1", tls, ssl_context=context).start()
        await asyncio.Event().wait()

    asyncio.run(serve())


def run_tornado(clear, tls, context):
    import tornado.httpserver
    import tornado.web

    class All(tornado.web.RequestHandler):
        SUPPORTED_METHODS = ("GET", "HEAD", "POST", "DELETE", "PATCH", "PUT", "OPTIONS", "PROPFIND", "REPORT", "PURGE")

        def serve(self, *ignored):
            target = self.request.uri
            status, fields, answer = odd(target, note(self.request.method, target, self.request.body))
            self.set_status(status)
            for name, value in fields.items():
                self.set_header(name, value)
            if status not in (204, 304):
                self.write(answer)
                if "Content-Length" not in fields:
                    self.flush()

        get = head = post = delete = patch = put = options = propfind = report = purge = serve

    async def serve():
        app = tornado.web.Application([(r".*", All)])
        tornado.httpserver.HTTPServer(app).listen(clear, "127.0.0.1")
        tornado.httpserver.HTTPServer(app, ssl_options=context).listen(tls, "127.0.0.1")
        await asyncio.Event().wait()

    asyncio.run(serve())


def run_waitress(clear, tls, context):
    import waitress
    waitress.serve(wsgi, host="127.0.0.1", port=clear)


if __name__ == "__main__":
    kind, clear, tls, cert, key = sys.argv[1:6]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    {"http.server": run_plain, "aiohttp": run_aiohttp, "tornado": run_tornado, "waitress": run_waitress}[kind](
        int(clear), int(tls), context)
