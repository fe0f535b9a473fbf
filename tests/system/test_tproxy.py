#!/usr/bin/env python3
"""Sandboxes whose connections TPROXY leads to exeat, behind veth pairs and a bridge: what `exeat nft` prints for them, and what it finds."""
import json
import os
import subprocess
import sys
import time

from guests import Guest, GuestPlace, host, query, raise_with, rcode, run_inside, set_kernel
from helpers import FLOOD, HOSTS, POLICY, Answer
from place import Report, Skip, wait_for

CONFIG = """
listen transparent 0.0.0.0:3129    { sandbox a; interface veth-a; source 10.20.1.2; tproxy }
listen transparent [::]:3129       { sandbox a; interface veth-a; source fd20:1::2; tproxy }
listen dns 0.0.0.0:5301            { sandbox a; interface veth-a; source 10.20.1.2 }
listen tcp 10.20.1.1:3128          { sandbox a; interface veth-a; source 10.20.1.2 }
listen transparent 127.0.0.1:3129  { sandbox b; interface veth-b; tproxy; nflog 3104 }
listen transparent [::1]:3129      { sandbox b; interface veth-b; tproxy; nflog 3106 }
listen transparent 10.20.3.1:3130  { sandbox c; interface br0; port veth-c; source 10.20.3.2; tproxy }
listen transparent [fd20:3::1]:3130 { sandbox c; interface br0; port veth-c; source fd20:3::2; tproxy }
listen transparent 10.20.3.1:3131  { sandbox d; interface br0; port veth-d; source 10.20.3.3; nflog 65535 }
"""
POLICY_HERE = POLICY + "service clear { host clear.allowed.test; port 8080; tls clear; range 127.0.0.0/8; operation every { * /; * /** } }\n"
for name in "abcd":
    POLICY_HERE = POLICY_HERE.replace("sandbox %s { " % name, "sandbox %s { grant clear every; " % name)
FARAWAY = {4: "203.0.113.9", 6: "2001:db8::9"}
REFUSED = ("PermissionError 13", "OSError 113", "ConnectionRefusedError 111")
FINE = "the rules of the configuration are loaded, and no others in their tables; what they mark for TPROXY comes to this host\n"


def calls(on):
    """br_netfilter, where the kernel has it: whether rules look at packets at the bridge."""
    for word in ("ip", "ip6"):
        if os.path.exists("/proc/sys/net/bridge/bridge-nf-call-%stables" % word):
            set_kernel("net.bridge.bridge-nf-call-%stables" % word, on)


class World(GuestPlace):
    def __init__(self):
        host("ip link set lo up")
        host("ip link add br0 type bridge")
        calls(0)
        raise_with(host, "br0", ["10.20.3.1/24", "fd20:3::1/64"])
        bridged = ["10.20.3.1/24", "fd20:3::1/64"], "br0"
        self.guests = {
            "a": Guest("a", ["10.20.1.2/24", "10.20.1.7/24", "fd20:1::2/64", "fd20:1::7/64"], ["10.20.1.1/24", "fd20:1::1/64"]),
            "b": Guest("b", ["10.20.2.2/24", "fd20:2::2/64"], ["10.20.2.1/24", "fd20:2::1/64"]),
            "c": Guest("c", ["10.20.3.2/24", "fd20:3::2/64"], *bridged), "d": Guest("d", ["10.20.3.3/24", "fd20:3::3/64"], *bridged),
            "world": Guest("world", ["10.20.9.2/24", "fd20:9::2/64"], ["10.20.9.1/24", "fd20:9::1/64"])}
        super().__init__(POLICY_HERE, {}, sandboxes=(), config=CONFIG, hosts=HOSTS + ("clear.allowed.test",))

    def routes(self, change=None):
        """Those that are printed: made, all or those of one command."""
        for command in self.exeat("nft", "print", "--routes").splitlines():
            host(change(command) if change else command)

    def fresh(self):
        """The rules and routes as printed."""
        for family in ("", "-6 "):
            for old in ("rule del fwmark 0x6578", "route flush table 25976"):
                subprocess.run(("ip %s%s" % (family, old)).split(), stderr=subprocess.DEVNULL)
        self.load_printed()
        self.routes()

    def check(self):
        text = self.exeat("nft", "check", check=False)
        return self.last.returncode, text


def own(name, family):
    """a has several addresses."""
    return {("a", 4): "10.20.1.2", ("a", 6): "fd20:1::2"}.get((name, family), "")


