"""What an attacker in a sandbox tried, each as the shortest way to show that it fails."""
import base64
import gzip
import hashlib
import os
import signal
import threading
import time

from helpers import (HOSTS, POLICY, SECRET, answer, ask, ask_quietly, head, is_sanitized, is_served, kill_and_wait, open_tls, resident,
                     small_place)
from place import Report, Upstream, read_all, wait_for


def read_until(stream, text):
    got = b""
    while text not in got:
        more = stream.recv(4096)
        if not more:
            break
        got += more
    return got


def rf_05_an_echo_in_base64_lines_shows_nothing_of_the_secret(place):
    for line_end in (b"\n", b"\r\n", b"\\n", b"\n "):
        for padding in range(0, 60, 7):
            def script(request, stream, line_end=line_end, padding=padding):
                text = base64.b64encode(b"p" * padding + request)
                return answer(line_end.join(text[i:i + 76] for i in range(0, len(text), 76)))
            place.upstream.script = script
            got = ask(place).body.replace(line_end, b"")
            plain = base64.b64decode(got.replace(b"*", b"A") + b"==")
            assert b"uthorization: Bearer" in plain, plain
            for i in range(8, len(SECRET) - 3):
                assert SECRET[i:i + 4].encode() not in plain, (line_end, padding, plain)
    assert ask(place).status == 200, "an honest echo must not suspend"


def p9_a_target_too_long_for_its_record_is_cut_with_a_mark(place):
    place.upstream.script = lambda r, s: answer(b"ok")
    long = "x" * 9000
    for target in ("/v1/items/" + long, "/v1/items/" + long + "/more", "/v1/items?%s=1&seen=2" % long,
                   "/v1/items?first=1&%s=1" % long):
        place.upstream.forget()
        assert ask(place, "GET " + target).status in (200, 403)
        record = wait_for(lambda t=target: next((r for r in place.records() if r.get("target_sha256") ==
                                                 hashlib.sha256(t.encode()).hexdigest()), None), 5)
        assert record and record["target_bytes"] == len(target), (target[:20], record)
        cut = record["query" if "?" in target else "path"]
        assert cut.endswith("x...") and len(cut) == 2048 and record["path"].startswith("/v1/items"), record


def p9_a_request_that_is_sent_again_is_recorded_again(place):
    asked = []

    def script(request, stream):
        asked.append(request)
        return None if len(asked) == 2 else answer(b"ok")
    place.upstream.script = script
    stream = open_tls(place)
    request = head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")).replace(
        b"Connection: close\r\n", b"")
    for _ in range(2):
        stream.sendall(request)
        assert b"200 OK" in read_until(stream, b"\r\n\r\nok")
    assert len(asked) == 3, len(asked)
    found = wait_for(lambda: [r for r in place.records() if r.get("event") == "sent_again"], 5)
    assert found and found[0]["address"].startswith("127.0.0.1") and found[0]["path"] == "/v1/items", found
    assert place.record(found[0]["id"])["verdict"] == "allow"


def p8_a_sandbox_that_collects_parts_of_a_secret_is_suspended(_):
    with small_place() as place:
        guesses = [SECRET[i:i + 16] for i in range(14, 18)]

        def repeat(*which):
            place.upstream.script = lambda r, s: answer(" ".join(guesses[i] for i in which).encode())
            return ask(place, "GET /", host="open.allowed.test", placeholder=None)

        assert ask(place).status == 200
        for i in (0, 1, 2, 0, 1, 2):
            assert repeat(i).body == b"*" * 16
        place.upstream.script = lambda r, s: answer(r)
        for _ in range(5):
            assert ask(place).status == 200, "a whole echo is no part"
        got = repeat(*[0] * 70, 3)
        assert b"*" not in got.body, "the part that is too much is not shown"
        for host, placeholder in (("open.allowed.test", None), ("api.allowed.test", "own")):
            got = ask(place, "GET /v1/items", host=host, placeholder=placeholder)
            assert (got.status, got.reason) == (403, "sandbox_suspended"), got
        place.upstream.script = lambda r, s: answer(b"ok")
        assert ask(place, sandbox="b").status == 200, "another sandbox is not concerned"
        event = wait_for(lambda: [r for r in place.records() if r.get("event") == "sandbox_suspended"], 5)
        assert [(e["sandbox"], e["credential"], e["host"]) for e in event] == \
            [("a", "demo-key", "open.allowed.test")], event
        place.exeat("status", check=False)
        assert place.last.returncode == 1 and b"suspended" in place.last.stdout, place.last.stdout


