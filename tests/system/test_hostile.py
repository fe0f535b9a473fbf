"""Processes that misbehave on purpose (make HOSTILE=1; proxy/hostile.h, egress/hostile.h): what an attacker who took
over a proxy or an egress would try. Each in both forms, a lane of one sandbox and a shared listener."""
import contextlib
import os
import re
import subprocess

from helpers import HOSTS, POLICY, SECRET, ask_quietly, exists, is_served, resident, small_place
from place import BUILD, Listener, Report, basic, wait_for
from test_client_certificates import add, client_certificate

HOSTILE = BUILD if BUILD.rstrip("/").endswith("hostile") else os.path.join(BUILD, "hostile")
LANES = {"lane of one sandbox": {"a": "sandbox a", "b": "sandbox b"},
         "shared lane": {"a": "shared a c", "b": "sandbox b"}}
SHOWN = POLICY.replace("sandbox b { grant api read }", "sandbox b { grant api read; grant shown all }") + """
service shown { host shown.test; port {port}; upstream client-certificate us; operation every { * /** } }
"""
KILLED = "signal 31 (a call it may not make)"


class Canary:
    """A server that writes down whatever reaches it."""

    def __init__(self):
        self.got, self.connections = b"", 0
        self.listener = Listener(self._serve)
        self.port = self.listener.port

    def _serve(self, connection):
        self.connections += 1
        connection.settimeout(1)
        try:
            self.got += connection.recv(100)
        except OSError:
            pass
        connection.close()


