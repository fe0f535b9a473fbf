#!/usr/bin/env python3
"""The shared listener, where sandboxes prove who they are, and the listener on a Unix socket."""
import base64

from helpers import POLICY, Answer, ask, small_place
from place import read_all, run_all, wait_for


def authority(place):
    return b"open.allowed.test:%d" % place.values["port"]


def basic(name, token):
    return b"Proxy-Authorization: Basic " + base64.b64encode(("%s:%s" % (name, token)).encode()) + b"\r\n"


def token_of(place, sandbox):
    """From the proxy's URL, http://NAME:TOKEN@HOST:PORT."""
    return place.sandboxes[sandbox]["variables"]["https_proxy"].partition("@")[0].rpartition(":")[2]


def connect(stream, place, fields=b""):
    stream.sendall(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (authority(place), fields))


def a_shared_listener_without_a_token_is_407(place):
    stream = place.connect("shared")
    connect(stream, place)
    answer = Answer(read_all(stream))
    assert answer.status == 407 and b"proxy-authenticate: Basic" in answer.bytes, answer


def a_shared_listener_takes_the_token_at_once(place):
    answer = ask(place, "GET /v1/items/b", "b", listener="shared", proxy_fields=basic("b", token_of(place, "b")))
    assert answer.status == 200, answer


def a_shared_listener_takes_no_other_token(place):
    for name, token in (("b", token_of(place, "b")[:-1] + "!"), ("a", token_of(place, "b")), ("b", "")):
        answer = ask(place, "GET /v1/items/b", "b", listener="shared", proxy_fields=basic(name, token))
        assert answer.status == 407, answer


def a_unix_socket_is_a_listener_like_any_other(place):
    answer = ask(place, "GET /v1/items/unix", "a", listener="unix")
    assert answer.status == 200, answer
    record = wait_for(lambda: next((r for r in place.records() if r.get("path") == "/v1/items/unix"), None))
    assert record and record["sandbox"] == "a" and record["client"].startswith("unix"), record


def main():
    with small_place(POLICY, {"shared": "shared b", "unix": "sandbox a"}) as place:
        report = run_all([f for name, f in globals().items() if name.startswith("a_")], place)
    report.end()


if __name__ == "__main__":
    main()
