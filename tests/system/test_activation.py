#!/usr/bin/env python3
"""Sockets passed to exeatd (socket activation) that differ by their interface alone, and interfaces named otherwise than by their own names."""
import json
import os
import subprocess
import sys

from guests import Guest, GuestPlace, host, run_inside
from helpers import HOSTS, POLICY, Answer
from place import Report

# Makes the sockets and becomes exeatd. Each: interface ("" for none), options as [level, option], the rest is the same.
ACTIVATE = """
import json, os, socket, sys
for i, (interface, options) in enumerate(json.loads(sys.argv[1])):
    s = socket.socket()
    for level, option in options + [[socket.SOL_SOCKET, socket.SO_REUSEADDR]]:
        s.setsockopt(level, option, 1)
    if interface:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
    s.bind(("0.0.0.0", 3129))
    s.listen(64)
    high = os.dup2(s.fileno(), 100 + i)
    s.detach()
for fd in range(3, 50):
    try:
        os.close(fd)
    except OSError:
        pass
for i in range(len(json.loads(sys.argv[1]))):
    os.dup2(100 + i, 3 + i, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(json.loads(sys.argv[1]))))
os.execvp(sys.argv[2], sys.argv[2:])
"""
REUSEPORT, TRANSPARENT = [1, 15], [0, 19]
CONFIG = """
listen transparent 0.0.0.0:3129 { sandbox a; interface veth-a }
listen transparent 0.0.0.0:3129 { sandbox b; interface veth-b }
"""
POLICY_HERE = POLICY + "service clear { host clear.allowed.test; port 8080; tls clear; range 127.0.0.0/8; operation every { * /; * /** } }\n"
for name in "ab":
    POLICY_HERE = POLICY_HERE.replace("sandbox %s { " % name, "sandbox %s { grant clear every; " % name)


class World(GuestPlace):
    def __init__(self):
        host("ip link set lo up")
        self.guests = {"a": Guest("a", ["10.20.1.2/24"], ["10.20.1.1/24"]), "b": Guest("b", ["10.20.2.2/24"], ["10.20.2.1/24"])}
        super().__init__(POLICY_HERE, {}, sandboxes=(), config=CONFIG, hosts=HOSTS + ("clear.allowed.test",))

    def launch_with(self, sockets, config=CONFIG, command=()):
        """Its exeatd, started with these sockets; what the log has of it."""
        self.stop()
        before = len(self.log())
        self.config_text = config
        self.configure()
        self.prefix = [sys.executable, "-c", ACTIVATE, json.dumps(sockets), *command]
        try:
            self.launch()
        except AssertionError:
            pass
        self.prefix = []
        return self.log()[before:]

    def each_is_served_as_itself(self):
        self.load_printed()
        for name in "ab":
            answer = self.guests[name].ask("203.0.113.9", 8080, "clear.allowed.test", "/of-" + name)
            assert isinstance(answer, Answer) and answer.reason == "connect_failed", (name, answer)
            assert self.newest(id=answer.record)["sandbox"] == name, (name, answer)


def sockets_of_two_interfaces_are_told_apart_whatever_their_order(w):
    """exeatd could not bind them itself: they are open, with the same address."""
    for order in (["veth-b", "veth-a"], ["veth-a", "veth-b"]):
        said = w.launch_with([[interface, []] for interface in order])
        assert "info: ready" in said, said
        w.each_is_served_as_itself()


def a_socket_of_another_interface_is_in_nobodys_way(w):
    said = w.launch_with([["veth-b", []]])
    assert "info: ready" in said, said
    w.each_is_served_as_itself()


def sockets_that_hear_something_else_are_refused_and_said_how_to_mend(w):
    one = "listen transparent 0.0.0.0:3129 { sandbox a%s }\n"
    for sockets, config, why in (
            ([["", []]], CONFIG, "hears every interface: its unit needs `BindToDevice=`"),
            ([["veth-b", []]], one % "", "hears the interface veth-b alone: name it by `interface`, or take `BindToDevice=` from its unit"),
            ([["veth-a", [REUSEPORT]], ["veth-a", [REUSEPORT]]], one % "; interface veth-a", "several sockets with this address were passed"),
            ([["veth-a", []]], one % "; interface veth-zz", "No such device")):
        said = w.launch_with(sockets, config)
        assert "info: ready" not in said and why in said and "exeat.conf:" in said and "cannot listen on 0.0.0.0:3129" in said, (sockets, said)
    assert "info: ready" in w.launch_with([["", []]], one % ""), w.log()[-500:]


def a_socket_that_was_made_for_tproxy_takes_no_capability(w):
    without = ["setpriv", "--bounding-set=-net_admin,-net_raw"]
    config = "listen transparent 0.0.0.0:3129 { sandbox a; interface veth-a; tproxy }\n"
    assert "info: ready" in w.launch_with([["veth-a", [TRANSPARENT]]], config, without), w.log()[-500:]
    w.load_printed()
    for command in w.exeat("nft", "print", "--routes").splitlines():
        host(command)
    answer = w.guests["a"].ask("203.0.113.9", 8080, "clear.allowed.test", "/activated")
    assert isinstance(answer, Answer) and w.newest(id=answer.record)["meant"] == "203.0.113.9:8080", answer
    said = w.launch_with([["veth-a", []]], config, without)
    assert "info: ready" not in said and "CAP_NET_RAW" in said, said


# ---- names ----

def an_alternative_name_is_refused_and_the_own_one_told(w):
    host("ip link property add dev veth-a altname lan0")
    try:
        said = w.launch_with([], CONFIG.replace("veth-a", "lan0"))
        assert "info: ready" not in said and "of interface lan0: lan0 is an alternative name (altname) of the interface veth-a" in said, said
        assert "write `interface veth-a`" in said, said
        for listen in ("interface lan0", "interface veth-b; port lan0; source 10.20.1.2"):
            w.write("other.conf", "state state\npolicy policy.exeat\nlisten transparent 0.0.0.0:1 { sandbox a; %s }\n" % listen)
            for command in ("print", "check"):
                done = subprocess.run([os.path.join(w.build, "exeat"), "--config", w.path("other.conf"), "nft", command],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                assert done.returncode == 3 and not done.stdout and b"other.conf:3:1: lan0 is an alternative name (altname) of" in done.stderr, done
        assert "info: ready" in w.launch_with([]), w.log()[-500:]
        w.each_is_served_as_itself()
    finally:
        host("ip link property del dev veth-a altname lan0")


def an_interface_that_was_renamed_is_not_taken_for_the_one_that_is_named(w):
    """The old name is left to it as an alternative one: the rules match it no more, though the socket hears it."""
    assert "info: ready" in w.launch_with([]), w.log()[-500:]
    host("ip link set veth-b down")
    host("ip link set veth-b name veth-c")
    host("ip link property add dev veth-c altname veth-b")
    try:
        w.exeat("reload", check=False)
        assert w.last.returncode != 0 and b"veth-b is an alternative name (altname) of the interface veth-c" in w.last.stderr, w.last
    finally:
        host("ip link property del dev veth-c altname veth-b")
        host("ip link set veth-c name veth-b")
        host("ip link set veth-b up")
    w.exeat("reload")


def main():
    report = Report()
    run_inside(report, "sockets of interfaces")
    report.run_in(World, [f for f in globals().values() if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("w",)])
    report.end()


if __name__ == "__main__":
    main()
