#!/usr/bin/env python3
"""
Tools that are made to get out: tunnels over DNS, ICMP, UDP and HTTP, run in a sandbox against their other half outside. Each is first
tried without a sandbox, where it works; in one not a packet of it may be on the wire. What an allowed host carries ends with its budget.

Runs as root, in a network of its own in which the whole internet is this machine, so that the wire can be watched.
"""
import concurrent.futures
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

from case_scene import in_own_network  # noqa: E402
from place import BUILD, Listener, Report, Skip, read_head, wait_for  # noqa: E402

HELPER, TARGET = "203.0.113.66", 7007
ORDINARY = 65534
HELLO = "hello from inside"
POLICY = """
service api { host api.allowed.test; range 127.0.0.0/8; operation every { * /** } }
service zone { host *.tunnel.test; range 203.0.113.0/24; operation every { * /** } }
service relay { host relay.allowed.test; port 80; tls clear; range %s; operation every { * /** } }
sandbox default { grant api all; grant zone all }
sandbox relayed { grant relay all bytes out %d }
"""
BUDGET, NAMES = 150000, 2  # bytes; new names a minute


class Wire:
    """What leaves for other addresses than loopback's: all that is not between exeat and who is allowed."""

    def __init__(self):
        self.packets, self.lock = [], threading.Lock()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
        self.socket.bind(("lo", 0))
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            data, (_, protocol, kind, _, _) = self.socket.recvfrom(1 << 16)
            inner = protocol == 0x0800 and data[12] == 127 and data[16] == 127 or protocol == 0x86dd and data[8:40] == 2 * (15 * b"\0" + b"\1")
            if kind == socket.PACKET_OUTGOING and not inner:
                with self.lock:
                    self.packets.append(data)

    def forget(self):
        with self.lock:
            self.packets.clear()

    def questions(self):
        """What was sent by UDP to a DNS server over IPv4."""
        with self.lock:
            return [p[(p[0] & 15) * 4 + 8:] for p in self.packets if p[0] >> 4 == 4 and p[9] == 17
                    and int.from_bytes(p[(p[0] & 15) * 4 + 2:(p[0] & 15) * 4 + 4], "big") == 53]


class Outside:
    def __init__(self):
        self.wire, self.visible = Wire(), tempfile.mkdtemp(prefix="exeat-tunnels-", dir="/var/tmp")
        os.chmod(self.visible, 0o755)
        for name in ("exeat", "exeatd"):
            shutil.copy(os.path.join(BUILD, name), self.visible)
        self.home = os.path.join(self.visible, "home")
        os.mkdir(self.home)
        os.chown(self.home, ORDINARY, ORDINARY)
        self.policy = self.write("policy", POLICY % (HELPER, BUDGET))
        self.settings = self.write("settings", "resolver %s\nhost api.allowed.test 127.0.0.1\nhost relay.allowed.test %s\n"
                                   "limit new-names %d\n" % (HELPER, HELPER, NAMES))
        self.dns2tcpd = self.write("dns2tcpd", "listen = %s\nport = 53\nuser = nobody\nchroot = /var/tmp\ndomain = tunnel.test\n"
                                   "resources = echo:127.0.0.1:%d\n" % (HELPER, TARGET))
        self.arrived, self.target = 0, Listener(self._echo, TARGET)

    def _echo(self, connection):
        with connection:
            while data := connection.recv(4096):
                self.arrived += len(data)
                connection.sendall(data)

    def close(self):
        self.target.close()
        shutil.rmtree(self.visible, ignore_errors=True)

    def serve_connect(self, connection):
        """A proxy outside, which connects everybody with the target."""
        if read_head(connection)[0].startswith(b"CONNECT "):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            self._echo(connection)
        connection.close()

    def write(self, name, text):
        with open(os.path.join(self.visible, name), "w") as f:
            f.write(text)
        return f.name

    @contextlib.contextmanager
    def helper(self, *words):
        """The tool's other half."""
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            assert process.poll() is None, "%s does not start" % words[0]
            yield
        finally:
            process.kill()
            process.wait()

    def run(self, script, before=(), **how):
        """What it printed, of both kinds."""
        return subprocess.run([*before, "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, cwd="/",
                              env={"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", "HOME": self.home}, **how).stdout.decode(
                                  errors="replace")

    def inside(self, script, user=ORDINARY, sandbox="default"):
        launcher = [os.path.join(self.visible, "exeat"), "run", "--policy", self.policy, "--settings", self.settings, "--sandbox", sandbox, "--"]
        return self.run(script, launcher, **({"user": user, "group": user, "extra_groups": []} if user else {}))


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip("there is no %s here (dependencies.sh interop)" % program)


def carries_nothing(o, works, *scripts):
    """works: what a script prints that got out. As an ordinary user, as root, and as root of a user namespace of its own."""
    def attempt(job):
        user, script = job
        said = o.inside(script, user)
        assert works not in said and "exeat: run:" not in said, (script, said)

    jobs = [job for script in scripts for job in ((ORDINARY, script), (None, script), (ORDINARY, "unshare -Ur sh -c '%s'" % script))]
    o.wire.forget()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, jobs))
    assert not o.wire.packets, "%d packets on the wire, the first %r" % (len(o.wire.packets), o.wire.packets[0])