def p8_a_text_with_parts_that_overlap_suspends_nobody(_):
    with small_place() as place:
        assert ask(place).status == 200
        place.upstream.script = lambda r, s: answer(" ".join(SECRET[i:i + 16] for i in range(14, 22)).encode())
        for _ in range(5):
            assert ask(place, "GET /v1/items/7").body == b" ".join([b"*" * 16] * 8)


def p8_another_port_of_a_keys_host_is_guarded_when_nothing_was_lent(_):
    side = Upstream()
    side.script = lambda r, s: answer(b"stored: " + SECRET.encode())
    policy = POLICY.replace("grant open every }", "grant open every; grant side every }") + """
service side {
    host api.allowed.test
    port %d
    clear
    range 127.0.0.0/8
    operation every { * /; * /** }
}
""" % side.port
    with small_place(policy) as place, place.connect("a") as stream:
        name = "api.allowed.test:%d" % side.port
        stream.sendall(("GET http://%s/x HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (name, name)).encode())
        assert read_all(stream).endswith(b"stored: " + b"*" * len(SECRET))
    side.close()


def p8_a_field_with_one_part_too_many_is_not_sent(_):
    with small_place(config="limit guard-fragments 0\n") as place:
        assert ask(place).status == 200
        place.upstream.script = lambda r, s: answer(b"ok", b"X-Key: " + SECRET[:30].encode() + b"\r\n")
        got = ask(place)
        assert (got.status, got.reason) == (403, "sandbox_suspended"), got


def au_a_token_that_was_revoked_ends_what_it_opened(_):
    policy = POLICY.replace("sandbox b { grant api read }", "sandbox b { grant open every }")
    with small_place(policy, listeners={"shared": "shared a b"}) as place:
        authority = "open.allowed.test:%d" % place.values["port"]

        def opened(sandbox):
            return place.tls("shared", authority, fields=place.identity(sandbox))

        going_on = threading.Event()

        def script(request, stream):
            if request.startswith(b"GET /slow"):
                stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbeg.")
                going_on.wait(10)
                return b"end."
            return answer(b"ok")
        place.upstream.script = script
        idle, busy, kept = opened("a"), opened("a"), opened("b")
        busy.sendall(("GET /slow HTTP/1.1\r\nHost: %s\r\n\r\n" % authority).encode())
        assert b"beg." in read_until(busy, b"beg.")
        place.exeat("sandbox", "add", "a")
        assert read_all(idle) == b"", "an idle tunnel of the old token stays open"
        going_on.set()
        assert b"end." not in read_all(busy), "a running answer of the old token goes on"
        kept.sendall(("GET /x HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % authority).encode())
        assert b"200 OK" in read_all(kept), "another sandbox's tunnel is not concerned"


def p8_a_reload_takes_over_the_shortest_run_for_what_is_lent(_):
    with small_place(config="limit guard-run 24\n") as place:
        piece = SECRET[-20:].encode()
        place.upstream.script = lambda r, s: answer(b"<" + piece + b">")
        assert ask(place).body == b"<" + piece + b">"
        place.config_text = "limit guard-run 12\n"
        place.configure()
        place.exeat("reload")
        assert ask(place).body == b"<" + b"*" * len(piece) + b">"


def p8_an_answer_that_began_without_a_guard_is_cut_when_a_credential_comes(_):
    before = POLICY.replace("sandbox b { grant api read }", "sandbox b { grant open every }")
    after = POLICY.replace("sandbox b { grant api read }", "sandbox b { grant api read; grant open every }")
    with small_place(before) as place:
        lent, seen = threading.Event(), []

        def script(request, stream):
            if request.startswith(b"GET /stream"):
                stream.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello\n\r\n")
                lent.wait(10)
                return b"%x\r\n%s\r\n0\r\n\r\n" % (len(seen[0]), seen[0])
            seen.append(request)
            return answer(b"ok")
        place.upstream.script = script
        stream = open_tls(place, "b", "open.allowed.test")
        stream.sendall(head(place, "GET /stream", "open.allowed.test"))
        assert b"hello" in read_until(stream, b"hello")
        place.write_policy(after)
        place.exeat("reload")
        place.add_sandbox("b")
        assert ask(place, sandbox="b").status == 200 and SECRET.encode() in seen[0]
        lent.set()
        assert SECRET.encode() not in read_all(stream)


WITH_PUBLIC = POLICY.replace("    operation write", "    operation public anonymous { GET /public }\n    operation write") \
                    .replace("sandbox a { grant api read write", "sandbox a { grant api read write public") \
                    .replace("sandbox b { grant api read", "sandbox b { grant api public")


def p8_a_secret_that_was_lent_for_the_guard_has_its_public_head(_):
    """What the placeholder shows of a secret does not count, whichever request comes first."""
    like = "abcdefghijklmnopqrst"
    secret = like + "7Gk2Qw9ZxC4vB6nM1aSdF3gH"
    with small_place(WITH_PUBLIC, secrets={"demo-key": (secret, like)}) as place:
        for placeholder in (None, place.placeholder("a", "demo-key"), None):
            target = "GET /v1/items" if placeholder else "GET /public"
            for shown, hidden in ((secret[:len(like) + 15], False), (secret[:len(like) + 16], True)):
                place.upstream.script = lambda r, s, shown=shown: answer(b"known: " + shown.encode())
                got = ask(place, target, placeholder=placeholder)
                want = "*" * len(shown) if hidden else shown
                assert got.body == b"known: " + want.encode(), (target, got)
        leases = [r for r in place.records() if r.get("reason") == "lease" or r.get("event") == "lease"]
        assert len(leases) == 1, leases


def p8_an_anonymous_request_waits_for_a_vault_that_is_locked(_):
    """Whether there is a secret to look for is not known then."""
    with small_place(WITH_PUBLIC) as place:
        place.upstream.script = lambda r, s: answer(b"stored: " + SECRET.encode())
        place.stop()
        with open(place.path("state", "vault.key"), "w") as f:
            f.write("0" * 64 + "\n")
        place.launch()
        got = ask(place, "GET /public", placeholder=None)
        assert got.status == 503 and got.reason == "broker_unavailable", got
        assert ask(place, "GET /", host="open.allowed.test", placeholder=None).status == 200


def p8_an_anonymous_request_is_guarded_when_nothing_was_lent(_):
    with small_place(WITH_PUBLIC) as place:
        place.upstream.script = lambda r, s: answer(b"stored: " + SECRET.encode())
        got = ask(place, "GET /public", placeholder=None)
        assert got.status == 200 and got.body == b"stored: " + b"*" * len(SECRET), got
        lane = place.pids()[("egress", 1)]
        os.kill(lane, signal.SIGKILL)
        got = wait_for(lambda: next((g for g in [ask_quietly(place, "GET /public", placeholder=None)]
                                     if g.status == 200), None), 15)
        assert got.body == b"stored: " + b"*" * len(SECRET), got


def p8_a_lane_that_begins_again_guards_what_was_lent_before(_):
    """Another host knows the key, and gives it before it is used again."""
    with small_place() as place:
        place.upstream.script = lambda r, s: answer(b"known: " + SECRET.encode())
        assert ask(place).status == 200
        os.kill(place.pids()[("egress", 1)], signal.SIGKILL)
        got = wait_for(lambda: next((g for g in [ask_quietly(place, "GET /", host="open.allowed.test", placeholder=None)]
                                     if g.status == 200), None), 15)
        assert got.body == b"known: " + b"*" * len(SECRET), got


def p10_refusals_without_end_are_counted(_):
    with small_place(config="limit refusals 1\n") as place:
        place.upstream.script = lambda r, s: answer(b"ok")
        request = head(place, "GET /never", placeholder=place.placeholder("a", "demo-key"))
        reasons, begun = [], time.monotonic()
        for _ in range(90):
            stream = open_tls(place)
            stream.sendall(request)
            reasons.append(b"rate" in read_all(stream).split(b"\r\n\r\n")[0])
        listed = reasons.count(False)
        assert not any(reasons[:50]) and listed <= 61 + time.monotonic() - begun < len(reasons), reasons
        assert ask(place).status == 200, "what is allowed goes on"
        assert ask(place, "GET /never", sandbox="b").reason == "operation_not_allowed", "so does another lane"

        def counted():
            return sum(int(r["detail"].split()[0]) for r in place.records() if r.get("event") == "refusals_unlisted")
        assert wait_for(lambda: counted() == sum(reasons), 5), (counted(), sum(reasons))


def rx_compressed_answers_that_nobody_reads_stay_small(place):
    body = gzip.compress(bytes(4 << 20))
    place.upstream.script = lambda r, s: answer(body, b"Content-Encoding: gzip\r\n")
    assert ask(place).status == 200
    egress = place.pids()[("egress", 1)]
    before, streams = resident(egress), []
    for _ in range(60):
        streams.append(open_tls(place))
        streams[-1].sendall(head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")))
    assert wait_for(lambda: len(place.upstream.requests) >= 61, 20)
    time.sleep(1)
    grown = resident(egress) - before
    assert grown < 60 * 600 << 10 or is_sanitized(place), "%d KiB for 60" % (grown >> 10)
    for stream in streams:
        stream.close()


def p8_a_lane_that_begins_again_frees_nobody(_):
    policy = POLICY.replace("grant open every }", "grant open every; grant raw all }", 1) + """
service raw { host raw.allowed.test; port {port}; range 127.0.0.0/8; tls splice }
"""
    with small_place(policy, hosts=HOSTS + ("raw.allowed.test",)) as place:
        def parts(numbers):
            text = " ".join(SECRET[i:i + 16] for i in numbers).encode()
            place.upstream.script = lambda *_: answer(text)
            got = ask_quietly(place, "GET /x", host="open.allowed.test", placeholder=None)
            place.upstream.script = lambda *_: answer(b"ok")
            return got

        def suspensions():
            return [r for r in place.records() if r.get("event") == "sandbox_suspended"]
        assert ask(place).status == 200
        assert parts((10, 11, 12)).status == 200 and not suspensions()
        kill_and_wait(place, ("proxy", 1))
        assert is_served(place), "before a part came nothing is suspended"
        # What was counted is not known any more: one part is one too many.
        parts((13,))
        assert wait_for(suspensions, 5)
        assert ask(place).reason == "sandbox_suspended"
        for _ in range(2):
            kill_and_wait(place, ("proxy", 1))
            assert wait_for(lambda: ask_quietly(place).reason == "sandbox_suspended", 10), ask_quietly(place)
            assert not is_served(place, seconds=1)
            assert ask(place, host="raw.allowed.test").reason == "sandbox_suspended", "what nobody reads is no way out"
        assert is_served(place, "b"), "the neighbour's lane"


def p9_what_was_dialled_is_recorded_when_refusals_no_longer_are(_):
    policy = POLICY + """
service wild { host **.wild.test wide; port 80; clear; range 127.0.0.0/8; operation every { * /; * /** } }
"""
    policy = policy.replace("grant open every }", "grant open every; grant wild every }", 1)
    with small_place(policy, config="limit refusals 1\n",
                     dns={"open.allowed.test": ["127.0.0.1"], "api.allowed.test": ["127.0.0.1"]}) as place:
        answering = place.resolver.reply
        place.resolver.reply = lambda q, name, kind, e: None if "wild" in name else answering(q, name, kind, e)
        def exhausted():
            ask(place, "GET /no")
            return any(r.get("event") == "refusals_unlisted" for r in place.records())
        assert wait_for(exhausted, 20), "the limit was not reached"
        for i in range(10):
            # What was refilled meanwhile.
            ask(place, "GET /no")
            ask(place, "GET /no")
            host = "told-%d.wild.test" % i
            s = place.connect("a")
            s.sendall(("GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)).encode())
            assert wait_for(lambda h=host: h in {n for n, _ in place.resolver.asked}, 5)
            s.close()

        def missing():
            named = {r.get("host") for r in place.records() if r["kind"] == "decision"}
            return {"told-%d.wild.test" % i for i in range(10)} - named
        assert wait_for(lambda: not missing(), 10), missing()


TESTS = [rf_05_an_echo_in_base64_lines_shows_nothing_of_the_secret,
         p9_a_request_that_is_sent_again_is_recorded_again,
         rx_compressed_answers_that_nobody_reads_stay_small,
         p9_a_target_too_long_for_its_record_is_cut_with_a_mark]
# Each in a place of its own.
ALONE = [p8_a_sandbox_that_collects_parts_of_a_secret_is_suspended,
         p8_a_text_with_parts_that_overlap_suspends_nobody,
         p8_another_port_of_a_keys_host_is_guarded_when_nothing_was_lent,
         p8_a_field_with_one_part_too_many_is_not_sent,
         p8_an_anonymous_request_is_guarded_when_nothing_was_lent,
         p10_refusals_without_end_are_counted,
         p8_a_lane_that_begins_again_frees_nobody,
         p8_a_lane_that_begins_again_guards_what_was_lent_before,
         p9_what_was_dialled_is_recorded_when_refusals_no_longer_are,
         p8_a_secret_that_was_lent_for_the_guard_has_its_public_head,
         p8_an_anonymous_request_waits_for_a_vault_that_is_locked,
         au_a_token_that_was_revoked_ends_what_it_opened,
         p8_a_reload_takes_over_the_shortest_run_for_what_is_lent,
         p8_an_answer_that_began_without_a_guard_is_cut_when_a_credential_comes]


def main():
    report = Report()
    report.run_in(small_place, TESTS)
    report.run_all(ALONE)
    report.end()


if __name__ == "__main__":
    main()
