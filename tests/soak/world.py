"""The world of a soak: an exeat with three lanes, what its requests and answers must be, upstreams and a resolver with moods.

Every request has an id of 16 hex digits, and everything follows from that id and the body: how the
answer is framed, how long it is, what is in it. So a client can check every byte of what it gets,
and nobody has to remember anything.
"""
import collections
import gzip
import hashlib
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))

from place import Place, Resolver, Upstream, read_all, read_head  # noqa: E402, F401

SECRET = "sk-demo-7Gk2Qw9ZxC4vB6nM1aSdF3gHjKlPoIuY"
BUSY, QUIET, SHARED = "busy.allowed.test", "quiet.allowed.test", "shared.allowed.test"
HOSTS = {BUSY: "busy", QUIET: "quiet", SHARED: "shared"}
# Who lives where: the busy lane suffers, the quiet one must not notice; calm and hog share a third.
LISTENERS = {"busy": "sandbox busy", "quiet": "sandbox quiet", "shared": "shared calm hog"}
SANDBOXES = {"busy": BUSY, "quiet": QUIET, "calm": SHARED, "hog": SHARED}
# How ids of requests begin that go to an upstream without exeat, to see what the machine itself does to times.
DIRECT = "0ff0aaaa"

SERVICE = """
service %s {
    host %s
    port {%s}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation every { GET POST /v1/items/** }
}
"""
POLICY = "".join(SERVICE % (name, host, name) for host, name in HOSTS.items()) + "".join(
    "sandbox %s { grant %s every }\n" % (name, HOSTS[host]) for name, host in SANDBOXES.items())
# Short times, so that a minute is enough to see them end.
CONFIG = """
limit connections 1500
limit first-byte-time 4s
limit head-time 4s
limit handshake-time 4s
limit body-stall-time 4s
limit answer-time 3s
limit dns-time 2s
limit connect-time 2s
limit upstream-handshake-time 2s
limit pool-size 4
limit pool-idle-time 2s
limit guard-time 60s
limit lease-time 2s
limit audit-file 8M
limit head-interval 1s
"""


# ---- what an answer must be ----

Exchange = collections.namedtuple("Exchange", "method path body type")


def exchange(ident):
    """The request with this id."""
    path, kind = "/v1/items/" + ident, int(ident[0], 16)
    if kind < 9:
        return Exchange("GET", path, b"", None)
    size = int(ident[8:12], 16) % (200000 if kind == 9 else 3000)
    filling = (ident * (size // 16 + 1))[:size].encode()
    if kind < 13:
        return Exchange("POST", path, b'{"text": "%s"}' % filling, "application/json")
    return Exchange("POST", path, filling, "application/octet-stream")


def content(ident, body):
    """The answer's body. One in 16 holds the secret, which must not arrive."""
    seed = hashlib.sha256(ident.encode() + body).hexdigest().encode()
    size = int(ident[4:8], 16) * 8 if ident[1] == "0" else int(ident[4:8], 16) % 4000
    text = (seed * (size // 64 + 2))[:64 + size]
    return b"key=%s\n%s" % (SECRET.encode(), text) if ident[2] == "0" else text


def masked(body):
    """The same as the sandbox must see it."""
    return body.replace(SECRET.encode(), b"*" * len(SECRET))


def answer(ident, body):
    """Head and body as the upstream writes them."""
    text = content(ident, body)
    framing = int(ident[3], 16)
    if framing < 9:
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)
    fields = b""
    if framing > 11:
        text, fields = gzip.compress(text, 1), b"Content-Encoding: gzip\r\n"
    half = len(text) // 2
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(t), t) for t in (text[:half], text[half:]) if t)
    return b"HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n" % (fields, chunks)


# ---- upstreams ----

def reset(stream, whole, begun):
    if begun:
        stream.sendall(whole[:len(whole) // 2])
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def stall(stream, whole, begun):
    if begun:
        stream.sendall(whole[:len(whole) // 2])
    stream.settimeout(6)
    stream.recv(1)


def truncate(stream, whole, begun):
    stream.sendall(whole[:len(whole) // 2 if begun else 20])


def flood(stream, whole, begun):
    """More than was asked for: behind a whole answer, or a head without end."""
    if begun:
        stream.sendall(whole + b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsmuggled!" * 2000)
    else:
        for _ in range(60):
            stream.sendall(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 60000)


MOODS = [None, reset, stall, truncate, flood]


def dechunk(data):
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        if int(size, 16) == 0:
            return body
        body, data = body + data[:int(size, 16)], data[int(size, 16) + 2:]


def serve(port_out, mood, ledger, certificate, key, closes_every):
    """
    An upstream's process. Every request that arrives whole is a line of the ledger before it is answered:
    time, id, method, whether it was what the client sent, whether the secret was in its place. In a mood half of the
    answers are odd.
    """
    lines = open(ledger, "a", buffering=1)
    up = Upstream(certificate, key)
    up.requests = up.broken = collections.deque(maxlen=1)
    count = [0]

    def script(request, stream):
        now = time.time()
        head, _, rest = request.partition(b"\r\n\r\n")
        fields = [f.lower() for f in head.split(b"\r\n")[1:]]
        method, path = head.decode("latin-1").split(" ", 2)[:2]
        ident = path.rsplit("/", 1)[1]
        wanted = exchange(ident)
        body = dechunk(rest) if b"transfer-encoding: chunked" in fields else rest
        right = (method, path, body) == wanted[:3]
        lent = [f for f in fields if f.startswith(b"authorization")] == [b"authorization: bearer " + SECRET.lower().encode()] \
            and SECRET.encode() in head
        lines.write("%.6f %s %s %d %d\n" % (now, ident, method, right, lent))
        whole = answer(ident, body)
        odd = MOODS[mood.value] if mood else None
        if odd and ident[15] in "01234567":
            odd(stream, whole, ident[14] in "01234567")
            return None
        count[0] += 1
        if count[0] % closes_every == 0:
            stream.sendall(whole.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            return None
        return whole

    up.script = script
    port_out.put(up.port)
    while True:
        time.sleep(3600)


# ---- the resolver ----

class MoodyResolver(Resolver):
    """Lies and stalls about the busy lane's name, never about the others."""

    LIES = {"private": ["10.0.0.7"], "metadata": ["169.254.169.254"], "mixed": ["127.0.0.1", "192.168.1.1"],
            "nothing": []}
    mood = None

    def reply(self, query, name, kind, end):
        if name != BUSY or not self.mood:
            return super().reply(query, name, kind, end)
        if self.mood == "stall":
            return None
        if self.mood == "garbage":
            return query[:2] + os.urandom(40)
        return self.write(query, kind, end, self.LIES[self.mood])


def make_place(ports, build):
    """An exeat that is not started yet; ports: of the upstreams, by service."""
    place = Place(POLICY, LISTENERS, {"demo-key": (SECRET, "sk-demo-")}, tuple(SANDBOXES), CONFIG, ports, build,
                  hosts=tuple(HOSTS), dns={h: ["127.0.0.1"] for h in HOSTS})
    place.resolver.close()
    place.resolver = MoodyResolver({h: ["127.0.0.1"] for h in HOSTS})
    return place
