#!/usr/bin/env python3
"""Transparent connections, DNS and SOCKS5: a sandbox that was told of no proxy, in a network of its own."""
import json
import os
import shutil
import socket
import ssl
import struct
import sys
import time

from case_scene import in_own_network
from cases import client_hello, sni_list
from helpers import HOSTS, POLICY, SECRET, Answer
from network import Network
from place import Place, Report, Skip, free_port, read_all, wait_for

# By systemd's protocol (sd_listen_fds(3)): descriptors from 3 on, for the process that is executed.
ACTIVATE = """
import os, sys
fds = [int(n) for n in sys.argv[1].split(",")]
high = [os.dup2(fd, 200 + i) for i, fd in enumerate(fds)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))
os.execv(sys.argv[2], sys.argv[2:])
"""
ANYWHERE = "203.0.113.9"
tests = []


def test(function):
    tests.append(function)
    return function


class World(Place):
    """exeatd outside, its listeners inside: transparent at the upstream's port, 22 and 80, DNS at 53, explicit at 3128."""

    def __init__(self):
        self.net = Network()
        super().__init__(POLICY.replace("127.0.0.0/8", "{net}").replace("grant open every }", "grant open every; grant plain every; grant ssh every; grant star every; "
                                        "grant address every; grant spliced all }") + "service plain { host plain.allowed.test; port 80; tls clear; range {net}\n"
                         "  operation every { * /; * /** } }\n"
                         "service ssh { host ssh.allowed.test; port 22; range {net}; operation every { * /** } }\n"
                         "service star { host *.star.test; port {port}; range {net}; operation every { * /** } }\n"
                         "service spliced { host spliced.allowed.test; port {port}; range {net}; tls splice }\n"
                         "service address { host 203.0.113.77; port {port}; range 203.0.113.77; operation every { * /** } }\n",
                         {"outside": "sandbox b"}, {"demo-key": (SECRET, "sk-demo-")}, ("a", "b"),
                         hosts=HOSTS + ("spliced.allowed.test", "plain.allowed.test", "ssh.allowed.test"), values={"net": "10.77.0.0/16"})
        self.upstream.listen_everywhere()
        port = self.values["port"]
        self.values["direct"] = free_port()
        wanted = [("transparent", n, False) for n in (port, 80, 22)] + [("dns", 53, False), ("dns", 53, True), ("tcp", 3128, False)]
        self.sockets, lines = [], []
        for family, address in (("0.0.0.0", "0.0.0.0"), ("::", "[::]")):
            for word, number, udp in wanted:
                self.sockets.append(self.net.listen(family, number, udp))
                if not udp:
                    lines.append("listen %s %s:%d { sandbox a }\n" % (word, address, number))
        lines.append("listen transparent 127.0.0.1:{direct} { sandbox a }\n")
        self.config_text = "".join(lines) + "limit dns-names 16\n"
        for n, host in enumerate(self.hosts):
            self.config_text += "host %s 10.77.0.%d\n" % (host, n + 1)
        self.hosts = ()  # which would be on loopback
        numbers = [s.fileno() for s in self.sockets]
        self.prefix = [sys.executable, "-c", ACTIVATE, ",".join(map(str, numbers))]
        self.as_user = dict(self.as_user, pass_fds=numbers)

    def __exit__(self, *ignored):
        super().__exit__(*ignored)
        for s in self.sockets:
            s.close()
        self.net.close()

    def secure(self, name, address=ANYWHERE, port=None):
        stream = self.net.connect(address, port or self.values["port"])
        return self.client_context().wrap_socket(stream, server_hostname=name)

    def newest(self, **facts):
        """The newest decision with these facts."""
        return wait_for(lambda: next((r for r in reversed(self.records()) if r["kind"] == "decision" and all(
            r.get(k) == v for k, v in facts.items())), None), 5, 0.05)

    def lookups(self):
        return [r for r in self.records() if r.get("door") == "dns"]


def fetch(stream, line="GET /v1/items", host="open.allowed.test", port=None, fields=""):
    with stream:
        stream.sendall(("%s HTTP/1.1\r\nHost: %s%s\r\n%sConnection: close\r\n\r\n" % (
            line, host, ":%d" % port if port else "", fields)).encode())
        return Answer(read_all(stream))


# ---- transparent ----

