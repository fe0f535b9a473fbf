"""Guests of vsock, told apart by their CIDs alone. Runs in the machine of test_vsock.py."""
import errno
import hashlib
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

from helpers import HOSTS, POLICY, SECRET, Answer, ask  # noqa: E402
from place import OK_ANSWER, Place, Report, Upstream, read_all, wait_for  # noqa: E402
from test_listeners import vsock_is_a_way_in_for_the_guest_that_it_names  # noqa: E402
from virtual_guest import HOST, NO_MORE_SENT, RW, SHUTDOWN, Guest  # noqa: E402

LOCAL = socket.VMADDR_CID_LOCAL if hasattr(socket, "VMADDR_CID_LOCAL") else 1
FIRST, SECOND, AGAIN, STRANGER = 3, 4, 5, 6  # CIDs
SHARED, OWN = 3001, 3002  # ports
CONNECTIONS = 64
STALL_SECONDS = 3
PLAIN = """
service plain { host plain.allowed.test; port {plain}; tls clear; range 127.0.0.0/8; operation every { * /** } }
"""
CONFIG = "listen vsock %d { sandbox a; cid %%s }\nlisten vsock %d { sandbox c; cid %d }\nlimit connections %d\nlimit body-stall-time %d\n" % (
    SHARED, OWN, SECOND, CONNECTIONS, STALL_SECONDS)
# What systemd would hand over for ListenStream=vsock::PORT.
ACTIVATE = """
import os, socket, sys
s = socket.socket(socket.AF_VSOCK)
s.bind((socket.VMADDR_CID_ANY, int(sys.argv[1])))
s.listen()
os.dup2(s.fileno(), 3, inheritable=True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class World(Place):
    """A way in is a guest's CID and the port that it connects to."""

    def __init__(self):
        self.plain = Upstream()
        super().__init__(POLICY.replace("sandbox a { ", PLAIN + "sandbox a { grant plain every; "), {}, {"demo-key": (SECRET, "sk-demo-")},
                         ("a", "c"), CONFIG % ("%d %d" % (FIRST, AGAIN)), {"plain": self.plain.port}, hosts=HOSTS + ("plain.allowed.test",))
        self.guests = {cid: Guest(cid) for cid in (FIRST, SECOND, AGAIN, STRANGER)}

    def connect(self, listener):
        cid, port = listener
        return self.guests[cid].connect(port)

    def newest(self, **facts):
        """The newest decision with these facts."""
        return wait_for(lambda: next((r for r in reversed(self.records()) if r["kind"] == "decision" and all(
            r.get(k) == v for k, v in facts.items())), None))

    def plain_request(self, path):
        authority = b"plain.allowed.test:%d" % self.plain.port
        return b"GET http://%s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (authority, path.encode(), authority)

    def ask_plainly(self, cid, path, port=SHARED):
        """One request, over a connection of its own."""
        with self.connect((cid, port)) as stream:
            stream.sendall(self.plain_request(path))
            return Answer(read_all(stream))

    def change(self, *cids):
        self.config_text = CONFIG % " ".join(map(str, cids))
        self.configure()
        self.exeat("reload")

    def __exit__(self, *ignored):
        super().__exit__()
        self.plain.close()
        for guest in self.guests.values():
            guest.close()


tests = []


def test(function):
    tests.append(function)
    return function


# ---- who is who ----

@test
def a_guest_is_the_sandbox_that_its_cid_names(w):
    for cid, port, sandbox in ((FIRST, SHARED, "a"), (SECOND, OWN, "c"), (AGAIN, SHARED, "a")):
        answer = ask(w, "GET /v1/items/of-%d" % cid, sandbox, listener=(cid, port))
        assert answer.status == 200 and SECRET.encode() in w.upstream.requests[-1], answer
        record = w.newest(path="/v1/items/of-%d" % cid)
        assert record["sandbox"] == sandbox and record["client"] == "vsock cid %d" % cid and record["verdict"] == "allow", record


@test
def a_guest_has_only_its_own_sandboxs_placeholders(w):
    answer = ask(w, "GET /v1/items/stolen", placeholder=w.placeholder("a", "demo-key"), listener=(SECOND, OWN))
    assert answer.status == 403 and answer.reason == "foreign_credential", answer


@test
def a_plain_request_of_a_guest_is_served(w):
    answer = w.ask_plainly(FIRST, "/plain")
    assert answer.status == 200 and b"GET /plain" in w.plain.requests[-1], answer
    assert w.newest(path="/plain")["client"] == "vsock cid %d" % FIRST


