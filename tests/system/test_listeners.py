#!/usr/bin/env python3
"""The shared listener, where sandboxes prove who they are, and the listener on a Unix socket."""
from helpers import POLICY, Answer, ask, small_place
from place import Report, basic, read_all, wait_for


def authority(place):
    return b"open.allowed.test:%d" % place.values["port"]


def connect(stream, place, fields=b""):
    stream.sendall(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (authority(place), fields))


def a_shared_listener_without_a_token_is_407(place):
    stream = place.connect("shared")
    connect(stream, place)
    answer = Answer(read_all(stream))
    assert answer.status == 407 and b"proxy-authenticate: Basic" in answer.bytes, answer


def a_shared_listener_takes_the_token_at_once(place):
    answer = ask(place, "GET /v1/items/b", "b", listener="shared", proxy_fields=place.identity("b"))
    assert answer.status == 200, answer


def a_shared_listener_takes_no_other_token(place):
    for name, token in (("b", place.token("b")[:-1] + "!"), ("a", place.token("b")), ("b", "")):
        answer = ask(place, "GET /v1/items/b", "b", listener="shared", proxy_fields=b"Proxy-Authorization: %s\r\n" % basic(name, token))
        assert answer.status == 407, answer


def a_unix_socket_is_a_listener_like_any_other(place):
    answer = ask(place, "GET /v1/items/unix", "a", listener="unix")
    assert answer.status == 200, answer
    record = wait_for(lambda: next((r for r in place.records() if r.get("path") == "/v1/items/unix"), None))
    assert record and record["sandbox"] == "a" and record["client"].startswith("unix"), record


def main():
    report = Report()
    report.run_in(lambda: small_place(POLICY, {"shared": "shared b", "unix": "sandbox a"}),
                  [f for name, f in globals().items() if name.startswith("a_")])
    report.end()


if __name__ == "__main__":
    main()
