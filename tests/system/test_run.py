#!/usr/bin/env python3
"""`exeat run`: a command in namespaces whose only way out is exeat, as root and as an ordinary user."""
import contextlib
import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

from helpers import HOSTS, POLICY, SECRET, answer
from place import Place, Report, Skip, wait_for

ORDINARY = 65534
PYTHON = "/usr/bin/python3"

# Says of each address what a connection to it ends with, and after how many milliseconds.
CONNECT = """
import socket, sys, time
for word in sys.argv[1:]:
    kind, host, port = word.rsplit('/', 2)
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM if kind == 'udp' else socket.SOCK_STREAM)
    s.settimeout(2)
    begin = time.monotonic()
    try:
        s.connect((host, int(port)))
        s.send(b'x')
        s.recv(1)
        end = 'open'
    except OSError as e:
        end = type(e).__name__
    print(word, end, int(1000 * (time.monotonic() - begin)))
"""

# Enters the network of a process, and first the user namespace that owns it, with all rights over it; then a command.
ENTER = """
import ctypes, fcntl, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def must(result):
    if result != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
net = os.open('/proc/%s/ns/net' % sys.argv[1], os.O_RDONLY)
owner = fcntl.ioctl(net, 0xb701)
must(libc.setns(owner, 0x10000000))
must(libc.setns(net, 0x40000000))
# Rights that stay when another program is executed.
header, every = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xffffffff] * 3 + [0x1ff] * 3)
must(libc.capset(header, every))
for capability in (12, 13, 21):
    must(libc.prctl(47, 2, capability, 0, 0))
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Scene:
    """An upstream, a policy and what `exeat run` takes; the files are where the sandbox sees them."""

    def __init__(self, user):
        self.place = Place(POLICY, {}, hosts=HOSTS, user=user)
        self.user = user
        self.visible = tempfile.mkdtemp(prefix="exeat-run-test-", dir="/var/tmp")
        if user:
            os.chown(self.visible, user, user)
        self.home = self.file("home")
        self.make(self.home)
        self.policy = self.write("policy", self.place.fill(POLICY))
        self.settings = self.write("settings", "trust file %s\n" % self.place.ca.pem + "".join(
            "host %s 127.0.0.1\n" % h for h in HOSTS))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.place.__exit__()
        shutil.rmtree(self.visible, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.visible, name)

    def own(self, path):
        if self.user:
            os.chown(path, self.user, self.user)
        return path

    def make(self, path):
        os.mkdir(path)
        return self.own(path)

    def write(self, name, text):
        with open(self.file(name), "w") as f:
            f.write(text)
        return self.own(self.file(name))

    @property
    def exeat(self):
        return os.path.join(self.place.build, "exeat")

    def words(self, command, options=(), sandbox="a"):
        return [self.exeat, "run", "--policy", self.policy, "--settings", self.settings, "--sandbox", sandbox, *options, "--",
                *command]

    def how(self, env=None):
        base = {"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "LANG": "C.UTF-8",
                "DEMO_KEY": SECRET}
        return {"env": {**base, **(env or {})}, "cwd": "/", **self.place.as_user}

    def raw(self, words, env=None, stdin=b"", **more):
        return subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **self.how(env), **more)

    def run(self, *command, options=(), env=None, stdin=b"", **more):
        return self.raw(self.words(command, options), env, stdin, **more)

    def output(self, *command, **how):
        done = self.run(*command, **how)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    @contextlib.contextmanager
    def going(self, script, **how):
        """A sandbox with a shell script that has said "go", and is ended."""
        process = subprocess.Popen(self.words(["sh", "-c", script]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **self.how(**how))
        try:
            line = process.stdout.readline()
            assert line == b"go\n", (line, process.stderr.read() if process.poll() is not None else "")
            yield process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def init_of(process):
    """The first process of a sandbox: the child of the launcher that is no exeatd."""
    def is_exeatd(pid):
        with open("/proc/%d/comm" % pid) as f:
            return f.read() == "exeatd\n"
    return next(pid for pid in children(process.pid) if not is_exeatd(pid))


def directory_of(process):
    """Where the exeatd of its own keeps what it has."""
    daemon = next(pid for pid in children(process.pid) if pid != init_of(process))
    with open("/proc/%d/cmdline" % daemon) as f:
        return os.path.dirname(f.read().split("\0")[2])


def ends(text):
    """What CONNECT printed: word to (end, milliseconds)."""
    return {w: (end, int(ms)) for w, end, ms in (line.split() for line in text.splitlines())}


# ---- the way out ----

def an_allowed_request_works_with_curl_and_python_and_gets_the_secret(scene):
    port = scene.place.values["port"]
    scene.place.upstream.forget()
    scene.place.upstream.script = lambda request, stream: answer(b"from the upstream")
    script = """
        curl -sS -H "Authorization: Bearer $DEMO_KEY" https://api.allowed.test:%d/v1/items
        %s -c 'import urllib.request, os
print(urllib.request.urlopen(urllib.request.Request("https://api.allowed.test:%d/v1/items/python",
      headers={"Authorization": "Bearer " + os.environ["DEMO_KEY"]})).read())'
        env | grep -c %s
    """ % (port, PYTHON, port, SECRET)
    done = scene.run("sh", "-c", script, options=["--secret", "demo-key=MY_KEY"], env={"MY_KEY": SECRET, "DEMO_KEY": "other"})
    assert done.stdout == b"from the upstreamb'from the upstream'\n0\n", (done.stdout, done.stderr)
    seen = b"".join(scene.place.upstream.requests)
    assert seen.count(b"Bearer " + SECRET.encode()) == 2, seen


def other_variables_that_hold_the_secret_are_gone(scene):
    text = scene.output("env", env={"COPY": SECRET, "URL": "https://user:%s@example.com/" % SECRET, "OTHER": SECRET[:-1]})
    assert SECRET not in text and "COPY=" not in text and "URL=" not in text, text
    assert "OTHER=%s\n" % SECRET[:-1] in text, text


def what_policy_does_not_allow_is_refused_with_its_reason(scene):
    done = scene.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_connect}", "https://evil.example.net/")
    assert done.returncode == 56 and done.stdout == b"403", (done.stdout, done.stderr)


def ct_13_ct_14_without_the_variables_ports_of_loopback_and_of_udp_are_refused_at_once(scene):
    port = scene.place.values["port"]
    words = ["tcp/127.0.0.1/%d" % port, "tcp/127.0.0.1/25", "tcp/127.0.0.53/8443", "tcp/::1/8443", "udp/8.8.8.8/443", "udp/127.0.0.53/5353",
             "udp/192.0.2.1/443", "udp/2001:db8::1/123"]
    scene.place.upstream.forget()
    found = ends(scene.output("env", "-i", PYTHON, "-c", CONNECT, *words))
    assert set(found) == set(words)
    for word, (end, milliseconds) in found.items():
        assert end == "ConnectionRefusedError" and milliseconds < 100, (word, end, milliseconds)
    assert scene.place.upstream.connections == 0


# A client that knows of no proxy: what it asks, the status that it gets, and the reason.
PLAIN = "env -i PATH=$PATH curl -sS -m 20 -w '\\n%{http_code}' "

# Says for each address and first words what comes back, after how many milliseconds, and whether it was refused by the kernel.
TALK = """
import json, socket, sys, time
for where, words in json.loads(sys.argv[1]):
    host, port = where.rsplit('/', 1)
    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
    s.settimeout(5)
    begin, got = time.monotonic(), b''
    try:
        s.connect((host, int(port)))
        s.send(bytes.fromhex(words))
        while piece := s.recv(4096):
            got += piece
        end = 'closed'
    except OSError as e:
        end = type(e).__name__
    print(json.dumps([where, end, int(1000 * (time.monotonic() - begin)), got.hex()]))
