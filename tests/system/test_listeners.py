#!/usr/bin/env python3
"""The shared listener, where sandboxes prove who they are; listeners that say whom they let in; Unix sockets and vsock."""
import json
import os
import socket

from helpers import POLICY, Answer, ask, small_place
from place import Report, Skip, basic, free_port, read_all, wait_for


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


def newest(place, **facts):
    """The newest decision with these facts."""
    return wait_for(lambda: next((r for r in reversed(place.records()) if r["kind"] == "decision" and all(
        r.get(k) == v for k, v in facts.items())), None))


def a_unix_socket_lets_in_only_the_users_that_it_names(place):
    answer = ask(place, "GET /v1/items/mine", "a", listener="unix-mine")
    assert answer.status == 200, answer
    # The answer comes unasked: who is told no need not have said what he wants.
    answer = Answer(read_all(place.connect("unix-other")))
    assert (answer.status, answer.reason) == (403, "peer_not_allowed"), answer
    record = newest(place, reason="peer_not_allowed")
    assert record["client"] == "unix uid %d" % os.getuid() and record["sandbox"] == "a" and record["id"] == answer.record, record
    answer = ask(place, "GET /v1/items/other", "a", listener="unix-other")
    assert answer.status == 403 and answer.reason == "peer_not_allowed", answer


# ---- the PROXY protocol ----

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
RELAY = "127.0.0.2"
FOUR = socket.inet_aton("192.0.2.7") + socket.inet_aton("10.0.0.1") + b"\x12\x67\x0c\x38"
SIX = socket.inet_pton(socket.AF_INET6, "2001:db8::9") + socket.inet_pton(socket.AF_INET6, "fd00::1") + b"\x12\x67\x0c\x38"


def header(family, addresses, command=0x21):
    return SIGNATURE + bytes((command, family)) + len(addresses).to_bytes(2, "big") + addresses


def relayed(place, first, source=RELAY, path="/relayed", pieces=False):
    """What comes back when `first`, then a request is sent from that address."""
    with socket.create_connection(("127.0.0.1", place.ports["relayed"]), timeout=15, source_address=(source, 0)) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = first + b"GET http://%s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (authority(place), path.encode(), authority(place))
        for piece in ([request[i:i + 1] for i in range(60)] + [request[60:]] if pieces else [request]):
            s.sendall(piece)
        return Answer(read_all(s))


def a_relay_that_is_named_tells_whose_connection_it_is(place):
    for family, addresses, client in ((0x11, FOUR, "192.0.2.7:4711"), (0x21, SIX, "[2001:db8::9]:4711"),
                                      (0x11, FOUR + b"\x01\x00\x02h2\x04\x00\x00", "192.0.2.7:4711")):
        path = "/relayed/%d" % len(addresses)
        for pieces in (False, True):
            answer = relayed(place, header(family, addresses), path=path, pieces=pieces)
            assert answer.reason == "clear_not_allowed", answer
            record = newest(place, path=path)
            assert record["client"] == client and record["id"] == answer.record and record["sandbox"] == "a", record


def a_relay_speaks_for_itself_when_it_names_no_client(place):
    for n, first in enumerate((header(0, b"", 0x20), header(0x11, FOUR, 0x20), header(0, b""), header(0, b"xyz"))):
        path = "/itself/%d" % n
        answer = relayed(place, first, path=path)
        assert answer.reason == "clear_not_allowed", answer
        assert newest(place, path=path)["client"].startswith(RELAY + ":"), newest(place, path=path)


def a_relay_that_sends_no_such_header_is_refused_with_a_record(place):
    for first in (b"", b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 3128\r\n", header(0x12, FOUR), header(0x11, FOUR[:-1]),
                  header(0x31, bytes(216)), header(0x11, FOUR, 0x22), header(0x11, FOUR + b"\x01")):
        answer = relayed(place, first)
        assert (answer.status, answer.reason) == (400, "malformed_request"), (first, answer)
        record = newest(place, id=answer.record)
        assert record["client"].startswith(RELAY + ":") and "PROXY" in record["detail"] and "host" not in record, record
    with socket.create_connection(("127.0.0.1", place.ports["relayed"]), timeout=15, source_address=(RELAY, 0)) as s:
        s.sendall(SIGNATURE)
        s.shutdown(socket.SHUT_WR)
        answer = Answer(read_all(s))
        assert answer.status == 400 and "not whole" in newest(place, id=answer.record)["detail"], answer


