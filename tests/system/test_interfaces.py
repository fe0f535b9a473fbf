#!/usr/bin/env python3
"""Sandboxes behind veth pairs and a bridge: transparent listeners and DNS by interface and source, and nftables' rules for them."""
import json
import os
import socket
import subprocess
import time

from guests import Guest, GuestPlace, host, query, raise_with, rcode, run_inside, set_kernel
from helpers import HOSTS, POLICY, Answer
from place import Report, wait_for

CONFIG = """
listen transparent 0.0.0.0:3129 { sandbox a; interface veth-a; source 10.20.1.2 }
listen transparent [::]:3129    { sandbox a; interface veth-a; source fd20:1::2 }
listen dns 0.0.0.0:5301         { sandbox a; interface veth-a; source 10.20.1.2 }
listen tcp 10.20.1.1:3128       { sandbox a; interface veth-a; source 10.20.1.2 }
listen transparent 0.0.0.0:3129 { sandbox b; interface veth-b }
listen tcp 0.0.0.0:3127         { sandbox b; interface veth-b }
listen transparent 10.20.3.1:3130 { sandbox c; interface br0; port veth-c; source 10.20.3.2 }
listen transparent 10.20.3.1:3131 { sandbox d; interface br0; port veth-d; source 10.20.3.3 }
"""
POLICY_HERE = POLICY.replace("sandbox a { grant api read write;", "sandbox a { grant clear every; grant api read write;").replace(
    "sandbox b { grant api read }", "sandbox b { grant clear every }").replace("sandbox c { grant api read write }", "sandbox c { grant clear every }") + (
    "service clear { host clear.allowed.test; port 8080; tls clear; range 127.0.0.0/8; operation every { * /; * /** } }\n")


class World(GuestPlace):
    def __init__(self):
        host("ip link set lo up")
        host("ip link add br0 type bridge")
        raise_with(host, "br0", ["10.20.3.1/24"])
        self.guests = {
            "a": Guest("a", ["10.20.1.2/24", "10.20.1.7/24", "fd20:1::2/64", "fd20:1::7/64"], ["10.20.1.1/24", "fd20:1::1/64"]),
            "b": Guest("b", ["10.20.2.2/24"], ["10.20.2.1/24"]),
            "c": Guest("c", ["10.20.3.2/24"], ["10.20.3.1/24"], "br0"), "d": Guest("d", ["10.20.3.3/24"], ["10.20.3.1/24"], "br0"),
            "world": Guest("world", ["10.20.9.2/24", "fd20:9::2/64"], ["10.20.9.1/24", "fd20:9::1/64"])}
        super().__init__(POLICY_HERE, {}, sandboxes=(), config=CONFIG, hosts=HOSTS + ("clear.allowed.test",))


# ---- by hand: REDIRECT ----

REDIRECT = """
table ip test {
    chain prerouting {
        type nat hook prerouting priority dstnat;
        iifname "veth-a" udp dport 53 redirect to :5301
        iifname "veth-*" meta l4proto tcp redirect to :3129
    }
}
"""


def identity_is_the_interface_and_the_source_xs_02_xs_07(w):
    w.load("flush ruleset\n" + REDIRECT)
    for name, source in (("a", "10.20.1.2"), ("b", "10.20.2.2")):
        answer = w.guests[name].ask("203.0.113.9", 8080, "clear.allowed.test", "/of-" + name)
        assert answer.status == 502 and answer.reason == "connect_failed", answer  # nothing listens there: that it was dialled shows
        record = w.newest(path="/of-" + name)
        assert record["sandbox"] == name and record["meant"] == "203.0.113.9:8080" and record["client"].startswith(source + ":"), record
    # Another address of the same sandbox, where it has to have one.
    answer = w.guests["a"].ask("203.0.113.9", 8080, "clear.allowed.test", own="10.20.1.7")
    assert answer.status == 403 and answer.reason == "peer_not_allowed", answer
    record = w.newest(id=answer.record)
    assert record["verdict"] == "deny" and record["client"].startswith("10.20.1.7:") and record["meant"] == "203.0.113.9:8080", record