"""


def client_hello(name):
    """The first bytes of a TLS client that means this name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def skip_unless_other_ports_are_caught():
    """Whether this kernel has the rules that do it."""
    try:
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--net", "nft", "add table inet t; add chain inet t c { type filter hook "
                               "prerouting priority -150; }; add rule inet t c socket transparent 1 tcp dport 1 tproxy ip to :1"], capture_output=True)
    except FileNotFoundError:
        raise Skip("there is no nft here")
    if done.returncode != 0:
        raise Skip("this kernel does not have nftables' socket and tproxy: " + done.stderr.decode().strip())


def ct_13_without_the_variables_other_ports_of_tcp_are_refused_in_words_and_recorded(scene):
    skip_unless_other_ports_are_caught()
    port = scene.place.values["port"]
    cases = [("203.0.113.9/25", b"", b""), ("2001:db8::9/3306", b"", b""),  # whose servers speak first
             ("192.0.2.1/8080", b"GET / HTTP/1.1\r\nHost: evil.test:8080\r\n\r\n", b"HTTP/1.1 403 "),
             ("169.254.169.254/8081", b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 403 "),
             ("2001:db8::1/8443", client_hello("evil.test"), b"\x15\x03\x03\x00\x02\x02\x31"),
             ("8.8.8.8/853", client_hello("dns.test"), b"\x15\x03\x03\x00\x02\x02\x31"),
             ("203.0.113.9/2222", b"SSH-2.0-test\r\n", b"SSH-2.0-exeat\r\n"),
             ("203.0.113.9/7", b"x", b""), ("203.0.113.9/5432", bytes.fromhex("0000000804d2162f"), b""), ("203.0.113.9/3128", b"CONNECT a.test:443 HTTP/1.1\r\n\r\n", b"HTTP/1.1 4"),
             ("%s/%d" % (socket.gethostbyname(socket.gethostname()), port), b"", b"")]
    if cases[-1][0].startswith("127."):
        cases.pop()
    log = scene.file("ports.jsonl")
    scene.place.upstream.forget()
    text = scene.output("env", "-i", PYTHON, "-c", TALK, json.dumps([(where, words.hex()) for where, words, _ in cases]), options=("--log", log))
    found = [json.loads(line) for line in text.splitlines()]
    records = [json.loads(line) for line in scene.raw([scene.exeat, "log", "--file", log, "--json"]).stdout.splitlines()]
    os.unlink(log)
    assert len(found) == len(cases), text
    for (where, words, answer), (_, end, milliseconds, got) in zip(cases, found):
        assert end == "closed" and bytes.fromhex(got).startswith(answer) and bool(got) == bool(answer), (where, end, bytes.fromhex(got))
        # Who is silent is given 50 ms first; a busy machine takes its time besides.
        assert milliseconds < (100 if len(words) > 1 else 250), (where, milliseconds)
        host, number = where.rsplit("/", 1)
        meant = ("[%s]:%s" if ":" in host else "%s:%s") % (host, number)
        assert [r["verdict"] for r in records if r.get("meant") == meant] == ["deny"], (meant, records)
    assert scene.place.upstream.connections == 0


def an_allowed_service_at_another_port_is_reached_without_the_variables(scene):
    skip_unless_other_ports_are_caught()
    url = "https://open.allowed.test:%d/v1/items" % scene.place.values["port"]
    assert scene.output("sh", "-c", PLAIN + url).endswith("\n200")


def servers_inside_are_found_at_any_address_and_are_not_caught(scene):
    script = """
import socket, threading
for family, any, host in ((socket.AF_INET, '0.0.0.0', '192.0.2.7'), (socket.AF_INET6, '::', '2001:db8::7')):
    for connects in (host, '127.0.0.1' if family == socket.AF_INET else '::1'):
        server = socket.socket(family)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind((any, 8000))
        server.listen(64)
        for _ in range(20):
            client = socket.create_connection((connects, 8000), 5)
            accepted, peer = server.accept()
            accepted.settimeout(5)
            client.sendall(b'x' * 50000)
            n = 0
            while n < 50000:
                n += len(accepted.recv(65536))
            accepted.sendall(b'own')
            assert client.recv(3) == b'own'
            client.close()
            accepted.close()
        server.close()
print('good')
"""
    assert scene.output("env", "-i", PYTHON, "-c", script) == "good\n"


def without_the_variables_names_are_captured_and_all_else_is_refused(scene):
    # Nothing listens at the port of https: that it was dialled is what shows.
    policy = scene.write("captured", "service web { host open.allowed.test; range 127.0.0.0/8; operation every { * /; * /** } }\n"
                         "sandbox a { grant web every }\n")
    log = scene.file("captured.jsonl")
    script = PLAIN + "https://open.allowed.test/captured; echo; " + PLAIN + "https://evil.test/; echo; " + PLAIN + (
        "--resolve evil.test:443:203.0.113.9 https://evil.test/ 2>&1; echo; ") + PLAIN + (
        "--resolve evil.test:80:[2001:db8::9] http://evil.test/")
    done = scene.raw([scene.exeat, "run", "--policy", policy, "--settings", scene.settings, "--sandbox", "a", "--log", log, "--",
                      "sh", "-c", script])
    text, said = done.stdout.decode(), done.stderr.decode()
    assert "connect_failed" in text and "\n502\n" in text, (text, said)
    assert "Could not resolve host: evil.test" in said, (text, said)
    assert "alert" in text and "host_not_allowed" in text and text.endswith("\n403"), (text, said)
    shown = scene.raw([scene.exeat, "log", "--file", log, "--json"]).stdout.decode()
    os.unlink(log)
    for part in ('"host":"open.allowed.test","path":"/captured"', '"door":"dns"', '"meant":"203.0.113.9:443"', '"meant":"[2001:db8::9]:80"'):
        assert part in shown, (part, shown)


def ssh_is_refused_in_words(scene):
    if not shutil.which("ssh"):
        raise Skip("there is no ssh here")
    done = scene.run("ssh", "-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "git@203.0.113.9")
    assert done.returncode == 255 and b"exeat: " in done.stderr and b"https://" in done.stderr, done


def names_are_resolved_for_who_looks_for_addresses_first(scene):
    """What many clients ask for by AI_ADDRCONFIG: no address of a family of which this network has none but loopback's."""
    script = "import socket; print(*(socket.getaddrinfo('open.allowed.test', 443, f, flags=socket.AI_ADDRCONFIG)[0][4][0] for f in (2, 10)))"
    first, second = scene.output("env", "-i", PYTHON, "-c", script).split()
    assert first.startswith("198.1") and ":" in second, (first, second)


def a_name_that_is_not_allowed_is_not_resolved(scene):
    done = scene.run("env", "-i", PYTHON, "-c", "import socket; socket.getaddrinfo('example.com', 80)")
    assert done.returncode == 1 and b"gaierror" in done.stderr, done.stderr


def who_is_root_of_the_network_gains_nothing(scene):
    """Its owner comes from outside with every right that there is over it."""
    port, own = scene.place.values["port"], socket.gethostbyname(socket.gethostname())
    script = """
        ip route flush table local; ip -6 route flush table local; ip rule flush
        ip addr add 192.0.2.7/24 dev lo; ip rule add pref 1 lookup main
        ip route add default via 192.0.2.1 dev lo; ip link add type dummy; ip link set dummy0 up; ip route add %s/32 dev dummy0
        nft flush ruleset 2>/dev/null; echo 1 >/proc/sys/net/ipv4/ip_forward
        ip route | grep default
        %s -c "$0" tcp/127.0.0.1/%d tcp/%s/%d udp/192.0.2.53/53
    """ % (own, PYTHON, port, own, port)
    scene.place.upstream.forget()
    with scene.going("echo go; exec sleep 60") as process:
        entered = scene.raw([PYTHON, "-c", ENTER, str(children(init_of(process))[0]), "sh", "-c", script, CONNECT])
    text = entered.stdout.decode()
    assert "default via 192.0.2.1" in text, (text, entered.stderr)
    assert "open" not in text and "tcp/%s/%d" % (own, port) in text, text
    assert scene.place.upstream.connections == 0


def a_namespace_of_the_commands_own_gains_nothing(scene):
    port = scene.place.values["port"]
    scene.place.upstream.forget()
    done = scene.run("unshare", "-Urnm", "--propagation", "unchanged", "sh", "-c", """
        ip link set lo up; umount /tmp 2>/dev/null && echo uncovered; umount /run 2>/dev/null && echo uncovered
        umount -l /dev /proc 2>/dev/null && echo uncovered; umount /etc/ssl/certs/ca-certificates.crt 2>/dev/null && echo uncovered
        mkdir /tmp/x && mount --bind / /tmp/x 2>/dev/null && echo uncovered
        %s -c "$0" tcp/127.0.0.1/%d; id -u""" % (PYTHON, port), CONNECT)
    # The kernel lets nobody hand root on who has not all rights himself.
    assert done.stdout.splitlines()[-1:] == [b"0"] or not scene.user and b"uid_map" in done.stderr, (done.stdout, done.stderr)
    assert b"uncovered" not in done.stdout and b"open" not in done.stdout, done.stdout
    assert scene.place.upstream.connections == 0


# Leaves the tree behind in a mount namespace of its own. Names in it that were covered are no mounts there and can be renamed, into a
# folder that is also seen by way of another mount, which covers nothing.
LEAVE_BEHIND = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
folder, names = sys.argv[1], sys.argv[2:]
uid, gid = os.getuid(), os.getgid()
assert libc.unshare(0x10020000) == 0
for file, text in (('setgroups', 'deny'), ('uid_map', '%d %d 1' % (uid, uid)), ('gid_map', '%d %d 1' % (gid, gid))):
    try:
        with open('/proc/self/' + file, 'w') as f:
            f.write(text)
    except OSError:
        pass  # root's may not, and goes on without
tree = os.open(folder, os.O_PATH)
libc.mount((folder + '/shown').encode(), (folder + '/other').encode(), None, 4096, None)
other = os.open(folder + '/other', os.O_PATH)
libc.syscall(155, (folder + '/other').encode(), (folder + '/other/old').encode())
libc.umount2(b'/old', 2)
for name in names:
    try:
        os.rename(name, 'shown/' + name, src_dir_fd=tree, dst_dir_fd=tree)
        print('renamed', os.stat(name, dir_fd=other))
    except OSError as e:
        print(name, e.errno)
print(libc.syscall(467, -100, b'/', 1, 0, 0), ctypes.get_errno())
"""


def covers_cannot_be_left_behind(scene):
    """The kernel alone would let a mount namespace of the command's own rename what is covered."""
    folder = scene.make(scene.file("cover"))
    for name in ("shown", "shown/old", "other", "hidden"):
        scene.make(os.path.join(folder, name))
    scene.write("cover/hidden/key", "key")
    scene.write("cover/read-only", "")
    done = scene.run(PYTHON, "-c", LEAVE_BEHIND, folder, "hidden", "read-only",
                     options=["--hide", folder + "/hidden", "--ro", folder + "/read-only"])
    assert done.stdout == b"hidden 16\nread-only 16\n-1 38\n", done
    assert os.listdir(folder + "/hidden") == ["key"] and os.listdir(folder + "/shown") == ["old"], os.listdir(folder)
    shutil.rmtree(folder)


def the_command_cannot_change_its_network(scene):
    done = scene.run("sh", "-c", "ip route flush table local || echo refused; umount /tmp 2>/dev/null || echo refused")
    assert done.stdout == b"refused\nrefused\n", (done.stdout, done.stderr)


# ---- the host's sockets and processes ----

def sockets_of_the_host_are_not_reachable(scene):
    paths = [scene.file("agent.sock"), os.path.join(scene.home, ".gnupg", "S.gpg-agent")]
    scene.make(os.path.dirname(paths[1]))
    abstract = "\0exeat-run-test-%d" % os.getpid()
    servers = []
    try:
        for at in paths + [abstract]:
            servers.append(socket.socket(socket.AF_UNIX))
            servers[-1].bind(at)
            servers[-1].listen()
            if at[0] == "/":
                os.chmod(at, 0o777)
        probe = """
import socket, sys
for at in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(at.replace('@', chr(0)))
        print('open')
    except OSError as e:
        print(type(e).__name__)
"""
        words = [PYTHON, "-c", probe, *paths, abstract.replace("\0", "@")]
        assert scene.raw(words).stdout == b"open\n" * 3
        assert scene.output(*words).splitlines() == ["ConnectionRefusedError"] * 3
    finally:
        for server in servers:
            server.close()
        shutil.rmtree(os.path.dirname(paths[1]))
        os.unlink(paths[0])


def sockets_that_are_not_where_they_were_bound_are_not_reachable(scene):
    """Bound by a relative name; renamed; linked to another name, as ssh's master connections are."""
    folder = scene.make(scene.file("sockets"))
    probe = """
import socket, sys
for at in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(at)
        print('open')
    except OSError as e:
        print(type(e).__name__)
"""
    server = """
import os, socket
os.chdir(%r)
sockets = []
for name in ("relative", "bound", "temporary", "blank "):
    sockets.append(socket.socket(socket.AF_UNIX))
    sockets[-1].bind(name if name == "relative" else os.path.abspath(name))
    sockets[-1].listen()
os.rename("bound", "renamed")
os.link("temporary", "linked")
os.unlink("temporary")
print("go", flush=True)
input()
""" % folder
    with subprocess.Popen([PYTHON, "-c", server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **scene.how()) as holder:
        assert holder.stdout.readline() == b"go\n"
        words = [PYTHON, "-c", probe, *(os.path.join(folder, name) for name in ("relative", "renamed", "linked", "blank "))]
        assert scene.raw(words).stdout == b"open\n" * 4
        assert scene.output(*words).splitlines() == ["ConnectionRefusedError"] * 4
        shown = scene.output(*words, options=["--ro", "/", "--bind", scene.visible])
        assert shown.splitlines() == ["ConnectionRefusedError"] * 4, shown
        holder.communicate(b"\n")
    shutil.rmtree(folder)


def variables_that_name_agents_are_gone(scene):
    names = ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "TMUX", "EXEAT_CONFIG"]
    text = scene.output("env", env={n: "/nowhere" for n in names})
    assert not [n for n in names if n + "=" in text], text
    assert "EXEAT_SANDBOX=a\n" in text


def shared_folders_are_empty_and_private(scene):
    runtime = scene.file("runtime")
    scene.make(runtime)
    os.chmod(runtime, 0o700)
    with open(os.path.join(runtime, "bus"), "w"):
        pass
    text = scene.output("sh", "-c", 'ls -A /tmp /run "$XDG_RUNTIME_DIR" /dev/shm; touch /tmp/x "$XDG_RUNTIME_DIR"/y && echo writable',
                        env={"XDG_RUNTIME_DIR": runtime})
    assert text == "/dev/shm:\n\n/run:\nexeat\n\n/tmp:\n\n%s:\nwritable\n" % runtime, text
    assert os.listdir(runtime) == ["bus"], os.listdir(runtime)
    shutil.rmtree(runtime)


def a_runtime_folder_in_run_is_made_anew(scene):
    text = scene.output("sh", "-c", 'stat -c %a "$XDG_RUNTIME_DIR"', env={"XDG_RUNTIME_DIR": "/run/user/12345"})
    assert text == "700\n", text


def the_daemons_state_is_not_there(scene):
    with scene.going("echo go; read path; if test -e $path; then echo seen; else echo hidden; fi") as process:
        state = directory_of(process)
        assert os.path.exists(os.path.join(state, "state", "vault.key")), state
        process.stdin.write(state.encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"hidden\n"


def only_processes_of_the_sandbox_are_seen(scene):
    text = scene.output("sh", "-c", "ls -d /proc/[0-9]* | wc -l; cat /proc/1/environ /proc/1/maps 2>&1; ls /proc/1/root 2>&1; kill -9 1; echo $PPID")
    assert int(text.split()[0]) < 6 and text.count("Permission denied") == 3 and text.endswith("\n1\n"), text


def what_root_could_change_in_the_kernel_is_read_only(scene):
    text = scene.output("sh", "-c", "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_seqnum; do "
                        "(echo >>$f) 2>/dev/null && echo $f; done; ls /dev")
    assert not re.search("^/", text, re.M) and set(text.split()) <= set(
        "console fd full null ptmx pts random shm stderr stdin stdout tty urandom zero".split()), text


def two_sandboxes_do_not_see_each_other(scene):
    server = ("import socket, time; s = socket.create_server(('127.0.0.1', 5000)); u = socket.socket(socket.AF_UNIX); "
              "u.bind(chr(0) + 'one'); u.listen(); open('/tmp/one', 'w'); print('go', flush=True); time.sleep(60)")
    with scene.going("exec %s -c \"%s\"" % (PYTHON, server)) as process:
        text = scene.output("sh", "-c", "ls /tmp; %s -c \"$0\" tcp/127.0.0.1/5000; grep -c @one /proc/net/unix; ls -d /proc/[0-9]* | wc -l" % PYTHON,
                            CONNECT)
        assert "ConnectionRefusedError" in text and "one" not in text.split() and text.split()[-2] == "0", text
        assert process.poll() is None


# ---- rights ----

def the_command_is_its_user_without_rights(scene):
    text = scene.output("sh", "-c", "id -u; id -g; grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status")
    lines = text.split("\n")
    assert lines[:2] == [str(scene.user or 0)] * 2, text
    assert len(re.findall(r"^Cap\w+:\t0{16}$", text, re.M)) == 5 and "NoNewPrivs:\t1" in text and "Seccomp:\t2" in text, text


def other_kinds_of_sockets_and_typing_into_the_terminal_are_refused(scene):
    text = scene.output(PYTHON, "-c", """
import ctypes, fcntl, os, platform, socket
for family in (40, 16, 17, 38, 31, 44, 200):
    try:
        socket.socket(family, socket.SOCK_DGRAM, 0).close()
        print(family, 'made')
    except OSError as e:
        print(family, e.errno)
libc = ctypes.CDLL(None, use_errno=True)
for family in (1, 40, 30):
    print('pair', libc.socketpair(family, socket.SOCK_STREAM, 0, ctypes.create_string_buffer(8)), ctypes.get_errno())
    ctypes.set_errno(0)
for ioctl in (0x5412, 0x541c, 0x5412 | 1 << 32):
    libc.ioctl(0, ctypes.c_ulong(ioctl), b'x')
    print(ioctl & 0xffffffff, ctypes.get_errno())
libc.syscall(425, 1, ctypes.create_string_buffer(120))
print('ring', ctypes.get_errno())
""")
    assert text.split("\n")[:-1] == ["40 97", "16 made", "17 97", "38 97", "31 97", "44 97", "200 97", "pair 0 0", "pair -1 97", "pair -1 97", "21522 1", "21532 1", "21522 1",
                                     "ring 38"], text


def inherited_descriptors_are_closed(scene):
    with open(scene.policy) as f:
        os.set_inheritable(f.fileno(), True)
        text = scene.output("sh", "-c", "ls /proc/self/fd", pass_fds=[f.fileno()])
    assert text.split() == ["0", "1", "2", "3"], text  # 3: ls reads the folder


def a_folder_as_standard_input_is_refused(scene):
    folder = os.open("/tmp", os.O_RDONLY)
    try:
        done = subprocess.run(scene.words(["true"]), stdin=folder, stderr=subprocess.PIPE, **scene.how())
    finally:
        os.close(folder)
    assert done.returncode == 125 and b"is a folder" in done.stderr, done


# ---- files ----

def the_bundle_of_the_system_holds_our_root_too(scene):
    text = scene.output("sh", "-c", "cat /etc/ssl/certs/ca-certificates.crt /run/exeat/bundle.pem; cat /run/exeat/ca.pem | sha256sum; "
                        "touch /run/exeat/x 2>&1 || true; test -s /run/exeat/roots.p12 && echo java")
    assert text.count("BEGIN CERTIFICATE") > 2 and "Read-only" in text and text.endswith("java\n")
    port = scene.place.values["port"]
    done = scene.run("env", "-i", "/usr/bin/curl", "-sS", "-x", "http://127.0.0.1:3128", "https://open.allowed.test:%d/" % port)
    assert done.returncode == 0, done.stderr


def strict_trust_leaves_only_our_root(scene):
    text = scene.output("sh", "-c", "cat $(find -L /etc/ssl/certs -name '*.*' -type f)", options=["--strict-trust"])
    assert text.count("BEGIN CERTIFICATE") == 1, text
    done = scene.run("env", "-i", "/usr/bin/curl", "-sS", "-x", "http://127.0.0.1:3128",
                     "https://open.allowed.test:%d/" % scene.place.values["port"], options=["--strict-trust"])
    assert done.returncode == 0, done.stderr


def java_trusts_us_without_being_told(scene):
    """By its default store, as any program that reads none of our variables; it needs to be told of the proxy."""
    if not shutil.which("java") or not os.path.exists("/etc/ssl/certs/java/cacerts"):
        raise Skip("there is no Java")
    source = scene.write("Get.java", """public class Get { public static void main(String[] a) throws Exception {
        System.out.println(((java.net.HttpURLConnection) new java.net.URL(a[0]).openConnection()).getResponseCode()); } }""")
    text = scene.output("env", "-u", "JAVA_TOOL_OPTIONS", "java", "-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=3128",
                        source, "https://open.allowed.test:%d/" % scene.place.values["port"])
    assert text == "200\n", text


def an_nss_database_of_the_sandbox_trusts_us(scene):
    """In place of the user's own, which the command neither sees nor changes; writable, since browsers want that."""
    if not os.access("/usr/bin/certutil", os.X_OK):
        raise Skip("there is no certutil (libnss3-tools)")
    folder = os.path.join(scene.home, ".pki")
    script = 'cd "$HOME/.pki/nssdb" && ls && certutil -L -d sql:. && certutil -D -d sql:. -n exeat-1 && echo removed'
    try:
        for theirs in ([], ["own.txt"]):
            text = scene.output("sh", "-c", script)
            assert text.startswith("cert9.db\nkey4.db\npkcs11.txt\n") and re.search(r"^exeat-1 +C,,", text, re.M), text
            assert text.endswith("removed\n") and os.listdir(folder + "/nssdb") == theirs, (text, os.listdir(folder + "/nssdb"))
            scene.write("home/.pki/nssdb/own.txt", "")
    finally:
        shutil.rmtree(folder)


def an_nss_database_covers_nothing_that_a_link_leads_to(scene):
    link = os.path.join(scene.home, ".pki")
    os.symlink(scene.make(scene.file("linked")), link)
    try:
        assert scene.output("ls", "-A", scene.file("linked")) == "" and os.listdir(scene.file("linked")) == []
    finally:
        os.unlink(link)
        os.rmdir(scene.file("linked"))


def paths_are_read_only_hidden_and_shown_as_asked(scene):
    scene.make(scene.file("tree"))
    scene.make(scene.file("tree/inner"))
    scene.write("tree/secret", "secret")
    shown = tempfile.mkdtemp(prefix="exeat-shown-")
    scene.own(shown)
    try:
        tree = scene.file("tree")
        text = scene.output("sh", "-c", "cd %s; touch a 2>&1; touch inner/b && echo inner; cat secret; touch %s/c && echo shown; "
                            "touch /tmp/deep/place/d && echo there; touch %s/e 2>&1 || true" % (tree, shown, scene.visible),
                            options=["--ro", "/", "--bind", tree + "/inner", "--hide", tree + "/secret", "--bind", shown,
                                     "--bind=%s:/tmp/deep/place" % shown] + ["--ro=" + scene.visible])
        assert text.count("Read-only file system") == 2 and "inner\nshown\nthere\n" in text and "secret" not in text.split(), text
    finally:
        shutil.rmtree(shown)
        shutil.rmtree(tree)


def the_policy_cannot_be_changed_for_the_next_time(scene):
    text = scene.output("sh", "-c", "echo >>%s || echo kept; rm -f %s || echo kept; mv %s /var/tmp/ || echo kept" % ((scene.policy,) * 3))
    assert text == "kept\n" * 3, text


def the_policy_cannot_be_changed_by_way_of_its_folder(scene):
    """Nor where a bind shows the folder; the user's other files in it can."""
    folder = scene.make(scene.make(scene.file("project")) + "/inner")
    policy = scene.own(shutil.copy(scene.policy, folder))
    script = ("echo >>%s || echo kept; mv %s %s.old || echo kept; mv %s %s.old || echo kept; echo x >%s/file && echo written" % (
        policy, folder, folder, os.path.dirname(folder), os.path.dirname(folder), folder))
    for options in ((), ("--ro", "/", "--bind", os.path.dirname(folder))):
        words = [scene.exeat, "run", "--policy", policy, "--sandbox", "a", *options, "--", "sh", "-c", script]
        done = scene.raw(words)
        assert done.stdout == b"kept\nkept\nkept\nwritten\n", done
    shutil.rmtree(os.path.dirname(folder))


def what_is_hidden_or_read_only_stays_so_inside_of_what_is_shown(scene):
    tree = scene.make(scene.file("tree"))
    own = scene.make(scene.make(tree + "/.config") + "/exeat")
    for name in ("tree/secret", "tree/kept", "tree/.config/exeat/policy"):
        scene.write(name, name)
    script = "cd %s && cat secret; ls .config/exeat; mv .config other; echo x >>kept; touch new && echo new"
    options = ["--ro", "/", "--hide", tree + "/secret", "--ro", tree + "/kept"]
    env = {"XDG_CONFIG_HOME": tree + "/.config"}
    for place in (tree, "/tmp/deep/tree"):
        done = scene.run("sh", "-c", script % place, options=[*options, "--bind=%s:%s" % (tree, place)], env=env)
        assert done.stdout == b"new\n", done
        assert b"kept: Read-only" in done.stderr and b"busy" in done.stderr, done
    done = scene.run("cat", tree + "/secret", own + "/policy", env=env,
                     options=[*options, "--bind", tree, "--bind", tree + "/secret", "--bind", own + "/policy"])
    assert done.stdout == b"tree/secrettree/.config/exeat/policy", done
    shutil.rmtree(tree)


def the_folder_that_keys_of_sandboxes_are_in_cannot_be_shown(scene):
    for folder in ("/tmp", "/"):
        done = scene.run("sh", "-c", "cat /tmp/exeat-run-*/state/vault.key", options=["--bind", folder])
        assert done.returncode == 125 and b"sandboxes keep what is theirs" in done.stderr and not done.stdout, done


def a_working_directory_that_is_hidden_is_named_with_the_remedy(scene):
    folder = scene.own(tempfile.mkdtemp(prefix="exeat-cwd-"))
    try:
        for options, code in (((), 125), (("--bind", folder), 0)):
            done = subprocess.run(scene.words(["pwd"], options), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  **{**scene.how(), "cwd": folder})
            assert done.returncode == code and (b"--bind " + folder.encode() in done.stderr or code == 0), done
        assert done.stdout.decode() == folder + "\n", done
    finally:
        shutil.rmtree(folder)


# ---- as if it were not there ----

def the_exit_status_is_the_commands(scene):
    plain = scene.write("plain", "no program")
    for words, code in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "exit 255"], 255), (["sh", "-c", "kill -TERM $$"], -15),
                        (["sh", "-c", "kill -KILL $$"], -9), (["sh", "-c", "kill -SEGV $$"], -11), ([plain], 126),
                        (["no-such-program"], 127)):
        done = scene.run(*words)
        assert done.returncode == code, (words, done.returncode, done.stderr)


