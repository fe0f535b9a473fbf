"""A network namespace like a sandbox's: loopback only, and every address is this machine's (docs/ways-in.md).

Its sockets are made by a process inside, and used here: a socket stays in the namespace in which it was made.
"""
import json
import os
import socket
import subprocess
import sys

from place import Skip

LOCAL = ("ip link set lo up", "ip route add local 0.0.0.0/0 dev lo", "ip -6 route add local ::/0 dev lo")


def make(order):
    """Inside: a socket that listens, or is connected."""
    family = socket.AF_INET6 if ":" in order["address"] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM if order["udp"] else socket.SOCK_STREAM)
    made.settimeout(15)
    where = (order["address"], order["port"])
    if order["do"] == "listen":
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(where)
        if not order["udp"]:
            made.listen(128)
    else:
        made.connect(where)
    return made


def serve(control):
    """Inside: orders, one a packet, until the end."""
    for command in LOCAL:
        subprocess.run(command.split(), check=True)
    control.send(b"{}")
    while True:
        packet = control.recv(1 << 16)
        if not packet:
            return
        order = json.loads(packet)
        if order["do"] == "run":
            try:
                done = subprocess.run(order["command"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30,
                                      stdin=subprocess.DEVNULL, env=dict(os.environ, **order["env"]))
                answer = {"code": done.returncode, "out": done.stdout.decode(errors="replace")[:30000],
                          "err": done.stderr.decode(errors="replace")[:30000]}
            except subprocess.TimeoutExpired:
                answer = {"code": None, "out": "", "err": "it took too long"}
            control.send(json.dumps(answer).encode())
            continue
        try:
            with make(order) as made:
                socket.send_fds(control, [b"{}"], [made.fileno()])
        except OSError as failure:
            control.send(json.dumps({"errno": failure.errno}).encode())


class Network:
    def __init__(self):
        self.control, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(40)
        with inner:
            self.process = subprocess.Popen(["unshare", "--user", "--map-root-user", "--net", sys.executable, __file__,
                                             str(inner.fileno())], pass_fds=[inner.fileno()], stderr=subprocess.PIPE)
        if not self.control.recv(1 << 16):
            why = self.process.stderr.read().decode()
            self.close()
            raise Skip("no namespace of its own can be made here: " + why.strip().replace("\n", "; "))

    def close(self):
        self.control.close()
        self.process.wait(20)
        self.process.stderr.close()

    def order(self, **order):
        self.control.send(json.dumps(order).encode())
        data, fds, _, _ = socket.recv_fds(self.control, 1 << 17, 1)
        answer = json.loads(data)
        if answer.get("errno"):
            raise OSError(answer["errno"], os.strerror(answer["errno"]))
        return socket.socket(fileno=fds[0]) if fds else answer

    def socket(self, do, address, port, udp=False):
        made = self.order(do=do, address=address, port=port, udp=udp)
        made.settimeout(15)
        return made

    def listen(self, address, port, udp=False):
        return self.socket("listen", address, port, udp)

    def connect(self, address, port, udp=False):
        return self.socket("connect", address, port, udp)

    def run(self, *command, **env):
        """A command inside: its exit status, output and errors."""
        answer = self.order(do="run", command=command, env=env)
        return answer["code"], answer["out"], answer["err"]


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