@test
def socks_is_served_over_vsock(w):
    authority = ("open.allowed.test", w.values["port"])
    stream = w.connect((FIRST, SHARED))
    stream.sendall(b"\x05\x01\x00")
    assert stream.recv(2) == b"\x05\x00"
    stream.sendall(b"\x05\x01\x00\x03" + bytes([len(authority[0])]) + authority[0].encode() + authority[1].to_bytes(2, "big"))
    assert stream.recv(10)[:2] == b"\x05\x00"
    with w.client_context().wrap_socket(stream, server_hostname=authority[0]) as tls:
        tls.sendall(b"GET /by-socks HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n" % (authority[0].encode(), authority[1]))
        assert Answer(read_all(tls)).status == 200
    assert w.newest(path="/by-socks", door="socks")["client"] == "vsock cid %d" % FIRST


@test
def a_guest_that_a_listener_does_not_name_is_refused_with_a_record(w):
    w.plain.forget()
    for cid, port, sandbox in ((STRANGER, SHARED, "a"), (SECOND, SHARED, "a"), (FIRST, OWN, "c")):
        # Unasked, and whatever it asks for.
        with w.connect((cid, port)) as stream:
            unasked = Answer(read_all(stream))
        for answer in (unasked, w.ask_plainly(cid, "/refused", port)):
            assert (answer.status, answer.reason) == (403, "peer_not_allowed"), answer
            record = w.newest(id=answer.record)
            assert record["client"] == "vsock cid %d" % cid and record["sandbox"] == sandbox and record["verdict"] == "deny", record
    assert not w.plain.connections


@test
def the_host_itself_is_no_guest(w):
    for cid in (LOCAL, HOST):
        with socket.socket(socket.AF_VSOCK) as stream:
            stream.settimeout(15)
            stream.connect((cid, SHARED))
            answer = Answer(read_all(stream))
        assert (answer.status, answer.reason) == (403, "peer_not_allowed"), answer
        assert w.newest(id=answer.record)["client"] == "vsock cid %d" % LOCAL, w.newest(id=answer.record)


# ---- who claims to be another ----

@test
def no_process_of_the_host_can_take_a_guests_cid(_):
    with socket.socket(socket.AF_VSOCK) as stream:
        try:
            stream.bind((FIRST, 7000))
        except OSError as why:
            assert why.errno == errno.EADDRNOTAVAIL, why
        else:
            assert False, "bound to the CID of a guest"


@test
def what_a_guest_sends_under_another_cid_does_not_arrive(w):
    stranger, before = w.guests[STRANGER], len(w.records())
    forged = [stranger.start(SHARED, source=cid) for cid in (FIRST, AGAIN, HOST, LOCAL, 0, socket.VMADDR_CID_ANY, FIRST + (1 << 32))]
    # The device takes one after the other: what comes behind them is answered.
    answer = Answer(read_all(stranger.connect(SHARED)))
    assert answer.reason == "peer_not_allowed" and w.newest(id=answer.record)["client"] == "vsock cid %d" % STRANGER, answer
    assert not [c for c in forged if c.answered.is_set()]
    assert {r["client"] for r in w.records()[before:] if "client" in r} == {"vsock cid %d" % STRANGER}, w.records()[before:]


@test
def nobody_writes_into_the_connection_of_another_guest(w):
    first, rest = w.plain_request("/mine").split(b"\r\n", 1)
    c = w.guests[FIRST].start(SHARED)
    assert c.answered.wait(20) and c.open
    c.outer.settimeout(30)
    c.outer.sendall(first + b"\r\n")
    assert wait_for(lambda: c.sent), "the guest has sent nothing"
    w.guests[STRANGER].send(RW, c.port, SHARED, b"X-Forged: yes\r\n", source=FIRST)
    w.guests[STRANGER].send(SHUTDOWN, c.port, SHARED, flags=NO_MORE_SENT, source=FIRST)
    assert w.ask_plainly(STRANGER, "/behind").reason == "peer_not_allowed"
    c.outer.sendall(rest)
    assert Answer(read_all(c.outer)).status == 200
    assert b"GET /mine" in w.plain.requests[-1] and b"Forged" not in w.plain.requests[-1], w.plain.requests[-1]
    c.outer.close()


# ---- what is carried ----

