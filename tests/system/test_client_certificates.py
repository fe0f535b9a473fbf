"""What a service shows its upstream: a client certificate of the vault, lent for the length of a handshake."""
import hashlib
import json
import os
import re
import ssl
import subprocess
import threading

from helpers import ask, code, memory_of, small_place
from place import Upstream, UpstreamCa, need_root, openssl, run_all, wait_for
from test_promises import mapping, mappings

POLICY = """
service shown { host api.allowed.test; port {port} {other_port} {asking_port}; range 127.0.0.0/8
    upstream client-certificate us; operation r { GET /** } }
service third { host third.test; port {port}; range 127.0.0.0/8
    upstream client-certificate third; operation r { GET /** } }
service missing { host missing.test; port {port}; range 127.0.0.0/8
    upstream client-certificate nobody; operation r { GET /** } }
service plain { host plain.test; port {port} {asking_port}; range 127.0.0.0/8; operation r { GET /** } }
service secret { host secret.test; port {port}; range 127.0.0.0/8
    upstream client-certificate a-secret; operation r { GET /** } }
service pinned { host pinned.test; port {port}; range 127.0.0.0/8; upstream client-certificate us
    upstream pin sha256:%s; operation r { GET /** } }
sandbox a { grant shown all; grant missing all; grant plain all; grant secret all; grant pinned all; grant third all }
sandbox b { grant plain all }
""" % ("0" * 64)
HOSTS = ("api.allowed.test", "third.test", "missing.test", "plain.test", "secret.test", "pinned.test")
CURVES = {"p256": ("ec", "P-256"), "p384": ("ec", "P-384"), "ed25519": ("ed25519", None)}


def client_certificate(place, name, kind="p256", days=2, encoding="pkcs8"):
    """Paths of chain and key, issued by a CA that only upstreams know."""
    algorithm, curve = CURVES.get(kind, (kind, None))
    options = ["-pkeyopt", "ec_paramgen_curve:" + curve] if curve else []
    openssl(place.directory, "req", "-newkey", algorithm, *options, "-nodes", "-keyout", name + ".key", "-out", name + ".csr",
            "-subj", "/CN=%s/O=clients" % name)
    with open(place.path(name + ".ext"), "w") as f:
        f.write("extendedKeyUsage=clientAuth\nkeyUsage=digitalSignature\n")
    openssl(place.directory, "x509", "-req", "-in", name + ".csr", "-CA", "up-ca.pem", "-CAkey", "up-ca.key",
            "-CAcreateserial", "-sha256", "-days", str(days), "-extfile", name + ".ext", "-out", name + ".pem")
    if encoding == "sec1":
        openssl(place.directory, "ec", "-in", name + ".key", "-out", name + ".key")
    return place.path(name + ".pem"), place.path(name + ".key")


def scalar(key):
    """The private number, by openssl and not by us."""
    text = subprocess.run(["openssl", "pkey", "-in", key, "-noout", "-text"], stdout=subprocess.PIPE, check=True).stdout.decode()
    digits = re.search(r"priv:\s+([0-9a-f:\s]+)pub:", text).group(1)
    number = bytes.fromhex(re.sub(r"[^0-9a-f]", "", digits))
    return number[1:] if len(number) in (33, 49) else number


def fingerprint(pem):
    der = subprocess.run(["openssl", "x509", "-in", pem, "-outform", "der"], stdout=subprocess.PIPE, check=True).stdout
    return hashlib.sha256(der).hexdigest()


def server(place, mode, versions=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place.path("upstream.pem"), place.path("upstream.key"))
    context.load_verify_locations(place.ca.pem)
    context.verify_mode = mode
    if versions:
        context.minimum_version = context.maximum_version = versions
    return context


class Shown:
    """An upstream that wants a certificate, and whom each of its requests came from."""

    def __init__(self, place, mode):
        self.place, self.mode, self.subjects, self.resumed, self.fields = place, mode, [], [], b""
        self.upstream = Upstream(context=server(place, mode))
        self.upstream.script = self.answer
        self.port = self.upstream.port

    def answer(self, request, stream):
        subject = dict(x[0] for x in (stream.getpeercert() or {}).get("subject", ()))
        self.subjects.append(subject.get("commonName"))
        self.resumed.append(stream.session_reused)
        return b"HTTP/1.1 200 OK\r\n%sContent-Length: 2\r\n\r\nok" % self.fields

    def speak(self, versions):
        self.upstream.context = server(self.place, self.mode, versions)

    def forget(self):
        self.subjects, self.resumed = [], []


