"""Faults that a review and an attack once found, each as the shortest way to show it."""
import gzip
import os
import signal
import ssl
import subprocess
import threading
import time

from helpers import POLICY, SECRET, all_pids, answer, ask, head, is_served, open_tls, small_place
from place import Refused, Report, read_all, wait_for

GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def same_processes(place, before):
    after = place.pids()
    assert after == before, "these processes were started anew: %r" % {k for k in before if after.get(k) != before[k]}


def rf_06_a_pause_inside_an_echo_shows_nothing_of_the_secret(place):
    whole = answer(b"Authorization: Bearer %s and more" % SECRET.encode())
    for cut in (10, 24, 33):
        at = whole.index(SECRET.encode()) + cut

        def script(request, stream, at=at):
            stream.sendall(whole[:at])
            time.sleep(0.3)
            return whole[at:]
        place.upstream.script = script
        got = ask(place)
        assert got.status == 200 and SECRET[8:16].encode() not in got.bytes, got
        assert got.body.endswith(b"** and more"), got


def rf_04_a_field_whose_name_is_the_secret_is_taken_out(place):
    for name in (SECRET, "x-" + SECRET, SECRET.encode().hex()):
        place.upstream.script = lambda r, s, n=name: answer(b"ok", n.encode() + b": 1\r\n")
        got = ask(place)
        assert got.status == 200 and SECRET[10:30].lower().encode() not in got.bytes.lower(), got
        assert SECRET.encode().hex().encode() not in got.bytes, got


def rf_02_a_coded_answer_that_began_before_the_first_loan_is_scanned(_):
    policy = POLICY.replace("    operation write", "    operation early anonymous { GET /early }\n    operation write") \
                   .replace("grant api read write; grant open", "grant api read write early; grant open")
    with small_place(policy) as place:
        begun, lent = threading.Event(), threading.Event()

        def script(request, stream):
            if not request.startswith(b"GET /early"):
                lent.set()
                return answer(b"ok")
            stream.sendall(GZIP)
            begun.set()
            lent.wait(10)
            body = gzip.compress(b"the key was " + SECRET.encode() + b"\n")
            return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        place.upstream.script = script
        stream = open_tls(place)
        stream.sendall(head(place, "GET /early"))
        assert begun.wait(10)
        assert ask(place).status == 200
        got = read_all(stream)
        assert b"the key was" in got and b"*" * len(SECRET) in got, got[:400]


def rx_interim_answers_without_end_are_refused_and_harm_nobody(place):
    before = place.pids()

    def script(request, stream):
        for _ in range(200):
            stream.sendall((b"HTTP/1.1 103 Early Hints\r\nLink: " + b"a" * 20000 + b"\r\n\r\n") * 4)
        return answer(b"ok")
    place.upstream.script = script
    assert ask(place).bytes.count(b"HTTP/1.1 103") <= 8
    place.upstream.script = lambda r, s: b"HTTP/1.1 100 Continue\r\n\r\n" * 5000 + answer(b"ok")
    assert ask(place).reason == "malformed_answer"
    same_processes(place, before)


def pv_02_an_endless_boundary_is_refused_and_harms_nobody(place):
    before = place.pids()
    got = ask(place, "POST /v1/items", fields="Content-Type: multipart/form-data; boundary=%s\r\n" % ("b" * 3000),
              body=b"--b")
    assert got.status == 400, got
    same_processes(place, before)