def signals_reach_the_command(scene):
    script = "trap 'echo %s; exit 3' %s; echo go; while :; do sleep 0.05; done"
    for name in ("TERM", "HUP", "USR1", "INT"):
        with scene.going(script % (name, name)) as process:
            process.send_signal(getattr(signal, "SIG" + name))
            assert process.stdout.readline().decode() == name + "\n"
            assert process.wait(20) == 3


def a_killed_launcher_leaves_nobody_behind(scene):
    with scene.going("echo go; sleep 60") as process:
        pids, directory = [init_of(process), *children(process.pid)], directory_of(process)
        process.kill()
        process.wait()
        left = wait_for(lambda: not [p for p in pids if os.path.exists("/proc/%d" % p)], 20)
        assert left, pids
    shutil.rmtree(directory)


def much_goes_through_standard_input_and_output(scene):
    data = os.urandom(1 << 20) * 24
    done = scene.run("cat", stdin=data)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest(), len(done.stdout)


def orphans_are_reaped_and_end_with_the_command(scene):
    text = scene.output("sh", "-c", "(sleep 0.01 &); (sleep 60 &); sleep 0.3; grep -l ') Z' /proc/[0-9]*/stat 2>/dev/null | wc -l")
    assert text == "0\n", text


def nothing_is_left_afterwards(scene):
    with scene.going("echo go; read line") as process:
        directory = directory_of(process)
        assert os.path.isdir(directory), directory
        process.communicate(b"\n", timeout=20)
        assert process.returncode == 0 and not os.path.exists(directory), directory