def works_outside(o, works, script):
    """Until the wire is silent again."""
    o.wire.forget()
    said = o.run(script)
    assert works in said and wait_for(lambda: o.wire.packets, 2), "it does not even work without a sandbox: " + said
    kept = 0
    while kept != (kept := len(o.wire.packets)):
        time.sleep(1)


# ---- DNS ----

SEND_AGAIN = """
import socket, sys
for server in (%r, "192.0.2.53"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.2)
    for question in sys.argv[1:]:
        try:
            s.sendto(bytes.fromhex(question), (server, 53))
            print("code", s.recv(4096)[3] & 15)
        except OSError as e:
            print(type(e).__name__)
""" % HELPER


def iodine_carries_nothing(o):
    need("iodine", "iodined")
    if not os.path.exists("/dev/net/tun"):
        raise Skip("there is no /dev/net/tun here")
    client = "timeout 5 iodine -f -r -P pw -m 500 %s tunnel.test"
    works = "Connection setup complete"
    with o.helper("iodined", "-f", "-P", "pw", "-l", HELPER, "10.77.1.1/24", "tunnel.test"):
        works_outside(o, works, client % HELPER)
        questions = [q.hex() for q in o.wire.questions()][:40]
        carries_nothing(o, works, client % HELPER, client % "")
        # It opens a tun device before it speaks: what it said outside is said again, without one.
        o.wire.forget()
        said = o.inside("/usr/bin/python3 -c '%s' %s" % (SEND_AGAIN.replace("'", '"'), " ".join(questions)))
        assert len(questions) > 5 and said.count("code") == 2 * len(questions), said
        assert not o.wire.packets, o.wire.packets[0]


def dns2tcp_carries_nothing(o):
    need("dns2tcpc", "dns2tcpd")
    client = "(echo " + HELLO + "; sleep 2) | timeout 5 dns2tcpc -z tunnel.test -r echo -l - %s"
    with o.helper("dns2tcpd", "-F", "-f", o.dns2tcpd):
        works_outside(o, HELLO, client % HELPER)
        carries_nothing(o, HELLO, client % HELPER, client % "", client.replace("-r echo", "-T KEY -r echo") % HELPER)


# ---- ICMP and UDP ----

SAY_HELLO = """
import socket
s = socket.create_connection(("127.0.0.1", 2222), 3)
s.settimeout(4)
s.sendall(b"%s")
print(s.recv(100).decode())
""" % HELLO


def ptunnel(o, *how):
    need("ptunnel-ng")
    client = "ptunnel-ng %s -p %s -l 2222 -r127.0.0.1 -R%d & p=$!; sleep 1; /usr/bin/python3 %s; kill $p" % (
        " ".join(how), HELPER, TARGET, o.write("hello.py", SAY_HELLO))
    with o.helper("ptunnel-ng", *how, "-r127.0.0.1", "-R%d" % TARGET):
        works_outside(o, HELLO, client)
        carries_nothing(o, HELLO, client)


