"""Spliced services: TLS that is passed on unread, and what is decided, recorded and refused all the same."""
import hashlib
import os
import socket
import ssl
import threading
import time

from helpers import SECRET, Answer, ask, kill_and_wait, small_place
from place import Listener, Report, free_port, read_all, read_head, wait_for

POLICY = """
service raw { host raw.test; port {port}; range 127.0.0.0/8; tls splice }
service little { host little.test; port {port}; range 127.0.0.0/8; tls splice at most 64K }
service shut { host shut.test; port {shut_port}; range 127.0.0.0/8; tls splice }
service inside { host inside.test; port {port}; tls splice }
service api {
    host api.test
    port {port}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation read { GET /** }
}
service limited { host limited.test; port {port}; range 127.0.0.0/8; tls splice }
sandbox a { grant raw all; grant little all; grant shut all; grant inside all; grant api all; grant limited all uses 5 }
sandbox b { grant api all }
"""
NAMES = ("raw.test", "little.test", "shut.test", "inside.test", "api.test", "limited.test")
LIMITS = "limit splice-idle-time 2\nlimit splice-time 6\n"


def place_of(config=LIMITS, **values):
    place = small_place(POLICY, sandboxes=("a", "b"), hosts=NAMES, config=config,
                        values=dict({"shut_port": free_port()}, **values))
    place.upstream.script = lambda request, stream: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    return place


def own_context(place):
    """A client that trusts nobody but the upstream's own authority, and tells a cut from an end."""
    context = ssl.create_default_context(cafile=place.ca.pem)
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    return context


def open_raw(place, host="raw.test", sandbox="a", **more):
    return place.tls(sandbox, "%s:%d" % (host, place.values["port"]), context=own_context(place), **more)


def talk(place, text=b"GET /any/path HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n", host="raw.test"):
    with open_raw(place, host) as stream:
        stream.sendall(text)
        return Answer(b"".join(read_head(stream)))


def spliced(place, host="raw.test"):
    return [r for r in place.records() if r["kind"] == "decision" and r.get("door") == "spliced" and r.get("host") == host]


def outcome(place, record):
    return place.record(record["id"], "outcome")


def ended(place, host="raw.test", good=lambda said: True):
    """The outcome of the newest splice, once it is such."""
    def look():
        found = spliced(place, host)
        said = found and next((r for r in place.records() if r["kind"] == "outcome" and r["id"] == found[-1]["id"]), None)
        return said if said and good(said) else None
    said = wait_for(look, 8, 0.05)
    assert said, spliced(place, host)[-1:]
    return said


def refusal(place, host, reason):
    """The record of a tunnel that came to nothing."""
    return wait_for(lambda: [r for r in place.records() if r["kind"] == "decision" and r.get("host") == host and
                             r.get("reason") == reason and r["origin"].startswith("egress")], 5)


# ---- what passes ----

def p9_a_session_passes_unread_and_leaves_one_decision_and_one_outcome(place):
    before = len([r for r in place.records() if r.get("event") == "leaf_minted"])
    assert talk(place).status == 200
    assert len(place.upstream.requests) == 1
    record = wait_for(lambda: spliced(place), 5)[-1]
    assert record["verdict"] == "allow" and record["service"] == "raw" and record["operation"] == "splice"
    assert record["sni"] == "raw.test" and record["address"] == "127.0.0.1" and record["method"] == "CONNECT", record
    said = outcome(place, record)
    assert said and int(said["bytes_out"]) > 300 and int(said["bytes_in"]) > 500, said
    assert len([r for r in place.records() if r.get("event") == "leaf_minted"]) == before


def a_placeholder_passes_as_it_is(place):
    placeholder = place.placeholder("a", "demo-key").encode()
    talk(place, b"GET / HTTP/1.1\r\nHost: raw.test\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n" % placeholder)
    assert placeholder in place.upstream.requests[-1] and SECRET.encode() not in place.upstream.requests[-1]


def a_large_body_passes_both_ways_whole(place):
    data = os.urandom(1 << 16) * 128

    def script(request, stream):
        body = request.partition(b"\r\n\r\n")[2]
        assert body == data
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 1 << 20):
            stream.sendall(body[at:at + (1 << 20)])
    usual, place.upstream.script = place.upstream.script, script
    try:
        with open_raw(place) as stream:
            stream.sendall(b"POST / HTTP/1.1\r\nHost: raw.test\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
            got = read_all(stream).partition(b"\r\n\r\n")[2]
    finally:
        place.upstream.script = usual
    assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), len(got)
    said = ended(place)
    assert int(said["bytes_out"]) > len(data) and int(said["bytes_in"]) > len(data), said
    assert "reason" not in said or said["reason"] == "client_closed", said