class Terminal:
    """A program that has a terminal of its own as its controlling one."""

    def __init__(self, words, how):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir("/")
                if "user" in how:
                    os.setgroups([])
                    os.setgid(how["group"])
                    os.setuid(how["user"])
                os.execve(words[0], words, how["env"])
            finally:
                os._exit(99)
        self.text = b""

    def expect(self, what, seconds=20):
        end = time.monotonic() + seconds
        while not re.search(what, self.text):
            assert time.monotonic() < end, self.text
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 65536)
                except OSError:
                    raise AssertionError("the terminal ended: %r" % self.text)
        self.text = self.text[re.search(what, self.text).end():]

    def type(self, data):
        os.write(self.fd, data)

    def prompt_until(self, what):
        """A shell tells of its jobs at a prompt, once it has noticed."""
        end = time.monotonic() + 30
        while True:
            self.type(b"\n")
            try:
                return self.expect(what, 0.5)
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def a_terminal_and_job_control_behave_as_without_it(scene):
    how = scene.how({"PS1": "prompt> ", "TERM": "dumb"})
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], how)
    start = " ".join("'%s'" % w for w in scene.words(["sh", "-c", "test -t 0 && stty -a | head -1 && tty && exec sleep 100"]))
    try:
        terminal.expect(b"prompt> ")
        terminal.type(start.encode() + b"\n")
        terminal.expect(rb"speed .*\n/dev/console")
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt> ")
        terminal.type(b"fg\n")
        terminal.expect(b"sleep 100")
        time.sleep(0.3)
        terminal.type(b"\x03")
        terminal.expect(b"prompt> ")
        terminal.type(b"echo code=$?\n")
        terminal.expect(b"code=130")
    finally:
        terminal.close()


