#!/usr/bin/env python3
"""`exeat doctor` in a sandbox that is tight, and in one of which every hole is open; and what `exeat run` makes of a hole."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading

from case_scene import in_own_network
from helpers import HOSTS, POLICY, SECRET, small_place
from place import BUILD, Place, Report, Skip, wait_for
from run_scene import ORDINARY, PYTHON, Scene

HOSTILE = BUILD if BUILD.rstrip("/").endswith("hostile") else os.path.join(BUILD, "hostile")


class Findings:
    """What the doctor printed with --json."""

    def __init__(self, done):
        assert done.returncode in (0, 1, 6), (done.returncode, done.stderr)
        self.all = json.loads(done.stdout)
        self.rows, self.code, self.stderr = self.all["rows"], done.returncode, done.stderr
        twice = [row for i, row in enumerate(self.rows) if row in self.rows[:i]]
        assert not twice, twice

    def of(self, part, name=None, what=""):
        return [r for r in self.rows if r["part"] == part and name in (None, r["name"]) and r["what"].startswith(what)]

    def one(self, part, name, what=""):
        rows = self.of(part, name, what)
        assert len(rows) == 1, (part, name, what, rows)
        return rows[0]


# ---- a sandbox of `exeat run` ----

class Tight(Scene):
    def __init__(self):
        super().__init__(ORDINARY)
        # Where the sandbox sees it.
        self.inside = self.own(shutil.copy(self.exeat, self.visible))
        self.found = None

    def doctor(self, *words):
        return self.run(self.inside, *words)

    @property
    def findings(self):
        if not self.found:
            self.found = Findings(self.run(self.inside, "doctor", "--json", options=["--log", self.file("trail")]))
        return self.found


def every_way_in_works(t):
    for name in ("environment", "socks5", "transparent", "dns"):
        assert t.findings.one("way", name)["verdict"] == "works", t.findings.of("way")
    assert t.findings.one("way", "environment")["why"] == "a", t.findings.of("way")
    assert t.findings.one("way", "unix")["verdict"] == "absent", t.findings.of("way")


def the_clients_that_are_there_are_driven_by_each_way_that_they_have(t):
    for name, ways in (("curl", ("environment", "socks5", "transparent")), ("python3 urllib", ("environment", "transparent")),
                       ("git", ("environment", "socks5", "transparent")), ("getent", ("transparent",))):
        for way in ways:
            assert t.findings.one("client", name, way)["verdict"] == "works", t.findings.of("client", name)


def nothing_escapes_and_nothing_is_unsure(t):
    assert t.findings.code == 0, t.findings.rows
    assert t.findings.all["escaped"] == t.findings.all["unsure"] == 0, t.findings.all
    seen = {r["name"] for r in t.findings.of("containment")}
    assert seen == {"interfaces", "tcp", "udp", "quic", "dns", "raw", "vsock", "socket", "file", "abstract", "listener",
                    "process"}, seen
    assert all(r["verdict"] == "contained" for r in t.findings.of("containment")), t.findings.of("containment")
    assert t.findings.one("containment", "tcp", "169.254.169.254")["why"] == "exeat takes it"


def the_table_says_the_same_and_a_client_that_fails_gets_its_fix(t):
    done = t.run("sh", "-c", 'CURL_CA_BUNDLE=/dev/null "$0" doctor', t.inside)
    text = done.stdout.decode()
    assert done.returncode == 0 and "containment  tcp" in text, (done.returncode, text, done.stderr)
    failed = [line for line in text.splitlines() if line.startswith("client") and " curl " in line and " fails " in line]
    assert all("exeat's CA is not trusted there: curl: (" in line for line in failed), failed
    assert failed and "\ncurl environment, curl socks5, curl transparent: what it reads: CURL_CA_BUNDLE" in text, text


def its_tries_are_counted_in_the_log_and_make_no_rules(t):
    assert t.findings
    shown, every = (t.raw([t.exeat, "log", "--denied", "--file", t.file("trail"), *more]).stdout.decode() for more in ([], ["--all"]))
    number = re.match(r"(\d+) more of the kind that the doctor tries", shown.splitlines()[-1])
    rows = max(shown.count("\n") - 2, 0)  # without a title and the number
    assert number and int(number.group(1)) + rows == every.count("\n") - 1, (shown, every)
    for name in ("echo.exeat.internal", ".exeat-doctor.invalid"):
        assert name in every and name not in shown, (name, shown, every)
    suggested = t.raw([t.exeat, "policy", "suggest", t.file("trail")])
    assert suggested.returncode == 0 and b"exeat" not in suggested.stdout, suggested


def a_target_that_is_no_address_is_refused(t):
    for word in ("outside.example.com", "192.0.2.1:0", "192.0.2.1:x", "--nothing"):
        done = t.doctor("doctor", word)
        assert done.returncode == 2 and word.encode() in done.stderr, (word, done)


# ---- a sandbox of a proxy environment and nothing else ----

class Answering:
    """Somebody outside who answers whatever comes, by TCP and UDP; silent: only takes it."""

    def __init__(self, port, kind, silent=False):
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("0.0.0.0", port))
        if kind == socket.SOCK_STREAM:
            self.socket.listen(16)
        self.kind, self.silent = kind, silent
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                if self.kind == socket.SOCK_STREAM:
                    stream, _ = self.socket.accept()
                    with stream:
                        stream.recv(4096)
                        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                else:
                    data, peer = self.socket.recvfrom(4096)
                    if not self.silent:
                        self.socket.sendto(data[:8], peer)
            except OSError:
                return


@contextlib.contextmanager
def bound(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(address)
        s.listen(16)
        yield


class Open:
    """Of the network, the processes and the files of exeatd: the doctor is run with a's environment, beside everything."""

    def __init__(self):
        self.place = small_place(listeners={"a": "sandbox a", "b": "sandbox b", "unix": "sandbox a"})
        self.place.__enter__()
        self.folder = tempfile.mkdtemp(prefix="exeat-test-", dir="/var/tmp")
        self.others = [Answering(80, socket.SOCK_STREAM), Answering(8443, socket.SOCK_STREAM), Answering(443, socket.SOCK_DGRAM),
                       Answering(123, socket.SOCK_DGRAM, True),
                       Answering(53, socket.SOCK_DGRAM)]
        self.found = None

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        for o in self.others:
            o.socket.close()
        self.place.__exit__()
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def doctor(self, *words, **how):
        return Findings(self.doctor_text("--json", *words, **how))

    def doctor_text(self, *words, before=(), **env):
        """A variable that is None is not set."""
        proxy = "http://127.0.0.1:%d" % self.place.ports["a"]
        base = {"PATH": "/usr/bin:/bin", "HOME": self.folder, "https_proxy": proxy, "http_proxy": proxy,
                "CURL_CA_BUNDLE": self.place.path("state", "public", "ca.pem"), "RES_OPTIONS": "timeout:1 attempts:1",
                "EXEAT_SOCKET": self.place.path("unix.sock")}
        return subprocess.run([*before, os.path.join(self.place.build, "exeat"), "--config", self.place.path("exeat.conf"), "doctor", *words],
                              env={k: v for k, v in {**base, **env}.items() if v is not None}, capture_output=True, text=True, timeout=200)

    @property
    def findings(self):
        if not self.found:
            self.found = self.doctor("198.51.100.9:8443")
        return self.found

    def escaped(self, name, what=""):
        row = self.findings.one("containment", name, what)
        assert row["verdict"] == "escaped" and row["why"] and row["fix"], row
        return row