def each_direction_ends_by_itself(place):
    """The client's end of TCP comes through, and what the upstream says behind it, too."""
    heard = []

    def server(raw):
        with raw:
            raw.recv(65536)
            while raw.recv(65536):
                pass
            heard.append("end")
            raw.sendall(b"still here")
    with_port = Listener(server, place.values["shut_port"])
    try:
        s = place.tunnel("a", "shut.test:%d" % place.values["shut_port"])
        s.sendall(hello_bytes("shut.test"))
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b"still here" and heard == ["end"]
        s.close()
    finally:
        with_port.close()
    said = ended(place, "shut.test")
    assert "reason" not in said and int(said["bytes_in"]) == len(b"still here"), said


def hello_bytes(name):
    """What a client would send first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def ti_07_a_hello_in_small_pieces_passes_once(place):
    s = place.tunnel("a", "raw.test:%d" % place.values["port"])
    for byte in hello_bytes("raw.test"):
        s.sendall(bytes([byte]))
    assert s.recv(1) == b"\x16"
    s.close()


# ---- what is refused ----

def is_alert(place, name, action):
    try:
        action()
    except ssl.SSLError as error:
        assert name in str(error).upper().replace(" ", "_"), error
        return
    raise AssertionError("no alert")


def ti_01_another_sni_is_refused_before_anything_is_dialled(place):
    connections = place.upstream.connections
    is_alert(place, "UNRECOGNIZED_NAME", lambda: open_raw(place, sni="little.test"))
    assert refusal(place, "raw.test", "sni_mismatch")
    assert place.upstream.connections == connections


def ti_05_without_sni_the_connect_name_counts(place):
    context = own_context(place)
    context.check_hostname = False
    stream = context.wrap_socket(place.tunnel("a", "raw.test:%d" % place.values["port"]))
    stream.sendall(b"GET / HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n")
    assert read_head(stream)[0].startswith(b"HTTP/1.1 200")
    stream.close()
    assert wait_for(lambda: "sni" not in spliced(place)[-1], 5)


def what_is_not_tls_is_refused(place):
    connections = place.upstream.connections
    for first, reason in ((b"GET / HTTP/1.1\r\nHost: raw.test:%d\r\n\r\n" % place.values["port"], "clear_not_allowed"),
                          (b"SSH-2.0-OpenSSH_9.2\r\n", "protocol_not_allowed"), (b"\0\0\0\0", "protocol_not_allowed")):
        s = place.tunnel("a", "raw.test:%d" % place.values["port"])
        s.sendall(first)
        read_all(s)
        s.close()
        assert refusal(place, "raw.test", reason), reason
    s = place.connect("a")
    s.sendall(b"GET http://raw.test:%d/ HTTP/1.1\r\nHost: raw.test:%d\r\n\r\n" % ((place.values["port"],) * 2))
    assert Answer(read_head(s)[0]).reason == "clear_not_allowed"
    s.close()
    assert place.upstream.connections == connections


def who_has_no_grant_gets_no_tunnel(place):
    answer = ask(place, host="raw.test", sandbox="b")
    assert answer.status == 403 and answer.reason == "host_not_allowed", answer


def terms_that_nobody_counts_refuse(place):
    is_alert(place, "ACCESS_DENIED", lambda: open_raw(place, "limited.test"))
    assert refusal(place, "limited.test", "not_offered")


def a_private_address_is_not_dialled(place):
    is_alert(place, "ACCESS_DENIED", lambda: open_raw(place, "inside.test"))
    assert refusal(place, "inside.test", "address_not_allowed")


def an_upstream_that_is_not_there_is_told_by_an_alert_and_in_the_record(place):
    is_alert(place, "INTERNAL_ERROR", lambda: place.tls("a", "shut.test:%d" % place.values["shut_port"],
                                                       context=own_context(place)))
    assert refusal(place, "shut.test", "connect_failed")


# ---- what ends it ----

def is_cut(stream):
    """Ends without TLS's own end."""
    stream.suppress_ragged_eofs = False
    try:
        while stream.recv(65536):
            pass
    except (ssl.SSLError, OSError):
        return True
    return False