@test
def a_name_by_sni_is_served_at_any_address_and_the_record_has_that(w):
    for address, meant in ((ANYWHERE, ANYWHERE), ("2001:db8::9", "[2001:db8::9]")):
        answer = fetch(w.secure("open.allowed.test", address), "GET /by-sni/%d" % len(address), port=w.values["port"])
        assert answer.status == 200, answer
        record = w.newest(path="/by-sni/%d" % len(address))
        assert record["door"] == "transparent" and record["sandbox"] == "a" and record["verdict"] == "allow", record
        assert record["meant"] == "%s:%d" % (meant, w.values["port"]) and record["host"] == "open.allowed.test", record


@test
def a_credential_is_lent_as_at_the_proxy(w):
    fields = "Authorization: Bearer %s\r\n" % w.placeholder("a", "demo-key")
    answer = fetch(w.secure("api.allowed.test"), host="api.allowed.test", port=w.values["port"], fields=fields)
    assert answer.status == 200 and SECRET.encode() not in answer.bytes, answer
    assert any(("Bearer " + SECRET).encode() in r for r in w.upstream.requests), w.upstream.requests
    answer = fetch(w.secure("api.allowed.test"), host="api.allowed.test", port=w.values["port"],
                   fields="Authorization: Bearer sk-foreign-0123456789abcdefghij\r\n")
    assert answer.status == 403 and answer.reason == "foreign_credential", answer


@test
def ct_12_what_is_dialled_is_the_name_and_never_the_address(w):
    # Metadata and our own loopback are asked for; the name's own address is what the upstream sees.
    for address in ("169.254.169.254", "127.0.0.1", "::1"):
        assert fetch(w.secure("open.allowed.test", address), port=w.values["port"]).status == 200, address


@test
def a_name_that_is_not_allowed_gets_a_tls_alert_and_a_record_at_once(w):
    before = time.monotonic()
    try:
        w.secure("evil.test")
        raise AssertionError("a handshake with a host that is not allowed")
    except ssl.SSLError as failure:
        assert "ACCESS_DENIED" in failure.reason, failure
    assert time.monotonic() - before < 2, "it took %.3f s" % (time.monotonic() - before)
    record = w.newest(host="evil.test", door="transparent")
    assert record["reason"] == "host_not_allowed" and record["meant"].startswith(ANYWHERE) and record["sni"] == "evil.test", record


@test
def ti_06_a_name_that_is_none_is_what_the_record_tells_of(w):
    for name, reason in ((b"open.allowed.test:443", "malformed_authority"), (b"a b.test", "malformed_authority"),
                         (b"*.star.test", "malformed_authority"), (b"open.allowed.test\0.evil.test", "malformed_hello")):
        with w.net.connect("203.0.113.50", w.values["port"]) as stream:
            stream.sendall(client_hello(sni_list(name)))
            assert read_all(stream)[:1] == b"\x15", name
        record = w.newest(meant="203.0.113.50:%d" % w.values["port"], reason=reason)
        assert record and record["host"] == name.split(b"\0")[0].decode(), (name, record)
        assert reason != "malformed_authority" or record["sni"] == name.decode(), record


@test
def ip_12_without_a_name_only_an_address_that_a_rule_names_is_a_host(w):
    context = ssl.create_default_context(cafile=w.path("state", "public", "ca.pem"))
    context.check_hostname = False
    try:
        context.wrap_socket(w.net.connect(ANYWHERE, w.values["port"]))
        raise AssertionError("a handshake without a name")
    except ssl.SSLError as failure:
        assert "ACCESS_DENIED" in failure.reason, failure
    assert w.newest(host=ANYWHERE, door="transparent")["reason"] == "host_not_allowed"
    context.check_hostname = True
    context.wrap_socket(w.net.connect("203.0.113.77", w.values["port"]), server_hostname="203.0.113.77").close()


