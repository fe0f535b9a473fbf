#!/usr/bin/env python3
"""The echo host, which exeat answers for itself: by every way in, judged and recorded, and without an upstream."""
import json
import subprocess

from helpers import Answer, code, small_place
from place import Refused, Report, read_all

HOST = "echo.exeat.internal"
tests = []


def test(function):
    tests.append(function)
    return function


def fetch(stream, line="GET /x", host=HOST, fields=""):
    with stream:
        stream.sendall(("%s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n" % (line, host, fields)).encode())
        return Answer(read_all(stream))


def secure(place, sandbox="a", **how):
    return place.tls(sandbox, HOST + ":443", **how)


def said(answer):
    assert answer.status == 200, answer
    return json.loads(answer.body)


@test
def it_says_who_asked_and_by_which_way(p):
    words = said(fetch(secure(p), "GET /over/tls?key=value"))
    assert words["echo"] == "exeat" and words["sandbox"] == "a" and words["door"] == "tls", words
    assert words["path"] == "/over/tls" and words["scheme"] == "https" and words["method"] == "GET", words
    assert said(fetch(secure(p, "b")))["sandbox"] == "b"
    clear = said(fetch(p.connect("a"), "GET http://%s/clear" % HOST))
    assert clear["door"] == "http" and clear["scheme"] == "http" and clear["path"] == "/clear", clear
    with p.connect("a") as s:
        s.sendall(b"\5\1\0")
        assert s.recv(2) == b"\5\0"
        s.sendall(b"\5\1\0\3" + bytes([len(HOST)]) + HOST.encode() + b"\0\x50")
        assert s.recv(10)[:2] == b"\5\0"
        assert said(fetch(s))["door"] == "socks"


@test
def it_is_recorded_as_a_decision_and_an_outcome_with_the_id_that_the_answer_says(p):
    words = said(fetch(secure(p), "GET /recorded"))
    decision, outcome = p.record(words["record"]), p.record(words["record"], "outcome")
    assert decision["verdict"] == "allow" and decision["host"] == HOST and decision["path"] == "/recorded", decision
    assert decision["sandbox"] == "a" and "exeat itself" in decision["detail"], decision
    assert outcome["status"] == 200, outcome


@test
def nobody_is_asked_and_nothing_is_dialled(p):
    before = len(p.resolver.asked)
    said(fetch(secure(p)))
    assert len(p.resolver.asked) == before, p.resolver.asked


@test
def a_connection_carries_more_than_one_request(p):
    with secure(p) as s:
        for path in ("/first", "/second"):
            s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, HOST)).encode())
            data = b""
            while not data.endswith(b"}\n"):
                more = s.recv(65536)
                assert more, data
                data += more
            assert said(Answer(data))["path"] == path, data


@test
def HEAD_has_no_body_and_other_methods_are_refused(p):
    answer = fetch(secure(p), "HEAD /")
    assert answer.status == 200 and answer.body == b"" and b"content-length: 1" in answer.bytes.lower(), answer
    for line, fields in (("POST /", "Content-Length: 0\r\n"), ("DELETE /", ""), ("GET /", "Content-Length: 1\r\n"), ("TRACE /", "")):
        answer = fetch(secure(p), line, fields=fields)
        assert answer.status in (403, 405) and answer.reason in ("operation_not_allowed", "method_refused"), (line, answer)


@test
def no_placeholder_goes_there_and_nothing_that_was_sent_is_repeated_but_the_path(p):
    own, other = p.placeholder("a", "demo-key"), p.placeholder("b", "demo-key")
    assert fetch(secure(p), fields="Authorization: Bearer %s\r\n" % own).reason == "placeholder_wrong_destination"
    assert fetch(secure(p), fields="Authorization: Bearer %s\r\n" % other).reason == "foreign_credential"
    assert fetch(secure(p), "GET /%s" % own).reason in ("placeholder_wrong_place", "placeholder_wrong_destination")
    answer = fetch(secure(p), "GET /?key=sk-foreign-1", fields="Authorization: Bearer sk-foreign-2\r\nX-Y: sk-foreign-3\r\n")
    assert answer.status == 200 and b"sk-foreign" not in answer.bytes, answer


@test
def it_is_there_at_its_two_ports_only_and_its_name_is_exact(p):
    for authority in (HOST + ":8443", HOST + ":22", "x." + HOST + ":443", "exeat.internal:443"):
        try:
            p.tunnel("a", authority)
            raise AssertionError(authority)
        except Refused as refused:
            assert Answer(refused.data).status == 403, refused.data
    assert fetch(p.connect("a"), "GET http://%s:443/" % HOST, HOST + ":443").reason == "port_not_allowed"
    assert fetch(p.tls("a", HOST.upper() + ".:443", sni=HOST)).status == 200


@test
def a_tunnel_to_it_stays_over_a_reload(p):
    with secure(p) as s:
        p.exeat("reload", "--yes")
        assert said(fetch(s))["sandbox"] == "a"


@test
def a_policy_cannot_have_it_as_a_host(p):
    p.write("other", "service x { host %s; operation r { GET / } }\nsandbox a { grant x all }\n" % HOST)
    assert code(p, "policy", "check", p.path("other")) == 3
    assert b"exeat itself answers" in p.last.stderr, p.last.stderr


@test
def git_finds_a_repository_without_branches(p):
    env = {"PATH": "/usr/bin:/bin", "https_proxy": "http://127.0.0.1:%d" % p.ports["a"],
           "GIT_SSL_CAINFO": p.path("state", "public", "ca.pem"), "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", "ls-remote", "https://%s/x.git" % HOST], env=env, capture_output=True, timeout=30)
    assert done.returncode == 0 and done.stdout == b"", done


def place_of():
    return small_place(hosts=("api.allowed.test", "open.allowed.test"), dns={})


if __name__ == "__main__":
    report = Report()
    report.run_in(place_of, tests)
    report.end()
