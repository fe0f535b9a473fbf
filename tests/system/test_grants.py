"""The terms of grants, word by word, through a running exeatd."""
import json
import threading
import time

from helpers import answer, ask, ask_quietly, code, head, kill_and_wait, open_tls, small_place
from place import Listener, Report, read_head, wait_for

SERVICE = """
service api {
    host api.allowed.test
    port {port}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation read { GET HEAD /v1/items; GET /v1/items/** }
    operation write { POST PUT /v1/items; PUT POST /v1/items/** }
    never { * /v1/items/*/share }
}
"""


def granting(*grants):
    return SERVICE + "sandbox a { %s }\nsandbox b { grant api read }\n" % "; ".join(grants)


def place_of(*grants):
    return small_place(granting(*grants), hosts=("api.allowed.test",))


def decision(place, got):
    return place.record(got.record)


def outcome_of(place, path):
    """The outcome of the newest allowed request for the path."""
    def found():
        ids = [r["id"] for r in place.records() if r.get("path") == path and r.get("verdict") == "allow"]
        return ids and next((r for r in place.records() if r["kind"] == "outcome" and r["id"] == ids[-1]), None)
    return wait_for(found, 10, 0.05)


def in_time(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def used(place, sandbox="a"):
    """The grants of the sandbox in the status."""
    status = json.loads(place.exeat("status", "--json", check=False))
    return [g for p in status["processes"] for g in p.get("grants", []) if g["sandbox"] == sandbox]


def refused(got, status, reason):
    assert (got.status, got.reason) == (status, reason), got


def gf_uses_are_counted_and_outlive_egress(_):
    with place_of("grant api read uses 5", "grant api write") as place:
        for _ in range(2):
            assert ask(place).status == 200
        kill_and_wait(place, ("egress", 1))
        assert wait_for(lambda: ask_quietly(place, "PUT /v1/items").status == 200, 15, 0.05)
        assert used(place)[0]["uses"] == 2, used(place)
        for _ in range(3):
            assert ask(place).status == 200
        kill_and_wait(place, ("egress", 1))
        assert wait_for(lambda: ask_quietly(place, "PUT /v1/items").status == 200, 15, 0.05)
        before = len(place.upstream.requests)
        got = ask(place)
        refused(got, 403, "grant_used")
        assert len(place.upstream.requests) == before, "a request that is refused does not leave"
        at = "policy.exeat:%d:" % (len(SERVICE.splitlines()) + 1)
        record = decision(place, got)
        assert at in record["rule"] and record["sandbox"] == "a", record
        assert at.encode() in got.body and b"hint" in got.body, got.body
        assert ask(place, sandbox="b").status == 200, "another sandbox"
        allowed = [r for r in place.records() if r.get("verdict") == "allow" and r.get("operation") == "read"
                   and r["sandbox"] == "a"]
        assert len(allowed) == 5 and all(at in r["grant"] for r in allowed), allowed


def gf_uses_are_of_requests_that_were_sent(_):
    with place_of("grant api read uses 2") as place:
        place.upstream.listener.close()
        for _ in range(4):
            refused(ask(place), 502, "connect_failed")
        assert used(place)[0]["uses"] == 0, used(place)
        place.upstream.listener = Listener(place.upstream._serve, place.upstream.port)
        assert [ask(place).status for _ in range(3)] == [200, 200, 403]


def gf_uses_are_no_more_than_what_an_upstream_sees(_):
    """One that closes instead of answering, on a connection that was used before, is not asked again."""
    with place_of("grant api read uses 4", "grant api write") as place:
        asked = []

        def script(request, stream):
            asked.append(request)
            return None if len(asked) % 2 == 0 else answer(b"ok")
        place.upstream.script = script
        got = [ask(place) for _ in range(6)]
        assert [g.status for g in got] == [200, 502, 200, 502, 403, 403], got
        refused(got[1], 502, "upstream_closed")
        assert len(asked) == 4 and used(place)[0]["uses"] == 4, (len(asked), used(place))
        assert ask(place, "PUT /v1/items").status == 200


def gf_uses_go_on_where_a_reload_keeps_the_grant(_):
    with place_of("grant api read uses 2") as place:
        assert ask(place).status == 200
        for limit, status in ((2, 200), (2, 403), (3, 200), (3, 403), (2, 403)):
            place.write_policy("# a line more\n" + granting("grant api read uses %d" % limit))
            assert code(place, "reload", "--yes") == 0, place.last.stderr
            assert ask(place).status == status, limit
        place.write_policy(granting('grant api read uses 2 note "once more"'))
        assert code(place, "reload", "--yes") == 0, place.last.stderr
        assert [ask(place).status for _ in range(3)] == [200, 200, 403], "a note of its own is a count of its own"


def gf_a_grant_that_has_room_is_enough(_):
    with place_of('grant api read uses 1 note one', 'grant api read write uses 2 note two') as place:
        assert ask(place, "PUT /v1/items").status == 200
        assert [ask(place).status for _ in range(3)] == [200, 200, 403], "the narrower one is used first"
        assert [g["uses_left"] for g in used(place)] == [0, 0], used(place)


def gf_until_ends_what_runs(_):
    with place_of("grant api read until %s" % in_time(4), "grant api write until 2001-01-01T00:00:00Z") as place:
        got = ask(place, "PUT /v1/items")
        refused(got, 403, "grant_ended")
        assert decision(place, got)["rule"], "the grant's position"

        def drip(request, stream):
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            try:
                for _ in range(200):
                    stream.sendall(b"x" * 100)
                    time.sleep(0.1)
            except OSError:
                pass
        place.upstream.script = drip
        begun = time.monotonic()
        got = ask(place, "GET /v1/items/slow")
        assert got.status == 200 and len(got.body) < 90000 and time.monotonic() - begun < 10, len(got.body)
        assert outcome_of(place, "/v1/items/slow")["reason"] == "grant_ended"
        refused(ask(place), 403, "grant_ended")
        assert [g["ended"] for g in used(place)] == [True, True], used(place)


def gf_rate_is_a_bucket_that_fills(_):
    with place_of("grant api read rate 2/s", "grant api write rate 1/h") as place:
        stream = open_tls(place)
        line = head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")).replace(
            b"Connection: close\r\n", b"")
        stream.sendall(line * 12)
        seen = b""
        while seen.count(b"HTTP/1.1 ") < 3 or b"429" not in seen:
            seen += stream.recv(65536)
        assert 2 <= seen.count(b"HTTP/1.1 200") <= 4 and b"grant_rate" in seen, seen
        assert wait_for(lambda: ask(place).status == 200, 5, 0.2), "it fills again"
        assert ask(place, "PUT /v1/items").status == 200
        got = ask(place, "PUT /v1/items")
        refused(got, 429, "grant_rate")
        wait = int(got.bytes.lower().split(b"retry-after: ")[1].split(b"\r\n")[0])
        assert 3500 < wait <= 3601, wait
        kill_and_wait(place, ("egress", 1))
        assert wait_for(lambda: ask_quietly(place).status == 200, 15, 0.1)
        refused(ask(place, "PUT /v1/items"), 429, "grant_rate")