@test
def a_spliced_name_is_passed_on_to_where_it_resolves_to(w):
    for how in ("sni", "address"):
        address = ANYWHERE if how == "sni" else resolve(w, "spliced.allowed.test")[1][0]
        context = ssl.create_default_context(cafile=w.ca.pem)
        context.check_hostname = how == "sni"
        stream = context.wrap_socket(w.net.connect(address, w.values["port"]), server_hostname="spliced.allowed.test" if how == "sni" else None)
        assert fetch(stream, "GET /spliced", host="spliced.allowed.test", port=w.values["port"]).status == 200
        record = w.newest(door="spliced", host="spliced.allowed.test", meant="%s:%d" % (address, w.values["port"]))
        assert record and record["verdict"] == "allow" and "method" not in record and record["address"].startswith("10.77."), record
    # No other name at its address, and no name that is not spliced gets through unread.
    for name in ("open.allowed.test", "evil.test"):
        try:
            ssl.create_default_context(cafile=w.ca.pem).wrap_socket(w.net.connect(address, w.values["port"]), server_hostname=name)
            raise AssertionError("%s at the address of a spliced name" % name)
        except ssl.SSLError as failure:
            assert "UNRECOGNIZED_NAME" in failure.reason, failure


@test
def clear_requests_go_by_their_Host(w):
    answer = fetch(w.net.connect(ANYWHERE, 80), "GET /clear", host="plain.allowed.test")
    record = w.newest(path="/clear")
    # Nothing listens at the name's port 80: that it was dialled is what shows here.
    assert answer.status == 502 and answer.reason == "connect_failed", answer
    assert record["door"] == "transparent" and record["scheme"] == "http" and record["port"] == 80, record
    answer = fetch(w.net.connect(ANYWHERE, 80), host="evil.test")
    assert answer.status == 403 and answer.reason == "host_not_allowed", answer
    assert w.newest(host="evil.test", port=80)["meant"] == ANYWHERE + ":80"
    answer = fetch(w.net.connect(ANYWHERE, 80), host="open.allowed.test")
    assert answer.status == 403 and answer.reason == "port_not_allowed", answer


