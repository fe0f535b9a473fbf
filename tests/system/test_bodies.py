"""Requests whose verdict depends on their body: held until it is read, whatever its size, its speed and what breaks meanwhile."""
import json
import os
import signal
import threading
import time

from helpers import HOSTS, SECRET, Answer, ask, head, is_served, kill_and_wait, open_tls, small_place, wake_inspect
from place import read_all, read_message, run_all, wait_for

POLICY = """
service api {
    host api.allowed.test
    port {port}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation read { GET /v1/items }
    operation chat { POST /chat { body /model in [small, medium] } }
    operation short { POST /short { body at most 300K } }
    operation special { POST /kind { body /kind is special } }
    operation plain { POST /kind }
}
service limited {
    host limited.allowed.test
    port {port}
    range 127.0.0.0/8
    limit body 300K
    operation send { POST /send }
    operation say { POST /say { body /kind is short } }
}
service inner {
    host inner.allowed.test
    port {port}
    range 127.0.0.0/8
    credential inner-key { in json /auth/token }
    operation log { POST /log }
}
service open {
    host open.allowed.test
    port {port}
    range 127.0.0.0/8
    operation every { * /; * /** }
}
sandbox a { grant api all; grant open all; grant limited all; grant inner all }
sandbox b { grant api read }
"""
INNER = "sk-inner-9Wq3Er5Ty7Ui1Op2As4Df6Gh8Jk0Lz"
JSON = "Content-Type: application/json\r\n"
TEXT = "Content-Type: text/plain\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def model(name, size=0):
    """The name stands at the end, where only a whole body shows it."""
    return json.dumps({"messages": [{"content": "x" * size}], "model": name}).encode()