def gf_concurrent_requests_are_counted(_):
    with place_of("grant api read concurrent 2") as place:
        go = threading.Event()

        def wait(request, stream):
            if b"/slow" in request:
                go.wait(20)
            return answer(b"ok")
        place.upstream.script = wait
        seen = []
        threads = [threading.Thread(target=lambda: seen.append(ask(place, "GET /v1/items/slow").status)) for _ in range(2)]
        for t in threads:
            t.start()
        assert wait_for(lambda: len(place.upstream.requests) == 2, 10), place.upstream.requests
        got = ask(place)
        refused(got, 429, "grant_concurrent")
        assert b"retry-after: 1\r\n" in got.bytes.lower(), got
        assert used(place)[0]["concurrent"] == 2
        go.set()
        for t in threads:
            t.join()
        assert seen == [200, 200]
        assert wait_for(lambda: ask(place).status == 200, 5, 0.05)


def gf_bytes_out_are_heads_and_bodies(_):
    with place_of("grant api read write bytes out 4K") as place:
        before = len(place.upstream.requests)
        refused(ask(place, "PUT /v1/items", body=b"x" * 4097), 403, "grant_bytes")
        refused(ask(place, "PUT /v1/items", body=b"x" * 4090), 403, "grant_bytes")
        assert len(place.upstream.requests) == before and not place.upstream.broken
        assert used(place)[0]["bytes"] == 0, used(place)
        assert ask(place, "PUT /v1/items", body=b"x" * 2000).status == 200
        sent = len(place.upstream.requests[-1])
        assert used(place)[0]["bytes"] == sent and used(place)[0]["bytes_left"] == 4096 - sent, (used(place), sent)
        refused(ask(place, "PUT /v1/items", body=b"x" * 2000), 403, "grant_bytes")
        assert ask(place).status == 200