def an_interactive_shell_has_jobs_of_its_own(scene):
    how = scene.how({"PS1": "outer> ", "TERM": "dumb"})
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], how)
    start = " ".join("'%s'" % w for w in scene.words(["env", "PS1=inner> ", "/bin/bash", "--norc", "--noprofile", "-i"]))
    try:
        terminal.expect(b"outer> ")
        terminal.type(start.encode() + b"\n")
        terminal.expect(rb"\ninner> |\rinner> ")
        assert b"no job control" not in terminal.text
        terminal.type(b"sleep 100\n")
        time.sleep(0.5)
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"inner> ")
        terminal.type(b"kill -9 %1\n")
        terminal.prompt_until(b"Killed")
        terminal.type(b"exit 5\n")
        terminal.expect(b"outer> ")
        terminal.type(b"echo code=$?\n")
        terminal.expect(b"code=5")
    finally:
        terminal.close()


# ---- what the user is told ----

def without_a_policy_the_message_has_one_that_loads(scene):
    done = scene.raw([scene.exeat, "run", "--", "true"])
    text = done.stderr.decode()
    assert done.returncode == 125 and "there is no policy" in text, text
    example = scene.write("example", text.split("begin with:\n")[1])
    assert scene.raw([scene.exeat, "policy", "check", example]).returncode == 0, text
    assert scene.raw([scene.exeat, "run", "--policy", example, "--", "sh", "-c", "exit 4"]).returncode == 4