def ways_that_are_not_there_are_said_with_their_fix_and_the_others_work(o):
    assert o.findings.one("way", "environment")["why"] == "a", o.findings.of("way")
    row = o.findings.one("way", "transparent")
    assert row["verdict"] == "fails" and "exeat run" in row["fix"], row
    assert o.findings.one("client", "curl", "environment")["verdict"] == "works", o.findings.of("client")
    assert not o.findings.of("client", "curl", "transparent"), o.findings.of("client")


def the_unix_socket_of_the_sandbox_is_a_way_in_and_no_escape(o):
    row = o.findings.one("way", "unix")
    assert row["verdict"] == "works" and row["what"] == o.place.path("unix.sock") and row["why"] == "a", row
    assert o.findings.one("client", "curl", "unix")["verdict"] == "works", o.findings.of("client", "curl")
    assert not o.findings.of("containment", "socket", o.place.path("unix.sock")), o.findings.of("containment", "socket")


def what_escapes_is_the_exit_status(o):
    assert o.findings.code == 1 and o.findings.all["escaped"] >= 9, o.findings.all


def a_connection_that_somebody_else_takes_escaped(o):
    o.escaped("tcp", "192.0.2.1:80")
    o.escaped("tcp", "198.51.100.9:8443")
    assert o.findings.one("containment", "tcp", "192.0.2.1:25")["verdict"] == "contained"