@test
def clear_requests_to_another_port_or_host_than_the_connection_are_refused(w):
    answer = fetch(w.net.connect(ANYWHERE, 80), host="plain.allowed.test", port=8080)
    assert answer.status == 421 and answer.reason == "authority_mismatch", answer
    with w.net.connect(ANYWHERE, 80) as stream:
        stream.sendall(b"GET http://evil.test/ HTTP/1.1\r\nHost: plain.allowed.test\r\n\r\n")
        assert Answer(read_all(stream)).reason == "host_not_allowed"
    with w.net.connect(ANYWHERE, 80) as stream:
        stream.sendall(b"GET http://plain.allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        assert Answer(read_all(stream)).status == 421


@test
def ct_15_what_is_no_request_is_answered_400_and_recorded(w):
    for sent in (b"GET /\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                 b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n"):
        with w.net.connect(ANYWHERE, 80) as stream:
            stream.sendall(sent)
            answer = Answer(read_all(stream))
        assert answer.status and 400 <= answer.status < 506, (sent, answer)
        record = w.record(answer.record)
        assert record["door"] == "transparent" and record["meant"] == ANYWHERE + ":80", record


@test
def ct_01_other_protocols_are_closed_with_a_record(w):
    for sent in (b"\x00\x01\x02", b"*1\r\n", b"\x05\x01\x00", b"PROXY TCP4 10.0.0.99 10.0.0.1 1 2\r\n",
                 b"\r\n\r\n\x00\r\nQUIT\n" + b"\x21\x11\x00\x0c" + bytes(12), b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"):
        count = len([r for r in w.records() if r.get("door") == "transparent"])
        with w.net.connect("203.0.113.30", w.values["port"]) as stream:
            stream.sendall(sent)
            got = read_all(stream)
        assert b"200" not in got and len(got) < 2000, (sent, got)
        found = wait_for(lambda: [r for r in w.records() if r.get("door") == "transparent"][count:], 5, 0.05)
        assert found and found[0]["verdict"] == "deny" and found[0]["meant"].startswith("203.0.113.30:"), (sent, found)


@test
def an_attempt_without_a_byte_has_its_record(w):
    w.net.connect("203.0.113.40", 22).close()
    record = w.newest(meant="203.0.113.40:22")
    assert record and record["verdict"] == "deny" and record["sandbox"] == "a", record


@test
def ct_13_ports_without_a_listener_refuse_at_once(w):
    for port in (25, 8443, 5432):
        try:
            w.net.connect(ANYWHERE, port)
            raise AssertionError("port %d is open" % port)
        except ConnectionRefusedError:
            pass


@test
def ct_12_a_connection_to_the_listener_itself_is_refused(w):
    # An explicit address instead of the wildcard: nothing but that address could have been meant.
    port = w.values["direct"]
    with socket.create_connection(("127.0.0.1", port), 10) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: open.allowed.test:%d\r\n\r\n" % port)
        assert read_all(stream) == b""
    assert "connected to exeat itself" in w.log()


# ---- SSH ----

def ssh_packets(data):
    """What a server said before any key exchange: its identification, and a disconnect's text."""
    banner, _, rest = data.partition(b"\r\n")
    size, padding, kind = struct.unpack(">IBB", rest[:6])
    assert (size + 4) % 8 == 0 and padding >= 4 and len(rest) == size + 4 and kind == 1, rest
    length = struct.unpack(">I", rest[10:14])[0]
    return banner, rest[14:14 + length].decode()


@test
def ssh_is_refused_in_words_that_it_prints(w):
    for open_it in (lambda: w.net.connect(ANYWHERE, 22), lambda: w.tunnel("outside", "api.allowed.test:%d" % w.values["port"])):
        with open_it() as stream:
            stream.sendall(b"SSH-2.0-test\r\n")
            banner, text = ssh_packets(read_all(stream))
        assert banner == b"SSH-2.0-exeat" and "https://" in text, (banner, text)
    assert w.newest(meant=ANYWHERE + ":22", reason="port_not_allowed") or w.newest(meant=ANYWHERE + ":22", reason="host_not_allowed")
    if not shutil.which("ssh"):
        raise Skip("there is no ssh here")
    code, _, err = w.net.run("ssh", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "-F", "/dev/null", "git@" + ANYWHERE)
    assert code == 255 and "exeat: " in err and "https://" in err, (code, err)


# ---- DNS ----

def question(name, kind=1, ident=0x1234, flags=0x0100, options=False, counts=None, tail=b""):
    labels = b"".join(bytes([len(l)]) + l for l in (name if isinstance(name, bytes) else name.encode()).split(b".") if l) + b"\0"
    return struct.pack(">HHHHHH", ident, flags, *(counts or (1, 0, 0, int(options)))) + labels + struct.pack(">HH", kind, 1) + \
        (b"\0\0\x29\x04\xd0\0\0\0\0\0\0" if options else b"") + tail


def read_answer(data, asked):
    """(code, addresses)."""
    ident, flags, questions, answers, _, _ = struct.unpack(">HHHHHH", data[:12])
    assert ident == 0x1234 and flags & 0x8000 and questions == 1, data
    end = asked.index(b"\0", 12) + 5
    assert data[12:end] == asked[12:end], data
    addresses = []
    for _ in range(answers):
        pointer, kind, _, _, size = struct.unpack(">HHHIH", data[end:end + 12])
        assert pointer == 0xc00c, data
        addresses.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data[end + 12:end + 12 + size]))
        end += 12 + size
    return flags & 15, addresses


def ask_names(w, packet, tcp=False, server=ANYWHERE):
    with w.net.connect(server, 53, udp=not tcp) as stream:
        stream.send(struct.pack(">H", len(packet)) + packet if tcp else packet)
        if not tcp:
            return stream.recv(2048)
        data = stream.recv(4096)
        return data[2:] if data else b""


def resolve(w, name, kind=1, **how):
    asked = question(name, kind)
    return read_answer(ask_names(w, asked, **how), asked)


@test
def an_allowed_name_has_an_address_of_the_private_ranges_at_any_server_by_udp_and_tcp(w):
    code, first = resolve(w, "open.allowed.test")
    assert code == 0 and len(first) == 1 and first[0].startswith("198.18."), (code, first)
    assert resolve(w, "OPEN.allowed.TEST", tcp=True) == (0, first)
    assert resolve(w, "open.allowed.test", server="2001:db8::53") == (0, first)
    code, six = resolve(w, "open.allowed.test", kind=28, server="127.0.0.1", tcp=True)
    assert code == 0 and six[0].startswith("fd65:7865:6174:"), six
    record = w.newest(door="dns", method="AAAA")
    assert record["host"] == "open.allowed.test" and record["meant"] == "127.0.0.1:53" and record["verdict"] == "allow", record
    assert "port" not in record and "scheme" not in record, record
    # api has another one
    assert resolve(w, "api.allowed.test")[1] != first