def rx_many_large_answers_at_once_arrive_whole(place):
    before, got = place.pids(), []
    body = os.urandom(32).hex().encode() * 30000
    place.upstream.script = lambda r, s: answer(body)
    threads = [threading.Thread(target=lambda: got.append(len(ask(place).body))) for _ in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == [len(body)] * 40, set(got)
    same_processes(place, before)


def finish_and_say(context, raw, said):
    """A TLS 1.2 server whose last words of the handshake come in one piece with words of HTTP."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            raw.sendall(outgoing.read())
            incoming.write(raw.recv(65536))
    tls.write(said)
    raw.sendall(outgoing.read())
    while raw.recv(65536):
        pass
    raise OSError("nothing more")


def rs_03_an_answer_to_nothing_is_no_answer(_):
    with small_place() as place:
        place.upstream.context.maximum_version = ssl.TLSVersion.TLSv1_2
        place.upstream.open = lambda raw: finish_and_say(place.upstream.context, raw, answer(b"early"))
        for host in ("api.allowed.test", "open.allowed.test"):
            got = ask(place, host=host, placeholder="own" if host[0] == "a" else None)
            assert (got.status, got.reason) == (502, "upstream_closed"), got
            record = place.record(got.record)
            assert record["verdict"] == "deny" and "before it was asked" in record["detail"], record
        assert not place.upstream.requests and not place.upstream.broken


def rx_06_an_answer_is_as_long_as_its_limit_in_any_pieces(_):
    """What the guard holds back counts, and of what is coded the plain bytes and the coded ones each by themselves."""
    most = 100

    def chunks(body, size):
        return b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + size]), body[i:i + size]) for i in range(0, len(body), size))

    def in_chunks(size):
        def script(length, stream):
            stream.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(b"x" * length, size) + b"0\r\n\r\n")
        return script

    def coded(length, stream):
        body = gzip.compress(b"x" * length)
        for part in (GZIP + chunks(body[:-8], most), chunks(body[-8:], most) + b"0\r\n\r\n"):
            stream.sendall(part)
            time.sleep(0.1)
    with small_place(config="limit answer-body %d\n" % most) as place:
        for send in (in_chunks(1), in_chunks(30), in_chunks(2 * most), coded):
            for length in (most - 1, most, most + 1):
                place.upstream.script = lambda r, s, send=send, length=length: send(length, s) or b""
                got = ask(place)
                whole = got.body.endswith(b"0\r\n\r\n") and got.body.count(b"x") == length
                assert whole == (length <= most), (length, got)


def rx_chunk_lines_and_trailers_do_not_wait_for_credit(_):
    with small_place(config="limit window 32768\n") as place:
        for size, tail in ((32765, b""), (32268, b"X-T: " + b"t" * 3000 + b"\r\n"), (65530, b"")):
            body = b"y" * size
            place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" \
                b"%x\r\n%s\r\n0\r\n%s\r\n" % (size, body, tail)
            begun = time.monotonic()
            got = ask(place)
            assert got.body.endswith(b"\r\n0\r\n\r\n") and time.monotonic() - begun < 5, got.bytes[-100:]


def fourteen_lanes_come_up(_):
    names = ["s%d" % i for i in range(14)]
    policy = POLICY.split("sandbox a")[0] + "".join("sandbox %s { grant api read }\n" % n for n in names)
    with small_place(policy, {n: "sandbox " + n for n in names}, ("s0", "s13")) as place:
        assert ask(place, sandbox="s13").status == 200


def children(pid):
    """{role: pid}, also of those that the parent tells of only when it is ready."""
    found = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % each) as stat, open("/proc/%s/cmdline" % each) as line:
                words = line.read().split("\0")
                if int(stat.read().rpartition(")")[2].split()[1]) == pid and "--role" in words:
                    found[words[words.index("--role") + 1]] = int(each)
        except OSError:
            pass
    return found


def p10_a_process_that_dies_in_the_first_generation_is_waited_for(_):
    """The policy is so long that they read it for a while."""
    paths = "; ".join("GET /%d/*" % i for i in range(60))
    long = "".join("service x%d { host x%d.test; operation read { %s } }\n" % (i, i, paths) for i in range(700))
    with small_place(POLICY + long) as place:
        place.stop()
        before = len(place.log())
        place.daemon = subprocess.Popen([os.path.join(place.build, "exeatd"), "--config", place.path("exeat.conf")],
                                        stdout=place.log_file, stderr=place.log_file, stdin=subprocess.DEVNULL)
        assert wait_for(lambda: "load" in children(place.daemon.pid), 10, 0.002)
        assert wait_for(lambda: "load" not in children(place.daemon.pid), 10, 0.002)
        os.kill(children(place.daemon.pid)["dialer"], signal.SIGKILL)
        assert wait_for(lambda: "parent: info: ready" in place.log()[before:], 20), place.log()[before:]
        assert "dialer ended: signal 9" in place.log()[before:]
        assert ask(place).status == 200


def rx_04_on_a_shared_listener_nobody_shuts_the_others_out(_):
    with small_place(listeners={"shared": "shared a b"}, config="limit connections 40\n") as place:
        authority = "api.allowed.test:%d" % place.values["port"]

        def is_answered(sandbox):
            begun = time.monotonic()
            got = ask(place, sandbox=sandbox, listener="shared", proxy_fields=place.identity(sandbox))
            assert got.status == 200 and time.monotonic() - begun < 5, got

        silent = [place.connect("shared") for _ in range(100)]
        is_answered("b")
        tunnels = []
        try:
            while len(tunnels) < 100:
                tunnels.append(place.tunnel("shared", authority, place.identity("a")))
        except Refused as refused:
            assert b"too_many" in refused.data, refused
        assert len(tunnels) == 20, "a has %d of 40" % len(tunnels)
        is_answered("b")
        silent += [place.connect("shared") for _ in range(100)]
        is_answered("b")
        for s in silent + tunnels:
            s.close()
        assert wait_for(lambda: ask(place, listener="shared", proxy_fields=place.identity("a")).status == 200, 5)


def p10_a_body_that_inspect_does_not_look_at_does_not_leave(_):
    """Whether inspect must be started first or does not answer: a small body is judged whole or refused."""
    with small_place(config="limit ask-time 1\n") as place:
        json = {"body": b'{"a":1}', "fields": "Content-Type: application/json\r\n"}
        silent = all_pids(place)[("inspect", 1)]
        place.upstream.forget()
        os.kill(silent, signal.SIGSTOP)
        try:
            assert ask(place, "POST /v1/items", **json).reason == "inspect_unavailable"
            assert not place.upstream.requests + place.upstream.broken, "bytes left that nobody had looked at"
        finally:
            os.kill(silent, signal.SIGCONT)
        assert ask(place, "POST /v1/items", **json).status == 200


def p10_a_process_that_says_nothing_has_no_veto(place):
    before = place.pids()
    stuck = before[("proxy", 2)]
    os.kill(stuck, signal.SIGSTOP)
    try:
        place.write_policy(place.policy_text.replace("grant api read write;", "grant api read;"))
        place.exeat("reload")
        assert ask(place, "POST /v1/items", body=b"x", fields="Content-Type: image/png\r\n").reason == \
            "operation_not_granted"
    finally:
        try:
            os.kill(stuck, signal.SIGCONT)
        except ProcessLookupError:
            pass
    assert wait_for(lambda: place.pids().get(("proxy", 2), stuck) != stuck, 15), "the silent process is still there"
    assert is_served(place, "b")


def a_lane_that_is_killed_comes_back_once(place):
    pid = place.pids()[("egress", 1)]
    os.kill(pid, signal.SIGKILL)
    assert is_served(place)
    time.sleep(0.5)
    assert place.log().count("up: malformed") == 0, place.log()[-600:]


TESTS = [rf_06_a_pause_inside_an_echo_shows_nothing_of_the_secret,
         rf_04_a_field_whose_name_is_the_secret_is_taken_out,
         rx_interim_answers_without_end_are_refused_and_harm_nobody,
         pv_02_an_endless_boundary_is_refused_and_harms_nobody,
         rx_many_large_answers_at_once_arrive_whole,
         a_lane_that_is_killed_comes_back_once,
         p10_a_process_that_says_nothing_has_no_veto]
# Each in a place of its own.
ALONE = [p10_a_body_that_inspect_does_not_look_at_does_not_leave,
         rs_03_an_answer_to_nothing_is_no_answer,
         rx_06_an_answer_is_as_long_as_its_limit_in_any_pieces,
         rf_02_a_coded_answer_that_began_before_the_first_loan_is_scanned,
         rx_chunk_lines_and_trailers_do_not_wait_for_credit,
         fourteen_lanes_come_up,
         p10_a_process_that_dies_in_the_first_generation_is_waited_for,
         rx_04_on_a_shared_listener_nobody_shuts_the_others_out]


def main():
    report = Report()
    report.run_in(small_place, TESTS)
    report.run_all(ALONE)
    report.end()


if __name__ == "__main__":
    main()
