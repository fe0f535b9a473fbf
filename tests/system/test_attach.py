#!/usr/bin/env python3
"""Sandboxes that are attached at run time: who may, what they get, and how they end."""
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import traceback

from attaching import (CLONE_NEWNET, CLONE_NEWUSER, EXPLICIT, TIGHT, TRANSPARENT, DNS_UDP, LOGGED, UNREACHABLE, Attached, Refusal, connect, ended, finding, in_child,
                       receive, report, request, send)
from fuse_file import FuseFile
from helpers import POLICY, SECRET, answer as said, ask, code, descriptors, exists, kill_and_wait, small_place
from place import Report, Skip, basic, need_root, read_all, wait_for

NOBODY, SOMEBODY = 65534, 65533
CONFIG = """
attach attach.sock {
    uid 65534 a
    gid 4711 c
}
limit attached-per-user 3
"""


def attach_place(**more):
    return small_place(POLICY, {"b": "sandbox b"}, ("b",), config=CONFIG, **more)


def refusal(function):
    try:
        function()
    except Refusal as refused:
        return refused.text
    raise AssertionError("it was not refused")


def status(place):
    return json.loads(place.exeat("status", "--json", check=False))


def pids_of(place, lane):
    return [pid for (role, number), pid in place.pids().items() if number == lane]


def lane_of(place, sandbox):
    return next((l["lane"] for l in status(place)["lanes"] if l["sandboxes"] == sandbox), None)


def events(place, name):
    return [r for r in place.records() if r["kind"] == "event" and r["event"] == name]


def role(place, name):
    return place.pids()[(name, 0)]


def attach_and_ask(place, sandbox):
    with Attached(place, sandbox) as attached:
        return attached.ask().status


# ---- what it is ----

def an_attached_sandbox_is_served_until_it_detaches(place):
    """With its own lane, placeholders and CA; all of it ends with the connection."""
    with Attached(place, "a") as attached:
        assert attached.ask().status == 200
        lane = lane_of(place, "a")
        pids = pids_of(place, lane)
        assert len(pids) >= 2, pids
        held = attached.placeholder()
    assert wait_for(lambda: not any(exists(pid) for pid in pids)), "its processes go on"
    assert wait_for(lambda: lane_of(place, "a") is None)
    with socket.socket() as s:
        assert wait_for(lambda: s.connect_ex(("127.0.0.1", attached.port)) != 0), "its listener goes on"
    listed = wait_for(lambda: next(s for s in json.loads(place.exeat("sandbox", "list", "--json"))
                                   if s["name"] == "a" and not s["registered"]))
    assert not listed["issued"], listed
    with Attached(place, "a") as again:
        assert again.placeholder() != held
        answer = again.ask(placeholder=held)
        assert answer.status == 403 and answer.reason, answer
    added, ended = events(place, "lane_added")[0], events(place, "lane_ended")[0]
    assert (added["sandbox"], ended["sandbox"]) == ("a", "a") and "uid %d" % os.getuid() in added["detail"], (added, ended)


def a_sandbox_that_nothing_forces_is_marked_in_the_status_and_every_record(place):
    """Listeners in exeatd's own network show that the sandbox is there as well, whatever its launcher says."""
    before = place.records()[-1]["seq"]
    with Attached(place, "a") as attached:
        assert attached.ask().status == 200
        lane = lane_of(place, "a")
        shown = {l["sandboxes"]: (l["unenforced"], l["listeners"]) for l in status(place)["lanes"]}
        assert shown["a"] == (True, ["on this machine"]) and shown["b"][0] is False, shown
        assert re.search(r"(?m)^%d +no +yes +a " % lane, place.exeat("status")), place.exeat("status")
    assert wait_for(lambda: any(r["seq"] > before for r in events(place, "lane_ended")))
    marked = [r for r in place.records() if r["seq"] > before and r.get("lane") == lane]
    assert {r["origin"].split()[0] for r in marked} == {"parent", "egress", "broker", "ca", "dialer"}, marked
    assert all(r.get("unenforced") == 1 for r in marked), [r for r in marked if r.get("unenforced") != 1]
    assert any(r["kind"] == "outcome" and r.get("unenforced") == 1 for r in place.records()), "outcomes are marked"


def where_nothing_forces_a_sandbox_its_listener_asks_for_the_token(place):
    """Every user of this machine can connect to it."""
    with Attached(place, "a") as attached:
        refused = attached.ask(token=False)
        assert refused.status == 407 and refused.reason == "proxy_auth_required", refused
        with socket.create_connection(("127.0.0.1", attached.port), timeout=15) as s:
            s.sendall(b"GET http://echo.exeat.internal/ HTTP/1.1\r\nHost: echo.exeat.internal\r\nConnection: close\r\n\r\n")
            assert read_all(s).startswith(b"HTTP/1.1 407 ")
        attached.issued["token"] = attached.issued["token"][::-1]
        assert attached.ask().status == 407


def others_go_on_meanwhile(place):
    before = place.pids()
    with Attached(place, "a") as attached:
        assert attached.ask().status == 200 and ask(place, sandbox="b").status == 200
        foreign = attached.ask(placeholder=place.placeholder("b", "demo-key"))
        assert foreign.status == 403, foreign
    after = place.pids()
    assert all(after[key] == pid for key, pid in before.items())


