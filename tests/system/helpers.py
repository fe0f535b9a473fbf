"""What several test programs share: requests, waiting for processes, looking into memory."""
import gzip
import os
import re
import signal
import time

from cases import Secure, forms
from place import Place, Refused, need_root, read_all, wait_for

SECRET = "sk-demo-7Gk2Qw9ZxC4vB6nM1aSdF3gHjKlPoIuY"
POLICY = """
service api {
    host api.allowed.test
    port {port}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation read { GET HEAD /v1/items; GET /v1/items/** }
    operation write { POST PUT /v1/items; PUT POST /v1/items/** }
    never { * /v1/items/*/share }
}
service open {
    host open.allowed.test
    port {port}
    range 127.0.0.0/8
    operation every { * /; * /** }
}
sandbox a { grant api read write; grant open every }
sandbox b { grant api read }
sandbox c { grant api read write }
sandbox d { grant api read }
"""
HOSTS = ("api.allowed.test", "open.allowed.test")


def small_place(policy=POLICY, listeners=None, sandboxes=("a", "b"), secrets=None, hosts=HOSTS, **more):
    """A place with two sandboxes of their own listeners, and one secret."""
    if listeners is None:
        listeners = {"a": "sandbox a", "b": "sandbox b"}
    return Place(policy, listeners, {"demo-key": (SECRET, "sk-demo-")} if secrets is None else secrets, sandboxes,
                 hosts=hosts, **more)


class Answer:
    def __init__(self, data):
        self.bytes = data
        found = re.match(rb"HTTP/1\.[01] (\d\d\d)", data)
        self.status = int(found.group(1)) if found else None
        found = re.search(rb"exeat-refusal: [^\r]*\(([a-z_]+); record ([^)\r]+)\)", data)
        self.reason = found.group(1).decode() if found else None
        self.record = found.group(2).decode() if found else None
        self.body = data.partition(b"\r\n\r\n")[2]

    def __repr__(self):
        return repr(self.bytes[:400])


def head(place, line, host="api.allowed.test", placeholder=None, fields=""):
    return ("%s HTTP/1.1\r\nHost: %s:%d\r\n%s%sConnection: close\r\n\r\n" % (
        line, host, place.values["port"], "Authorization: Bearer %s\r\n" % placeholder if placeholder else "",
        fields)).encode()


def answer(body, fields=b""):
    """What an upstream may say."""
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (fields, len(body), body)


def code(place, *args, stdin=None):
    """The exit status of an operator's command."""
    place.exeat(*args, stdin=stdin, check=False)
    return place.last.returncode


def open_tls(place, sandbox="a", host="api.allowed.test", fields=b""):
    """A client behind CONNECT and TLS, or None when the tunnel is refused or the handshake fails."""
    return place.tls(sandbox, "%s:%d" % (host, place.values["port"]), fields=fields)


def ask(place, line="GET /v1/items", sandbox="a", host="api.allowed.test", placeholder="own", fields="", body=b"",
        listener=None, proxy_fields=b""):
    """One request over a new connection; its answer. placeholder: a value, "own", or None."""
    if placeholder == "own":
        placeholder = place.placeholder(sandbox, "demo-key")
    try:
        stream = open_tls(place, listener or sandbox, host, proxy_fields)
    except Refused as refused:
        return Answer(refused.data)
    if body:
        fields += "Content-Length: %d\r\n" % len(body)
    try:
        stream.sendall(head(place, line, host, placeholder, fields) + body)
        return Answer(read_all(stream))
    finally:
        stream.close()


def ask_quietly(place, *args, **kwargs):
    """The same, while parts of the daemon are away: any failure to connect is an answer without a status."""
    try:
        return ask(place, *args, **kwargs)
    except OSError as failure:
        return Answer(str(failure).encode())


def is_served(place, sandbox="a", seconds=15):
    """Waits until an ordinary request is answered again."""
    return wait_for(lambda: ask_quietly(place, sandbox=sandbox).status == 200, seconds, 0.05)


def kill_and_wait(place, key):
    """kill -9 of one process; the pid of its successor, once it is up."""
    old = wait_for(lambda: place.pids().get(key), 15, 0.05)
    assert old, "%s %d is not there" % key
    os.kill(old, signal.SIGKILL)

    def successor():
        new = place.pids().get(key)
        return new if new != old else None

    return wait_for(successor, 15, 0.05)


def wake_inspect(place):
    """Has the first lane's inspect, which sleeps until a body needs it, decode an answer; whether it did."""
    script, body = place.upstream.script, gzip.compress(b"wake up")
    place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), body)
    try:
        return b"wake" in ask_quietly(place).body
    finally:
        place.upstream.script = script


def all_pids(place):
    """The processes, inspect among them."""
    assert wait_for(lambda: wake_inspect(place), 15, 0.1), "a compressed answer is not decoded"
    return place.pids()


def memory_of(pid):
    """What a process holds, readable or not, piece by piece. Root only."""
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            # What is huge is a sanitizer's reservation.
            if "r" not in line.split()[1] or "[v" in line or end - start > 1 << 32:
                continue
            for at in range(start, end, 1 << 24):
                try:
                    mem.seek(at)
                    yield mem.read(min(end - at, 1 << 24))
                except OSError:
                    break


def holds(pid, secret):
    """The spelling of a secret that a process has in its memory, or None."""
    for piece in memory_of(pid):
        for form in forms(secret):
            if form in piece:
                return form
    return None


def is_sanitized(place):
    """A sanitizer keeps memory that was freed, and dies where an allocation fails: what memory costs says nothing."""
    with open(os.path.join(place.build, "exeatd"), "rb") as f:
        return b"__asan_init" in f.read()


def resident(pid):
    """Bytes of resident memory."""
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024


def descriptors(pid):
    """How many a process of exeatd has open: nobody but root sees that of those that are undumpable."""
    need_root("look into undumpable processes")
    return len(os.listdir("/proc/%d/fd" % pid))


def exists(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# Datagrams for a second, to ports where nobody is; says how many, and waits until the last of them are told of.
FLOOD = """
import socket, time
s, end, n = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic() + 1, 0
while time.monotonic() < end:
    try:
        s.sendto(b'x', ('198.51.100.9', 10000 + n % 5000))
        n += 1
    except OSError:
        pass
assert n > 1000, n
print(n)
time.sleep(0.5)
"""