def chunked(body, step=60000):
    pieces = [body[i:i + step] for i in range(0, len(body), step)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def ask_chunked(place, line, body, fields=JSON):
    stream = open_tls(place)
    fields += "Transfer-Encoding: chunked\r\n"
    stream.sendall(head(place, line, placeholder=place.placeholder("a", "demo-key"), fields=fields) + chunked(body))
    try:
        return read_all(stream)
    finally:
        stream.close()


def begin(place, line, body, at, fields=JSON, host="api.allowed.test"):
    """A request of which the body has come as far as `at`."""
    stream = open_tls(place, host=host)
    own = place.placeholder("a", "demo-key") if host == "api.allowed.test" else None
    stream.sendall(head(place, line, host, own, fields + "Content-Length: %d\r\n" % len(body)) + body[:at])
    return stream


def begin_chunked(place, line, body, at, fields=JSON, host="api.allowed.test"):
    stream = open_tls(place, host=host)
    stream.sendall(head(place, line, host, None, fields + "Transfer-Encoding: chunked\r\n") + chunked(body[:at], 100))
    return stream


def last_operation(place):
    """Of the newest decision that is on the disk; the one of an answered request may come a little later."""
    decisions = [r for r in place.records() if r["kind"] == "decision"]
    return decisions[-1].get("operation") if decisions else None


def reload_with(place, text):
    place.write_policy(text)
    place.exeat("reload")


def a_body_larger_than_the_window_is_judged_whole(place):
    for size in (0, 100000, 300000, 3000000, 7500000):
        place.upstream.forget()
        body = model("small", size)
        got = ask(place, "POST /chat", fields=JSON, body=body)
        assert got.status == 200, got
        assert place.upstream.requests[0].endswith(body), "the body was changed on its way"
        assert SECRET.encode() in place.upstream.requests[0]
        assert wait_for(lambda: last_operation(place) == "chat"), size


def nothing_of_a_large_body_leaves_when_its_end_refuses_it(place):
    for size in (0, 300000, 3000000):
        place.upstream.forget()
        got = ask(place, "POST /chat", fields=JSON, body=model("large", size))
        assert (got.status, got.reason) == (403, "operation_not_allowed"), got
        assert not place.upstream.requests and not place.upstream.broken
        assert "address" not in place.record(got.record), "a connection was made"


def chunks_are_judged_as_well(place):
    place.upstream.forget()
    assert b" 200 " in ask_chunked(place, "POST /chat", model("medium", 3000000))
    assert b"operation_not_allowed" in ask_chunked(place, "POST /chat", model("large", 3000000))
    assert len(place.upstream.requests) == 1


def a_size_alone_is_counted_without_reading(place):
    place.upstream.forget()
    assert b" 200 " in ask_chunked(place, "POST /short", b"x" * 300 * 1024, TEXT)
    assert b"operation_not_allowed" in ask_chunked(place, "POST /short", b"x" * (300 * 1024 + 1), TEXT)
    assert len(place.upstream.requests) == 1


def send_limited(place, line, body, fields):
    stream = open_tls(place, host="limited.allowed.test")
    try:
        stream.sendall(head(place, line, host="limited.allowed.test", placeholder=None, fields=fields) + body)
        return read_all(stream)
    except OSError:
        return read_all(stream)
    finally:
        stream.close()


def the_limit_of_a_service_counts_chunks_before_any_leaves(place):
    place.upstream.forget()
    most, coded = 300 * 1024, "Transfer-Encoding: chunked\r\n"
    for line, fields, content in (("POST /send", TEXT, lambda n: b"x" * n),
                                  ("POST /say", JSON, lambda n: b'{"kind":"short","x":"%s"}' % (b"x" * (n - 23)))):
        for size, allowed in ((most, True), (most + 1, False), (3 << 20, False)):
            body = content(size)
            assert len(body) == size
            for sent in ((fields + coded, chunked(body)), (fields + "Content-Length: %d\r\n" % size, body)):
                place.upstream.forget()
                got = send_limited(place, line, sent[1], sent[0])
                refused = b"body_too_large" in got or (line == "POST /say" and b"operation_not_allowed" in got)
                assert (b" 200 " in got) == allowed and refused != allowed, (line, size, sent[0], got)
                assert len(place.upstream.requests) == allowed and not place.upstream.broken, (line, size, sent[0])
    # A body that never ends is refused as soon as it is too long.
    got = send_limited(place, "POST /send", chunked(b"x" * (most + 70000))[:-5], TEXT + coded)
    assert b"body_too_large" in got and place.upstream.connections == 0, got
    # What cannot be read has no size that is known.
    got = send_limited(place, "POST /say", chunked(b"kind"), TEXT + coded)
    assert b" 403 " in got and not place.upstream.requests, got


def a_body_over_the_limit_is_refused_before_it_was_sent(place):
    stream = begin(place, "POST /chat", model("small", 25 << 20), 10)
    try:
        assert b"operation_not_allowed" in read_all(stream)
    finally:
        stream.close()
    stream = open_tls(place)
    try:
        stream.sendall(head(place, "POST /chat", placeholder=place.placeholder("a", "demo-key"),
                            fields=JSON + "Transfer-Encoding: chunked\r\n") + chunked(model("small", 25 << 20))[:-5])
    except OSError:
        pass  # refused already
    try:
        assert b"operation_not_allowed" in read_all(stream)
    finally:
        stream.close()


def the_line_that_fits_best_is_chosen_by_the_body(place):
    for kind, operation in (("special", "special"), ("usual", "plain")):
        got = ask(place, "POST /kind", fields=JSON, body=json.dumps({"kind": kind}).encode())
        assert got.status == 200, got
        assert wait_for(lambda: last_operation(place) == operation), last_operation(place)


def an_unclear_body_leaves_the_line_that_asks_nothing_of_it(place):
    got = ask(place, "POST /kind", fields="Content-Type: text/plain\r\n", body=b"kind")
    assert got.status == 200, got
    assert [r for r in place.records() if r["kind"] == "decision"][-1]["operation"] == "plain"
    # Known early, in the middle of a body that is longer than the window.
    place.upstream.forget()
    body = b'{"x":{"a":1,"a":2},"kind":"special","text":"%s"}' % (b"x" * 3000000)
    got = ask(place, "POST /kind", fields=JSON, body=body)
    assert got.status == 200 and place.upstream.requests[0].endswith(body), got


def no_connection_is_made_before_the_verdict(place):
    place.upstream.forget()
    body = model("small", 1000)
    stream = begin(place, "POST /chat", body, 500)
    try:
        time.sleep(0.5)
        assert place.upstream.connections == 0, "a connection was made"
        assert not place.upstream.requests and not place.upstream.broken
        stream.sendall(body[500:])
        assert b" 200 " in read_all(stream)
    finally:
        stream.close()


def a_client_that_expects_100_gets_it(place):
    body = model("small")
    stream = begin(place, "POST /chat", body, 0, fields=JSON + "Expect: 100-continue\r\n")
    try:
        assert stream.recv(1000).startswith(b"HTTP/1.1 100")
        stream.sendall(body)
        assert b" 200 " in read_all(stream)
    finally:
        stream.close()


def each_request_of_a_connection_is_judged_by_its_own_body(place):
    stream, rest = open_tls(place), b""
    try:
        for name, status in (("small", b"200"), ("large", b"403")):
            body = model(name)
            stream.sendall(head(place, "POST /chat", placeholder=place.placeholder("a", "demo-key"),
                                fields=JSON + "Content-Length: %d\r\n" % len(body)).replace(b"Connection: close\r\n", b"") + body)
            got, rest = read_message(stream, rest)
            assert got.split(b" ")[1] == status, got
    finally:
        stream.close()


def a_foreign_credential_in_a_body_that_is_allowed_is_found(place):
    body = json.dumps({"model": "small", "api_key": "sk-demo-AnotherKey00000000000000000"}).encode()
    got = ask(place, "POST /chat", fields=JSON, body=body)
    assert (got.status, got.reason) == (403, "foreign_credential"), got
    body = json.dumps({"model": "small", "text": place.placeholder("a", "demo-key")}).encode()
    assert ask(place, "POST /chat", fields=JSON, body=body).reason == "placeholder_wrong_place"


def a_host_that_is_slow_has_as_much_time_behind_a_body_that_was_read(place):
    """More than ask-time, in which inspect must have answered."""
    prompt = place.upstream.open

    def slow(raw):
        time.sleep(4)
        return prompt(raw)
    reload_with(place, POLICY)  # no connection of before is used
    place.upstream.open = slow
    try:
        assert ask(place, "POST /chat", fields=JSON, body=model("small")).status == 200
    finally:
        place.upstream.open = prompt


def a_newer_policy_judges_a_body_that_is_being_read(place):
    body = model("large")
    for text, status in ((POLICY.replace("[small, medium]", "[large]"), b" 200 "),
                         (POLICY.replace("/model in [small, medium]", "/messages is string"), b" 403 "),
                         (POLICY.replace("{ body /model in [small, medium] }", ""), b" 200 "),
                         (POLICY.replace("POST /chat {", "PUT /chat {"), b" 403 ")):
        reload_with(place, POLICY)
        stream = begin(place, "POST /chat", body, 10)
        try:
            time.sleep(0.2)
            reload_with(place, text)
            try:
                stream.sendall(body[10:])
            except OSError:
                pass  # refused already
            assert status in read_all(stream)[:20], text
        finally:
            stream.close()
            reload_with(place, POLICY)


def a_newer_policy_that_asks_the_same_lets_run_what_runs(place):
    for text, whole in ((POLICY.replace("operation chat {", "operation chat { POST /more { body /a is b };"), True),
                        (POLICY.replace("[small, medium]", "[medium]"), False),
                        (POLICY.replace("    range 127.0.0.0/8\n", "", 1), False),
                        (POLICY.replace("/model in [small, medium]", "/messages/*/content is x"), False)):
        begun, go_on = threading.Event(), threading.Event()

        def script(request, stream):
            stream.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
            begun.set()
            go_on.wait(10)
            return b"4\r\nmore\r\n0\r\n\r\n"
        place.upstream.script = script
        stream = begin(place, "POST /chat", model("small"), 1000)
        try:
            assert begun.wait(10)
            reload_with(place, text)
            go_on.set()
            assert (b"more" in read_all(stream)) == whole, text
        finally:
            go_on.set()
            stream.close()
            place.upstream.script = lambda r, s: OK
            reload_with(place, POLICY)


def a_newer_policy_judges_a_body_with_a_secret_that_waits_for_its_host(place):
    """Between the decision and the sending: what was taken out of the body is in it again, and is judged as it came."""
    body = json.dumps({"first": "x" * 300, "auth": {"token": place.placeholder("a", "inner-key"), "n": 1}, "kind": "short"}).encode()
    sent = body.replace(place.placeholder("a", "inner-key").encode(), INNER.encode())
    rule, prompt = "POST /log", place.upstream.open
    for text, reason in ((POLICY.replace(rule, "POST /log; POST /more"), None),
                         (POLICY.replace(rule, "POST /log { body /kind is short }"), None),
                         (POLICY.replace(rule, "POST /log { body /kind is long }"), "operation_not_allowed"),
                         (POLICY.replace(rule, "PUT /log"), "operation_not_allowed"),
                         (POLICY.replace("in json /auth/token", "in json /auth/other"), "credential_missing"),
                         (POLICY.replace("in json /auth/token", "in header x-key"), "credential_missing"),
                         (POLICY.replace("credential inner-key { in json /auth/token }", "accept any"), "placeholder_wrong_place")):
        for begin_with in (begin, begin_chunked):
            reload_with(place, POLICY)
            place.upstream.forget()
            go_on = threading.Event()
            place.upstream.open = lambda raw: go_on.wait(10) and prompt(raw)
            stream = begin_with(place, "POST /log", body, len(body), host="inner.allowed.test")
            try:
                assert wait_for(lambda: place.upstream.connections == 1)
                reload_with(place, text)
                go_on.set()
                got = Answer(read_all(stream))
            finally:
                go_on.set()
                stream.close()
                place.upstream.open = prompt
            assert got.reason == reason and got.status == (403 if reason else 200), (text, got)
            bodies = [r.partition(b"\r\n\r\n")[2] for r in place.upstream.requests]
            assert bodies == ([] if reason else [sent]), (text, place.upstream.requests)
    reload_with(place, POLICY)


def a_reader_that_dies_or_stands_still_refuses(place):
    assert wake_inspect(place)
    body = model("small", 1000)
    stream = begin(place, "POST /chat", body, 500)
    try:
        time.sleep(0.2)
        kill_and_wait(place, ("inspect", 1))
        assert b"inspect_unavailable" in read_all(stream)
    finally:
        stream.close()
    assert is_served(place)
    assert wait_for(lambda: ask(place, "POST /chat", fields=JSON, body=body).status == 200, 10, 0.1)
    pid = place.pids()[("inspect", 1)]
    os.kill(pid, signal.SIGSTOP)
    try:
        got = ask(place, "POST /chat", fields=JSON, body=body)
        assert got.reason == "inspect_unavailable", got
    finally:
        os.kill(pid, signal.SIGCONT)
    assert wait_for(lambda: ask(place, "POST /chat", fields=JSON, body=body).status == 200, 10, 0.1)


def bodies_that_are_held_have_an_end(place):
    """A lane holds 256 MiB: of 14 bodies of 20 MiB that never end the last is refused."""
    body, streams, refused = model("small", 20 << 20), [], 0
    try:
        for _ in range(14):
            streams.append(open_tls(place))
            try:
                streams[-1].sendall(head(place, "POST /chat", placeholder=place.placeholder("a", "demo-key"),
                                         fields=JSON + "Content-Length: %d\r\n" % len(body)) + body[:-1])
                streams[-1].settimeout(1)
                refused += b"too_many" in streams[-1].recv(2000)
            except OSError:
                pass
        assert 1 <= refused <= 2, "%d of 14 were refused" % refused
    finally:
        for stream in streams:
            stream.close()
    assert wait_for(lambda: ask(place, "POST /chat", fields=JSON, body=model("small", 1000)).status == 200, 10, 0.1)


TESTS = [a_body_larger_than_the_window_is_judged_whole, nothing_of_a_large_body_leaves_when_its_end_refuses_it,
         chunks_are_judged_as_well, the_limit_of_a_service_counts_chunks_before_any_leaves, a_size_alone_is_counted_without_reading,
         a_body_over_the_limit_is_refused_before_it_was_sent, the_line_that_fits_best_is_chosen_by_the_body,
         an_unclear_body_leaves_the_line_that_asks_nothing_of_it, no_connection_is_made_before_the_verdict,
         a_client_that_expects_100_gets_it, each_request_of_a_connection_is_judged_by_its_own_body,
         a_foreign_credential_in_a_body_that_is_allowed_is_found,
         a_host_that_is_slow_has_as_much_time_behind_a_body_that_was_read, a_newer_policy_judges_a_body_that_is_being_read,
         a_newer_policy_that_asks_the_same_lets_run_what_runs,
         a_newer_policy_judges_a_body_with_a_secret_that_waits_for_its_host, a_reader_that_dies_or_stands_still_refuses,
         bodies_that_are_held_have_an_end]

with small_place(POLICY, hosts=HOSTS + ("limited.allowed.test", "inner.allowed.test"),
                 secrets={"demo-key": (SECRET, "sk-demo-"), "inner-key": (INNER, "sk-inner-")},
                 config="limit ask-time 2\nlimit inspect-body 24M\n") as world:
    world.upstream.script = lambda r, s: OK
    report = run_all(TESTS, world)
report.end()