def a_sandbox_is_attached_once_at_a_time(place):
    with Attached(place, "a") as attached:
        assert "attached already" in refusal(lambda: Attached(place, "a"))
        assert attached.ask().status == 200, "the first one lost what it was issued"


def a_sandbox_with_a_listener_is_not_attached(place):
    held = place.placeholder("b", "demo-key")
    said = refusal(lambda: Attached(place, "b"))
    assert "a `listen` line" in said and "take that line away and `exeat reload`" in said, said
    assert ask(place, sandbox="b", placeholder=held).status == 200, "what it was issued has ended"


def a_sandbox_that_the_policy_does_not_have_is_refused(place):
    assert "nobody" in refusal(lambda: Attached(place, "nobody"))
    assert wait_for(lambda: lane_of(place, "nobody") is None)


# ---- who may ----

def a_user_attaches_what_the_configuration_lets_him(place):
    need_root("change the uid")
    assert in_child(lambda: attach_and_ask(place, "a"), NOBODY) == (True, 200)
    worked, (kind, text) = in_child(lambda: attach_and_ask(place, "c"), NOBODY)
    assert not worked and kind == "Refusal" and "may not attach" in text, text
    worked, (kind, text) = in_child(lambda: attach_and_ask(place, "a"), SOMEBODY)
    assert not worked and kind == "Refusal" and "may not attach" in text, text
    refused = wait_for(lambda: [r for r in events(place, "attach_refused") if r["sandbox"] == "c"])
    assert refused[0]["principal"] == str(NOBODY), refused


def who_asks_without_end_does_not_fill_the_log(place):
    """600 refusals a minute have a record, and the next one tells of the others."""
    def ask_in_vain():
        return refusal(lambda: Attached(place, "a", (9,)))
    for _ in range(900):
        ask_in_vain()
    time.sleep(0.3)
    assert "listeners of such a kind" in ask_in_vain()
    told = wait_for(lambda: [r for r in events(place, "attach_refused") if "others were refused" in r["detail"]])
    assert told
    assert 600 <= len(events(place, "attach_refused")) < 800


def who_connects_and_says_nothing_shuts_nobody_else_out(place):
    need_root("change the uid")
    silent = [connect(place.path("attach.sock")) for _ in range(140)]
    try:
        assert in_child(lambda: attach_and_ask(place, "a"), NOBODY) == (True, 200)
        # Who writes to a connection that was closed already may see the reset before the reason.
        try:
            assert "too many launchers" in refusal(lambda: Attached(place, "c"))
        except ConnectionError:
            pass
    finally:
        for stream in silent:
            stream.close()

    def is_served():
        try:
            return attach_and_ask(place, "a") == 200
        except (Refusal, ConnectionError):  # attach has not heard of all ends yet
            return False
    assert wait_for(is_served)


def a_group_counts_the_first_one_and_the_others(place):
    need_root("change the uid")
    assert in_child(lambda: attach_and_ask(place, "c"), SOMEBODY, [1, 4711]) == (True, 200)
    assert in_child(lambda: attach_and_ask(place, "c"), 4711) == (True, 200)
    worked, (kind, text) = in_child(lambda: attach_and_ask(place, "c"), SOMEBODY, [4712])
    assert not worked and "may not attach" in text, text


def nobody_attaches_from_inside_of_a_sandbox(place):
    """Another network namespace is refused, whoever asks: root, and who may attach, as root of a user namespace of his own."""
    need_root("make namespaces")
    for uid, spaces in ((None, CLONE_NEWNET), (NOBODY, CLONE_NEWUSER | CLONE_NEWNET)):
        worked, (kind, text) = in_child(lambda: Attached(place, "a") and None, uid, unshare=spaces)
        assert not worked and kind == "Refusal" and "network namespace" in text, text
    assert in_child(lambda: attach_and_ask(place, "a"), NOBODY) == (True, 200)


def nobody_commands_exeat_from_inside_of_a_sandbox(place):
    need_root("make namespaces")
    worked, (status, text) = in_child(lambda: (code(place, "status"), place.last.stderr.decode()), unshare=CLONE_NEWNET)
    assert worked and status == 5 and "another network namespace" in text, (status, text)
    assert code(place, "status") in (0, 1), place.last.stderr