def the_users_own_policy_and_settings_are_found(scene):
    folder = os.path.join(scene.home, ".config", "exeat")
    os.makedirs(folder)
    for path in (os.path.dirname(folder), folder):
        scene.own(path)
    for name in ("policy", "settings"):
        scene.own(shutil.copy(scene.file(name), folder))
    try:
        done = scene.raw([scene.exeat, "run", "--sandbox", "a", "--", "sh", "-c", "echo $EXEAT_SANDBOX; ls ~/.config/exeat"])
        assert done.returncode == 0 and done.stdout == b"a\n", done
    finally:
        shutil.rmtree(os.path.dirname(folder))


def mistakes_are_named(scene):
    for words, said in ((["--policy", scene.policy, "--", "true"], "4 sandboxes: --sandbox NAME says which one is meant: a, b, c, d"),
                        (["--policy", scene.policy, "--sandbox", "z", "--", "true"], "no sandbox z, only: a, b, c, d"),
                        (["--policy", "/nowhere", "--", "true"], "No such file"),
                        (["--policy", scene.policy, "--sandbox", "a"], "a command is missing"),
                        (["--policy", scene.policy, "--sandbox", "a", "true"], "behind a `--`"),
                        (["--policy", scene.policy, "--sandbox", "a", "--ro", "/nowhere", "--", "true"], "--ro /nowhere"),
                        (["--policy", scene.policy, "--sandbox", "a", "--secret", "k=NO_SUCH", "--", "true"], "NO_SUCH"),
                        (["--policy", scene.policy, "--sandbox", "a", "--secret", "k=HOME", "--", "true"], "--secret k: the policy lends a no"),
                        (["--policy", scene.policy, "--sandbox", "b", "--", "true"], "--secret demo-key=VARIABLE"),
                        (["--policy", scene.policy, "--sandbox", "a", "--settings", scene.policy, "--", "true"], "exeatd does not start")):
        done = scene.raw([scene.exeat, "run", *words], env={} if "VARIABLE" not in said else {"DEMO_KEY": ""})
        assert done.returncode == 125 and said in done.stderr.decode(), (words, done)