def ptunnel_ng_carries_nothing_over_icmp(o):
    ptunnel(o)


def ptunnel_ng_carries_nothing_over_udp(o):
    ptunnel(o, "--udp")


# ---- HTTP ----

SAY = "(echo %s; sleep 1) | timeout 5 " % HELLO


def connect_tool(o, *clients):
    """The first is for a proxy outside."""
    helpers = [Listener(o.serve_connect, port, HELPER) for port in (80, 443, 8080)]
    try:
        works_outside(o, HELLO, SAY + clients[0])
        carries_nothing(o, HELLO, *(SAY + c for c in clients))
    finally:
        for helper in helpers:
            helper.close()


def proxytunnel_carries_nothing(o):
    need("proxytunnel")
    connect_tool(o, *("proxytunnel -p %s:%d -d 127.0.0.1:7007" % (HELPER, port) for port in (8080, 80, 443)),
                 *("proxytunnel -p 127.0.0.1:3128 -d %s:%d" % (HELPER, port) for port in (22, 80, 443, 8080)),
                 "proxytunnel -p 127.0.0.1:3128 -d api.allowed.test:443", "proxytunnel -z -E -p %s:443 -d 127.0.0.1:7007" % HELPER,
                 "proxytunnel -p 127.0.0.1:3128 -r %s:443 -d 127.0.0.1:7007" % HELPER)


def corkscrew_carries_nothing(o):
    need("corkscrew")
    connect_tool(o, *("corkscrew %s %d 127.0.0.1 7007" % (HELPER, port) for port in (8080, 80, 443)),
                 *("corkscrew 127.0.0.1 3128 %s %d" % (HELPER, port) for port in (22, 443)), "corkscrew 127.0.0.1 3128 api.allowed.test 443")


def httptunnel_carries_nothing(o):
    need("htc", "hts")
    with o.helper("hts", "-w", "-F", "127.0.0.1:%d" % TARGET, HELPER + ":80"):
        works_outside(o, HELLO, SAY + "htc -s %s:80" % HELPER)
        carries_nothing(o, HELLO, SAY + "htc -s %s:80" % HELPER, SAY + "htc -s -P 127.0.0.1:3128 %s:80" % HELPER,
                        SAY + "htc -s relay.allowed.test:80")


# ---- what an allowed host carries ----

def an_allowed_host_carries_what_its_grant_has_bytes_for(o):
    """One of the sandbox's own, with httptunnel behind it: more than the grant holds is offered."""
    need("htc", "hts")
    with o.helper("hts", "-w", "-F", "127.0.0.1:%d" % TARGET, HELPER + ":80"):
        o.arrived = 0
        o.inside("(head -c %d /dev/zero; sleep 2) | timeout 5 htc -s relay.allowed.test:80" % (4 * BUDGET), sandbox="relayed")
        assert 0 < o.arrived < BUDGET, o.arrived


def names_under_an_allowed_wildcard_leave_as_often_as_a_limit_says(o):
    """To the zone's own server, when a request is allowed."""
    o.wire.forget()
    said = o.inside("for i in 1 2 3 4 5 6; do curl -s -m 5 https://data-$i.tunnel.test/x; done")
    asked = {q[13:13 + q[12]] for q in o.wire.questions()}
    assert asked == {b"data-%d" % (i + 1) for i in range(NAMES)}, (asked, said)


def main():
    report = Report()
    if os.getuid() != 0 or not in_own_network():
        report.skip("tunnelling tools carry nothing", "needs root, for a network of its own")
        report.end()
    report.run_in(lambda: contextlib.closing(Outside()), [
        iodine_carries_nothing, dns2tcp_carries_nothing, ptunnel_ng_carries_nothing_over_icmp, ptunnel_ng_carries_nothing_over_udp,
        proxytunnel_carries_nothing, corkscrew_carries_nothing, httptunnel_carries_nothing,
        an_allowed_host_carries_what_its_grant_has_bytes_for, names_under_an_allowed_wildcard_leave_as_often_as_a_limit_says])
    report.end()


if __name__ == "__main__":
    main()