class Stage:
    """A place that was set up by honest processes and is started again with hostile ones."""

    def __init__(self, listeners):
        self.shared = listeners["a"].startswith("shared")
        self.place = small_place(SHOWN, listeners=listeners, sandboxes=("a", "b", "c") if self.shared else ("a", "b"),
                                 dns={h: ["127.0.0.1"] for h in HOSTS})
        self.place.start()
        self.port = self.place.values["port"]
        add(self.place, "us", client_certificate(self.place, "us"))
        self.place.stop()
        self.canary = Canary()

    def close(self):
        self.place.__exit__()
        self.canary.listener.close()

    def misbehave(self, name):
        """Starts the hostile daemon; the log lines of the misbehaviour."""
        place, self.name = self.place, name.partition("=")[0].replace("egress:", "").replace("1/", "").replace("2/", "")
        place.upstream.forget()
        place.resolver.asked.clear()
        self.canary.connections = 0
        self.from_ = len(place.log())
        with open(place.path("exeatd.log"), "ab") as log:
            place.daemon = subprocess.Popen(
                [os.path.join(HOSTILE, "exeatd"), "--config", place.path("exeat.conf"), "--misbehave", name],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if name.startswith("1/"):
            return []
        return self.lines(r"hostile: %s: .*|ended: signal 31 .*" % re.escape(self.name))

    def lines(self, pattern, seconds=15):
        def look():
            return re.findall(pattern, self.place.log()[self.from_:])
        return wait_for(lambda: look() or (self.place.daemon.poll() is not None and look()), seconds) or []

    def nothing_left(self):
        place = self.place
        assert place.upstream.requests == [] and place.upstream.connections == 0, place.upstream.requests
        assert place.resolver.asked == [], place.resolver.asked
        assert self.canary.connections == 0, "the canary got %r" % self.canary.got

    def end(self):
        self.place.stop()
        assert not exists(self.place.daemon.pid)


def denied(stage, name):
    """The misbehaviour happens, fails, and nothing leaves."""
    lines = stage.misbehave(name)
    try:
        assert lines, "it did not happen: %s" % stage.place.log()[stage.from_:][-500:]
        for line in lines:
            assert "denied" in line or KILLED in line, line
        stage.nothing_left()
    finally:
        stage.end()


# ---- a hostile proxy ----

def p1_a_hostile_proxy_cannot_read_the_vault(stage):
    denied(stage, "open-file=" + stage.place.path("state", "vault", "vault.db"))


def p1_a_hostile_proxy_cannot_read_the_cas_key(stage):
    denied(stage, "open-file=" + stage.place.path("state", "ca", "ca.key"))


def p1_a_hostile_proxy_cannot_open_any_file(stage):
    denied(stage, "open-file")


def p1_a_hostile_proxy_cannot_make_a_socket(stage):
    denied(stage, "socket")


def p1_a_hostile_proxy_cannot_turn_its_listener_into_a_connector(stage):
    denied(stage, "connect-listener=127.0.0.1:%d" % stage.canary.port)


def p1_a_hostile_proxy_cannot_trace_its_parent(stage):
    denied(stage, "ptrace")


def p1_a_hostile_proxy_cannot_run_a_program(stage):
    denied(stage, "exec")


def p1_a_hostile_proxy_cannot_signal_others(stage):
    denied(stage, "signal-parent")


def p1_a_hostile_proxy_cannot_pass_a_descriptor_on(stage):
    denied(stage, "send-fd")


def heard(stage, name, *expected):
    """What egress tells a hostile proxy: numbers of lane messages, all of them among the expected ones."""
    lines = stage.misbehave(name)
    try:
        assert lines, "nothing was heard: %s" % stage.place.log()[stage.from_:][-500:]
        for line in lines:
            found = re.search(r"heard (\d+)", line)
            assert found and int(found.group(1)) in expected, line
        stage.nothing_left()
    finally:
        stage.end()


REFUSED, LEAF, ALERT = 2, 3, 4


def p5_a_hostile_proxy_gets_no_tunnel_to_a_name_that_is_not_listed(stage):
    heard(stage, "open-unlisted=evil.test:443", REFUSED)


def p5_a_hostile_proxy_gets_no_tunnel_to_an_address(stage):
    heard(stage, "open-unlisted=127.0.0.1:%d" % stage.canary.port, REFUSED)


def p3_a_hostile_proxy_gets_no_leaf_for_another_name_than_the_tunnels(stage):
    heard(stage, "wrong-sni=api.allowed.test:%d" % stage.port, *((REFUSED,) if stage.shared else (ALERT,)) + (REFUSED, ALERT))


def p3_a_hostile_proxy_gets_no_further_by_claiming_a_transparent_connection(stage):
    for said, meant in (("evil.test", "198.18.0.1:443"), ("", "198.18.0.1:%d" % stage.port), ("", "127.0.0.1:%d" % stage.canary.port),
                        ("127.0.0.1", "127.0.0.1:%d" % stage.canary.port), ("api.allowed.test", "127.0.0.1:%d" % stage.canary.port)):
        heard(stage, "transparent=%s|%s" % (said, meant), REFUSED)


def p5_a_hostile_proxy_learns_of_no_name_that_is_not_its_sandboxs(stage):
    for name, known in (("evil.test", False), ("shown.test", False), ("api.allowed.test", not stage.shared)):
        lines = stage.misbehave("1/lookup=" + name) or stage.lines(r"proxy 1: warn: hostile: lookup: heard .*")
        try:
            # Who shares a lane has no door for names, and cannot say who he is there.
            assert lines and lines[0].endswith("heard code 0, 1 addresses" if known else "heard code 3, 0 addresses"), (name, lines)
            stage.nothing_left()
        finally:
            stage.end()


def request_of(stage, sandbox, placeholder_of, deed="request"):
    proof = ""
    if stage.shared:
        proof = basic(sandbox, stage.place.token(sandbox)).decode()
    return "%s=api.allowed.test:%d|%s|%s" % (deed, stage.port, stage.place.placeholder(placeholder_of, "demo-key"), proof)


def p7_a_hostile_proxy_cannot_use_another_lanes_placeholder(stage):
    lines = stage.misbehave(request_of(stage, "a", "b"))
    try:
        # Both lanes misbehave alike; b's own proxy tells the truth with it.
        answers = wait_for(lambda: [l for l in stage.lines(r"proxy 1: warn: hostile: request: heard .*")
                                    if "foreign_credential" in l], 10)
        assert lines and answers, stage.place.log()[stage.from_:][-800:]
        of_a = lambda: [r["reason"] for r in stage.place.records() if r.get("sandbox") == "a" and r["kind"] == "decision"]
        assert wait_for(lambda: of_a()[-1:] == ["placeholder_wrong_identity"], 10), of_a()[-1:]
    finally:
        stage.end()


def p2_a_hostile_proxy_never_hears_a_secret(stage):
    """It asks with what is its own, the upstream says back all that it got, and the secret is not in it."""
    place = stage.place
    place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        SECRET.encode(), len(r), r)
    stage.misbehave(request_of(stage, "a", "a"))
    try:
        assert wait_for(lambda: [l for l in stage.lines(r"proxy 1: warn: hostile: request: heard 9.*")], 15), \
            place.log()[stage.from_:][-800:]
        text = place.log()[stage.from_:]
        assert place.upstream.requests and SECRET.encode() in place.upstream.requests[0], "it was not served"
        assert "authorization: Bearer ****" in text, text[-800:]
        assert SECRET not in text
    finally:
        stage.end()


