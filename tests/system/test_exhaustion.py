"""Theme RX: at each number the newcomer is refused, others go on, and the audit still works. RF-08: time tells nothing."""
import concurrent.futures
import gzip
import os
import re
import socket
import ssl
import statistics
import struct
import subprocess
import threading
import time

from cases import client_hello, sni_list
from helpers import (POLICY, SECRET, ask, ask_quietly, descriptors, exists, head, is_sanitized, is_served, open_tls, resident,
                     small_place)
from place import OK_ANSWER, Report, Skip, Upstream, read_all, read_head, wait_for

WILD = """
service wild { host *.wild.test; port {port}; range 127.0.0.0/8; operation every { GET / } }
"""
LIMITS = "limit head-time 2\nlimit handshake-time 2\nlimit first-byte-time 20\nlimit body-stall-time 3\nlimit idle-time 20\n" \
    "limit connections 64\nlimit leaves 16\nlimit new-names 200\nlimit upstreams 4\nlimit answer-time 4\n"
NOBODY = 65533  # any uid that has nothing
ATTACKER = "sk-demo-AttackersOwnKey00000000000000000"


def crowded_place(**more):
    policy = POLICY.replace("sandbox a { ", WILD + "sandbox a { grant wild all; ")
    return small_place(policy, config=LIMITS, **more)


def need_plain_memory(place):
    if is_sanitized(place):
        raise Skip("a sanitizer's memory says nothing")


def confine(place, pid, what, most):
    """Sets a soft limit of a running process, as the user that it belongs to; whether it is still there."""
    done = subprocess.run(["prlimit", "--pid", str(pid), "--%s=%s:" % (what, most)], stderr=subprocess.PIPE, **place.as_user)
    assert done.returncode == 0 or not exists(pid), done.stderr
    return done.returncode == 0


def sockets(place, count, first=b"", sandbox="a"):
    made = [place.connect(sandbox) for _ in range(count)]
    for s in made:
        s.sendall(first)
    return made


def ends(sock, seconds):
    """What came until the end, which must be there within so many seconds."""
    sock.settimeout(seconds)
    data = b""
    try:
        while True:
            more = sock.recv(65536)
            if not more:
                return data
            data += more
    except ConnectionError:
        return data


def quick(place, sandbox="b", most=1.5):
    """The other sandbox is served all the while."""
    begun = time.monotonic()
    assert ask(place, sandbox=sandbox).status == 200
    took = time.monotonic() - begun
    assert took < most, "the other sandbox waited %.2f s" % took


def rx_01_slow_heads_are_ended_and_others_go_on(place):
    made = sockets(place, 40, b"GET http://api.allowed.test/ HTTP/1.1\r\nHost:")
    begun = time.monotonic()
    while time.monotonic() - begun < 1.5:
        for s in made:
            s.sendall(b"x")
        quick(place)
        time.sleep(0.1)
    for s in made:
        data = ends(s, 5)
        assert b" 408 " in data, data
    assert time.monotonic() - begun < 6
    assert is_served(place)


def rx_02_slow_bodies_are_ended_and_others_go_on(place):
    made = [open_tls(place) for _ in range(30)]
    for s in made:
        s.sendall(head(place, "POST /v1/items", placeholder=place.placeholder("a", "demo-key"),
                       fields="Content-Type: image/png\r\nContent-Length: 1000\r\n") + b"x")
    begun = time.monotonic()
    quick(place)
    for s in made:
        s.settimeout(10)
        data = read_all(s)
        assert b" 200 " not in data, data
    assert time.monotonic() - begun < 9, "held for %.1f s" % (time.monotonic() - begun)
    assert is_served(place)
    assert not any(r.startswith(b"POST") for r in place.upstream.requests), "a body was completed"


def rx_03_silence_behind_connect_is_ended(place):
    authority = "api.allowed.test:%d" % place.values["port"]
    begun = time.monotonic()
    silent = [place.tunnel("a", authority) for _ in range(20)]
    halves = [place.tunnel("a", authority) for _ in range(20)]
    for s in halves:
        s.sendall(client_hello(sni_list(b"api.allowed.test"))[:60])
    quick(place)
    for s in silent + halves:
        ends(s, 6)
    assert time.monotonic() - begun < 6
    assert is_served(place)