def a_spoofed_source_gets_nothing_xs_02(w):
    """b has no interface but its own: an address of a's gets it neither a's rights nor an answer."""
    w.load("flush ruleset\n" + REDIRECT)
    before = len(w.decisions())
    w.guests["b"].run("ip addr add 10.20.1.2/32 dev eth0")
    end = w.guests["b"].ask("203.0.113.9", 8080, "open.allowed.test", own="10.20.1.2", patience=2)
    w.guests["b"].run("ip addr del 10.20.1.2/32 dev eth0")
    assert end in ("TimeoutError None", "timeout None") or end.reason == "host_not_allowed", end
    assert not [r for r in w.decisions()[before:] if r.get("sandbox") == "a"]


def dns_is_answered_to_the_sources_it_is_for(w):
    w.load("flush ruleset\n" + REDIRECT)
    end, got = w.guests["a"].talk("udp", "192.0.2.53", 53, query("clear.allowed.test"), own="10.20.1.2")
    assert got and rcode(got) == 0 and got[-4:-2] == bytes([198, 18]), (end, got)
    address = ".".join(map(str, got[-4:]))
    end, got = w.guests["a"].talk("udp", "192.0.2.53", 53, query("clear.allowed.test"), own="10.20.1.7")
    assert got and rcode(got) == 5, (end, got)
    record = w.newest(door="dns", reason="peer_not_allowed")
    assert record["client"].startswith("10.20.1.7:") and "sandbox" not in record, record
    answer = w.guests["a"].ask(address, 8080, "clear.allowed.test", "/by-dns")
    assert answer.reason == "connect_failed" and w.newest(path="/by-dns")["meant"] == address + ":8080", answer


# ---- by the rules that exeat prints ----

def load_printed(world):
    world.load_printed()
    assert world.exeat("nft", "check") == "the rules of the configuration are loaded, and no others in their tables\n"