def gf_a_chunked_body_that_goes_too_far_is_cut(_):
    with place_of("grant api read write bytes out 400K") as place:
        stream = open_tls(place)
        stream.sendall(head(place, "PUT /v1/items", placeholder=place.placeholder("a", "demo-key"),
                            fields="Transfer-Encoding: chunked\r\n"))
        try:
            for _ in range(60):
                stream.sendall(b"4000\r\n" + b"y" * 0x4000 + b"\r\n")
        except OSError:
            pass
        got, _ = read_head(stream)
        assert got.startswith(b"HTTP/1.1 403") and b"grant_bytes" in got, got
        stream.close()
        assert wait_for(lambda: place.upstream.broken, 10), "the upstream's connection ends within the body"
        assert place.upstream.broken[0].count(b"y") <= 400 * 1024
        assert outcome_of(place, "/v1/items")["reason"] == "grant_bytes"


def gf_observe_lets_through_what_is_not_granted_and_tells(_):
    with place_of("grant api read mode observe") as place:
        got = ask(place, "GET /v1/items")
        assert got.status == 200
        for line, reason in (("PUT /v1/items/7", "operation_not_granted"), ("DELETE /else", "operation_not_allowed")):
            assert ask(place, line).status == 200
            record = wait_for(lambda: next((r for r in place.records() if r.get("observed") == reason), None), 5)
            assert record and record["verdict"] == "allow" and record["path"] == line.split()[1], record
            assert record["credential"] == "demo-key" and "policy.exeat" in record["rule"], record
        assert sum(1 for r in place.records() if "observed" in r) == 2, "what is granted is not observed"
        refused(ask(place, "GET /v1/items/7/share"), 403, "never")
        refused(ask(place, "DELETE /else", placeholder="sk-of-an-attacker-0123456789"), 403, "foreign_credential")
        refused(ask(place, "DELETE /else", placeholder=None), 403, "credential_missing")
        refused(ask(place, "DELETE /a/../b"), 400, "malformed_target")
        refused(ask(place, "DELETE /else", sandbox="b"), 403, "operation_not_allowed")
        assert ask(place, "GET /", host="open.allowed.test", placeholder=None).reason == "host_not_allowed"
        shown = place.exeat("status")
        assert "OBSERVING" in shown and "sandbox a at api" in shown, shown
        assert "OBSERVING" in place.log()
        table = place.exeat("log")
        assert table.count("OBSERVE") == 2, table
        log = place.path("log.jsonl")
        with open(log, "w") as f:
            f.write("".join(json.dumps(r) + "\n" for r in place.records()))
        suggested = place.exeat("policy", "suggest", log)
        assert "PUT \"/v1/items/7\"" in suggested and "DELETE \"/else\"" in suggested, suggested
        assert code(place, "policy", "replay", place.path("policy.exeat"), log) == 0, place.last.stdout
        place.write_policy(granting("grant api read"))
        assert code(place, "policy", "replay", place.path("policy.exeat"), log) == 1
        assert place.last.stdout.count(b"\n- ") + place.last.stdout.startswith(b"- ") == 2, place.last.stdout


def gf_what_is_used_and_left_is_shown(_):
    with place_of("grant api read uses 5 bytes out 1M", "grant api write") as place:
        assert ask(place).status == 200
        shown = place.exeat("sandbox", "list")
        assert "uses 5" in shown and "policy.exeat" in shown, shown
        listed = json.loads(place.exeat("sandbox", "list", "--json"))
        grants = {s["name"]: s["grants"] for s in listed}
        assert grants["b"] == [] and grants["a"][0]["uses_left"] == 4 and grants["a"][0]["terms"] == \
            "uses 5 bytes out 1048576", grants
        assert code(place, "policy", "explain", "--policy", place.path("policy.exeat"), "--sandbox", "a", "GET",
                    "https://api.allowed.test:%d/v1/items" % place.values["port"]) == 0
        assert b"while: uses 5 bytes out 1048576 at " in place.last.stdout, place.last.stdout


TESTS = [gf_uses_are_counted_and_outlive_egress,
         gf_uses_are_of_requests_that_were_sent, gf_uses_are_no_more_than_what_an_upstream_sees,
         gf_uses_go_on_where_a_reload_keeps_the_grant,
         gf_a_grant_that_has_room_is_enough,
         gf_until_ends_what_runs,
         gf_rate_is_a_bucket_that_fills,
         gf_concurrent_requests_are_counted,
         gf_bytes_out_are_heads_and_bodies,
         gf_a_chunked_body_that_goes_too_far_is_cut,
         gf_observe_lets_through_what_is_not_granted_and_tells,
         gf_what_is_used_and_left_is_shown]


def main():
    report = Report()
    report.run_all(TESTS)
    report.end()


if __name__ == "__main__":
    main()