@test
def an_address_that_was_given_out_stands_for_its_name(w):
    for kind in (1, 28):
        address = resolve(w, "open.allowed.test", kind)[1][0]
        context = ssl.create_default_context(cafile=w.path("state", "public", "ca.pem"))
        context.check_hostname = False
        stream = context.wrap_socket(w.net.connect(address, w.values["port"]))
        assert ("DNS", "open.allowed.test") in stream.getpeercert()["subjectAltName"]
        assert fetch(stream, port=w.values["port"]).status == 200
        # And for no other.
        try:
            w.secure("api.allowed.test", address)
            raise AssertionError("another name at the address")
        except ssl.SSLError as failure:
            assert "UNRECOGNIZED_NAME" in failure.reason, failure
    address = resolve(w, "plain.allowed.test")[1][0]
    with w.net.connect(address, 80) as stream:
        stream.sendall(b"GET /old HTTP/1.0\r\n\r\n")
        assert Answer(read_all(stream)).reason == "connect_failed"
    assert w.newest(path="/old")["host"] == "plain.allowed.test"


@test
def dn_04_other_names_do_not_exist_and_are_recorded(w):
    for name in ("evil.test", "736563726574.evil.test", "allowed.test", "localhost", "x.open.allowed.test"):
        for kind in (1, 28, 16, 65):
            assert resolve(w, name, kind) == (3, []), name
        record = w.newest(door="dns", host=name)
        assert record["reason"] == "host_not_allowed" and record["meant"] == ANYWHERE + ":53", record


@test
def dn_08_only_addresses_are_answered(w):
    for kind in (2, 5, 6, 12, 15, 16, 33, 64, 65, 252, 255, 65280):
        assert resolve(w, "open.allowed.test", kind) == (0, []), kind


@test
def a_refusal_says_why_to_those_who_can_read_it(w):
    data = ask_names(w, question("evil.test", options=True))
    assert b"exeat: host_not_allowed; record " in data and data[3] & 15 == 3, data
    if shutil.which("dig"):
        code, out, err = w.net.run("dig", "@" + ANYWHERE, "+time=2", "+tries=1", "evil.test")
        assert "NXDOMAIN" in out, (code, out, err)
        code, out, err = w.net.run("dig", "@2001:db8::53", "+short", "+time=2", "+tries=1", "open.allowed.test", "AAAA")
        assert out.startswith("fd65:7865:6174:"), (code, out, err)


@test
def dn_07_malformed_queries_are_answered_so_or_not_at_all(w):
    name = "open.allowed.test"
    for packet, expected in ((question(name, tail=b"x"), 1), (question(name, counts=(2, 0, 0, 0)), 1), (question(name, counts=(1, 1, 0, 0)), 1),
                             (question(name, counts=(1, 0, 0, 1)), 1), (question(name, flags=0x2800), 4),
                             (question(name)[:-3], 1), (question(name)[:12] + b"\xc0\x0c\0\1\0\1", 1), (question(b"x" * 63 + b"." + b"y" * 63 + b"." + b"z" * 63 + b"." + b"w" * 63), 1),
                             (question(b"a\0b.test"), 3), (question(b"a b.test"), 3), (question(b""), 3), (question("1.2.3.4"), 3)):
        data = ask_names(w, packet)
        assert data[:2] == packet[:2] and data[3] & 15 == expected, (packet, data)
    for packet in (b"", b"\x12", question(name, flags=0x8100), question(name)[:11]):
        with w.net.connect(ANYWHERE, 53, udp=True) as stream:
            stream.send(packet)
            stream.send(question(name))
            data = stream.recv(2048)
            assert data[3] & 15 == 0 and data[7] == 1, (packet, data)  # the answer to the second, and to no other


@test
def tcp_questions_may_follow_each_other(w):
    asked = question("open.allowed.test")
    with w.net.connect(ANYWHERE, 53) as stream:
        stream.sendall((struct.pack(">H", len(asked)) + asked) * 3 + b"\0")
        data = b""
        while data.count(b"\x12\x34") < 3:
            data += stream.recv(4096)
        stream.sendall(struct.pack(">H", len(asked))[1:] + asked)
        assert stream.recv(4096)[2:4] == b"\x12\x34"
    for rest in (b"", b"\0", struct.pack(">H", len(asked)) + asked):
        with w.net.connect(ANYWHERE, 53) as stream:
            stream.sendall(struct.pack(">H", len(asked)) + asked + rest)
            stream.shutdown(socket.SHUT_WR)
            assert read_all(stream).count(b"\x12\x34") == (2 if len(rest) > 1 else 1), rest
    with w.net.connect(ANYWHERE, 53) as stream:
        stream.sendall(b"\xff\xff" + bytes(64))
        assert read_all(stream) == b""