def words_behind_the_dashes_are_the_commands(scene):
    assert scene.output("echo", "--json", "--config", "x", "--help") == "--json --config x --help\n"


def where_namespaces_are_refused_the_rule_is_named(scene):
    done = scene.raw(["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"',
                      *scene.words(["echo", "unenforced"])])
    assert done.returncode == 125 and b"user.max_user_namespaces is 0" in done.stderr, done
    assert b"unenforced" not in done.stdout


def without_a_sandbox_a_command_runs_only_with_the_word_for_it_and_marked(scene):
    log = scene.file("unenforced.jsonl")
    script = """echo "$EXEAT_UNENFORCED $PS1"; curl -sS -o /dev/null -w '%%{http_code}\\n' -H "Authorization: Bearer $DEMO_KEY" \
        https://api.allowed.test:%d/v1/items; curl -sS https://evil.test/; echo "$DEMO_KEY"; readlink /proc/self/ns/net; kill -TERM $$
        """ % scene.place.values["port"]
    done = scene.run("sh", "-c", script, options=["--unenforced", "--log", log], env={"PS1": "me> "})
    lines = done.stdout.decode().split("\n")
    assert done.returncode == -signal.SIGTERM, done
    assert lines[0] == "1 (exeat UNENFORCED) me> " and lines[1] == "200", done
    assert SECRET not in lines[2] and lines[3] == os.readlink("/proc/self/ns/net"), done
    assert b"UNENFORCED: there is no sandbox" in done.stderr and b"403" in done.stderr, done
    records = [json.loads(line) for line in scene.raw([scene.exeat, "log", "--file", log, "--json"]).stdout.splitlines()]
    os.unlink(log)
    decisions = [r for r in records if r["kind"] in ("decision", "outcome")]
    assert len(decisions) >= 3 and all(r.get("unenforced") == 1 for r in decisions), decisions
    for options in (["--ro", "/"], ["--hide", "/etc"], ["--bind", "/etc"]):
        done = scene.run("true", options=["--unenforced", *options])
        assert done.returncode == 125 and b"--unenforced does without" in done.stderr, done
    assert scene.run("/nowhere", options=["--unenforced"]).returncode == 127