def the_budget_of_each_way_cuts(place):
    def script(request, stream):
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200000)
    with open_raw(place, "little.test") as stream:
        try:
            stream.sendall(b"POST / HTTP/1.1\r\nHost: little.test\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200000)
        except OSError:
            pass
        assert is_cut(stream)
    ended(place, "little.test", lambda said: said.get("reason") == "body_too_large")
    usual, place.upstream.script = place.upstream.script, script
    try:
        with open_raw(place, "little.test") as stream:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: little.test\r\n\r\n")
            assert is_cut(stream)
    finally:
        place.upstream.script = usual
    said = ended(place, "little.test", lambda said: said.get("reason") == "answer_too_large")
    assert int(said["bytes_in"]) <= 65536, said


def silence_and_length_cut(place):
    with open_raw(place) as stream:
        began = time.monotonic()
        assert is_cut(stream) and time.monotonic() - began < 5
    ended(place, good=lambda said: "no byte either way" in said.get("detail", ""))
    with open_raw(place) as stream:
        began = time.monotonic()
        try:
            while time.monotonic() - began < 12:
                stream.sendall(b"x")
                time.sleep(0.5)
        except OSError:
            pass
        assert 4 < time.monotonic() - began < 11
    ended(place, good=lambda said: "lasted its time" in said.get("detail", ""))


def cut_by(place, change):
    with open_raw(place) as stream:
        assert wait_for(lambda: place.upstream.connections, 5)
        change()
        assert is_cut(stream)
    ended(place, good=lambda said: said.get("reason") == "cut")


def reload(place, text=POLICY):
    place.write_policy(text)
    place.exeat("reload")


def a_reload_that_denies_or_intercepts_cuts_and_another_does_not(place):
    cut_by(place, lambda: reload(place, POLICY.replace("grant raw all; ", "")))
    for change in (POLICY.replace("range 127.0.0.0/8; tls splice }", "tls splice }", 1),
                   POLICY + "service closed { host 127.0.0.1; never all }\n"):
        reload(place)
        cut_by(place, lambda: reload(place, change))
    reload(place)
    cut_by(place, lambda: reload(place, POLICY.replace("{port}; range 127.0.0.0/8; tls splice }",
                                                       "{port}; range 127.0.0.0/8; operation r { GET /** } }")))
    assert ask(place, host="raw.test", placeholder=None).status == 200, "intercepted now"
    reload(place)
    with open_raw(place) as stream:
        reload(place, POLICY + "\n# more\n")
        stream.sendall(b"GET / HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n")
        assert read_head(stream)[0].startswith(b"HTTP/1.1 200")
    reload(place)


def a_request_in_a_tunnel_that_was_intercepted_before_is_not_taken(place):
    reload(place, POLICY.replace("{port}; range 127.0.0.0/8; tls splice }",
                                 "{port}; range 127.0.0.0/8; operation r { GET /** } }"))
    with place.tls("a", "raw.test:%d" % place.values["port"]) as stream:
        reload(place)
        stream.sendall(b"GET / HTTP/1.1\r\nHost: raw.test:%d\r\n\r\n" % place.values["port"])
        assert Answer(read_head(stream)[0]).reason == "spliced"


def what_runs_needs_no_dialer(place):
    with open_raw(place) as stream:
        kill_and_wait(place, ("dialer", 0))
        stream.sendall(b"GET / HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n")
        assert read_head(stream)[0].startswith(b"HTTP/1.1 200")
    assert wait_for(lambda: talk_quietly(place) == 200, 15, 0.1)


def talk_quietly(place):
    try:
        return talk(place).status
    except (OSError, AssertionError):
        return None


# ---- behind an upstream proxy ----

def it_passes_through_an_upstream_proxy(place):
    assert talk(place).status == 200
    assert place.hop_heard and place.hop_heard[-1].startswith(b"CONNECT raw.test:%d " % place.values["port"])


class BehindProxy:
    def __enter__(self):
        heard = []

        def pump(a, b):
            try:
                while True:
                    data = a.recv(65536)
                    if not data:
                        break
                    b.sendall(data)
                b.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        def serve(raw):
            head, _ = read_head(raw)
            heard.append(head)
            up = socket.create_connection(("127.0.0.1", int(head.split()[1].rpartition(b":")[2])))
            raw.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=pump, args=(up, raw), daemon=True).start()
            pump(raw, up)
        self.proxy = Listener(serve)
        self.place = place_of(config="audit durable\nupstream-proxy 127.0.0.1:%d\n" % self.proxy.port)
        self.place.hop_heard = heard
        return self.place.__enter__()

    def __exit__(self, *ignored):
        self.place.__exit__()
        self.proxy.close()


if __name__ == "__main__":
    report = Report()
    report.run_in(place_of, [
        p9_a_session_passes_unread_and_leaves_one_decision_and_one_outcome,
        a_placeholder_passes_as_it_is,
        an_upstream_that_is_not_there_is_told_by_an_alert_and_in_the_record,
        each_direction_ends_by_itself,
        ti_07_a_hello_in_small_pieces_passes_once,
        ti_01_another_sni_is_refused_before_anything_is_dialled,
        ti_05_without_sni_the_connect_name_counts,
        what_is_not_tls_is_refused,
        who_has_no_grant_gets_no_tunnel,
        terms_that_nobody_counts_refuse,
        the_budget_of_each_way_cuts,
        silence_and_length_cut,
        a_reload_that_denies_or_intercepts_cuts_and_another_does_not,
        a_request_in_a_tunnel_that_was_intercepted_before_is_not_taken,
        what_runs_needs_no_dialer,
        a_private_address_is_not_dialled,
    ])
    report.run_in(lambda: place_of(config=""), [a_large_body_passes_both_ways_whole])
    report.run_in(BehindProxy, [it_passes_through_an_upstream_proxy])
    report.end()