def rx_04_at_the_number_of_connections_the_newcomer_waits_and_others_go_on(place):
    """Tunnels, since what is silent makes room (test_faults)."""
    made = [open_tls(place) for _ in range(64)]
    late = place.connect("a")
    late.sendall(b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    quick(place)
    late.settimeout(0.3)
    try:
        assert False, "the 65th was served: %r" % late.recv(100)
    except socket.timeout:
        pass
    for s in made:
        s.close()
    assert b" 403 " in ends(late, 8)
    assert is_served(place)


def rx_04_without_descriptors_nothing_breaks(place):
    """The lane's processes may open no more: requests are refused or wait, and all is well again behind it."""
    before = place.pids()
    pids = [before[(role, 1)] for role in ("proxy", "egress")]
    try:
        for p in pids:
            confine(place, p, "nofile", descriptors(p) + 2)
        made = sockets(place, 20, b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
        quick(place)
        for s in made:
            s.close()
    finally:
        for p in pids:
            confine(place, p, "nofile", 1024)
    assert is_served(place), place.log()[-500:]
    assert place.pids() == before, "a process was lost"


def rx_04_a_dialer_without_descriptors_says_so(place):
    before = place.pids()
    dialer = before[("dialer", 0)]
    try:
        confine(place, dialer, "nofile", 3)
        answer = ask(place, host="open.allowed.test", placeholder=None)
        assert (answer.status, answer.reason) == (503, "dialer_unavailable"), answer
        assert place.record(answer.record)["detail"] == "no descriptors", answer
    finally:
        confine(place, dialer, "nofile", 1024)
    assert is_served(place), place.log()[-500:]
    assert place.pids() == before, "a process was lost"


def handshake(place, name):
    try:
        with place.tls("a", "%s:%d" % (name, place.values["port"])) as s:
            return s.getpeercert()["subjectAltName"]
    except (OSError, AssertionError):
        return None


def rx_05_br_77_new_names_are_counted_and_denied_ones_mint_nothing(place):
    minted = sum(handshake(place, "n%d.wild.test" % i) is not None for i in range(240))
    assert 150 <= minted <= 210, "%d leaves were minted in a minute of 200" % minted
    refused = [r for r in place.records() if r["kind"] == "decision" and r.get("host", "").endswith(".wild.test")
               and r["verdict"] == "deny" and r["reason"] != "client_closed"]
    assert refused, "no record says that names were too many"
    before = len([r for r in place.records() if r["origin"] == "ca"])
    for i in range(50):
        assert handshake(place, "n%d.evil.test" % i) is None
    assert len([r for r in place.records() if r["origin"] == "ca"]) == before
    quick(place)


def rx_06_chunks_of_one_byte_are_bounded(place):
    stream = open_tls(place)
    stream.sendall(head(place, "POST /v1/items", placeholder=place.placeholder("a", "demo-key"),
                        fields="Content-Type: image/png\r\nTransfer-Encoding: chunked\r\n"))
    sent = 0
    try:
        while sent < 200000:
            stream.sendall(b"1\r\nx\r\n" * 1000)
            sent += 1000
    except OSError:
        pass
    stream.settimeout(5)
    assert b" 400 " in read_all(stream), "%d chunks of one byte were taken" % sent
    assert is_served(place)


def churn(place, count):
    context = place.client_context()
    for i in range(count):
        s = place.tunnel("a", "api.allowed.test:%d" % place.values["port"])
        if i % 4 == 3:
            s.sendall(client_hello(sni_list(b"api.allowed.test"))[:100])
        else:
            s = context.wrap_socket(s, server_hostname="api.allowed.test")
            s.sendall(head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")))
            if i % 4 == 0:
                read_all(s)
        if i % 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()


def rx_07_short_connections_half_of_them_reset_leave_nothing_behind(place):
    need_plain_memory(place)
    churn(place, 200)  # what is allocated once
    pids = place.pids()
    lane = [pids[(role, n)] for role, n in pids if role in ("proxy", "egress", "dialer", "ca", "broker", "audit") and n < 2]
    time.sleep(0.2)
    files, memory = [descriptors(p) for p in lane], [resident(p) for p in lane]
    churn(place, 600)
    assert wait_for(lambda: all(descriptors(p) <= f + 4 for p, f in zip(lane, files)), 10, 0.1), \
        "%r, then %r descriptors" % (files, [descriptors(p) for p in lane])
    for p, m in zip(lane, memory):
        assert resident(p) < m + 3 * 2**20, "process %d grew from %d to %d" % (p, m, resident(p))
    assert place.pids() == pids


def rx_08_an_upstream_that_never_answers_holds_its_own_slots_only(place):
    release = threading.Event()

    def script(request, stream):
        if b"/v1/items/held" in request:
            release.wait(10)
        return OK_ANSWER
    place.upstream.script = script
    made = []
    try:
        for i in range(4):
            s = open_tls(place)
            s.sendall(head(place, "GET /v1/items/held", placeholder=place.placeholder("a", "demo-key")))
            made.append(s)
        assert wait_for(lambda: sum(b"/held" in r for r in place.upstream.requests) == 4, 5)
        begun = time.monotonic()
        full = ask(place)
        assert full.status == 503 and time.monotonic() - begun < 2, full
        assert place.record(full.record), "the refusal has no record"
        quick(place)
        assert ask(place, "GET /x", host="open.allowed.test", placeholder=None).status == 200, "another host of the same lane"
        for s in made:
            s.settimeout(8)
            assert b" 504 " in read_all(s), "the answer did not come in time, and nobody said so"
    finally:
        release.set()
        place.upstream.script = lambda r, s: OK_ANSWER
        place.upstream.forget()
    assert is_served(place)


def shared_place(policy, **more):
    """Sandboxes a and b on one listener."""
    return small_place(policy, listeners={"s": "shared a b"}, **more)


def begin(place, sandbox, host, line="GET", fields=""):
    """A request of plain HTTP, without its body."""
    s = place.connect("s")
    s.sendall(("%s http://%s/x HTTP/1.1\r\nHost: %s\r\n%s" % (line, host, host, fields)).encode() + place.identity(sandbox) + b"\r\n")
    return s


CLEAR_FOR_BOTH = POLICY.replace("sandbox b { grant api read }", "sandbox b { grant api read; grant open every }") \
    .replace("operation every { * /; * /** }", "operation every { * /; * /** }\n    clear")


def rx_07_many_decoded_answers_at_once_do_not_end_their_lane(_):
    plain = gzip.compress(b"z " * 300000)
    servers, go, seen = [Upstream() for _ in range(4)], threading.Event(), []
    policy = CLEAR_FOR_BOTH.replace("host open.allowed.test\n    port {port}", "host open.allowed.test\n    port %s" %
                                    " ".join(str(u.port) for u in servers))
    assert policy.count(str(servers[0].port)) == 1

    def script(_, stream):
        seen.append(1)
        go.wait(20)
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(plain) + plain)
        time.sleep(1)
    with shared_place(policy) as place:
        for u in servers:
            u.script = script
        neighbour = place.tls("s", "api.allowed.test:%d" % place.values["port"], fields=place.identity("b"))
        for _ in range(3):
            go.clear()
            seen.clear()
            made = [begin(place, "a", "open.allowed.test:%d" % servers[i % 4].port) for i in range(500)]
            wait_for(lambda: len(seen) >= 400, 5)
            go.set()
            time.sleep(1.5)
            for s in made:
                s.close()
            assert "over the limit" not in place.log(), place.log()[-500:]
        neighbour.sendall(head(place, "GET /v1/items", placeholder=place.placeholder("b", "demo-key")))
        assert b" 200 " in read_all(neighbour), "the neighbour's tunnel is gone"
    for u in servers:
        u.close()


def rx_07_bodies_that_wait_for_inspect_do_not_shut_the_neighbour_out(_):
    server = Upstream()
    place = shared_place(CLEAR_FOR_BOTH.replace("host open.allowed.test\n    port {port}",
                                                "host open.allowed.test\n    port %d" % server.port))
    body, ending = b"[" + b"[]," * 66000 + b"0]", threading.Event()
    fields = "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)

    def post(host, sandbox, patience):
        s = begin(place, sandbox, host, "POST", fields)
        s.settimeout(patience)
        try:
            s.sendall(body)
            return s.recv(4000).split(b" ")[1]
        except OSError:
            return b""
        finally:
            s.close()

    with place:
        host = "open.allowed.test:%d" % server.port

        def flood():
            while not ending.is_set():
                made = [begin(place, "a", host, "POST", fields) for _ in range(8)]
                for s in made:
                    s.setblocking(False)
                    try:
                        s.send(body)
                    except OSError:
                        pass
                time.sleep(0.2)
                for s in made:
                    s.close()
        threads = [threading.Thread(target=flood) for _ in range(8)]
        for t in threads:
            t.start()
        try:
            time.sleep(0.5)
            codes = [post(host, "b", 30) for _ in range(20)]
        finally:
            ending.set()
            for t in threads:
                t.join()
        assert codes == [b"200"] * 20, codes
        assert "over the limit" not in place.log(), place.log()[-500:]
        assert not [r for r in place.records() if r.get("event") == "role_misbehaved"]
    server.close()


def rx_07_trailers_longer_than_any_head_do_not_hang(_):
    trailers = b"".join(b"x-%d: %s\r\n" % (i, b"y" * 1000) for i in range(48))
    with small_place(config="limit head-bytes 1K\nlimit trailer-bytes 64K\nlimit body-stall-time 5\n") as place:
        place.upstream.script = lambda request, stream: (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + trailers + b"\r\n")
        started = time.monotonic()
        answer = ask(place)
        assert answer.body == b"5\r\nhello\r\n0\r\n\r\n", answer
        assert time.monotonic() - started < 4


def rx_04_names_that_nobody_answers_for_hold_their_sandbox_only(_):
    wild = "service wild { host *.wild.test; port 80; clear; range 127.0.0.0/8; operation every { * /; * /** } }\n"
    policy = CLEAR_FOR_BOTH.replace("sandbox a { ", wild + "sandbox a { grant wild every; ")
    with shared_place(policy, dns={"open.allowed.test": ["127.0.0.1"]}) as place:
        answering = place.resolver.reply
        place.resolver.reply = lambda q, name, kind, e: None if "wild" in name else answering(q, name, kind, e)
        # Connections that do not stay: each needs a dial.
        place.upstream.script = lambda *_: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        made = [begin(place, "a", "h%d.wild.test" % i) for i in range(520)]
        time.sleep(0.5)
        for _ in range(4):
            begun = time.monotonic()
            got = ask(place, "GET /x", sandbox="b", host="open.allowed.test", placeholder=None, listener="s",
                      proxy_fields=place.identity("b"))
            assert got.status == 200 and time.monotonic() - begun < 3, got
        for s in made:
            s.close()


def rx_09_long_and_deep_targets_and_bodies_cost_little(place):
    deep = b"[" * 200000 + b"]" * 200000
    begun = time.monotonic()
    for line, status in (("GET /" + "a" * 100000, (414, 431, 400)), ("GET " + "/a" * 8000, (414,)),
                         ("GET /v1/items?" + "a=b&" * 4000, (200, 403)), ("GET /v1/items?" + "%41" * 5000, (200,))):
        got = ask(place, line)
        assert got.status in status, got
    got = ask(place, "POST /v1/items", body=deep, fields="Content-Type: application/json\r\n")
    assert got.status in (200, 400, 403, 413), got
    got = ask(place, "POST /v1/items", body=b"a=b&" * 500000, fields="Content-Type: application/x-www-form-urlencoded\r\n")
    assert got.status == 200, got
    assert time.monotonic() - begun < 10, "%.1f s" % (time.monotonic() - begun)
    quick(place)
    for blank in ("%20", "+", "%C2%A0"):
        lines = ["GET /v1/items/7/%sx?%d" % (blank * (16000 // len(blank)), i) for i in range(5)]
        took = statistics.median(place.record(ask(place, line, placeholder=None).record)["us_judge"] for line in lines)
        assert took < 60000, "%s: %d us" % (blank, took)


def rx_10_without_memory_no_check_is_skipped_and_nothing_crashes(place):
    """
    Every process of the lane has a little more address space than it uses: allocations fail here and there. The lane
    may end in order and be started anew, when a message to it cannot be held; others go on all the while.
    """
    need_plain_memory(place)
    before = len(place.log())
    place.upstream.forget()
    lane = []
    try:
        for spare in (1 << 20, 1 << 18, 1 << 16, 0):
            assert is_served(place)
            lane = [pid for (_, number), pid in place.pids().items() if number == 1]
            for p in lane:
                with open("/proc/%d/statm" % p) as f:
                    used = int(f.read().split()[0]) * 4096
                confine(place, p, "as", used + spare)
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                list(pool.map(press, [place] * 12))
            quick(place)
            for p in lane:
                confine(place, p, "as", "unlimited")
    finally:
        for p in lane:
            confine(place, p, "as", "unlimited")
    assert not any(ATTACKER.encode() in r for r in place.upstream.requests + place.upstream.broken), "a check was skipped"
    assert is_served(place), place.log()[-500:]
    # 9 is the parent, which starts anew a process that did not keep the contract.
    assert not re.search("ended: signal (?!9$)", place.log()[before:], re.M), place.log()[before:]


def press(place):
    body = b"z" * 300000
    for fields in ("", "Content-Type: image/png\r\n"):
        for key in ("own", ATTACKER):
            try:
                got = ask_quietly(place, "POST /v1/items", placeholder=key, body=body, fields=fields)
                assert key == "own" or got.status != 200, got
                assert SECRET.encode() not in got.bytes
            except (ssl.SSLError, ValueError):
                pass


def rf_08_what_was_refused_takes_the_same_time_whoever_it_is(place):
    own = place.placeholder("a", "demo-key")
    classes = {"another sandbox's": place.placeholder("b", "demo-key"), "wrong check": own[:-1] + ("A" if own[-1] != "A" else "B"),
               "no placeholder": "sk-demo-" + "x" * (len(own) - 8), "never issued": ATTACKER}
    took = {name: [] for name in classes}
    for _ in range(250):
        for name, value in classes.items():
            stream = open_tls(place)
            message = head(place, "GET /v1/items", placeholder=value)
            begun = time.perf_counter()
            stream.sendall(message)
            data = read_head(stream)[0]
            took[name].append(time.perf_counter() - begun)
            stream.close()
            assert b" 403 " in data and b"(foreign_credential;" in data, data
    middle = {name: statistics.median(times) for name, times in took.items()}
    noise = statistics.median(abs(t - middle["never issued"]) for t in took["never issued"])
    spread = max(middle.values()) - min(middle.values())
    assert spread < max(2 * noise, 50e-6), "medians in us: %r, noise %.0f" % (
        {n: round(m * 1e6) for n, m in middle.items()}, noise * 1e6)


def ct_06_each_tunnel_is_judged_by_itself_while_others_stay_open(place):
    kept = [open_tls(place) for _ in range(10)]
    for _ in range(10):
        s = place.connect("a")
        s.sendall(b"CONNECT blocked.test:443 HTTP/1.1\r\nHost: blocked.test:443\r\nVia: 1.1 relay\r\n\r\n")
        assert b" 403 " in ends(s, 5)
    for s in kept:
        s.sendall(head(place, "GET /v1/nowhere", placeholder=place.placeholder("a", "demo-key")))
        assert b" 403 " in read_all(s)


TESTS = [rx_07_short_connections_half_of_them_reset_leave_nothing_behind,
         rx_01_slow_heads_are_ended_and_others_go_on,
         rx_02_slow_bodies_are_ended_and_others_go_on,
         rx_03_silence_behind_connect_is_ended,
         rx_04_at_the_number_of_connections_the_newcomer_waits_and_others_go_on,
         rx_06_chunks_of_one_byte_are_bounded,
         rx_08_an_upstream_that_never_answers_holds_its_own_slots_only,
         rx_09_long_and_deep_targets_and_bodies_cost_little,
         rf_08_what_was_refused_takes_the_same_time_whoever_it_is,
         ct_06_each_tunnel_is_judged_by_itself_while_others_stay_open,
         rx_05_br_77_new_names_are_counted_and_denied_ones_mint_nothing]
# Limits of a running process are set as its own user.
CONFINED = [rx_04_without_descriptors_nothing_breaks,
            rx_04_a_dialer_without_descriptors_says_so,
            rx_10_without_memory_no_check_is_skipped_and_nothing_crashes]
# Each in a place of its own.
ALONE = [rx_07_many_decoded_answers_at_once_do_not_end_their_lane,
         rx_07_bodies_that_wait_for_inspect_do_not_shut_the_neighbour_out,
         rx_07_trailers_longer_than_any_head_do_not_hang,
         rx_04_names_that_nobody_answers_for_hold_their_sandbox_only]


def main():
    report = Report()
    report.run_in(crowded_place, TESTS)
    report.run_in(lambda: crowded_place(user=NOBODY if os.getuid() == 0 else None), CONFINED)
    report.run_all(ALONE)
    report.end()


if __name__ == "__main__":
    main()
