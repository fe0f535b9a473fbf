"""What stands behind exeat for the clients: one TLS server for many names, an API, and `git http-backend`."""
import base64
import hashlib
import json
import os
import ssl
import socket
import subprocess
import threading
from collections import defaultdict

from place import Listener

BIG = 100 << 20
PIECE = bytes(range(256)) * 256  # 64 KiB
BIG_SHA256 = hashlib.sha256(PIECE * (BIG // len(PIECE))).hexdigest()
EVENTS = 3


class Request:
    """One request; its body is read piece by piece, whatever its framing."""

    def __init__(self, stream, head, rest):
        line, *lines = head.decode("latin-1").split("\r\n")
        self.method, target, _ = line.split(" ")
        self.path, _, self.query = target.partition("?")
        self.fields = {l.partition(":")[0].lower(): l.partition(":")[2].strip() for l in lines}
        self.host = self.fields.get("host", "").partition(":")[0]
        self.stream, self.rest = stream, rest

    def _more(self):
        data = self.stream.recv(1 << 18)
        if not data:
            raise OSError("the request was cut")
        self.rest += data

    def _line(self):
        while b"\r\n" not in self.rest:
            self._more()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def _exactly(self, size, feed):
        while size > 0:
            if not self.rest:
                self._more()
            piece, self.rest = self.rest[:size], self.rest[size:]
            feed(piece)
            size -= len(piece)

    def body(self, feed):
        if self.fields.get("transfer-encoding") != "chunked":
            self._exactly(int(self.fields.get("content-length", "0")), feed)
            return
        while True:
            size = int(self._line(), 16)
            self._exactly(size, feed)
            self._line()
            if size == 0:
                return

    def answer(self, status="200 OK", body=b"", fields=()):
        head = "".join("%s: %s\r\n" % field for field in fields)
        self.stream.sendall(b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (
            status.encode(), head.encode(), len(body), b"" if self.method == "HEAD" else body))


class Server:
    """handlers: name of a host to a function of a Request."""

    def __init__(self, cert, key, port, address):
        self.handlers, self.context = {}, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.port = Listener(self._serve, port, address).port

    def _serve(self, raw):
        try:
            raw.settimeout(60)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = self.context.wrap_socket(raw, server_side=True)
            rest = b""
            while True:
                while b"\r\n\r\n" not in rest:
                    data = stream.recv(65536)
                    if not data:
                        return
                    rest += data
                head, rest = rest.split(b"\r\n\r\n", 1)
                request = Request(stream, head, rest)
                self.handlers[request.host](request)
                rest = request.rest
        except OSError:
            pass
        finally:
            raw.close()


class Api:
    """Sums up uploads; gives BIG bytes, events one by one, redirects to another host, and a page for browsers."""

    PAGE = b"""<!doctype html><title>a page</title><p id=out>nothing yet</p><script>
fetch(location.hash.split("|")[1], {method: "POST", body: "hello", headers: {Authorization: "Bearer " + location.hash.split("|")[2]}})
  .then(async r => { document.getElementById("out").textContent = r.status + " " + await r.text(); });
</script>"""

    def __init__(self, elsewhere):
        self.elsewhere, self.seen = elsewhere, {}
        self.heard = defaultdict(lambda: threading.Semaphore(0))  # by path: an event has come out of the client

    def __call__(self, request):
        self.seen[request.method + " " + request.path] = request.fields.get("authorization")
        what = request.path.split("/")[1]
        getattr(self, what if what in ("big", "events", "redirect", "page") else "sum")(request)

    def big(self, request):
        request.stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
        for _ in range(BIG // len(PIECE)):
            request.stream.sendall(PIECE)

    def events(self, request):
        """Each event is sent when the one before was heard: a client, or a proxy, that holds one back never gets the next."""
        request.stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(EVENTS):
            event = b"data: event %d\n\n" % i
            request.stream.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            if not self.heard[request.path].acquire(timeout=20):
                raise OSError("event %d was not heard of" % i)
        request.stream.sendall(b"0\r\n\r\n")

    def redirect(self, request):
        request.answer("302 Found", fields=[("Location", self.elsewhere + request.path)])

    def page(self, request):
        request.answer(body=self.PAGE, fields=[("Content-Type", "text/html")])

    def sum(self, request):
        summed, size = hashlib.sha256(), [0]

        def feed(piece):
            summed.update(piece)
            size[0] += len(piece)
        request.body(feed)
        told = {"method": request.method, "path": request.path, "size": size[0], "sha256": summed.hexdigest()}
        request.answer(body=json.dumps(told).encode(), fields=[("Content-Type", "application/json")])


class Elsewhere:
    """The host that redirects lead to; it writes down what it is told."""

    def __init__(self):
        self.seen = {}

    def __call__(self, request):
        request.body(lambda piece: None)
        self.seen[request.path] = request.fields.get("authorization")
        request.answer(body=b"" if request.method == "PUT" else b"landed\n")


class GitCgi:
    """`git http-backend` behind TLS, which wants the real password."""

    def __init__(self, root, password):
        self.root, self.served = root, []
        self.wanted = "Basic " + base64.b64encode(("x:" + password).encode()).decode()

    def environment(self, request):
        env = {"GIT_PROJECT_ROOT": self.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": request.path, "HOME": self.root,
               "QUERY_STRING": request.query, "REQUEST_METHOD": request.method, "REMOTE_USER": "x",
               "REMOTE_ADDR": "127.0.0.1", "PATH": os.environ["PATH"],
               "CONTENT_TYPE": request.fields.get("content-type", ""),
               "HTTP_CONTENT_ENCODING": request.fields.get("content-encoding", ""),
               "GIT_PROTOCOL": request.fields.get("git-protocol", "")}
        if "content-length" in request.fields:
            env["CONTENT_LENGTH"] = request.fields["content-length"]
        return env

    def __call__(self, request):
        if request.fields.get("authorization") != self.wanted:
            request.body(lambda piece: None)
            request.answer("401 Unauthorized", fields=[("WWW-Authenticate", "Basic realm=git")])
            return
        self.served.append((request.method, request.path))
        backend = subprocess.Popen(["git", "http-backend"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=self.environment(request))
        output = []
        reader = threading.Thread(target=lambda: output.append(backend.stdout.read()))
        reader.start()
        request.body(backend.stdin.write)
        backend.stdin.close()
        reader.join()
        backend.wait()
        head, _, body = output[0].partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n") if ": " in line]
        status = next((value for name, value in fields if name == "Status"), "200 OK")
        request.answer(status, body, [field for field in fields if field[0] != "Status"])