@test
def dn_05_names_that_are_kept_have_a_limit_and_the_address_of_one_that_is_not_is_nobodys(w):
    first = resolve(w, "n0.star.test")[1][0]
    given = {resolve(w, "n%d.star.test" % i)[1][0] for i in range(1, 17)}
    assert len(given) == 16 and first in given, (first, given)
    context = ssl.create_default_context(cafile=w.path("state", "public", "ca.pem"))
    context.check_hostname = False
    stream = context.wrap_socket(w.net.connect(first, w.values["port"]))
    assert ("DNS", "n0.star.test") not in stream.getpeercert()["subjectAltName"]


def reload_with(w, lines):
    text, w.config_text = w.config_text, w.config_text.replace("limit dns-names 16\n", lines)
    w.configure()
    w.config_text = text
    w.exeat("reload")


@test
def ranges_that_become_smaller_hold_all_that_is_given_out(w):
    names = ["r%d.star.test" % i for i in range(300)]
    try:
        reload_with(w, "limit dns-names 400\ndns-addresses 10.200.0.0/16\n")
        before = {resolve(w, n)[1][0] for n in names}
        assert len(before) == 300 and any(a.startswith("10.200.1.") for a in before), before
        reload_with(w, "limit dns-names 400\ndns-addresses 10.201.0.0/24\n")
        after = {resolve(w, n)[1][0] for n in names}
        assert len(after) == 254 and all(a.startswith("10.201.0.") for a in after), after
    finally:
        reload_with(w, "limit dns-names 16\n")


@test
def ad_05_the_lane_comes_again_when_its_courier_dies(w):
    proxy = next(pid for (role, lane), pid in w.pids().items() if role == "proxy" and has_child(pid))
    courier = has_child(proxy)
    assert w.pids().get(("courier", lane_of(w, proxy))) == courier, "the status has no row for it"
    with open("/proc/%d/status" % courier) as f:
        assert "Seccomp:\t2" in f.read(), "the courier is not narrowed"
    os.kill(courier, 9)
    assert wait_for(lambda: (w.pids().get(("proxy", lane_of(w, proxy))) or proxy) != proxy or not alive(proxy), 15, 0.05)
    assert wait_for(lambda: quietly(lambda: resolve(w, "open.allowed.test")), 20, 0.2), "no DNS again"
    assert wait_for(lambda: quietly(lambda: fetch(w.secure("open.allowed.test"), port=w.values["port"]).status == 200), 20, 0.2)


def lane_of(w, pid):
    return next((lane for (role, lane), p in w.pids().items() if p == pid), 0)


def alive(pid):
    return os.path.exists("/proc/%d" % pid)


def quietly(function):
    try:
        return function()
    except (OSError, AssertionError):
        return None