def what_is_printed_leads_both_families_to_the_lane_ct_12(w):
    w.fresh()
    assert w.check() == (0, FINE)
    for name, families in (("a", (4, 6)), ("b", (4, 6)), ("c", (4, 6)), ("d", (4,))):
        for family in families:
            path = "/%s-%d" % (name, family)
            answer = w.guests[name].ask(FARAWAY[family], 8080, "clear.allowed.test", path, own=own(name, family))
            assert isinstance(answer, Answer) and answer.reason == "connect_failed", (name, family, answer)  # nothing listens there: that it was dialled shows
            record = w.newest(path=path)
            assert record["sandbox"] == name and record["meant"] == ("%s:8080" if family == 4 else "[%s]:8080") % FARAWAY[family], record
    # Whatever the port, and whether the address is another host's, this one's or a neighbour's of the bridge.
    for name, address, port in (("a", "10.20.1.1", 26), ("b", "10.20.9.2", 7777), ("c", "10.20.1.2", 25), ("c", "fd20:3::1", 3128)):
        end, got = w.guests[name].talk("tcp", address, port, own=own(name, 4))
        assert end == "closed" and not got, (name, address, port, end, got)
        record = w.newest(meant=("[%s]:%d" if ":" in address else "%s:%d") % (address, port))
        assert record["verdict"] == "deny" and record["sandbox"] == name, record