def the_trail_is_kept_where_it_is_asked_for(scene):
    log = scene.file("trail.jsonl")
    scene.run("curl", "-sS", "https://evil.example.net/", options=["--log", log])
    shown = scene.raw([scene.exeat, "log", "--file", log, "--json"])
    os.unlink(log)
    assert b"evil.example.net" in shown.stdout, shown


def the_trail_goes_to_no_file_that_the_command_chooses(scene):
    log, other = scene.file("trail.jsonl"), scene.write("other", "as it was\n")
    script = "rm -f %s; ln -s %s %s; curl -sS https://evil.example.net/" % (log, other, log)
    scene.run("sh", "-c", script, options=["--log", log])
    assert os.path.islink(log)
    with open(other) as f:
        assert f.read() == "as it was\n"
    # What an earlier command has left is no better, and is told before anything runs.
    done = scene.run("echo", "unkept", options=["--log", log])
    os.unlink(log)
    assert done.returncode == 125 and b"is a link" in done.stderr and b"unkept" not in done.stdout, done
    done = scene.run("echo", "unkept", options=["--log", scene.file("no-folder/trail")])
    assert done.returncode == 125 and b"No such file" in done.stderr and b"unkept" not in done.stdout, done


# ---- attached to a running exeatd ----

class Attached(Scene):
    """A running exeatd, and a user who may attach two of its sandboxes."""

    def __init__(self):
        super().__init__(ORDINARY)
        self.daemon = Place(POLICY, {}, {"demo-key": (SECRET, "sk-demo-")}, hosts=HOSTS,
                            config="attach attach.sock { uid %d a b }\n" % ORDINARY).__enter__()

    def __exit__(self, *ignored):
        self.daemon.__exit__()
        super().__exit__()

    def words(self, command, options=(), sandbox="a"):
        return [self.exeat, "--config", self.daemon.path("exeat.conf"), "run", "--sandbox", sandbox, *options, "--", *command]


def a_running_exeatd_serves_the_sandbox(attached):
    port = attached.daemon.values["port"]
    attached.daemon.upstream.script = lambda request, stream: answer(b"from the upstream")
    text = attached.output("sh", "-c", 'curl -sS -H "Authorization: Bearer $DEMO_KEY" https://api.allowed.test:%d/v1/items/attached; '
                           'env | grep -c %s; %s -c "$0" tcp/127.0.0.1/8443' % (port, SECRET, PYTHON), CONNECT)
    assert text.startswith("from the upstream0\n") and "ConnectionRefusedError" in text, text
    assert b"Bearer " + SECRET.encode() in attached.daemon.upstream.requests[-1]
    record = wait_for(lambda: next((r for r in attached.daemon.records() if r.get("path") == "/v1/items/attached"), None))
    assert record and record["sandbox"] == "a" and "unenforced" not in record, record


def two_of_them_do_not_see_each_other(attached):
    with attached.going("echo go; exec sleep 60") as process:
        port = attached.daemon.values["port"]
        done = subprocess.run(attached.words(["sh", "-c", 'curl -sS -o /dev/null -w "%%{http_code}" -H "Authorization: Bearer $DEMO_KEY" '
                                              "https://api.allowed.test:%d/v1/items" % port], sandbox="b"), stdout=subprocess.PIPE,
                              **attached.how())
        assert done.stdout == b"200" and process.poll() is None, done
        again = attached.run("true")
        assert again.returncode == 125 and b"attached already" in again.stderr, again
    assert wait_for(lambda: attached.run("true").returncode == 0), "its lane goes on without it"


def who_may_not_attach_is_told_so(attached):
    done = subprocess.run(attached.words(["true"], sandbox="c"), stderr=subprocess.PIPE, **attached.how())
    assert done.returncode == 125 and b"may not attach" in done.stderr, done


def nobody_attaches_from_inside(attached):
    """Also where somebody shows the socket to the sandbox: it is in another network."""
    probe = """
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.connect(%r)
    try:
        s.send(b"\\1\\0\\0\\0\\1b\\0")
    except OSError:
        pass
    print(s.recv(4096)[:1])
except OSError as e:
    print(type(e).__name__)
""" % attached.daemon.path("attach.sock")
    assert attached.output(PYTHON, "-c", probe) == "FileNotFoundError\n"
    folder = attached.output(PYTHON, "-c", probe, options=["--bind", attached.daemon.directory])
    assert folder == "ConnectionRefusedError\n", folder
    shown = attached.output(PYTHON, "-c", probe, options=["--bind", attached.daemon.path("attach.sock")])
    assert shown == "b'\\x06'\n", shown  # -ERR_DENIED


def what_a_running_exeatd_has_itself_is_not_taken(attached):
    for options in (["--log", "/var/tmp/x"], ["--settings", attached.settings], ["--secret", "demo-key"]):
        done = attached.run("true", options=options)
        assert done.returncode == 125 and b"exeatd of the sandbox's own" in done.stderr, done
    done = attached.raw([attached.exeat, "--config", attached.daemon.path("exeat.conf"), "run", "--", "true"])
    assert done.returncode == 125 and b"--sandbox NAME" in done.stderr, done
    done = attached.run("sh", "-c", "exit 6", options=["--policy", attached.policy, "--settings", attached.settings])
    assert done.returncode == 6, done


# ---- both worlds ----

def refusal(user):
    """Why namespaces cannot be made here, as in a container that forbids them; None when they can."""
    done = subprocess.run(["unshare", "-Urnmpf", "--mount-proc", "true"], stderr=subprocess.PIPE, text=True,
                          **({"user": user, "group": user, "extra_groups": []} if user else {}))
    return done.stderr.strip() if done.returncode else None


def main():
    # A shell cannot trap what was ignored when it began, as under nohup and in the background.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    tests, attaching = ([f for f in globals().values() if getattr(f, "__code__", None) and f.__code__.co_argcount == 1
                         and f.__code__.co_varnames[0] == subject] for subject in ("scene", "attached"))
    report = Report()
    if not os.path.exists(PYTHON):
        raise SystemExit("the sandbox needs a %s" % PYTHON)
    worlds = [(None, "as root" if os.getuid() == 0 else "as this user")] + [(ORDINARY, "as an ordinary user")] * (os.getuid() == 0)
    for user, where in worlds:
        why = refusal(user)
        if why:
            report.skip("a command is run in a sandbox (%s)" % where, why)
            continue
        report.run_in(lambda: Scene(user), tests, where)
        if user:
            report.run_in(Attached, attaching)
    report.end()


if __name__ == "__main__":
    main()