def a_metadata_service_that_answers_escaped(o):
    o.escaped("tcp", "169.254.169.254:80")


def datagrams_that_are_answered_escaped_and_those_that_are_not_are_unsure(o):
    o.escaped("quic", "192.0.2.1:443")
    row = o.findings.one("containment", "udp", "192.0.2.1:123")
    assert row["verdict"] == "unsure" and row["fix"], row


def a_dns_server_that_is_not_exeat_escaped(o):
    o.escaped("dns", "192.0.2.53:53 udp")
    assert o.findings.one("containment", "dns", "192.0.2.53:53 tcp")["verdict"] == "contained"


def raw_sockets_escaped(o):
    for what in ("IPv4", "IPv6", "packet"):
        o.escaped("raw", what)


def the_listener_of_another_sandbox_escaped(o):
    row = o.escaped("listener")
    assert row["what"] == "127.0.0.1:%d" % o.place.ports["b"] and row["why"].endswith(" b"), row


def exeatd_s_files_socket_and_process_escaped(o):
    rows = [r for r in o.findings.of("containment", "file") if r["what"].startswith(o.place.path("state"))]
    assert rows and all(r["verdict"] == "escaped" for r in rows), o.findings.of("containment", "file")
    assert o.escaped("socket", o.place.path("control.sock"))
    o.escaped("process")


def outside_of_any_sandbox_nothing_escapes_and_it_is_said(o):
    none = {"https_proxy": "", "http_proxy": "", "EXEAT_SOCKET": None}
    found = o.doctor(**none)
    assert found.code == 6 and found.all["sandbox"] is False and found.all["escaped"] == 0 and found.all["open"] >= 9, found.all
    verdicts = {r["verdict"] for r in found.of("containment")}
    assert verdicts == {"open", "contained", "unsure"}, verdicts
    text = o.doctor_text(**none).stdout
    assert text.startswith("This is not a sandbox: ") and "exeat run --policy FILE -- exeat doctor" in text.splitlines()[0], text
    assert "escaped" not in text and "keep exeat's folders out" not in text and re.search(r"\n\d+ open, \d+ unsure\n$", text), text
    # Where something says that it is one, what is open has escaped, also when exeat is away.
    claimed = o.doctor(**none, EXEAT_SANDBOX="a")
    assert claimed.code == 1 and claimed.all["sandbox"] is True and claimed.all["escaped"] >= 9, claimed.all


def sockets_of_outside_escaped_and_those_of_the_sandbox_did_not(o):
    apart = ("unshare", "--pid", "--fork", "--mount-proc")
    agent = os.path.join(o.folder, "agent.sock")
    with bound(agent), bound("\0exeat-test-outside"):
        found = o.doctor(before=apart, SSH_AUTH_SOCK=agent)
    assert found.one("containment", "socket", agent)["verdict"] == "escaped", found.of("containment", "socket")
    row = found.one("containment", "abstract", "@exeat-test-outside")
    assert row["verdict"] == "escaped" and "network namespace" in row["fix"], row
    assert found.one("containment", "process")["verdict"] == "contained", found.of("containment", "process")


# ---- what `exeat run` makes of a hole ----

AN_INTERFACE = "ip link add d0 type veth peer name d1 && ip link set d0 up"