@test
def a_megabyte_each_way_arrives_as_it_was_sent(w):
    body, script = os.urandom(1 << 20), w.upstream.script
    w.upstream.script = lambda request, stream: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body), hashlib.sha256(request.partition(b"\r\n\r\n")[2]).digest() + body[32:])
    try:
        answer = ask(w, "PUT /v1/items/big", "a", body=body, listener=(FIRST, SHARED))
    finally:
        w.upstream.script = script
    assert answer.status == 200 and answer.body == hashlib.sha256(body).digest() + body[32:], answer


@test
def a_guest_may_connect_again_and_again(w):
    for n in range(100):
        answer = w.ask_plainly(FIRST, "/again/%d" % n)
        assert answer.status == 200, (n, answer)
    assert w.newest(path="/again/99")
    # Nothing is left of them: not a connection of the device's, either.
    assert wait_for(lambda: not w.guests[FIRST].connections), w.guests[FIRST].connections


@test
def a_guest_that_takes_all_connections_harms_itself_alone(w):
    held = [w.connect((FIRST, SHARED)) for _ in range(CONNECTIONS + 20)]
    # A newcomer is let in, and who was silent for longest has gone.
    assert w.ask_plainly(FIRST, "/crowded").status == 200
    assert read_all(held[0]) == b""
    answer = ask(w, "GET /v1/items/calm", "c", listener=(SECOND, OWN))
    assert answer.status == 200, answer
    for stream in held:
        stream.close()
    assert w.ask_plainly(FIRST, "/calm").status == 200


@test
def a_guest_that_takes_nothing_holds_nothing_for_long(w):
    """Its device stands still with the first connection that nobody reads, as that of a frozen machine does."""
    cut = threading.Event()

    def answer_at_length(_, stream):
        stream.settimeout(None)
        try:
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (32 << 20) + bytes(32 << 20))
        except OSError:
            cut.set()

    w.plain.script = answer_at_length
    frozen = w.connect((AGAIN, SHARED))
    try:
        frozen.sendall(w.plain_request("/frozen"))
        assert w.newest(path="/frozen", verdict="allow"), "the request is not recorded"
        answer = ask(w, "GET /v1/items/moving", "c", listener=(SECOND, OWN))
        assert answer.status == 200, answer
        assert cut.wait(STALL_SECONDS + 20), "the upstream's connection is kept for a guest that takes nothing"
    finally:
        frozen.close()
        w.plain.script = lambda request, stream: OK_ANSWER
    assert w.ask_plainly(AGAIN, "/thawed").status == 200


# ---- machines that come and go ----

@test
def a_guest_that_is_switched_off_leaves_nothing_open(w):
    begun, gone = threading.Event(), threading.Event()

    def wait_for_the_end(_, stream):
        begun.set()
        if stream.recv(1) == b"":
            gone.set()

    w.plain.script = wait_for_the_end
    try:
        stream = w.connect((AGAIN, SHARED))
        stream.sendall(w.plain_request("/long"))
        assert begun.wait(20), "the request does not arrive"
        w.guests[AGAIN].close()
        assert gone.wait(20), "the upstream's connection outlives the guest"
    finally:
        w.plain.script = lambda request, stream: OK_ANSWER
    # The next machine with this CID begins anew.
    w.guests[AGAIN] = Guest(AGAIN)
    assert w.ask_plainly(AGAIN, "/anew").status == 200


@test
def a_reload_changes_which_guests_a_listener_names(w):
    w.change(FIRST, STRANGER)
    try:
        assert w.ask_plainly(STRANGER, "/named").status == 200
        assert w.newest(path="/named")["sandbox"] == "a"
        assert w.ask_plainly(AGAIN, "/named-no-more").reason == "peer_not_allowed"
    finally:
        w.change(FIRST, AGAIN)
    assert w.ask_plainly(AGAIN, "/named-again").status == 200


@test
def a_vsock_listener_can_come_from_socket_activation(w):
    """The port is in use by the descriptor: had exeatd to bind it itself, it could not start."""
    w.stop()
    w.prefix = [sys.executable, "-c", ACTIVATE, str(SHARED)]
    w.launch()
    assert w.ask_plainly(FIRST, "/activated").status == 200
    assert w.ask_plainly(STRANGER, "/activated").reason == "peer_not_allowed"


if __name__ == "__main__":
    report = Report()
    report.run_in(World, tests)
    report.run_all([vsock_is_a_way_in_for_the_guest_that_it_names])
    report.end()