def the_listeners_of_a_sandbox_are_in_its_own_namespace(place):
    """The connection is made outside, the listener inside: its clients are those in there."""
    need_root("make namespaces")

    def launch():
        import ctypes
        import fcntl
        stream = connect(place.path("attach.sock"))
        assert ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0
        with socket.socket() as s:
            fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
        listener = socket.create_server(("127.0.0.1", 3128))
        send(stream, request("a", [EXPLICIT]), [listener])
        receive(stream)
        report(stream)
        listener.close()
        with socket.create_connection(("127.0.0.1", 3128), timeout=10) as client:
            client.sendall(b"CONNECT evil.example.net:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            return client.recv(1000)

    worked, said = in_child(launch)
    assert worked and said.startswith(b"HTTP/1.1 403"), said


# ---- whether it is tight ----

class Closed:
    """Attached by a listener that is a Unix socket, which does not say that nothing forces the sandbox to it; no report yet."""

    def __init__(self, place, sandbox="a"):
        self.place, self.path = place, os.path.join(place.directory, "%s-%d.sock" % (sandbox, time.monotonic_ns()))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.stream = connect(place.path("attach.sock"))
        send(self.stream, request(sandbox, [EXPLICIT]), [self.listener])
        self.issued, _ = receive(self.stream)
        self.listener.close()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.stream.close()
        os.unlink(self.path)

    def ask(self, line=b"CONNECT evil.example.net:443"):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(15)
            client.connect(self.path)
            client.sendall(line + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            return client.recv(4096)


def is_closed(said):
    return said.startswith(b"HTTP/1.1 503") and b"not_probed" in said


def nothing_is_served_before_it_was_found_that_nothing_gets_out(place):
    """Whatever is asked for is refused, with a record; then it is judged as ever."""
    before = place.records()[-1]["seq"]
    with Closed(place) as closed:
        allowed = b"CONNECT api.allowed.test:%d" % place.values["port"]
        assert is_closed(closed.ask()) and is_closed(closed.ask(allowed)), closed.ask(allowed)
        clear = closed.ask(b"GET http://api.allowed.test/")
        assert is_closed(clear), clear
        report(closed.stream)
        assert closed.ask().startswith(b"HTTP/1.1 403") and closed.ask(allowed).startswith(b"HTTP/1.1 200")
    refused = wait_for(lambda: [r for r in place.records() if r["seq"] > before and r.get("reason") == "not_probed"])
    assert len(refused) >= 2 and refused[0]["sandbox"] == "a", refused
    probed = events(place, "sandbox_probed")[-1]
    assert (probed["sandbox"], probed["detail"], probed["principal"]) == ("a", "2 tried, 2 contained", str(os.getuid())), probed
    assert probed["seq"] > refused[-1]["seq"]


def a_sandbox_that_is_not_tight_is_not_served(place):
    for findings, says in [(TIGHT + finding("udp", "192.0.2.1:9", 1, "somebody answers"), "3 tried, 2 contained; not contained: udp 192.0.2.1:9"),
                           (TIGHT + finding("interfaces", "d0", 2, "it is up"), "interfaces d0 (it is up)"),
                           (b"", "could not be made"), (TIGHT[:-1], "malformed"), (b"\xff" * 4000, "malformed"),
                           (finding("a", "b", 3), "malformed")]:
        with Closed(place) as closed:
            text = refusal(lambda: report(closed.stream, findings))
            assert "not tight" in text and says in text, text
            assert ended(closed.stream)
        kept = wait_for(lambda: next((r for r in events(place, "sandbox_not_tight") if says in r["detail"]), None))
        assert kept and kept["sandbox"] == "a", (says, kept)
        assert wait_for(lambda: lane_of(place, "a") is None)
    assert attach_and_ask(place, "a") == 200


def a_launcher_that_says_something_else_or_goes_is_detached(place):
    for word in (b"x", b"p", request("a", [EXPLICIT]), b"r" + b"x" * (70 << 10)):
        with Closed(place) as closed:
            closed.stream.send(word)
            assert ended(closed.stream), word
        assert wait_for(lambda: lane_of(place, "a") is None)
    with Closed(place) as closed:
        report(closed.stream)
        closed.stream.send(b"r" + TIGHT)
        assert ended(closed.stream), "a report that nobody asked for"
    Closed(place).__exit__()
    assert wait_for(lambda: lane_of(place, "a") is None)


def a_lane_that_was_opened_is_open_when_a_part_of_it_begins_again(place):
    with Closed(place) as closed:
        report(closed.stream)
        assert closed.ask().startswith(b"HTTP/1.1 403")
        kill_and_wait(place, ("egress", lane_of(place, "a")))

        def answers():
            try:
                return closed.ask()
            except OSError:
                return b""

        assert wait_for(lambda: answers().startswith(b"HTTP/1.1"), 15)
        assert closed.ask().startswith(b"HTTP/1.1 403"), closed.ask()


def probe(place, name="a"):
    """Begins `exeat sandbox probe`."""
    return subprocess.Popen([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), "--json", "sandbox", "probe", name],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def a_sandbox_is_probed_again_when_the_operator_asks(place):
    with Closed(place) as closed:
        report(closed.stream)
        asked = probe(place)
        assert closed.stream.recv(10) == b"p"
        assert "being probed already" in probe(place).communicate()[1]
        closed.stream.send(b"r" + TIGHT)
        out, err = asked.communicate(timeout=20)
        found = json.loads(out)
        assert asked.returncode == 0 and found["escaped"] == 0, (out, err)
        assert [(r["name"], r["verdict"]) for r in found["rows"]] == [("udp", "contained"), ("raw", "contained")], found
        assert closed.ask().startswith(b"HTTP/1.1 403")
        asked = probe(place)
        assert closed.stream.recv(10) == b"p"
        closed.stream.send(b"r" + TIGHT + finding("tcp", "192.0.2.1:80", 1, "somebody takes it", "a firewall"))
        out, err = asked.communicate(timeout=20)
        assert asked.returncode == 1 and "served no more" in err, (out, err)
        assert json.loads(out)["rows"][-1]["fix"] == "a firewall", out
        assert ended(closed.stream)
    assert wait_for(lambda: lane_of(place, "a") is None)
    assert "tcp 192.0.2.1:80" in events(place, "sandbox_not_tight")[-1]["detail"]


def a_probe_that_cannot_be_made_ends_the_sandbox(place):
    for answer in (b"r", None):
        with Closed(place) as closed:
            report(closed.stream)
            asked = probe(place)
            assert closed.stream.recv(10) == b"p"
            if answer:
                closed.stream.send(answer)
                assert ended(closed.stream)
            else:
                closed.stream.close()
            _, err = asked.communicate(timeout=20)
            assert asked.returncode != 0 and ("could not be probed" if answer else "has ended meanwhile") in err, err
        assert wait_for(lambda: lane_of(place, "a") is None)


def who_waits_for_a_probe_is_told_at_once_when_attach_dies(place):
    with Closed(place) as closed:
        report(closed.stream)
        asked = probe(place)
        assert closed.stream.recv(10) == b"p"
        kill_and_wait(place, ("attach", 0))
        out, err = asked.communicate(timeout=15)
        assert asked.returncode != 0 and out == "" and "attach has died, and the sandbox has ended with it" in err, (out, err)
        assert ended(closed.stream)
    assert wait_for(lambda: lane_of(place, "a") is None)
    # The next one can be probed.
    with Closed(place) as closed:
        report(closed.stream)
        asked = probe(place)
        assert closed.stream.recv(10) == b"p"
        closed.stream.send(b"r" + TIGHT)
        assert asked.communicate(timeout=20) and asked.returncode == 0, asked


def who_does_not_answer_a_probe_is_served_no_more(place):
    with Closed(place) as closed:
        report(closed.stream)
        begun = time.monotonic()
        asked = probe(place)
        _, err = asked.communicate(timeout=100)
        assert asked.returncode != 0 and "no report came in time" in err, err
        assert 25 < time.monotonic() - begun < 90
        assert closed.stream.recv(10) == b"p" and ended(closed.stream)
    assert "in time" in events(place, "sandbox_not_tight")[-1]["detail"]


def what_cannot_be_probed_is_said(place):
    with Attached(place, "a"):
        for name, says in (("a", "unenforced"), ("b", "`exeat run` has made"), ("nobody", "`exeat run` has made")):
            asked = probe(place, name)
            _, err = asked.communicate(timeout=20)
            assert asked.returncode != 0 and says in err, (name, err)


def who_loses_the_right_is_put_out(place):
    need_root("change the uid")
    ready, into = os.pipe()

    def wait_inside():
        with Attached(place, "a") as attached:
            os.write(into, b".")
            return attached.stream.recv(1)

    pid = os.fork()
    if pid == 0:
        worked, said = in_child(wait_inside, NOBODY)
        os._exit(0 if worked and said == b"" else 1)
    os.read(ready, 1)
    place.config_text = CONFIG.replace("uid 65534 a", "uid 65534 c")
    place.configure()
    place.exeat("reload")
    assert os.waitpid(pid, 0)[1] == 0
    assert wait_for(lambda: lane_of(place, "a") is None)
    place.config_text = CONFIG
    place.configure()
    place.exeat("reload")


def a_right_for_a_sandbox_that_the_policy_does_not_have_is_an_error(place):
    place.config_text = CONFIG.replace("uid 65534 a", "uid 65534 aa")
    place.configure()
    place.exeat("reload", check=False)
    assert place.last.returncode != 0 and "no sandbox 'aa'" in place.last.stderr.decode(), place.last.stderr
    place.config_text = CONFIG
    place.configure()
    place.exeat("reload")


def a_user_attaches_no_more_than_the_limit(place):
    others = [Attached(place, name) for name in ("a", "c", "d")]
    assert "`attached-per-user`" in refusal(lambda: Attached(place, "e"))
    for other in others:
        assert other.ask().status == 200
        other.close()


# ---- hostile launchers ----

def cpu_of(pid):
    """Seconds of processor time."""
    with open("/proc/%d/stat" % pid) as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def attach_with(place, sandbox, kinds, sockets):
    stream = connect(place.path("attach.sock"), 60)
    send(stream, request(sandbox, kinds), sockets)
    return stream, receive(stream)[0]


def quick_for_others(place):
    begun = time.monotonic()
    assert attach_and_ask(place, "c") == 200
    took = time.monotonic() - begun
    assert took < 6, "another sandbox was attached after %.1f s" % took


def who_makes_its_listener_block_keeps_nobody_waiting(place):
    """All that hold a socket share the flag by which it does not block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stream, _ = attach_with(place, "a", (EXPLICIT,), [listener])
        flags = fcntl.fcntl(listener, fcntl.F_GETFL)
        with stream:
            for _ in range(3):
                fcntl.fcntl(listener, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
                with socket.create_connection(listener.getsockname(), timeout=5) as client:
                    client.sendall(b"GET http://echo.exeat.internal/ HTTP/1.1\r\nHost: echo.exeat.internal\r\nConnection: close\r\n\r\n")
                    assert read_all(client).startswith(b"HTTP/1.1 407 ")
            quick_for_others(place)
            assert "did not answer generation" not in place.log()


def who_makes_closing_wait_keeps_nobody_waiting(place):
    """Options of a listener are those of its connections; this client does not read what closing waits for."""
    ask_echo = b"GET http://echo.exeat.internal/ HTTP/1.1\r\nHost: echo.exeat.internal\r\n%sX-Long: " + b"x" * 2000 + b"\r\n%s\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10000))
        stream, issued = attach_with(place, "a", (EXPLICIT,), [listener])
        proof = b"Proxy-Authorization: %s\r\n" % basic("a", issued["token"])
        with stream:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.connect(listener.getsockname())
            client.sendall(ask_echo % (proof, b"") * 30 + ask_echo % (proof, b"Connection: close\r\n"))
            time.sleep(3)
            quick_for_others(place)
            assert "did not answer generation" not in place.log()


def full_connection():
    """Over which nothing more can be sent, as nobody reads, and whose closing waits for that; and the other end."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        full = socket.socket()
        full.connect(listener.getsockname())
        other, _ = listener.accept()
    full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10000))
    full.setblocking(False)
    try:
        while True:
            full.send(b"x" * 65536)
    except BlockingIOError:
        return full, other