class Holed(Scene):
    """As root, whose shell keeps all rights over the sandbox."""

    def __init__(self):
        super().__init__(None)
        for name in (".gnupg", ".config", ".config/exeat"):
            self.make(os.path.join(self.home, name))

    def attempt(self, hole, options=()):
        """What became of a command in a sandbox with this hole, and whether it began."""
        began = os.path.join(self.visible, "began")
        exeat = [os.path.join(HOSTILE, "exeat"), *self.words(["touch", began], options)[1:]]
        done = subprocess.run(exeat, capture_output=True, timeout=60, **{**self.how({"EXEAT_HOLE": hole}), "cwd": "/"})
        there = os.path.exists(began)
        if there:
            os.unlink(began)
        return done, there

    def refused(self, hole, words):
        done, began = self.attempt(hole)
        text = done.stderr.decode()
        if "cannot be made" in text:
            raise Skip("this hole cannot be made here: " + text.strip().replace("\n", "; "))
        assert done.returncode == 125 and not began, (done, began)
        assert "the sandbox is not tight, so the command is not run: " + words in text, text


def without_a_hole_the_command_is_run(h):
    done, began = h.attempt("true")
    assert done.returncode == 0 and began, done


def an_interface_refuses(h):
    h.refused(AN_INTERFACE, "interfaces d0")


def a_hole_is_in_the_trail_of_exeatd_and_so_is_that_there_is_none(h):
    trail = h.file("trail.jsonl")
    for hole, event, detail in ((AN_INTERFACE, "sandbox_not_tight", "not contained: interfaces d0"), ("true", "sandbox_probed", " contained")):
        done, _ = h.attempt(hole, ["--log", trail])
        assert b"cannot be made" not in done.stderr, done
        with open(trail) as f:
            kept = [r for r in map(json.loads, f) if r.get("event") == event]
        assert len(kept) == 1 and detail in kept[0]["detail"] and kept[0]["sandbox"] == "a", (event, kept)
        os.unlink(trail)


@contextlib.contextmanager
def opening_later(h, hole):
    """A running exeatd with a sandbox that is tight, and what opens the hole in it; the sandbox's command ends with 7."""
    opens = h.file("opens")
    later = "(until test -e %s; do sleep 0.1; done; %s; touch %s.done) >/dev/null 2>&1 &" % (opens, hole, opens)
    with Place(POLICY, {}, {"demo-key": (SECRET, "sk-demo-")}, hosts=HOSTS, config="attach attach.sock\n") as daemon:
        command = [os.path.join(HOSTILE, "exeat"), "--config", daemon.path("exeat.conf"), "run", "--sandbox", "a", "--",
                   "sh", "-c", "echo go; read end; exit 7"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **h.how({"EXEAT_HOLE": later}))

        def open_it():
            open(opens, "w").close()
            assert wait_for(lambda: os.path.exists(opens + ".done"), 10), "the hole cannot be made here"

        try:
            assert process.stdout.readline() == b"go\n"
            found = json.loads(daemon.exeat("--json", "sandbox", "probe", "a"))
            assert found["escaped"] == found["unsure"] == 0 and len(found["rows"]) > 10, found
            yield daemon, open_it
            # The command goes on, and nobody serves it.
            process.communicate(b"\n", timeout=20)
            assert process.returncode == 7, process.returncode
        finally:
            process.kill()
            process.wait()
            for name in (opens, opens + ".done"):
                if os.path.exists(name):
                    os.unlink(name)


def probes_of(daemon):
    return [r["event"] for r in daemon.records() if r.get("event") in ("sandbox_probed", "sandbox_not_tight", "lane_ended")]


def a_hole_that_opens_later_ends_the_sandbox_when_the_operator_asks(h):
    with opening_later(h, AN_INTERFACE) as (daemon, open_it):
        open_it()
        text = daemon.exeat("sandbox", "probe", "a", check=False)
        assert daemon.last.returncode == 1 and "containment  interfaces  d0" in text, (text, daemon.last)
        assert wait_for(lambda: probes_of(daemon) == ["sandbox_probed", "sandbox_probed", "sandbox_not_tight", "lane_ended"]), probes_of(daemon)