def printed_rules_lead_each_sandbox_to_its_lane(w):
    load_printed(w)
    for name in ("a", "b", "c", "d"):
        answer = w.guests[name].ask("203.0.113.9", 8080, "clear.allowed.test", "/printed-" + name, own="10.20.1.2" if name == "a" else "")
        record = w.newest(host="clear.allowed.test", path="/printed-" + name) if name != "d" else w.newest(id=answer.record)
        assert answer.reason == ("host_not_allowed" if name == "d" else "connect_failed"), answer
        assert record["sandbox"] == name and record["meant"] == "203.0.113.9:8080", record
    answer = w.guests["a"].ask("2001:db8::9", 8080, "clear.allowed.test", "/printed-6", own="fd20:1::2")
    assert w.newest(path="/printed-6")["meant"] == "[2001:db8::9]:8080", answer
    end, got = w.guests["a"].talk("udp", "192.0.2.53", 53, query("clear.allowed.test"), own="10.20.1.2")
    assert got and rcode(got) == 0, (end, got)
    # The proxy is where it is, and is not taken for another host.
    end, got = w.guests["a"].talk("tcp", "10.20.1.1", 3128, b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", own="10.20.1.2")
    assert Answer(got).reason == "host_not_allowed" and w.newest(host="evil.test")["door"] == "connect", (end, got)


def printed_rules_refuse_all_else_at_once_ct_13_ct_14(w):
    load_printed(w)
    refused = ("ConnectionRefusedError 111", "ConnectionRefusedError None")
    for kind, address, port in (("tcp", "10.20.2.1", 53), ("tcp", "203.0.113.9", 25), ("tcp", "169.254.169.254", 3306)):
        # TCP is led to exeat, which says no and writes it down.
        begin = time.monotonic()
        end, got = w.guests["b"].talk(kind, address, port)
        assert end == "closed" and not got and time.monotonic() - begin < 2, (address, port, end)
        assert w.newest(meant="%s:%d" % (address, port))["verdict"] == "deny"
    for address, port in (("203.0.113.9", 443), ("10.20.2.1", 5301), ("10.20.1.1", 123), ("192.0.2.53", 53)):
        begin = time.monotonic()
        end, _ = w.guests["b"].talk("udp", address, port, b"x")
        assert end in ("PermissionError 13", "OSError 113") + refused and time.monotonic() - begin < 2, (address, port, end)
    # IPv6 has no listener of b's.
    w.guests["b"].run("ip addr add fd20:2::2/64 dev eth0 nodad")
    host("ip addr add fd20:2::1/64 dev veth-b nodad")
    assert w.guests["b"].talk("tcp", "fd20:2::1", 3129)[0] in refused
    # Nor is there a way to another sandbox.
    set_kernel("net.ipv4.ip_forward")
    before = len(w.decisions())
    end, got = w.guests["b"].talk("udp", "10.20.1.2", 7777, b"x")
    assert end in ("PermissionError 13", "OSError 113") + refused and len(w.decisions()) == before, end


OTHERS = """
table ip other {
    chain prerouting {
        type nat hook prerouting priority dstnat - 20;
        tcp dport 8088 dnat to 10.20.9.2:3127
        udp dport 8088 dnat to 10.20.9.2:7777
        tcp dport 8089 redirect to :8090
    }
}
table inet counted {
    counter gone { }
    chain forward {
        type filter hook forward priority 1000;
        iifname "veth-b" counter name gone
    }
}
"""
# A neighbour's advertisement for somebody who is none.
FAR_NEIGHBOUR = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 255)
s.sendto(bytes([136, 0, 0, 0]) + bytes(20) + b'what it knows', ('fd20:9::2', 0))
"""


def printed_rules_let_nothing_go_on_through_the_host_ct_13(w):
    """The host routes, and another table, whose rules come first, publishes ports of hosts behind it, as of containers."""
    load_printed(w)
    w.load(OTHERS)
    set_kernel("net.ipv4.ip_forward")
    set_kernel("net.ipv6.conf.all.forwarding")
    guest = w.guests["b"]
    guest.run("ip addr add fd20:3::2/64 dev eth0 nodad")
    host("ip addr add fd20:3::1/64 dev veth-b nodad")
    guest.run("ip -6 route replace default via fd20:3::1")

    def gone():
        listing = subprocess.run(["nft", "-j", "list", "counter", "inet", "counted", "gone"], stdout=subprocess.PIPE, check=True).stdout
        return json.loads(listing)["nftables"][1]["counter"]["packets"]
    for kind, address, port in (("tcp", "10.20.9.2", 3127), ("tcp", "10.20.2.1", 8088), ("udp", "10.20.2.1", 8088), ("tcp", "fd20:9::2", 3127)):
        begin = time.monotonic()
        end, got = guest.talk(kind, address, port, b"x", patience=4)
        assert gone() == 0 and not got and time.monotonic() - begin < 2, (kind, address, port, end, got)
    # Nor to a service of the host.
    with socket.create_server(("0.0.0.0", 8090)):
        assert guest.talk("tcp", "10.20.2.1", 8089)[0] == "ConnectionRefusedError 111"
    guest.run_python(FAR_NEIGHBOUR)
    assert gone() == 0
    # The proxy, on a wildcard, is reached by whatever address of the host.
    for address in ("10.20.2.1", "10.20.9.1"):
        end, got = guest.talk("tcp", address, 3127, b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
        answer = Answer(got)
        assert answer.reason == "host_not_allowed" and w.newest(id=answer.record)["sandbox"] == "b", (address, end, got)


def printed_rules_drop_what_is_spoofed_xs_02(w):
    load_printed(w)
    before = len(w.decisions())
    for name, own in (("a", "10.20.1.7"), ("a", "fd20:1::7")):
        address = "2001:db8::9" if ":" in own else "203.0.113.9"
        end = w.guests[name].ask(address, 8080, "clear.allowed.test", own=own, patience=1)
        assert isinstance(end, str) and end.startswith(("TimeoutError", "timeout")), end
    # On a bridge nobody gets what is another's: neither by IP nor by ARP, and not from port to port.
    c, d = w.guests["c"], w.guests["d"]
    assert c.talk("udp", "10.20.3.3", 7777, b"x", patience=1)[0].startswith(("TimeoutError", "timeout", "OSError 113"))
    d.run("ip addr add 10.20.3.2/24 dev eth0")
    before = len(w.decisions())
    end = d.ask("203.0.113.9", 8080, "clear.allowed.test", own="10.20.3.2", patience=1)
    d.run("ip addr del 10.20.3.2/24 dev eth0")
    assert isinstance(end, str) and not w.decisions()[before:], (end, w.decisions()[before:])
    answer = c.ask("203.0.113.9", 8080, "clear.allowed.test", "/still-c")
    assert answer.reason == "connect_failed" and w.newest(path="/still-c")["sandbox"] == "c", answer


def a_check_names_what_is_missing_and_what_is_too_much(w):
    load_printed(w)
    listing = json.loads(subprocess.run(["nft", "-j", "list", "ruleset"], stdout=subprocess.PIPE, check=True).stdout)["nftables"]
    rules = [i for i, o in enumerate(listing) if "rule" in o]
    chain = next(i for i, o in enumerate(listing) if o.get("chain", {}).get("name") == "refused")

    def check(changed):
        text = w.exeat("nft", "check", "--file", "-", stdin=json.dumps({"nftables": changed}).encode(), check=False)
        return w.last.returncode, text
    assert check(listing) == (0, "the rules of the configuration are loaded, and no others in their tables\n")
    for i in rules:
        code, text = check(listing[:i] + listing[i + 1:])
        assert code == 1 and text.count("\n") == 1 and "a rule is missing" in text and listing[i]["rule"]["chain"] in text, (listing[i], text)
        # One that is like it, but for a detail.
        other = json.loads(json.dumps(listing[i]).replace('"veth-', '"weth-').replace('"br0"', '"br1"'))
        code, text = check(listing[:i] + [other] + listing[i + 1:])
        assert code == 1 and "a rule is missing" in text and "is not the configuration's" in text and text.count("\n") == 2, text
    accept = {"rule": dict(listing[rules[0]]["rule"], expr=[{"accept": None}])}
    code, text = check(listing[:rules[0]] + [accept] + listing[rules[0]:])
    assert code == 1 and text.startswith("spoofed: a rule is loaded that is not the configuration's") and text.count("\n") == 1, text
    swapped = list(listing)
    swapped[rules[-1]], swapped[rules[-2]] = swapped[rules[-2]], swapped[rules[-1]]
    assert check(swapped)[0] == 1
    code, text = check(listing[:chain] + [{"chain": dict(listing[chain]["chain"], prio=-200)}] + listing[chain + 1:])
    assert code == 1 and "prio" in text and text.count("\n") == 1, text
    code, text = check([o for o in listing if "table" not in o and "chain" not in o and "rule" not in o])
    assert code == 1 and [line[:25] for line in text.splitlines()] == ["inet: the table is not lo", "bridge: the table is not "], text
    w.write("other.conf", "state state\npolicy policy.exeat\nlisten transparent 0.0.0.0:1 { sandbox a; interface veth-a }\n")
    done = subprocess.run([os.path.join(w.build, "exeat"), "--config", w.path("other.conf"), "nft", "check"], stdout=subprocess.PIPE)
    assert done.returncode == 1 and b"bridge: a table is loaded of which the configuration has nothing" in done.stdout, done
    assert check([])[0] == 1
    # Not to be able to look is another answer than that something is missing.
    assert check({"a": 1})[0] == 6
    for other in (b"nonsense", w.exeat("nft", "print").encode()):
        w.exeat("nft", "check", "--file", "-", stdin=other, check=False)
        assert w.last.returncode == 6 and b"and `exeat nft print` does not: " in w.last.stderr, w.last.stderr
    w.exeat("nft", "check", "--file", "/nowhere", check=False)
    assert w.last.returncode == 6 and b"/nowhere: No such file or directory" in w.last.stderr, w.last
    with open(w.path("large"), "wb") as f:
        f.truncate((64 << 20) + 1)
    w.exeat("nft", "check", "--file", w.path("large"), check=False)
    assert w.last.returncode == 6 and b"more than 67108864 bytes" in w.last.stderr, w.last
    done = subprocess.run(["setpriv", "--bounding-set=-net_admin", os.path.join(w.build, "exeat"), "--config", w.path("exeat.conf"), "nft",
                           "check"], stderr=subprocess.PIPE)
    assert done.returncode == 6 and b"does not say what is loaded" in done.stderr, done
    # What is loaded, as nft itself tells, and as JSON.
    host("nft add rule inet exeat redirected accept")
    found = json.loads(w.exeat("--json", "nft", "check", check=False))
    assert w.last.returncode == 1 and [f["where"] for f in found] == ["redirected"], found
    load_printed(w)
    host("nft add chain bridge exeat more")
    assert w.exeat("nft", "check", check=False) == "more: a chain is loaded that is not the configuration's\n" and w.last.returncode == 1
    # A table that is there and asleep.
    load_printed(w)
    w.load("table inet exeat { flags dormant; }")
    assert "inet: the table has flags" in w.exeat("nft", "check", check=False) and w.last.returncode == 1
    w.load("flush ruleset\n")
    assert subprocess.run(["nft", "-j", "-f", "-"], input=w.exeat("--json", "nft", "print").encode()).returncode == 0
    w.exeat("nft", "check")


def rules_are_not_made_of_what_cannot_be_reached(w):
    for listen, why in (("listen tcp 127.0.0.1:3128 { sandbox a }", b"names an `interface`"),
                        ("listen transparent 127.0.0.1:3129 { sandbox a; interface veth-a }", b"listener on loopback")):
        w.write("other.conf", "state state\npolicy policy.exeat\n%s\n" % listen)
        done = subprocess.run([os.path.join(w.build, "exeat"), "--config", w.path("other.conf"), "nft", "print"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        assert done.returncode == 3 and not done.stdout and why in done.stderr, done


def who_connects_to_the_listener_itself_is_told_nothing_ct_12(w):
    w.load("flush ruleset\n")
    answer = w.guests["a"].ask("10.20.1.1", 3129, "open.allowed.test")
    assert answer.status == 403 and answer.reason == "port_not_allowed", answer
    # Where the listener is not on a wildcard, it is closed.
    end = w.guests["c"].ask("10.20.3.1", 3130, "clear.allowed.test")
    assert end in ("closed", "ConnectionResetError 104"), end
    # Of another interface there is no listener.
    assert w.guests["b"].talk("tcp", "10.20.2.1", 3128)[0] == "ConnectionRefusedError 111"


def an_interface_that_was_made_anew_is_heard_after_a_reload(w):
    w.load("flush ruleset\n" + REDIRECT)
    guest = w.guests["b"]
    host("ip link del veth-b")
    guest.make(["10.20.2.2/24"], ["10.20.2.1/24"])
    w.exeat("reload")
    answer = wait_for(lambda: [a for a in [guest.ask("203.0.113.9", 8080, "clear.allowed.test", patience=2)] if isinstance(a, Answer)], 15)
    assert answer and answer[0].reason == "connect_failed", answer


def an_interface_that_is_not_there_is_named(w):
    w.config_text += "listen tcp 127.0.0.1:3999 { sandbox d; interface veth-zz }\n"
    w.configure()
    w.exeat("reload", check=False)
    w.config_text = CONFIG
    w.configure()
    said = w.last.stderr.decode()
    assert w.last.returncode != 0 and "veth-zz" in said and "No such device" in said, said


def main():
    report = Report()
    run_inside(report, "sandboxes behind veth pairs")
    report.run_in(World, [f for f in globals().values() if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("w",)])
    report.end()


if __name__ == "__main__":
    main()
