"""A launcher's side of base/attach.h, in Python: what test programs use to attach sandboxes."""
import encodings.idna  # noqa: F401 (resolving takes it, and a child that is another user may not read Python's files)
import array
import ctypes
import json
import os
import pickle
import socket
import ssl
import struct
import traceback

from helpers import Answer, head
from place import basic, read_head, read_all

EXPLICIT, TRANSPARENT, DNS_UDP, UNREACHABLE, LOGGED = 1, 2, 3, 5, 6
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000


class Refusal(AssertionError):
    """What was answered instead of an environment: a code and a sentence."""

    def __init__(self, code, text):
        super().__init__("%d: %s" % (code, text))
        self.code, self.text = code, text


def block(data):
    return struct.pack(">I", len(data)) + data


def request(sandbox, kinds, version=2, n=None):
    return bytes([version]) + block(sandbox.encode()) + bytes([len(kinds) if n is None else n]) + bytes(kinds)


def send(stream, packet, sockets):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno() for s in sockets]))]
    try:
        stream.sendmsg([packet], rights if sockets else [])
    except BrokenPipeError:
        pass  # it was refused before: the answer says why


def receive(stream):
    """The answer's JSON and the certificates; a Refusal, or EOFError when there is none."""
    data = stream.recv(1 << 20)
    if not data:
        raise EOFError("the connection ended without an answer")
    size = struct.unpack(">I", data[1:5])[0]
    text, rest = data[5:5 + size], data[5 + size:]
    assert struct.unpack(">I", rest[:4])[0] == len(rest) - 4, data
    if data[0]:
        raise Refusal(-data[0], text.decode())
    return json.loads(text), rest[4:]


def finding(probe, what, verdict=0, why="refused", fix=""):
    """One of a report; 0: contained, 1: escaped, 2: unsure."""
    return bytes([verdict]) + b"".join(block(word.encode()) for word in (probe, what, why, fix))


TIGHT = finding("udp", "192.0.2.1:9") + finding("raw", "IPv4")


def report(stream, findings=TIGHT):
    """What the launcher's probes found; returns when exeatd serves, else raises a Refusal."""
    stream.send(b"r" + findings)
    data = stream.recv(1 << 16)
    if not data:
        raise EOFError("the connection ended without an answer")
    if data[0]:
        size = struct.unpack(">I", data[1:5])[0]
        raise Refusal(-data[0], data[5:5 + size].decode())


def ended(stream):
    """Waits for the end of the connection, also when what was said last was not read."""
    try:
        return stream.recv(1) == b""
    except ConnectionResetError:
        return True


def connect(path, seconds=20):
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stream.settimeout(seconds)
    stream.connect(path)
    return stream


class Attached:
    """A sandbox that is attached as long as this is open; it is reached at a listener of the test's own."""

    def __init__(self, place, sandbox, kinds=(EXPLICIT,)):
        self.place, self.sandbox = place, sandbox
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.stream = connect(place.path("attach.sock"))
        try:
            send(self.stream, request(sandbox, kinds), [self.listener])
            self.issued, self.ca = receive(self.stream)
        except BaseException:
            self.close()
            raise
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def close(self):
        self.stream.close()
        self.listener.close()

    def placeholder(self, credential="demo-key"):
        return next(p["value"] for p in self.issued["placeholders"] if p["credential"] == credential)

    def ask(self, line="GET /v1/items", host="api.allowed.test", placeholder="own", token=True):
        """One request, with no more trust than the certificates that came with the answer."""
        authority = "%s:%d" % (host, self.place.values["port"])
        with socket.create_connection(("127.0.0.1", self.port), timeout=15) as raw:
            # Its listener is in exeatd's network, where anybody could connect to it.
            proof = b"Proxy-Authorization: %s\r\n" % basic(self.sandbox, self.issued["token"]) if token else b""
            raw.sendall(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (authority.encode(), proof))
            said, rest = read_head(raw)
            if not said.startswith(b"HTTP/1.1 200"):
                return Answer(said + rest + read_all(raw))
            context = ssl.create_default_context(cadata=self.ca.decode())
            with context.wrap_socket(raw, server_hostname=host) as stream:
                own = self.placeholder() if placeholder == "own" else placeholder
                stream.sendall(head(self.place, line, host, own))
                return Answer(read_all(stream))


def in_child(function, uid=None, groups=(), unshare=0):
    """What function returns in a process of another user, or in other namespaces; what it raises is raised here."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        try:
            if uid is not None:
                os.setgroups(list(groups))
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            if unshare and ctypes.CDLL(None, use_errno=True).unshare(unshare) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            result = (True, function())
        except BaseException as failure:
            result = (False, (type(failure).__name__, getattr(failure, "text", None) or traceback.format_exc()))
        with os.fdopen(into, "wb") as f:
            pickle.dump(result, f)
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as f:
        worked, result = pickle.load(f)
    os.waitpid(pid, 0)
    return worked, result