def as_user(uid, function):
    """A process of the user that keeps what function made until it is ended."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            kept = function()
            os.write(into, b"+" if kept else b"-")
            time.sleep(60)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(into)
    with open(out, "rb") as f:
        assert f.read(1) == b"+"
    return pid


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def who_leaves_the_closing_to_us_keeps_nobody_waiting(place):
    """Of what he sends along nobody else has a copy when it is closed, by attach or by the kernel for it."""
    need_root("change the uid")
    attach, path = role(place, "attach"), place.path("attach.sock")

    def knock(packets):
        stream = connect(path)
        sent = [full_connection() for _ in packets]
        for packet, (full, _) in zip(packets, sent):
            send(stream, packet, [full])
            full.close()
        return stream, sent

    for uid in (SOMEBODY, NOBODY):
        for packets in ([request("a", [EXPLICIT])], [b"\xff" * 200], [request("a", [EXPLICIT])] * 3):
            os.kill(attach, signal.SIGSTOP)
            try:
                pid = as_user(uid, lambda: knock(packets))
            finally:
                os.kill(attach, signal.SIGCONT)
            quick_for_others(place)
            end(pid)
    assert role(place, "attach") == attach and "did not answer generation" not in place.log()


def who_sends_descriptors_to_a_unix_listener_keeps_nobody_waiting(place):
    """The proxy takes none, so that the kernel closes them for it: as it reads, and as it closes what it has not read."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0exeat-test-lane-%d" % os.getpid())
        listener.listen()
        stream, _ = attach_with(place, "a", (EXPLICIT,), [listener])
        with stream:
            report(stream)
            proxy = place.pids()[("proxy", lane_of(place, "a"))]
            for packets in ([b"GET http://echo.exeat.internal/ HTTP/1.1\r\n"], [b"\0" * 64] * 40):
                client, kept = socket.socket(socket.AF_UNIX), []
                os.kill(proxy, signal.SIGSTOP)
                client.connect(listener.getsockname())
                for packet in packets:
                    full, other = full_connection()
                    send(client, packet, [full])
                    full.close()
                    kept.append(other)
                os.kill(proxy, signal.SIGCONT)
                quick_for_others(place)
                for each in kept + [client]:
                    each.close()
            assert place.pids()[("proxy", lane_of(place, "a"))] == proxy and "did not answer generation" not in place.log()