def p10_a_hostile_proxy_that_floods_harms_nobody_else(stage):
    stage.misbehave("1/flood")
    try:
        assert is_served(stage.place, "b", 20), "the other lane is not served"
        before = resident(stage.place.pids()[("egress", 1)])
        for _ in range(20):
            answer = ask_quietly(stage.place, sandbox="b")
            assert answer.status == 200, answer
        after = resident(stage.place.pids()[("egress", 1)])
        assert after < before + (32 << 20), "egress grew from %d to %d" % (before, after)
    finally:
        stage.end()


def p10_a_hostile_proxys_nonsense_ends_only_its_own_lane(stage):
    stage.misbehave("1/bad-message")
    try:
        # It does so again and again, and its lane is started again, whichever part ends first; those that all share
        # stay, and the other lane is served.
        assert stage.lines(r"(proxy|egress) 1 ended"), stage.place.log()[stage.from_:][-500:]
        text = stage.place.log()[stage.from_:]
        for role in ("broker", "ca", "dialer", "audit", "control"):
            assert "parent: warn: %s ended" % role not in text, text[-800:]
        stage.nothing_left()
        assert is_served(stage.place, "b"), "the other lane is not served"
    finally:
        stage.end()


def p4_a_hostile_proxys_raw_bytes_go_nowhere_where_nothing_is_spliced(stage):
    stage.misbehave("1/raw=api.allowed.test:%d" % stage.port)
    try:
        # Who has not proved which sandbox it is gets no tunnel at all.
        end = r"hostile: raw: heard %d" % REFUSED if stage.shared else r"egress 1: warn: proxy's channel: .*"
        assert stage.lines(end), stage.place.log()[stage.from_:][-500:]
        stage.nothing_left()
        assert is_served(stage.place, "b"), "the other lane is not served"
    finally:
        stage.end()


def p10_a_hostile_proxys_credit_harms_nobody_else(stage):
    stage.misbehave("1/huge-credit")
    try:
        wait_for(lambda: "parent: info: ready" in stage.place.log()[stage.from_:], 15)
        for _ in range(5):
            assert ask_quietly(stage.place, sandbox="b").status == 200
        text = stage.place.log()[stage.from_:]
        for role in ("broker", "ca", "dialer", "audit", "control"):
            assert "parent: warn: %s ended" % role not in text, text[-800:]
    finally:
        stage.end()


def p10_a_hostile_proxy_that_sends_beyond_its_credit_is_ended(stage):
    stage.misbehave("1/" + request_of(stage, "a", "a", "overrun"))
    try:
        # On a busy machine its own channel is full before egress reads so far; it tries again and again.
        assert stage.lines(r"egress 1: warn: proxy's channel: .*", 60), stage.place.log()[stage.from_:][-500:]
        assert "channel: lane body: " in stage.place.log()[stage.from_:], stage.place.log()[stage.from_:][-500:]
        assert stage.place.upstream.requests == []
        assert is_served(stage.place, "b"), "the other lane is not served"
    finally:
        stage.end()