def has_child(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        children = f.read().split()
    return int(children[0]) if children else None


# ---- SOCKS5 ----

GREET, NOBODY = b"\x05\x01\x00", b"\x05\x00"


def socks_request(name, port, command=1, reserved=0, kind=3):
    host = name.encode() if isinstance(name, str) else name
    return bytes([5, command, reserved, kind]) + (bytes([len(host)]) if kind == 3 else b"") + host + struct.pack(">H", port)


def socks(w, request, greeting=GREET, login=b""):
    stream = w.net.connect("127.0.0.1", 3128)
    stream.sendall(greeting)
    assert stream.recv(2) == (b"\x05\x02" if login else NOBODY)
    if login:
        stream.sendall(login)
        assert stream.recv(2) == b"\x01\x00"
    stream.sendall(request)
    return stream


@test
def socks_leads_to_the_same_tunnel(w):
    port = w.values["port"]
    stream = socks(w, socks_request("open.allowed.test", port))
    assert stream.recv(10) == b"\x05\x00\x00\x01" + bytes(6)
    stream = w.client_context().wrap_socket(stream, server_hostname="open.allowed.test")
    assert fetch(stream, "GET /by-socks", port=port).status == 200
    assert w.newest(path="/by-socks")["door"] == "socks"
    # In one piece, with a login that is right.
    login = b"\x01\x01a" + bytes([len(w.token("a"))]) + w.token("a").encode() if w.sandboxes["a"]["variables"]["https_proxy"].count("@") else None
    with socks(w, socks_request("OPEN.allowed.test", port)) as stream:
        assert stream.recv(10)[:2] == b"\x05\x00"


@test
def ct_08_a_login_that_is_not_the_sandboxs_is_refused(w):
    for user, password in (("b", "x"), ("a", "wrong"), ("", "")):
        login = b"\x01" + bytes([len(user)]) + user.encode() + bytes([len(password)]) + password.encode()
        with socks(w, socks_request("open.allowed.test", w.values["port"]), b"\x05\x02\x00\x02", login) as stream:
            assert stream.recv(10)[:2] == b"\x05\x02", user
    record = w.newest(door="socks", reason="proxy_auth_required")
    assert record and b"wrong" not in str(record).encode(), record


@test
def ct_08_a_password_that_comes_out_of_turn_is_in_no_record(w):
    count = len(w.records())
    for greeting, version in ((b"\x05\x01\x00", 1), (b"\x05\x01\x01", 1), (b"\x05\x01\x02", 2), (b"\x05\x01\x02", 0)):
        with w.net.connect("127.0.0.1", 3128) as stream:
            stream.sendall(greeting + bytes([version]) + b"\x04user\x08passw0rd")
            read_all(stream)
    made = wait_for(lambda: [r for r in w.records()[count:] if r.get("door") == "socks"][3:] and w.records()[count:], 5, 0.05)
    assert made and all(r["reason"] == "malformed_request" for r in made) and "passw0rd" not in str(made), made


@test
def nor_is_one_in_an_authority_or_a_query_that_has_no_canonical_form(w):
    sent = {b"GET http://user:passw0rd@open.allowed.test/@x HTTP/1.1\r\nHost: x\r\n\r\n": "GET http://[credential]@open.allowed.test/@x HTTP/1.1",
            b"CONNECT us@er:passw0rd@open.allowed.test:1 HTTP/1.1\r\nHost: x\r\n\r\n": "CONNECT [credential]@open.allowed.test:1 HTTP/1.1",
            GREET + socks_request("user:passw0rd@open.allowed.test", 443): "[credential]@open.allowed.test:443",
            b"CONNECT user:pa/passw0rd@open.allowed.test:1 HTTP/1.1\r\nHost: x\r\n\r\n": "CONNECT [credential]@open.allowed.test:1 HTTP/1.1",
            b"CONNECT user:123/passw0rd@open.allowed.test:1 HTTP/1.1\r\nHost: x\r\n\r\n": "CONNECT [credential]@open.allowed.test:1 HTTP/1.1",
            b"GET http://user:passw0rd?x@open.allowed.test/ HTTP/1.1\r\nHost: x\r\n\r\n": "GET http://[credential]",
            b"GET http://open.allowed.test:80/x:y?mail=a@b HTTP/1.1\r\n \r\n\r\n": "GET http://open.allowed.test:80/x:y",
            b"GET /@scope/name@1.2/x@y?key=passw0rd HTTP/1.1\r\n \r\n\r\n": "GET /@scope/[credential]@1.2/x@y",
            b"GET /x/@scope?key=passw0rd HTTP/1.1\r\n \r\n\r\n": "GET /x/@scope"}
    for data, host in sent.items():
        count = len(w.records())
        with w.net.connect("127.0.0.1", 3128) as stream:
            stream.sendall(data)
            read_all(stream)
        record = wait_for(lambda: w.records()[count:], 5, 0.05)[0]
        assert record["verdict"] == "deny" and record["host"] == host, (data, record)


@test
def ct_09_names_go_through_the_same_canonicaliser(w):
    port = w.values["port"]
    for name in (b"", b"x" * 255, b"open.allowed.test\0.evil.test", b"open.allowed.test:%d" % port, b"127.0.0.1", b"[::1]", b"[::ffff:127.0.0.1]",
                 b"0177.0.0.1", b"2130706433", b"user@open.allowed.test", b"open.allowed.test/", b"evil.test", b"op\xc3\xa9n.test", b"open..test", b"169.254.169.254"):
        with socks(w, socks_request(name, port)) as stream:
            assert stream.recv(10)[:2] in (b"\x05\x01", b"\x05\x02"), name
    for kind, host in ((1, bytes([127, 0, 0, 1])), (4, bytes(15) + b"\1"), (4, bytes(10) + b"\xff\xff\x7f\0\0\1"), (1, bytes([169, 254, 169, 254]))):
        with socks(w, socks_request(host, port, kind=kind)) as stream:
            assert stream.recv(10)[:2] == b"\x05\x02", host
    assert w.newest(door="socks", host="169.254.169.254")["reason"] == "host_not_allowed"


@test
def ct_10_only_CONNECT_of_version_5(w):
    for request, code in ((socks_request("open.allowed.test", 443, command=2), 7), (socks_request("open.allowed.test", 443, command=3), 7),
                          (socks_request("open.allowed.test", 443, reserved=1), 1), (b"\x05\x01\x00\x00\x01\x01\x01\x01\0\1", 8),
                          (b"\x05\x01\x00\x02\x01\x01\x01\x01\0\1", 8), (b"\x05\x01\x00\x09", 8), (b"\x04\x01\x00\x01", 1)):
        with socks(w, request) as stream:
            data = read_all(stream)
        assert data[:2] == bytes([5, code]) and len(data) == 10, (request, data)
    assert w.newest(door="socks", reason="malformed_request")
    for greeting, expected in ((b"\x05\x01\x01", b"\x05\xff"), (b"\x05\x00", b"\x05\xff"), (b"\x05\xff" + bytes(range(1, 2)) * 255, b"\x05\xff")):
        with w.net.connect("127.0.0.1", 3128) as stream:
            stream.sendall(greeting)
            assert read_all(stream) == expected, greeting
    for sent in (b"\x04\x01\x00\x50\x7f\0\0\1x\0", b"\x04\x01\x00\x50\0\0\0\1x\0evil.test\0"):
        with w.net.connect("127.0.0.1", 3128) as stream:
            stream.sendall(sent)
            assert Answer(read_all(stream)).status == 400, sent


# ---- clients that were told of nothing but the CA ----

@test
def curl_works_by_capture_by_socks_and_is_refused_with_a_reason(w):
    if not shutil.which("curl"):
        raise Skip("there is no curl here")
    address, port = resolve(w, "open.allowed.test")[1][0], w.values["port"]
    ca, url = w.path("state", "public", "ca.pem"), "https://open.allowed.test:%d/curl" % port
    mine = {"no_proxy": "", "http_proxy": "", "https_proxy": "", "all_proxy": ""}
    code, out, err = w.net.run("curl", "-sS", "-m", "20", "--cacert", ca, "--resolve", "open.allowed.test:%d:%s" % (port, address), url, **mine)
    assert code == 0 and out, (code, err)
    code, out, err = w.net.run("curl", "-sS", "-m", "20", "--cacert", ca, "-x", "socks5h://127.0.0.1:3128", url, **mine)
    assert code == 0 and out, (code, err)
    code, out, err = w.net.run("curl", "-sS", "-m", "20", "--cacert", ca, "-x", "socks5h://127.0.0.1:3128", "https://evil.test/", **mine)
    assert code == 97 and "2" in err, (code, err)
    code, out, err = w.net.run("curl", "-sS", "-m", "20", "--resolve", "evil.test:80:203.0.113.1", "http://evil.test/", **mine)
    assert "host_not_allowed" in out, (code, out, err)


@test
def the_echo_host_is_found_by_its_name_and_says_where_the_connection_was_meant_to_go(w):
    for address, meant in ((ANYWHERE, ANYWHERE), ("2001:db8::9", "[2001:db8::9]")):
        answer = fetch(w.net.connect(address, 80), "GET /by-echo", host="echo.exeat.internal")
        said = json.loads(answer.body)
        assert said["door"] == "transparent" and said["sandbox"] == "a" and said["meant"] == meant + ":80", said
    code, found = resolve(w, "echo.exeat.internal", server="192.0.2.53")
    assert code == 0 and found[0].startswith("198.18."), (code, found)


def main():
    report = Report()
    try:
        # What the names resolve to is in no network that is here, and is reached all the same.
        if not in_own_network():
            raise Skip("needs root, and a network namespace of its own")
        with World() as w:
            report.run_all(tests, w)
    except Skip as why:
        report.skip("ways in", why)
    report.end()


if __name__ == "__main__":
    main()