def who_sends_a_file_that_cannot_be_closed_keeps_nobody_waiting(place):
    """Its file system is a program of the user's, for which closing waits, whatever signals come."""
    if not os.access("/dev/fuse", os.W_OK):
        raise Skip("no /dev/fuse")
    attach, path = role(place, "attach"), place.path("attach.sock")

    def knock():
        stream, file = connect(path), FuseFile()
        send(stream, request("a", [EXPLICIT]), [file])
        send(stream, request("a", [EXPLICIT]), [file])
        file.close()
        return stream, file

    for uid in (SOMEBODY, NOBODY):
        os.kill(attach, signal.SIGSTOP)
        try:
            pid = as_user(uid, knock)
        finally:
            os.kill(attach, signal.SIGCONT)
        try:
            quick_for_others(place)
        finally:
            end(pid)
    worked, said = in_child(lambda: refusal(lambda: Attached(place, "a")), NOBODY)
    assert worked and "no socket in an earlier request" in said, said
    assert role(place, "attach") == attach and attach_and_ask(place, "a") == 200
    assert "uid %d sent descriptors that are no sockets" % NOBODY in place.log(), place.log()


def a_file_that_cannot_be_closed_does_not_keep_exeatd_from_ending(_):
    if not os.access("/dev/fuse", os.W_OK):
        raise Skip("no /dev/fuse")
    with attach_place() as place:
        attach, path = role(place, "attach"), place.path("attach.sock")

        def knock():
            stream, file = connect(path), FuseFile()
            send(stream, request("a", [EXPLICIT]), [file])
            assert stream.recv(1 << 16), "no answer"
            file.close()
            return stream, file

        pid = as_user(NOBODY, knock)
        try:
            place.daemon.terminate()
            assert place.daemon.wait(30) == 0
            assert "attach cannot be ended, and is left" in place.log(), place.log()
        finally:
            end(pid)
        assert wait_for(lambda: not exists(attach)), "attach goes on without its file's server"