def a_sandbox_is_probed_also_when_its_first_process_has_no_proc_any_more(h):
    """The namespaces of the command are held from the start on."""
    with opening_later(h, "umount -l /proc") as (daemon, open_it):
        open_it()
        found = json.loads(daemon.exeat("--json", "sandbox", "probe", "a"))
        assert found["escaped"] == found["unsure"] == 0 and len(found["rows"]) > 10, found
        assert wait_for(lambda: probes_of(daemon) == 3 * ["sandbox_probed"]), probes_of(daemon)


def somebody_who_takes_datagrams_refuses(h):
    h.refused("%s -c 'import os, socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((\"0.0.0.0\", 9)); "
              "os.fork() == 0 and time.sleep(20)' >/dev/null 2>&1 || true" % PYTHON, "udp 192.0.2.1:9")


def the_processes_of_the_host_refuse(h):
    h.refused("umount -l /proc", "process /proc")


def a_socket_of_an_agent_refuses(h):
    path = os.path.join(h.home, ".gnupg", "S.gpg-agent")
    with bound(path):
        os.chmod(path, 0o666)
        # Covered as one that is bound, and as a known one.
        h.refused("while umount %s 2>/dev/null; do :; done" % path, "socket " + path)


def a_socket_that_the_user_shows_does_not(h):
    path = os.path.join(h.home, ".gnupg", "S.gpg-agent")
    if os.path.exists(path):
        os.unlink(path)
    with bound(path):
        done = h.run(PYTHON, "-c", "import socket; socket.socket(socket.AF_UNIX).connect('%s')" % path, options=("--bind", path))
    assert done.returncode == 0, done


def files_of_exeat_refuse(h):
    folder = os.path.join(h.home, ".config", "exeat")
    with open(h.own(os.path.join(folder)) + "/policy", "w") as f:
        f.write("x")
    os.chmod(folder + "/policy", 0o644)
    h.refused("umount %s" % folder, "file " + folder)


TIGHT = [every_way_in_works, the_clients_that_are_there_are_driven_by_each_way_that_they_have, nothing_escapes_and_nothing_is_unsure,
         its_tries_are_counted_in_the_log_and_make_no_rules,
         the_table_says_the_same_and_a_client_that_fails_gets_its_fix, a_target_that_is_no_address_is_refused]
OPEN = [ways_that_are_not_there_are_said_with_their_fix_and_the_others_work,
        the_unix_socket_of_the_sandbox_is_a_way_in_and_no_escape, what_escapes_is_the_exit_status,
        a_connection_that_somebody_else_takes_escaped, a_metadata_service_that_answers_escaped,
        datagrams_that_are_answered_escaped_and_those_that_are_not_are_unsure, a_dns_server_that_is_not_exeat_escaped,
        raw_sockets_escaped, the_listener_of_another_sandbox_escaped, exeatd_s_files_socket_and_process_escaped,
        outside_of_any_sandbox_nothing_escapes_and_it_is_said,
        sockets_of_outside_escaped_and_those_of_the_sandbox_did_not]
HOLED = [without_a_hole_the_command_is_run, an_interface_refuses, a_hole_is_in_the_trail_of_exeatd_and_so_is_that_there_is_none,
         a_hole_that_opens_later_ends_the_sandbox_when_the_operator_asks, a_sandbox_is_probed_also_when_its_first_process_has_no_proc_any_more, somebody_who_takes_datagrams_refuses,
         the_processes_of_the_host_refuse, a_socket_of_an_agent_refuses,
         a_socket_that_the_user_shows_does_not, files_of_exeat_refuse]


def main():
    report = Report()
    try:
        # The doctor of an open sandbox asks addresses of outside: here, all of them are this machine.
        if not in_own_network():
            raise Skip("needs root, and a network namespace of its own")
        report.run_in(Tight, TIGHT)
        report.run_in(Open, OPEN)
        if os.path.exists(os.path.join(HOSTILE, "exeat")):
            report.run_in(Holed, HOLED)
        else:
            report.skip("holes", "there is no hostile build: make HOSTILE=1")
    except Skip as why:
        report.skip("doctor", why)
    report.end()


if __name__ == "__main__":
    main()
