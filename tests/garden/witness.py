"""The server that stands behind the garden's proxies and tells what it was handed, in order and to the byte.

As strict as it can be: what is not plainly one message ends the connection, and is remembered as broken.
Its answer says what it saw; a target that ends in "answer-KIND" gets an odd but legal one (ANSWERS).
"""
import gzip
import hashlib
import re
import socket
import ssl
import threading

from place import Listener


class Broken(Exception):
    pass


class Stream:
    """Bytes of a connection, by line and by number."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def _more(self):
        got = self.sock.recv(65536)
        if not got:
            raise Broken("it ended within a message: %r" % self.data[:200])
        self.data += got

    def line(self):
        while b"\r\n" not in self.data:
            self._more()
        line, _, self.data = self.data.partition(b"\r\n")
        return line

    def take(self, n):
        parts = [self.data[:n]]
        missing, self.data = n - len(parts[0]), self.data[n:]
        while missing > 0:
            self._more()
            parts.append(self.data[:missing])
            self.data = self.data[len(parts[-1]):]
            missing -= len(parts[-1])
        return b"".join(parts)

    def is_over(self):
        if not self.data:
            self.data = self.sock.recv(65536)
        return not self.data


def read_fields(stream):
    fields = {}
    while True:
        line = stream.line()
        if not line:
            return fields
        name, colon, value = line.partition(b":")
        if not colon or name.strip() != name or name.lower() in fields and name.lower() in (b"content-length", b"transfer-encoding"):
            raise Broken("a field line %r" % line)
        fields[name.lower()] = value.strip()


def read_chunks(stream):
    body = b""
    while True:
        size = stream.line()
        if not re.fullmatch(rb"[0-9a-fA-F]+(;.*)?", size):
            raise Broken("a chunk size %r" % size)
        size = int(size.partition(b";")[0], 16)
        if size == 0:
            read_fields(stream)
            return body
        body += stream.take(size)
        if stream.line() != b"":
            raise Broken("no line end behind a chunk")


def read_body(stream, fields):
    coding, length = fields.get(b"transfer-encoding"), fields.get(b"content-length")
    if coding is not None:
        if coding != b"chunked" or length is not None:
            raise Broken("framing %r %r" % (coding, length))
        return read_chunks(stream)
    if length is not None and not length.isdigit():
        raise Broken("a length %r" % length)
    return stream.take(int(length or 0))


def says(method, target, body):
    """What every server of the garden answers to a request that asks for nothing else."""
    return "%s %s %d %s\n" % (method, target, len(body), hashlib.sha256(body).hexdigest())


def end_tls(sock):
    """The alert without which an end may be somebody's cut; the peer may have gone before."""
    if isinstance(sock, ssl.SSLSocket):
        try:
            sock.unwrap()
        except (OSError, ValueError):
            pass


PACKED = gzip.compress(b"packed " * 100)
# What a target that ends in answer-KIND gets, but for the body in answers to HEAD; the last word: whether it then closes.
ANSWERS = {
    "empty": (b"200 OK\r\nContent-Length: 0\r\n\r\n", b"", False),
    "204": (b"204 No Content\r\n\r\n", b"", False),
    "205": (b"205 Reset Content\r\nContent-Length: 0\r\n\r\n", b"", False),
    "304": (b"304 Not Modified\r\nETag: \"a\"\r\n\r\n", b"", False),
    "304-length": (b"304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n", b"", False),
    "404": (b"404 Not Found\r\nContent-Length: 5\r\n\r\n", b"gone\n", False),
    "chunked": (b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n", False),
    "trailers": (b"200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n", False),
    "gzip": (b"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED), PACKED, False),
    "close": (b"200 OK\r\nContent-Type: text/plain\r\n\r\n", b"until the end HTTP/1.1 200 OK", True),
    "http10": (b"200 OK\r\nContent-Type: text/plain\r\n\r\n", b"until the end", True),
    "no-phrase": (b"200 \r\nContent-Length: 5\r\n\r\n", b"hello", False),
    "like-an-answer": (b"200 OK\r\nContent-Length: 42\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfoo\n", False),
    "partial": (b"206 Partial Content\r\nContent-Range: bytes 0-4/11\r\nContent-Length: 5\r\n\r\n", b"hello", False),
    "empty-chunked": (b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n\r\n", False),
    "hints": (b"103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello", False),
}
EARLY = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge"


class Witness:
    """Listens; `requests` are (method, target, length, digest), whole ones only."""

    def __init__(self):
        self.requests, self.broken, self.lock = [], [], threading.Lock()
        self.listeners = []
        self.port = self.listen()

    def listen(self, certificate=None):
        """One more port, with TLS when there is a certificate (paths of it and its key)."""
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
        self.listeners.append(Listener(lambda sock: self._serve(sock, context)))
        return self.listeners[-1].port

    def _serve(self, sock, context):
        sock.settimeout(60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            stream = Stream(context.wrap_socket(sock, server_side=True) if context else sock)
            while not stream.is_over() and self._exchange(stream):
                pass
            end_tls(stream.sock)
        except Broken as why:
            with self.lock:
                self.broken.append(str(why))
        except OSError:
            pass
        finally:
            sock.close()

    def _exchange(self, stream):
        """Whether the connection can be used again."""
        line = stream.line().decode("latin-1")
        if line.count(" ") != 2:
            raise Broken("a request line %r" % line)
        method, target, version = line.split(" ")
        fields = read_fields(stream)
        if target.endswith("answer-413"):
            stream.sock.sendall(EARLY)
            stream.sock.shutdown(socket.SHUT_WR)
            while stream.sock.recv(65536):
                pass
            return False
        if fields.get(b"expect"):
            stream.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = read_body(stream, fields)
        with self.lock:
            self.requests.append((method, target, len(body), hashlib.sha256(body).hexdigest()))
        return self._answer(stream, method, target, version, body) and b"close" not in fields.get(b"connection", b"")

    @staticmethod
    def _answer(stream, method, target, version, body):
        kind = target.rpartition("/answer-")[2]
        text = says(method, target, body).encode()
        head, answer, closes = ANSWERS.get(kind, (b"200 OK\r\nContent-Length: %d\r\n\r\n" % len(text), text, False))
        closes = closes or version == "HTTP/1.0"
        if closes:
            head = head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        line = b"HTTP/1.0 " if kind == "http10" else b"HTTP/1.1 "
        stream.sock.sendall(line + head + (b"" if method == "HEAD" else answer))
        return not closes

    def close(self):
        while self.listeners:
            self.listeners.pop().close()