def who_has_every_write_told_makes_nobody_busy(place):
    """Told by the queue of errors, which is read by nobody."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, 37, 0x312)  # SO_TIMESTAMPING: of sending, queueing and of what was acknowledged
        stream, issued = attach_with(place, "a", (EXPLICIT,), [listener])
        with stream, socket.create_connection(listener.getsockname(), timeout=15) as client:
            client.sendall(b"GET http://echo.exeat.internal/ HTTP/1.1\r\nHost: echo.exeat.internal\r\nProxy-Authorization: %s\r\n\r\n"
                           % basic("a", issued["token"]))
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
            proxy = place.pids()[("proxy", lane_of(place, "a"))]
            before = cpu_of(proxy)
            time.sleep(2)
            assert cpu_of(proxy) - before < 0.1


def who_shuts_its_socket_down_makes_nobody_busy(place):
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        stream, _ = attach_with(place, "a", (EXPLICIT, DNS_UDP), [listener, datagrams])
        with stream:
            proxy = place.pids()[("proxy", lane_of(place, "a"))]
            with open("/proc/%d/task/%d/children" % (proxy, proxy)) as f:
                watched = [proxy] + [int(pid) for pid in f.read().split()]
            for each in (listener, datagrams):
                try:
                    each.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it is done all the same
            before = sum(map(cpu_of, watched))
            time.sleep(2)
            assert len(watched) == 2 and sum(map(cpu_of, watched)) - before < 0.1


def nonsense_is_refused_and_leaves_nothing_behind(place):
    tcp, udp, plain = socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM), socket.socket()
    packet = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    packet.bind("\0exeat-test-%d" % os.getpid())
    packet.listen()
    pid = role(place, "attach")

    def settled():
        wait_for(lambda: status(place)["processes"][-1] and False, 0.3)
        return descriptors(pid), descriptors(place.daemon.pid)

    before = settled()
    for sent, sockets, says in [
            (b"\0", [], "malformed"), (b"\xff" * 255, [tcp], "malformed"), (b"x" * 2000, [tcp], "malformed"),
            (request("a", [EXPLICIT], version=1), [tcp], "another version"),
            (request("a", [EXPLICIT]), [], "malformed"), (request("a", [EXPLICIT]), [tcp, tcp], "malformed"),
            (request("a", [EXPLICIT], n=2), [tcp, tcp], "malformed"), (request("a", [EXPLICIT] * 33), [tcp] * 33, "malformed"),
            (request("a", []), [], "no listening socket"), (request("a", [TRANSPARENT]), [udp], "no listening socket"),
            (request("a", [DNS_UDP]), [tcp], "no listening socket"), (request("a", [0]), [tcp], "no listeners of such a kind"),
            (request("a", [UNREACHABLE]), [tcp], "no listening socket"), (request("a", [UNREACHABLE]), [udp], "no listening socket"),
            (request("a", [9]), [tcp], "no listeners of such a kind"), (request("a", [LOGGED]), [tcp], "no listeners of such a kind"),
            (request("a", [EXPLICIT]), [udp], "no listening socket"),
            (request("a", [EXPLICIT]), [plain], "no listening socket"), (request("a", [EXPLICIT]), [packet], "no listening socket"),
            (request("a" * 65, [EXPLICIT]), [tcp], "malformed"), (request("", [EXPLICIT]), [tcp], "no sandbox"),
            (request("../a", [EXPLICIT]), [tcp], "no sandbox"), (request("a b", [EXPLICIT]), [tcp], "no sandbox")]:
        with connect(place.path("attach.sock")) as stream:
            send(stream, sent, sockets)
            text = refusal(lambda: receive(stream))
            assert says in text, (sent, text)
            assert ended(stream)
    for s in (tcp, udp, plain, packet):
        s.close()
    after = settled()
    assert after == before and role(place, "attach") == pid, (before, after)


def the_reason_comes_to_a_launcher_before_any_reset(place):
    """Also when it said more than anybody reads, which the kernel tells as a reset."""
    pid = role(place, "attach")
    stream = connect(place.path("attach.sock"))
    os.kill(pid, signal.SIGSTOP)
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            send(stream, request("no/name", (EXPLICIT,)), [listener])
            send(stream, request("no/name", (EXPLICIT,)), [listener])
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "no sandbox has such a name" in refusal(lambda: receive(stream))
    stream.close()


def who_speaks_after_the_answer_is_detached(place):
    with Attached(place, "a") as attached:
        attached.stream.send(b"more")
        assert ended(attached.stream)
    assert wait_for(lambda: lane_of(place, "a") is None)


def who_goes_before_the_answer_leaves_nothing(place):
    for _ in range(20):
        with connect(place.path("attach.sock")) as stream, socket.create_server(("127.0.0.1", 0)) as listener:
            send(stream, request("a", [EXPLICIT]), [listener])
    assert wait_for(lambda: lane_of(place, "a") is None)
    assert attach_and_ask(place, "a") == 200


def who_is_suspended_is_so_when_attached_again(place):
    """Also another part of the secret counts, as in a lane that begins again."""
    script = place.upstream.script

    def parts(attached, *which):
        text = b" ".join(SECRET[i:i + 16].encode() for i in which)
        place.upstream.script = lambda r, s: said(text)
        return attached.ask("GET /", "open.allowed.test", None)

    try:
        with Attached(place, "a") as attached:
            assert attached.ask().status == 200
            for which in (14, 15, 16, 17, 18):
                parts(attached, which)
            assert wait_for(lambda: attached.ask().reason == "sandbox_suspended", 5), attached.ask()
        with Attached(place, "a") as attached:
            answer = attached.ask()
            assert (answer.status, answer.reason) == (403, "sandbox_suspended"), answer
        place.upstream.script = script
        with Attached(place, "c") as other:
            assert other.ask().status == 200
    finally:
        place.upstream.script = script


def what_was_used_of_a_grant_counts_when_attached_again(_):
    policy = POLICY.replace("sandbox c { grant api read write }", "sandbox c { grant api read uses 3 }")
    with small_place(policy, {}, (), config="attach attach.sock\n") as place:
        for expected in ([200, 200], [200, 403]):
            with Attached(place, "c") as attached:
                assert [attached.ask().status for _ in expected] == expected


# ---- deaths ----

def the_lane_of_an_attached_sandbox_begins_again_when_a_part_dies(place):
    with Attached(place, "a") as attached:
        kill_and_wait(place, ("egress", lane_of(place, "a")))

        def served():
            try:
                return attached.ask().status == 200
            except OSError:
                return False

        assert wait_for(served, 15)


def when_attach_dies_its_lanes_end(place):
    with Attached(place, "a") as attached:
        lane = lane_of(place, "a")
        pids = pids_of(place, lane)
        kill_and_wait(place, ("attach", 0))
        assert attached.stream.recv(1) == b""
        assert wait_for(lambda: not any(exists(pid) for pid in pids))
    assert wait_for(lambda: lane_of(place, "a") is None)
    # And what was issued has ended, before anybody attaches anew.
    assert wait_for(lambda: not next(s for s in json.loads(place.exeat("sandbox", "list", "--json")) if s["name"] == "a")["registered"])
    assert attach_and_ask(place, "a") == 200


def when_broker_dies_who_is_attached_goes_on(place):
    with Attached(place, "a") as attached:
        kill_and_wait(place, ("broker", 0))
        assert wait_for(lambda: attached.ask().status == 200, 15)


def a_listener_in_the_configuration_ends_the_attached_sandbox(place):
    with Attached(place, "a") as attached:
        place.listeners = {"b": "sandbox b", "a": "sandbox a"}
        place.configure()
        place.exeat("reload")
        assert attached.stream.recv(1) == b""
    place.add_sandbox("a")
    assert wait_for(lambda: ask(place, sandbox="a").status == 200)
    place.listeners = {"b": "sandbox b"}
    place.configure()
    place.exeat("reload")
    assert attach_and_ask(place, "a") == 200


def lanes_that_come_and_go_leave_nothing_behind(place):
    """No number (each is a uid), no descriptor; what memory the parent takes does not grow with them."""
    shared = {key: pid for key, pid in place.pids().items() if key[1] == 0}
    shared["parent"] = place.daemon.pid

    def alone():
        now = status(place)
        assert not [p for p in now["processes"] if "trouble" in p], now
        return len(now["lanes"]) == 1

    def settled():
        """The generation without the last of them waits for more, and has a text of its own while it is rolled out."""
        assert wait_for(alone)
        seen, last = None, ()
        while seen != last:
            time.sleep(1)
            # Before control is asked, which may not have heard of the end of who asks.
            open_now = {key: descriptors(pid) for key, pid in shared.items()}
            seen, last = last, (open_now, status(place)["generation"])
        return open_now

    def rounds(n):
        for _ in range(n):
            with Attached(place, "a") as one, Attached(place, "c") as other:
                answer = one.ask()
                assert answer.status == 200 and other.issued, answer
        return settled()

    def trouble():
        return [r for name in ("bad_producer", "gap", "role_misbehaved", "role_lost") for r in events(place, name)]

    troubled, added = trouble(), len(events(place, "lane_added"))
    before, after = rounds(2), rounds(50)
    assert before == after, (before, after)
    # While they come faster than the last ones' processes are reaped they take new ones; then the old are free again.
    rounds(1)
    numbers = [r["lane"] for r in events(place, "lane_added")[added:]]
    assert len(numbers) == 106 and max(numbers[-2:]) == min(numbers) + 1, numbers
    assert trouble() == troubled, [r for r in trouble() if r not in troubled]
    place.exeat("log", "verify")


def a_private_daemon_of_an_ordinary_user_attaches_his_own(place):
    """Without uids of their own: the daemon's user may attach everything, others what the rules say."""
    need_root("change the uid")
    with small_place(POLICY, {}, (), config="attach attach.sock\n", user=NOBODY) as private:
        assert in_child(lambda: attach_and_ask(private, "a"), NOBODY) == (True, 200)
        worked, (kind, text) = in_child(lambda: attach_and_ask(private, "a"), SOMEBODY)
        assert not worked and "may not attach" in text, text
        worked, (kind, text) = in_child(lambda: attach_and_ask(private, "a"), NOBODY, unshare=CLONE_NEWUSER | CLONE_NEWNET)
        assert not worked and "network namespace" in text, text