class World:
    def __enter__(self):
        self.place = place = small_place(POLICY, {"a": "sandbox a", "b": "sandbox b"}, ["a", "b"],
                                         {"a-secret": ("0123456789abcdef0123", "")}, HOSTS)
        place.demands = Shown(place, ssl.CERT_REQUIRED)
        place.asks = Shown(place, ssl.CERT_OPTIONAL)
        place.values.update(port=place.demands.port, other_port=place.upstream.port, asking_port=place.asks.port)
        place.__enter__()
        place.first = client_certificate(place, "first")
        add(place, "us", place.first)
        return place

    def __exit__(self, *ignored):
        self.place.__exit__()
        self.place.demands.upstream.close()
        self.place.asks.upstream.close()


def add(place, name, pair, verb="add"):
    place.exeat("secret", verb, name, "--client-certificate", pair[0], "--file", pair[1])


def decisions(place, host):
    return [r for r in place.records() if r["kind"] == "decision" and r.get("host") == host and r.get("method") == "GET"]


def get(place, host="api.allowed.test", port="port", sandbox="a"):
    """(the answer, the decision's record)"""
    keep, before = place.values["port"], len(decisions(place, host))
    place.values["port"] = place.values[port]
    try:
        answer = ask(place, "GET /x", host=host, placeholder=None, sandbox=sandbox)
    finally:
        place.values["port"] = keep
    if answer.record:
        return answer, place.record(answer.record)
    assert wait_for(lambda: len(decisions(place, host)) > before, 5), answer
    return answer, decisions(place, host)[-1]


def lent(place):
    return [r for r in place.records() if r.get("event") == "certificate_lent"]


def is_refused(place, host, reason, says):
    before = len(place.demands.subjects)
    answer, record = get(place, host)
    assert answer.reason == reason, answer
    assert says in record["detail"], record
    assert len(place.demands.subjects) == before


def no_pool(place):
    """Connections and sessions that the lane has end with a generation."""
    place.exeat("reload")


def a_certificate_is_shown_to_an_upstream_that_demands_one(place):
    for versions in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        place.demands.forget()
        place.demands.speak(versions)
        no_pool(place)
        answer, record = get(place)
        assert answer.status == 200
        assert place.demands.subjects == ["first"]
        assert record["client_certificate"] == "us " + fingerprint(place.first[0]), record
    told = wait_for(lambda: lent(place), 5)
    assert told[-1]["client_certificate"] == fingerprint(place.first[0]) and told[-1]["credential"] == "us", told
    place.demands.speak(None)


def every_kind_of_key_is_taken_in_both_forms(place):
    for kind, encoding in (("p384", "pkcs8"), ("ed25519", "pkcs8"), ("p256", "sec1"), ("p384", "sec1")):
        pair = client_certificate(place, "kind-%s-%s" % (kind, encoding), kind, encoding=encoding)
        add(place, "third", pair)
        place.demands.forget()
        for versions in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            place.demands.speak(versions)
            no_pool(place)
            answer, record = get(place, "third.test")
            assert answer.status == 200, (kind, answer, record)
        assert place.demands.subjects == ["kind-%s-%s" % (kind, encoding)] * 2
        place.exeat("secret", "remove", "third")
    place.demands.speak(None)


def a_resumed_session_is_still_recorded_with_what_was_shown(place):
    place.demands.forget()
    no_pool(place)
    before, place.demands.fields = len(lent(place)), b"Connection: close\r\n"
    records = [get(place)[1] for _ in range(3)]
    place.demands.fields = b""
    assert any(place.demands.resumed), place.demands.resumed
    assert {r["client_certificate"] for r in records} == {"us " + fingerprint(place.first[0])}
    assert len(lent(place)) < before + 3


def no_certificate_of_the_vault_means_no_connection(place):
    is_refused(place, "missing.test", "certificate_unavailable", "no client certificate of that name")
    is_refused(place, "secret.test", "certificate_unavailable", "is no client certificate")