# ---- a hostile egress ----

def p1_a_hostile_egress_cannot_read_the_vault(stage):
    denied(stage, "egress:open-file=" + stage.place.path("state", "vault", "vault.db"))


def p1_a_hostile_egress_cannot_make_a_socket(stage):
    denied(stage, "egress:socket")


def p5_a_hostile_egress_cannot_reach_a_name_that_is_not_listed(stage):
    denied(stage, "egress:dial=evil.test:443")


def p5_a_hostile_egress_cannot_reach_an_address_that_is_not_listed(stage):
    denied(stage, "egress:dial=127.0.0.1:%d" % stage.canary.port)


def p5_a_hostile_egress_cannot_reach_another_port(stage):
    denied(stage, "egress:dial=api.allowed.test:%d" % stage.canary.port)


def p5_a_hostile_egress_gets_no_leaf_for_a_name_that_is_not_listed(stage):
    denied(stage, "egress:leaf=evil.test:443")


def p7_a_hostile_egress_gets_no_secret_with_a_placeholder_it_made_up(stage):
    denied(stage, "egress:lease=a/demo-key@api.allowed.test:%d" % stage.port)


def p7_a_hostile_egress_gets_no_secret_for_another_lanes_sandbox(stage):
    denied(stage, "egress:lease=b/demo-key@api.allowed.test:%d" % stage.port)


def p7_a_hostile_egress_gets_no_secret_for_another_host(stage):
    denied(stage, "egress:lease=a/demo-key@open.allowed.test:%d" % stage.port)


def p2_a_hostile_egress_gets_no_client_certificate_but_its_own_lanes(stage):
    shown = "us@shown.test:%d" % stage.port
    for ask in ("a/" + shown, "b/" + shown, "a/us@api.allowed.test:%d" % stage.port, "a/demo-key@api.allowed.test:%d" % stage.port):
        denied(stage, "egress:1/certificate=" + ask)
    for ask in ("b/us@shown.test:1", "b/us@api.allowed.test:%d" % stage.port, "b/demo-key@shown.test:%d" % stage.port):
        denied(stage, "egress:2/certificate=" + ask)
    # And whose it is gets it, in the same words.
    lines = stage.misbehave("egress:2/certificate=b/" + shown)
    stage.end()
    assert lines and lines[0].endswith("succeeded"), lines


def p10_a_hostile_egress_that_spoils_its_audit_stream_ends_only_its_own_lane(stage):
    for packet in ("packet=nonsense", "packet"):
        before = len([r for r in stage.place.records() if r.get("event") == "bad_producer"])
        stage.misbehave("egress:1/" + packet)
        try:
            # It does so again and again, and is started again, with another stream each time.
            assert stage.lines(r"egress 1 ended[^\0]*egress 1 ended"), stage.place.log()[stage.from_:][-500:]
            text = stage.place.log()[stage.from_:]
            for role in ("broker", "ca", "dialer", "audit", "control"):
                assert "parent: warn: %s ended" % role not in text, text[-800:]
            assert is_served(stage.place, "b"), "the other lane is not served"
        finally:
            stage.end()
        events = [r["producer"] for r in stage.place.records() if r.get("event") == "bad_producer"]
        assert len(events) > before + 1 and set(events) == {"egress 1"}, events


TESTS = [f for n, f in globals().items() if re.match(r"p\d+_a_hostile", n)]


def main():
    report = Report()
    if not os.path.exists(os.path.join(HOSTILE, "exeatd")):
        report.skip("hostile processes", "there is no hostile build in %s (make HOSTILE=1)" % HOSTILE)
        report.end()
    for lane, listeners in LANES.items():
        report.run_in(lambda: contextlib.closing(Stage(listeners)), TESTS, lane)
    report.end()


if __name__ == "__main__":
    main()