def proportional(pid):
    """Bytes of memory, those that are shared among processes in equal parts."""
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return int(re.search(r"Pss:\s+(\d+)", f.read()).group(1)) * 1024


def a_hundred_are_attached_at_once(_):
    """Each is served by its own lane; what a sandbox takes, and how long attaching takes, is printed."""
    names = ["s%d" % i for i in range(1, 101)]
    policy = POLICY + "".join("sandbox %s { grant api read }\n" % name for name in names)
    with small_place(policy, {}, (), config="attach attach.sock\n") as place:
        attached, took = [], []
        for name in names:
            begun = time.monotonic()
            attached.append(Attached(place, name))
            took.append(time.monotonic() - begun)
        for one in attached[::9]:
            answer = one.ask()
            assert answer.status == 200, answer
        answer = attached[0].ask(placeholder=attached[1].placeholder())
        assert answer.status == 403, answer
        pids = place.pids()
        assert len({lane for role, lane in pids}) == 101, pids
        if os.getuid() == 0:
            uids = {os.stat("/proc/%d" % pid).st_uid for (role, lane), pid in pids.items() if lane}
            assert len(uids) == 100, uids
            memory = sum(proportional(pid) for (role, lane), pid in pids.items() if lane)
            print("# a sandbox takes %d KiB (of %d processes)" % (memory / 100 / 1024, len(pids)))
        print("# attaching took %.0f ms (the first ten), %.0f ms (the last ten)" % (
            sum(took[:10]) * 100, sum(took[-10:]) * 100))
        before, begun = len(events(place, "generation")), time.monotonic()
        for one in attached:
            one.close()
        assert wait_for(lambda: not status(place)["lanes"], 30)
        assert wait_for(lambda: all(not lane for role, lane in place.pids()), 30)
        assert wait_for(lambda: not any(s["registered"] for s in json.loads(place.exeat("sandbox", "list", "--json"))), 30)
        # The generation without them may wait half a second for more of them.
        assert wait_for(lambda: len(events(place, "generation")) > before, 10)
        wait_for(lambda: False, 1)
        took, generations = time.monotonic() - begun, len(events(place, "generation")) - before
        print("# detaching a hundred took %.1f s and %d generations" % (took, generations))
        assert generations <= 2 + 2 * took, (generations, took)


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return False
    except (ConnectionRefusedError, ConnectionResetError):
        return True