def an_upstream_that_does_not_prove_itself_is_shown_nothing(place):
    before = len(lent(place))
    is_refused(place, "pinned.test", "upstream_tls", "`upstream pin`")
    keep, other = place.demands.upstream.context, place.path("strangers")
    os.makedirs(other, exist_ok=True)
    stranger = UpstreamCa(other)
    cert, key = stranger.leaf("wrong", list(HOSTS))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(place.ca.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    no_pool(place)
    try:
        place.demands.upstream.context = context
        is_refused(place, "api.allowed.test", "upstream_tls", "no chain to a trust anchor")
        cert, key = place.ca.leaf("elsewhere", ["another.test"])
        context.load_cert_chain(cert, key)
        is_refused(place, "api.allowed.test", "upstream_tls", "for another host")
    finally:
        place.demands.upstream.context = keep
    assert len(lent(place)) == before


def an_upstream_that_does_not_ask_is_shown_nothing(place):
    before = len(lent(place))
    answer, record = get(place, port="other_port")
    assert answer.status == 200 and "client_certificate" not in record, record
    assert len(lent(place)) == before


def a_service_without_one_shows_none_and_that_is_recorded(place):
    place.asks.forget()
    answer, record = get(place, "plain.test", "asking_port")
    assert answer.status == 200 and place.asks.subjects == [None]
    assert record["client_certificate"] == "none", record


def a_sandbox_without_the_grant_is_shown_and_lent_nothing(place):
    place.demands.forget()
    assert get(place, sandbox="b")[0].reason == "host_not_allowed"
    assert get(place, "plain.test", sandbox="b")[0].status != 200
    assert place.demands.subjects == []


def a_rotated_certificate_is_shown_by_the_next_connection(place):
    place.demands.forget()
    assert get(place)[0].status == 200
    second = client_certificate(place, "second")
    add(place, "us", second, "rotate")
    answer, record = get(place)
    assert answer.status == 200 and place.demands.subjects == ["first", "second"]
    assert record["client_certificate"] == "us " + fingerprint(second[0]), record
    place.exeat("secret", "remove", "us")
    is_refused(place, "api.allowed.test", "certificate_unavailable", "no client certificate of that name")
    add(place, "us", place.first)
    assert get(place)[0].status == 200


def an_expired_certificate_is_not_kept(place):
    openssl(place.directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "old.key",
            "-out", "old.csr", "-subj", "/CN=old")
    try:
        openssl(place.directory, "x509", "-req", "-in", "old.csr", "-CA", "up-ca.pem", "-CAkey", "up-ca.key",
                "-CAcreateserial", "-days", "-1", "-out", "old.pem")
    except subprocess.CalledProcessError:
        openssl(place.directory, "x509", "-req", "-in", "old.csr", "-CA", "up-ca.pem", "-CAkey", "up-ca.key", "-CAcreateserial",
                "-not_before", "20200101000000Z", "-not_after", "20200102000000Z", "-out", "old.pem")
    says(place, "it has expired", "old.pem", "old.key")


def says(place, part, *how):
    said = refuses(place, *how)
    assert part in said, said


def refuses(place, chain, key, *more):
    place.exeat("secret", "add", "third", "--client-certificate", place.path(chain), "--file", place.path(key), *more,
                check=False)
    assert place.last.returncode != 0
    said = place.last.stderr.decode()
    assert "third" not in place.exeat("secret", "list")
    return said


def what_cannot_be_kept_is_refused_with_a_reason(place):
    other = client_certificate(place, "other")
    client_certificate(place, "rsa", "rsa:2048")
    says(place, "RSA", "rsa.pem", "rsa.key")
    says(place, "not that of the certificate", "other.pem", "first.key")
    says(place, "P-256, P-384 or Ed25519", "other.pem", "rsa.key")
    says(place, "no certificate", "other.csr", "other.key")
    says(place, "holds a private key", "other.key", "other.key")
    says(place, "is not for clients", "upstream.pem", "upstream.key")
    openssl(place.directory, "pkcs8", "-topk8", "-in", "other.key", "-out", "locked.key", "-passout", "pass:word")
    says(place, "encrypted", "other.pem", "locked.key")
    with open(place.path("both.pem"), "w") as f:
        f.write(open(place.path("other.pem")).read() + open(place.path("first.pem")).read())
    says(place, "not in order", "both.pem", "other.key")
    says(place, "neither --like", "other.pem", "other.key", "--like", "x")
    assert code(place, "secret", "rotate", "us", stdin=b"0123456789abcdef0123") != 0
    assert "--client-certificate" in place.last.stderr.decode()
    place.exeat("secret", "rotate", "a-secret", "--client-certificate", other[0], "--file", other[1], check=False)
    assert "no client certificate" in place.last.stderr.decode()


def the_list_says_what_it_is_and_how_long_it_lasts(place):
    listed = {s["name"]: s for s in json.loads(place.exeat("secret", "list", "--json"))}
    assert listed["us"]["kind"] == "client certificate" and "CN=first" in listed["us"]["subject"], listed
    assert listed["us"]["fingerprint"] == fingerprint(place.first[0])
    assert listed["a-secret"]["kind"] == "secret"
    text = place.exeat("secret", "list")
    assert "NOT AFTER" in text and "CN=first" in text


def a_copy_and_a_new_key_of_the_vault_keep_it(place):
    place.exeat("vault", "backup", place.path("copy"))
    place.exeat("secret", "remove", "us")
    place.exeat("vault", "restore", place.path("copy"))
    place.demands.forget()
    assert get(place)[0].status == 200
    place.exeat("vault", "rekey")
    no_pool(place)
    assert get(place)[0].status == 200
    assert set(place.demands.subjects) == {"first"}


def spellings(number):
    return {number, number[::-1], number.hex().encode()}


def p2_the_key_is_in_locked_memory_while_it_is_used_and_gone_from_egress_afterwards(place):
    need_root("look into undumpable processes")
    with open(place.first[1]) as f:
        forms = spellings(scalar(place.first[1])) | {f.read().split("\n")[1].encode()}
    stall, reached = threading.Event(), threading.Event()
    context = server(place, ssl.CERT_REQUIRED, ssl.TLSVersion.TLSv1_2)

    def slow(raw):
        """It has seen the certificate, and keeps back its last flight: egress still has the key."""
        raw.settimeout(30)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                raw.sendall(outgoing.read())
                incoming.write(raw.recv(65536))
                continue
            break
        reached.set()
        stall.wait(10)
        raw.sendall(outgoing.read())
        raw.close()
        raise OSError("done")

    opened = place.demands.upstream.open
    no_pool(place)
    place.demands.upstream.open = slow
    asking = threading.Thread(target=lambda: get(place))
    asking.start()
    try:
        assert reached.wait(10)
        for (role, lane), pid in place.pids().items():
            for start, flags in mappings(pid):
                piece = mapping(pid, start)
                assert not any(f in piece for f in forms) or ("lo" in flags and "dd" in flags and
                                                              role in ("broker", "egress")), \
                    "%s %d has the key at %x, flags %s" % (role, lane, start, " ".join(flags))
    finally:
        stall.set()
        place.demands.upstream.open = opened
        asking.join()
    no_pool(place)
    for _ in range(5):
        assert get(place)[0].status == 200
        for (role, lane), pid in place.pids().items():
            found = any(f in piece for piece in memory_of(pid) for f in forms)
            assert role == "broker" or not found, "%s %d has the key" % (role, lane)
    assert not any(f in piece for piece in memory_of(place.daemon.pid) for f in forms)


if __name__ == "__main__":
    with World() as world:
        report = run_all([
            a_certificate_is_shown_to_an_upstream_that_demands_one,
            p2_the_key_is_in_locked_memory_while_it_is_used_and_gone_from_egress_afterwards,
            every_kind_of_key_is_taken_in_both_forms,
            a_resumed_session_is_still_recorded_with_what_was_shown,
            no_certificate_of_the_vault_means_no_connection,
            an_upstream_that_does_not_prove_itself_is_shown_nothing,
            an_upstream_that_does_not_ask_is_shown_nothing,
            a_service_without_one_shows_none_and_that_is_recorded,
            a_sandbox_without_the_grant_is_shown_and_lent_nothing,
            what_cannot_be_kept_is_refused_with_a_reason,
            an_expired_certificate_is_not_kept,
            the_list_says_what_it_is_and_how_long_it_lasts,
            a_copy_and_a_new_key_of_the_vault_keep_it,
            a_rotated_certificate_is_shown_by_the_next_connection,
        ], world)
    report.end()
