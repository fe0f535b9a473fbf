"""Sandboxes in network namespaces of their own, behind veth pairs and bridges; for tests that run in one of their own, as root."""
import json
import os
import shutil
import subprocess
import sys

from helpers import Answer
from place import Place, wait_for

INSIDE = "EXEAT_TEST_INTERFACES"

# In a sandbox: what a conversation ends with. Words: kind, address, port, what is said in hex, the own address ("" for any).
TALK = """
import json, os, socket, sys
kind, host, port, said, own = sys.argv[1:]
s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM if kind == 'udp' else socket.SOCK_STREAM)
s.settimeout(float(os.environ['PATIENCE']))
got, end = b'', 'closed'
try:
    if own:
        s.setsockopt(socket.SOL_IP, 15, 1) if ':' not in own else s.setsockopt(socket.IPPROTO_IPV6, 78, 1)
        s.bind((own, 0))
    s.connect((host, int(port)))
    s.send(bytes.fromhex(said))
    while True:
        piece = s.recv(4096)
        got += piece
        if not piece or kind == 'udp':
            break
except OSError as failure:
    end = type(failure).__name__ + ' %s' % failure.errno
print(json.dumps([end, got.hex()]))
"""


class Guest:
    """A network of its own with one end of a veth pair, and a command there."""

    def __init__(self, name, addresses, gateways, bridge=None):
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        wait_for(lambda: os.readlink("/proc/%d/ns/net" % self.process.pid) != os.readlink("/proc/self/ns/net"))
        self.name, self.outside = name, "veth-" + name
        self.make(addresses, gateways, bridge)

    def make(self, addresses, gateways, bridge=None):
        host("ip link add %s type veth peer name eth0 netns %d" % (self.outside, self.process.pid))
        if bridge:
            host("ip link set %s master %s" % (self.outside, bridge))
        else:
            raise_with(host, self.outside, gateways)
        host("ip link set %s up" % self.outside)
        self.run("ip link set lo up")
        raise_with(self.run, "eth0", addresses)
        for gateway in gateways:
            self.run("ip %s route add default via %s" % ("-6" if ":" in gateway else "", gateway.split("/")[0]))

    def run(self, command):
        return host("nsenter --net=/proc/%d/ns/net %s" % (self.process.pid, command))

    def run_python(self, program):
        subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % self.process.pid, sys.executable, "-c", program], check=True, timeout=60)

    def talk(self, kind, address, port, said=b"", own="", patience=8):
        done = subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % self.process.pid, sys.executable, "-c", TALK, kind, address, str(port),
                               said.hex(), own], stdout=subprocess.PIPE, timeout=60, env=dict(os.environ, PATIENCE=str(patience)))
        end, got = json.loads(done.stdout)
        return end, bytes.fromhex(got)

    def ask(self, address, port, host_name, path="/", **how):
        """A request in clear; its answer."""
        end, got = self.talk("tcp", address, port, ("GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n" % (
            path, host_name, port)).encode(), **how)
        return Answer(got) if got else end

    def close(self):
        self.process.kill()
        self.process.wait()


def host(command):
    return subprocess.run(command.split(), check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()


def set_kernel(setting, value=1):
    """What sysctl(8) does, which not every machine has: a word below /proc/sys, with dots."""
    with open("/proc/sys/" + setting.replace(".", "/"), "w") as f:
        f.write("%d" % value)


def raise_with(run, interface, addresses):
    for address in addresses:
        run("ip addr add %s dev %s%s" % (address, interface, " nodad" if ":" in address else ""))
    run("ip link set %s up" % interface)


def query(name, kind=1):
    return (b"\x12\x34\x01\x00\0\1\0\0\0\0\0\0" + b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) +
            b"\0" + kind.to_bytes(2, "big") + b"\0\1")


def rcode(answer):
    return answer[3] & 15


class GuestPlace(Place):
    """With guests, of which a subclass makes what it needs before its exeatd starts."""

    def __exit__(self, *ignored):
        super().__exit__(*ignored)
        for guest in self.guests.values():
            guest.close()

    def load(self, ruleset):
        done = subprocess.run(["nft", "-f", "-"], input=ruleset.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()

    def load_printed(self):
        self.load("flush ruleset\n")
        self.load(self.exeat("nft", "print"))

    def decisions(self):
        return [r for r in self.records() if r["kind"] == "decision"]

    def newest(self, **facts):
        return wait_for(lambda: next((r for r in reversed(self.decisions()) if all(r.get(k) == v for k, v in facts.items())), None), 5, 0.05)


def run_inside(report, name):
    """Goes on in a network namespace, or ends with the test skipped."""
    missing = [word for word in ("ip", "nft", "unshare", "nsenter") if not shutil.which(word)]
    if os.getuid() != 0 or missing:
        report.skip(name, "needs " + (", ".join(missing) or "root"))
        report.end()
    if os.environ.get(INSIDE):
        return
    if subprocess.run(["unshare", "--net", "nft", "list", "ruleset"], stderr=subprocess.DEVNULL).returncode != 0:
        report.skip(name, "no network namespace with nftables can be made here")
        report.end()
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", sys.executable] + sys.argv)
