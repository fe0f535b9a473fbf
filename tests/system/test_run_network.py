#!/usr/bin/env python3
"""`exeat run`: a command's only way out is exeat, and it finds nobody else's sockets and processes."""
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time

from helpers import FLOOD, SECRET, answer
from place import Skip
from run_scene import CONNECT, PYTHON, children, directory_of, ends, init_of, try_all

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


def datagrams_that_are_refused_are_recorded_once_for_each_destination_and_minute(scene):
    """The launcher's own probes are not among them, nor what is meant for the sandbox itself."""
    log = scene.file("datagrams.jsonl")
    words = ["udp/8.8.8.8/443", "udp/8.8.8.8/443", "udp/2001:db8:1::9/3478", "udp/169.254.169.254/80", "udp/127.0.0.53/5353", "udp/::1/5353",
             "udp/8.8.8.8/443"]
    scene.output("env", "-i", "sh", "-c", '"$@"; sleep 0.5', "sh", PYTHON, "-c", CONNECT, *words, options=["--log", log])
    with open(log) as f:
        records = [r for r in map(json.loads, f) if r.get("door") == "udp"]
    os.unlink(log)
    assert sorted(r["meant"] for r in records) == ["169.254.169.254:80", "8.8.8.8:443", "[2001:db8:1::9]:3478"], records
    assert all((r["verdict"], r["reason"], r["sandbox"]) == ("deny", "protocol_not_allowed", "a") and r["client"] for r in records), records


def a_flood_of_datagrams_makes_few_records(scene):
    log = scene.file("flood.jsonl")
    begin = time.monotonic()
    sent = int(scene.output(PYTHON, "-c", FLOOD, options=["--log", log]))
    took = time.monotonic() - begin
    with open(log) as f:
        n = sum(r.get("door") == "udp" for r in map(json.loads, f))
    os.unlink(log)
    assert sent > 5000 and 16 <= n <= 160 * (took + 1), (sent, n, took)


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


def own_address():
    """That of the host's name, or where it has none that of a name in Debian."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except socket.gaierror:
        return "127.0.1.1"


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
             ("%s/%d" % (own_address(), port), b"", b"")]
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
    port, own = scene.place.values["port"], own_address()
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


def names_of_sockets_hide_nothing_but_sockets(scene):
    """Any user can bind any name: one with a line of the kernel's table in it, or that of a file which is in the place of a socket now."""
    told, replaced, folder = (scene.write(name, "mine") for name in ("told", "replaced.file", "folder.file"))
    line = "\n0: 2 0 10000 1 1 9 "
    with socket.socket(socket.AF_UNIX) as of_file, socket.socket(socket.AF_UNIX) as of_folder, socket.socket(socket.AF_UNIX) as bound:
        of_file.bind("\0%d%s%s" % (os.getpid(), line, told))
        of_folder.bind("\0%d%s%s" % (os.getpid(), line, scene.home))
        bound.bind(scene.file("replaced"))
        os.rename(replaced, scene.file("replaced"))
        os.rename(folder, os.path.join(scene.home, "folder"))
        paths = [told, scene.file("replaced"), os.path.join(scene.home, "folder")]
        assert scene.output("cat", *paths) == "mine" * 3
    for path in paths:
        os.unlink(path)


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


if __name__ == "__main__":
    try_all(list(globals().values()))