def a_header_of_anybody_else_is_no_request_ct_11(place):
    answer = relayed(place, header(0x11, FOUR), source="127.0.0.1")
    assert (answer.status, answer.reason) == (400, "malformed_request"), answer
    record = newest(place, id=answer.record)
    assert record["client"].startswith("127.0.0.1:") and "proxy-protocol" in record["detail"], record
    # Who is not named speaks as at any listener.
    answer = relayed(place, b"", source="127.0.0.1", path="/direct")
    assert answer.reason == "clear_not_allowed" and newest(place, path="/direct")["client"].startswith("127.0.0.1:"), answer
    # And a second header is none, either.
    answer = relayed(place, 2 * header(0x11, FOUR))
    assert answer.status == 400 and newest(place, id=answer.record)["client"] == "192.0.2.7:4711", answer


def a_reload_changes_whom_a_listener_lets_in(place):
    before = place.listeners["unix-other"]
    place.listeners["unix-other"] = "sandbox a; uid %d %d" % (os.getuid() + 1, os.getuid())
    try:
        place.configure()
        place.exeat("reload")
        answer = ask(place, "GET /v1/items/now", "a", listener="unix-other")
        assert answer.status == 200, answer
    finally:
        place.listeners["unix-other"] = before
        place.configure()
        place.exeat("reload")


# ---- vsock ----

def vsock(port, listen=False):
    """A socket of this machine's own vsock, connected or listening; Skip without one."""
    try:
        s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    except (AttributeError, OSError) as why:
        raise Skip("this kernel has no vsock: %s" % why)
    s.settimeout(5)
    try:
        if listen:
            s.bind((socket.VMADDR_CID_ANY, port))
            s.listen(4)
        else:
            s.connect((1, port))
    except OSError as why:
        s.close()
        raise Skip("vsock has no loopback here (module vsock_loopback): %s" % why)
    return s


def find_loopback():
    port = free_port()
    with vsock(port, True), vsock(port):
        pass


def what_is_issued_without_a_listener_for_the_proxy_has_none(_):
    with small_place(POLICY, {"b": "sandbox b"}, config="listen transparent 127.0.0.1:%d { sandbox a }\n" % free_port()) as place:
        issued = place.sandboxes["a"]["variables"]
        assert "SSL_CERT_FILE" in issued and not {"https_proxy", "EXEAT_SOCKET", "EXEAT_VSOCK"} & set(issued), issued
        place.exeat("sandbox", "add", "c", check=False)
        said = place.last.stderr.decode()
        assert place.last.returncode == 3 and "sandbox c" in said and "exeat.conf" in said, said


def vsock_listeners_are_opened_and_shown(_):
    vsock(free_port(), True).close()
    port = free_port()
    with small_place(POLICY, {"unix": "sandbox b"}, config="listen vsock %d { sandbox a; cid 3 }\n" % port) as place:
        listeners = [name for lane in json.loads(place.exeat("status", "--json"))["lanes"] for name in lane["listeners"]]
        assert "vsock:%d" % port in listeners, listeners
        issued = place.sandboxes["a"]["variables"]
        assert issued["EXEAT_VSOCK"] == "2:%d" % port and "https_proxy" not in issued and "EXEAT_SOCKET" not in issued, issued


def vsock_is_a_way_in_for_the_guest_that_it_names(_):
    find_loopback()
    mine, other = free_port(), free_port()
    with small_place(POLICY, {"unix": "sandbox b"}, config="listen vsock %d { sandbox a; cid 1 }\nlisten vsock %d { sandbox c; cid 7 }\n" % (mine, other)) as place:
        stream = vsock(mine)
        stream.sendall(b"GET http://%s/vsock HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (authority(place), authority(place)))
        assert Answer(read_all(stream)).reason == "clear_not_allowed"
        record = newest(place, path="/vsock")
        assert record["client"] == "vsock cid 1" and record["sandbox"] == "a", record
        answer = Answer(read_all(vsock(other)))
        assert answer.reason == "peer_not_allowed" and newest(place, id=answer.record)["client"] == "vsock cid 1", answer


def main():
    report = Report()
    listeners = {"shared": "shared b", "unix": "sandbox a", "unix-mine": "sandbox a; uid 4000000 %d" % os.getuid(),
                 "unix-other": "sandbox a; uid %d" % (os.getuid() + 1), "relayed": "sandbox a; proxy-protocol %s/31" % RELAY}
    report.run_in(lambda: small_place(POLICY, listeners), [f for name, f in globals().items() if name.startswith("a_")])
    report.run_all([what_is_issued_without_a_listener_for_the_proxy_has_none, vsock_listeners_are_opened_and_shown, vsock_is_a_way_in_for_the_guest_that_it_names])
    report.end()


if __name__ == "__main__":
    main()