def who_has_detached_is_not_served_while_the_generation_without_him_waits(place):
    generations = lambda: len(events(place, "generation"))
    with Attached(place, "a") as attached:
        assert attached.ask().status == 200
    assert wait_for(lambda: is_refused(attached.port), 10, 0.005)
    before, refused = generations(), []
    assert wait_for(lambda: refused.append(is_refused(attached.port)) or generations() > before, 10, 0.01)
    assert all(refused), refused
    # And whoever comes next does not wait for it.
    with Attached(place, "a"):
        pass
    begun = time.monotonic()
    assert attach_and_ask(place, "c") == 200
    print("# attaching right behind the end of another took %.0f ms" % (1000 * (time.monotonic() - begun)))


def a_hundred_that_ask_in_the_same_moment_come_with_few_generations(_):
    """Each is served, and exeatd's lanes read a handful of generations, not a hundred."""
    names = ["s%d" % i for i in range(1, 101)]
    policy = POLICY + "".join("sandbox %s { grant api read }\n" % name for name in names)
    with small_place(policy, {}, (), config="attach attach.sock\n") as place:
        before = len(events(place, "generation"))
        listeners = [socket.create_server(("127.0.0.1", 0)) for _ in names]
        streams = [connect(place.path("attach.sock"), 200) for _ in names]
        begun = time.monotonic()
        for name, stream, listener in zip(names, streams, listeners):
            send(stream, request(name, [EXPLICIT]), [listener])
        issued = [receive(stream)[0] for stream in streams]
        took = time.monotonic() - begun
        assert [i["name"] for i in issued] == names, "each has what was issued for it"
        generations = len(events(place, "generation")) - before
        print("# 100 at once took %.1f s and %d generations" % (took, generations))
        assert generations <= 40, generations
        for each in streams + listeners:
            each.close()
        assert wait_for(lambda: not status(place)["lanes"], 60)


def main():
    report = Report()
    tests = [f for name, f in globals().items() if getattr(f, "__module__", None) == "__main__" and
             getattr(f, "__code__", None) and f.__code__.co_varnames[:f.__code__.co_argcount] == ("place",) and
             f not in (status,)]
    apart = [who_is_suspended_is_so_when_attached_again, who_does_not_answer_a_probe_is_served_no_more,
             who_asks_without_end_does_not_fill_the_log, who_sends_a_file_that_cannot_be_closed_keeps_nobody_waiting]
    report.run_in(attach_place, [t for t in tests if t not in apart])
    for test in apart:
        report.run_in(attach_place, [test])
    report.run(what_was_used_of_a_grant_counts_when_attached_again, None)
    report.run(a_file_that_cannot_be_closed_does_not_keep_exeatd_from_ending, None)
    report.run(a_hundred_are_attached_at_once, None)
    report.run(a_hundred_that_ask_in_the_same_moment_come_with_few_generations, None)
    report.end()


if __name__ == "__main__":
    main()