def names_and_the_proxy_are_asked_beside_it(w):
    w.fresh()
    a = w.guests["a"]
    end, got = a.talk("udp", "192.0.2.53", 53, query("clear.allowed.test"), own="10.20.1.2")
    assert got and rcode(got) == 0 and got[-4:-2] == bytes([198, 18]), (end, got)
    address = ".".join(map(str, got[-4:]))
    question = query("clear.allowed.test")
    end, got = a.talk("tcp", "192.0.2.53", 53, len(question).to_bytes(2, "big") + question, own="10.20.1.2", patience=2)
    assert got and rcode(got[2:]) == 0, (end, got)
    answer = a.ask(address, 8080, "clear.allowed.test", "/by-dns", own="10.20.1.2")
    assert answer.reason == "connect_failed" and w.newest(path="/by-dns")["meant"] == address + ":8080", answer
    end, got = a.talk("tcp", "10.20.1.1", 3128, b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", own="10.20.1.2")
    assert Answer(got).reason == "host_not_allowed" and w.newest(host="evil.test")["door"] == "connect", (end, got)


def all_else_is_refused_at_once_ct_13_ct_14(w):
    w.fresh()
    set_kernel("net.ipv4.ip_forward")
    set_kernel("net.ipv6.conf.all.forwarding")
    for name, address, port in (("b", "203.0.113.9", 443), ("b", "10.20.9.2", 443), ("b", "10.20.2.1", 5301), ("a", "10.20.2.2", 443),
                                ("b", "fd20:9::2", 443), ("c", "192.0.2.53", 53)):
        begin = time.monotonic()
        end, got = w.guests[name].talk("udp", address, port, b"x", own=own(name, 6 if ":" in address else 4))
        assert end in REFUSED and time.monotonic() - begin < 2, (name, address, port, end)
    # A family without a listener.
    assert w.guests["d"].talk("tcp", "2001:db8::9", 443, patience=2)[0].startswith(("TimeoutError", "timeout", "OSError 113"))


def datagrams_that_are_refused_are_recorded_ct_14(w):
    w.fresh()
    def seen(name):
        return [r["meant"] for r in w.decisions() if r.get("door") == "udp" and r.get("sandbox") == name]
    for name, address, port in (("b", "198.51.100.7", 443), ("b", "2001:db8:1::7", 3478), ("b", "198.51.100.7", 443), ("d", "198.51.100.8", 443),
                                ("c", "198.51.100.9", 443)):
        assert w.guests[name].talk("udp", address, port, b"x" * 200)[0] in REFUSED
    record = w.newest(door="udp", sandbox="d")
    assert record["meant"] == "198.51.100.8:443" and record["client"].startswith("10.20.3.3:") and record["verdict"] == "deny", record
    assert record["reason"] == "protocol_not_allowed", record
    assert wait_for(lambda: seen("b")[-2:] == ["198.51.100.7:443", "[2001:db8:1::7]:3478"], 5), seen("b")
    # c's listeners do not say it.
    assert seen("c") == [] and seen("a") == []
    before, begin = len(seen("b")), time.monotonic()
    w.guests["b"].run_python(FLOOD)
    w.exeat("status")
    assert 5 <= len(seen("b")) - before <= 50 * (time.monotonic() - begin + 1), (before, len(seen("b")))
    names = [name for lane in json.loads(w.exeat("status", "--json"))["lanes"] for name in lane["listeners"]]
    assert {"nflog:3104", "nflog:3106", "nflog:65535"} <= set(names), names


def a_spoofed_source_is_dropped_xs_02(w):
    w.fresh()
    before = len(w.decisions())
    for name, address, source in (("a", FARAWAY[4], "10.20.1.7"), ("a", FARAWAY[6], "fd20:1::7")):
        end = w.guests[name].ask(address, 8080, "clear.allowed.test", own=source, patience=1)
        assert isinstance(end, str) and end.startswith(("TimeoutError", "timeout")), end
    d = w.guests["d"]
    d.run("ip addr add 10.20.3.2/24 dev eth0")
    end = d.ask(FARAWAY[4], 8080, "clear.allowed.test", own="10.20.3.2", patience=1)
    d.run("ip addr del 10.20.3.2/24 dev eth0")
    # b has no `source`: an address of a's is b's there, and gets no answer.
    w.guests["b"].run("ip addr add 10.20.1.2/32 dev eth0")
    w.guests["b"].ask(FARAWAY[4], 8080, "clear.allowed.test", own="10.20.1.2", patience=1)
    w.guests["b"].run("ip addr del 10.20.1.2/32 dev eth0")
    assert isinstance(end, str) and not [r for r in w.decisions()[before:] if r.get("sandbox") != "b"], (end, w.decisions()[before:])


SERVER = """
import socket, sys
s = socket.create_server(("10.20.1.2", 7000))
print("ready", flush=True)
while True:
    peer = s.accept()[0]
    peer.sendall(peer.recv(10) * 2)
    peer.close()
"""


def who_connects_to_a_sandbox_is_answered_by_it(w):
    """From the host, and through it: TPROXY takes what the sandbox begins, not what it answers."""
    w.fresh()
    set_kernel("net.ipv4.ip_forward")
    server = subprocess.Popen(["nsenter", "--net=/proc/%d/ns/net" % w.guests["a"].process.pid, sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"ready\n"
        here = subprocess.run([sys.executable, "-c", "import socket; s = socket.create_connection(('10.20.1.2', 7000), 4); s.sendall(b'ab'); "
                               "print(s.recv(9))"], stdout=subprocess.PIPE)
        assert here.stdout == b"b'abab'\n", here
        assert w.guests["world"].talk("tcp", "10.20.1.2", 7000, b"xyz", patience=4) == ("closed", b"xyzxyz")
    finally:
        server.kill()
        server.wait()


PUBLISHED = """
table ip other {
    chain prerouting {
        type nat hook prerouting priority dstnat - 20;
        tcp dport 8088 dnat to 10.20.9.2:3127
    }
}
table inet counted {
    counter gone { }
    chain forward {
        type filter hook forward priority 1000;
        iifname { "veth-a", "veth-b" } counter name gone
    }
}
"""


def gone():
    listing = subprocess.run(["nft", "-j", "list", "counter", "inet", "counted", "gone"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(listing)["nftables"][1]["counter"]["packets"]


def ports_that_another_table_publishes_are_exeats_all_the_same_ct_13(w):
    w.fresh()
    w.load(PUBLISHED)
    set_kernel("net.ipv4.ip_forward")
    answer = w.guests["b"].ask("10.20.2.1", 8088, "clear.allowed.test", "/published")
    assert answer.status == 403 and w.newest(id=answer.record)["meant"] == "10.20.2.1:8088" and gone() == 0, answer


def without_the_routes_nothing_goes_on_and_a_check_says_which_is_missing(w):
    set_kernel("net.ipv4.ip_forward")
    set_kernel("net.ipv6.conf.all.forwarding")
    for family, word in ((4, ""), (6, "-6 ")):
        for missing, finding in (("rule del fwmark 0x6578", "no rule looks up in the table for it what TPROXY has marked: ip %srule add fwmark 0x6578 lookup 25976"),
                                 ("route flush table 25976", "the table for what TPROXY has marked does not lead to this host: "
                                  "ip %sroute add local default dev lo table 25976")):
            w.fresh()
            w.load(PUBLISHED)
            host("ip %s%s" % (word, missing))
            assert w.check() == (1, "routes of IPv%d: %s\n" % (family, finding % word)), (w.check(), missing)
            before = len(w.decisions())
            address = "10.20.9.2" if family == 4 else "fd20:9::2"
            end = w.guests["b"].ask(address, 8080, "clear.allowed.test", patience=2)
            assert isinstance(end, str) and end.startswith(("TimeoutError", "timeout")) and gone() == 0 and len(w.decisions()) == before, (family, missing, end, gone())
            found = json.loads(w.exeat("--json", "nft", "check", check=False))
            assert [f["where"] for f in found] == ["routes of IPv%d" % family] and found[0]["rule"].startswith("ip "), found
        host("ip %srule del fwmark 0x6578" % word) if missing.startswith("route") else None
    w.fresh()
    assert w.check() == (0, FINE)
    host("ip rule add prohibit fwmark 0x6578 priority 7")
    code, text = w.check()
    host("ip rule del priority 7")
    assert (code, text) == (1, "routes of IPv4: a rule before that of the mark 0x6578 leads elsewhere (`ip rule` shows them)\n"), text


def a_bridge_whose_packets_br_netfilter_takes_is_named(w):
    w.fresh()
    if not os.path.exists("/proc/sys/net/bridge/bridge-nf-call-iptables"):
        raise Skip("this kernel has no br_netfilter")
    calls(1)
    code, text = w.check()
    answer = w.guests["c"].ask(FARAWAY[4], 8080, "clear.allowed.test", patience=1)
    calls(0)
    assert code == 1 and [line.partition(": ")[0] for line in text.splitlines()] == ["br0", "br0"], text
    assert "IPv4" in text.splitlines()[0] and text.endswith("IPv6 here, as br_netfilter has rules look at them at the bridge: "
                                                            "sysctl net.bridge.bridge-nf-call-ip6tables=0\n"), text
    assert isinstance(answer, str), answer
    host("ip link set br0 type bridge nf_call_ip6tables 1")
    code, text = w.check()
    host("ip link set br0 type bridge nf_call_ip6tables 0")
    assert code == 1 and text.count("\n") == 1 and "IPv6" in text and "ip link set NAME type bridge nf_call_ip6tables 0" in text, text
    assert w.check() == (0, FINE)


def sources_that_are_looked_up_with_the_mark_are_named(w):
    w.fresh()
    finding = "%s: packets that TPROXY has marked are dropped here, as their sources are looked up with the mark: sysctl net.ipv4.conf.%s.src_valid_mark=0\n"
    for which, setting in (("all", "all.src_valid_mark"), ("NAME", "veth-b.src_valid_mark")):
        set_kernel("net.ipv4.conf." + setting)
        code, text = w.check()
        answer = w.guests["b"].ask(FARAWAY[4], 8080, "clear.allowed.test", patience=1)
        set_kernel("net.ipv4.conf.veth-b.accept_local")
        with_local = w.check()[1], w.guests["b"].ask(FARAWAY[4], 8080, "clear.allowed.test")
        set_kernel("net.ipv4.conf." + setting, 0)
        set_kernel("net.ipv4.conf.veth-b.accept_local", 0)
        names = ["veth-a", "veth-b", "br0"] if which == "all" else ["veth-b"]
        assert (code, text) == (1, "".join(finding % (name, which) for name in names)), text
        assert isinstance(answer, str), answer
        # Where an address of the host's own is taken for a source, it is no matter.
        assert finding % ("veth-b", which) not in with_local[0] and isinstance(with_local[1], Answer), with_local
    assert w.check() == (0, FINE)


def a_setting_that_cannot_be_read_is_not_taken_for_a_good_one(w):
    w.fresh()
    for setting in ("/proc/sys/net/ipv4/conf/all/src_valid_mark", "/proc/sys/net/ipv4/conf/veth-b/accept_local"):
        host("mount --bind /dev/null " + setting)
        done = w.exeat("nft", "check", check=False)
        host("umount " + setting)
        assert w.last.returncode == 6 and setting.encode() in w.last.stderr, (done, w.last)
    assert w.check() == (0, FINE)


def a_check_names_each_rule_that_is_missing(w):
    w.fresh()
    listing = json.loads(subprocess.run(["nft", "-j", "list", "ruleset"], stdout=subprocess.PIPE, check=True).stdout)["nftables"]

    def check(changed):
        text = w.exeat("nft", "check", "--file", "-", stdin=json.dumps({"nftables": changed}).encode(), check=False)
        return w.last.returncode, text
    code, text = check(listing)
    assert code == 0 and "routes for TPROXY were not looked at" in text, text
    rules = [i for i, o in enumerate(listing) if "rule" in o]
    for i in rules:
        code, text = check(listing[:i] + listing[i + 1:])
        assert code == 1 and text.count("\n") == 1 and "a rule is missing" in text, text
    for was, other in (('"port": 3129', '"port": 3128'), ('25976', '25977'), ('"original"', '"reply"'), ('"addr": "10.20.3.1", "port"', '"port"')):
        i = next(i for i in rules if '"tproxy"' in json.dumps(listing[i]) and was in json.dumps(listing[i]))
        code, text = check(listing[:i] + [json.loads(json.dumps(listing[i]).replace(was, other))] + listing[i + 1:])
        assert code == 1 and "a rule is missing" in text and "is not the configuration's" in text, (was, text)
    # As nft itself tells.
    handle = next(listing[i]["rule"]["handle"] for i in rules if '"tproxy"' in json.dumps(listing[i]))
    host("nft delete rule inet exeat refused handle %d" % handle)
    code, text = w.check()
    assert code == 1 and text.count("\n") == 1 and "a rule is missing" in text and "tproxy ip to :3129" in text, text
    w.load("flush ruleset\n")
    assert subprocess.run(["nft", "-j", "-f", "-"], input=w.exeat("--json", "nft", "print").encode()).returncode == 0
    assert w.check() == (0, FINE)
    w.exeat("--json", "nft", "print", "--routes", check=False)
    assert w.last.returncode == 2 and b"of which there is no JSON" in w.last.stderr, w.last


def a_listener_that_is_not_there_lets_nothing_through(w):
    w.fresh()
    w.stop()
    before = time.monotonic()
    assert w.guests["b"].talk("tcp", FARAWAY[4], 443)[0] == "ConnectionRefusedError 111"
    assert w.guests["b"].talk("tcp", "fd20:2::1", 3129)[0] == "ConnectionRefusedError 111" and time.monotonic() - before < 3
    w.launch()


# NFULNL_CFG_CMD_BIND for group 3104.
LISTENING = """
import socket
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
s.send(bytes.fromhex("1c000000" "0104" "0500" "01000000" "00000000" "00000c20" "0500" "0100" "01000000"))
assert s.recv(99)[16:20] == bytes(4)
print("on", flush=True)
input()
"""


def a_group_takes_a_capability_and_nobody_else_who_listens(w):
    w.stop()
    without = subprocess.run(["setpriv", "--bounding-set=-net_admin", os.path.join(w.build, "exeatd"), "--config", w.path("exeat.conf")],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
    other = subprocess.Popen([sys.executable, "-c", LISTENING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"on\n"
        busy = subprocess.run([os.path.join(w.build, "exeatd"), "--config", w.path("exeat.conf")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=30)
    finally:
        other.communicate(b"\n")
        w.launch()
    assert b"cannot listen on nflog:3104: `nflog 3104`: Operation not permitted (exeatd needs the capability CAP_NET_ADMIN, and the group for itself)" in without.stdout, without
    assert b"`nflog 3104`: Operation not permitted (exeatd needs the capability CAP_NET_ADMIN, and the group for itself)" in busy.stdout, busy


def tproxy_takes_a_capability_and_says_so(w):
    w.stop()
    without = ["setpriv", "--bounding-set=-net_admin,-net_raw", os.path.join(w.build, "exeatd"), "--config", w.path("exeat.conf")]
    done = subprocess.run(without, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
    w.launch()
    assert done.returncode != 0 and b"`tproxy`: Operation not permitted (exeatd needs the capability CAP_NET_RAW or CAP_NET_ADMIN" in done.stdout, done
    assert b"exeat.conf:" in done.stdout and b"0.0.0.0:3129 of interface veth-a" in done.stdout, done


def tproxy_comes_and_goes_with_a_restart(w):
    w.config_text = CONFIG.replace("source 10.20.3.2; tproxy", "source 10.20.3.2")
    w.configure()
    w.exeat("reload", check=False)
    w.config_text = CONFIG
    w.configure()
    assert w.last.returncode == 1 and b"`tproxy` for the socket 10.20.3.1:3130, which is open: that takes a restart" in w.last.stderr, w.last


def main():
    report = Report()
    run_inside(report, "sandboxes by TPROXY")
    if subprocess.run(["unshare", "--net", "nft", "add table inet t; add chain inet t c { type filter hook prerouting priority -90; }; "
                       "add rule inet t c meta l4proto tcp tproxy ip to :1"], stderr=subprocess.DEVNULL).returncode != 0:
        report.skip("sandboxes by TPROXY", "this kernel does not have nftables' tproxy")
        report.end()
    report.run_in(World, [f for f in globals().values() if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("w",)])
    report.end()


if __name__ == "__main__":
    main()
