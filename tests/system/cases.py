"""Cases as data: bytes in, verdict, what the upstream saw, what the record says.

A file of tests/system/cases reads like this; a security person can add to it without knowing C:

    case SM-01 content-length beside transfer-encoding
      in tls                              # proxy | tunnel | tls | hello, then HOST (api.allowed.test)
      send "POST /v1/items HTTP/1.1\\r\\nHost: ${HOST}\\r\\n"
      send "Content-Length: 6\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nG"
      see 400 malformed_request
      upstream nothing

`for X in "a" "b"` runs the case once for each value of ${X}. Words:

    in MODE [HOST[:PORT]] [as SANDBOX]    proxy: bytes go to the listener; tunnel: behind a CONNECT; tls: inside
                                          TLS behind a CONNECT; hello: a ClientHello behind a CONNECT
    sni "NAME"                            of tls and hello, in place of HOST
    sni-raw "BYTES"                       hello only: the whole body of the extension
    extension NUMBER "BYTES"              hello only: one more, in front of the SNI
    send "BYTES"                          pieces are joined; escapes as in Python
    open                                  the client keeps its sending side open; else it closes it (but behind
                                          a CONNECT that is to be refused)
    reply "BYTES"                         what the upstream answers to each request (default: 200 and "ok")
    hangup                                and then it ends the connection
    see STATUS [REASON] | closed | alert NAME | handshake | text "T" | no "T" | answers N
    upstream nothing | requests N | incomplete | text "T" | no "T"
    record allow | deny REASON | has FIELD "TEXT"
    outcome REASON | has FIELD "TEXT"     of an allowed request's second record
    last has FIELD "TEXT"                 of the outcome of what was allowed, else of the decision: who was quicker
                                          says which
    within SECONDS                        from the first byte to the end of the answer
    whole                                 only in one piece (the case is about timing or size, or has surroundings)

More words (dns, certificate, server, ...) make the surroundings lie: see case_resolver.py, case_server.py, case_scene.py.

Variables: ${HOST} ${OTHER} ${PORT} ${PH_A} ${PH_B} ${SECRET_A} ${ATTACKER} and so on (see VALUES in
case_world.py), and functions around any text inside a string, as in "Basic ${b64(user:${PH_A})}": see Values.

Each case is run with its bytes whole, one byte at a time, and cut in two at some places (all places
with EXEAT_SPLITS=all); the upstream's reply is cut likewise. What a case need not say because it is
checked always: a refusal let nothing reach the upstream, made no connection and no DNS query unless
the case tells otherwise; each request and each fruitless tunnel has exactly one decision record, and the
one that the refusal names has its reason; and no form of a secret is in what the sandbox got, and, at
the end, in the log, the audit trail or any file.
"""
import ast
import base64
import ipaddress
import json
import os
import random
import re
import socket
import ssl
import struct
import time
import urllib.parse
import zlib

from case_resolver import encode as dns_labels
from case_scene import WORDS as SURROUNDINGS
from place import OK_ANSWER, Report, wait_for

SPLITS = int(os.environ.get("EXEAT_SPLITS", "2").replace("all", "100000"))
SEED = int(os.environ.get("EXEAT_SEED", "20261129"))
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
WORDS = {"in", "send", "reply", "see", "upstream", "record", "for", "whole", "sni", "sni-raw", "extension", "open",
         "hangup", "outcome", "last", "within"} | SURROUNDINGS
# A refusal that says less to the sandbox than to the operator (policy/reason.c).
SHOWN = {"placeholder_wrong_identity": "foreign_credential"}


# ---- reading ----

class Case:
    def __init__(self, name, at):
        self.name, self.at = name, at
        self.lines, self.loops = [], []

    def words(self, wanted):
        return [rest for word, rest in self.lines if word == wanted]

    def word(self, wanted, default=None):
        found = self.words(wanted)
        return found[0] if found else default

    def has(self, wanted):
        return any(word == wanted for word, _ in self.lines)


def parse(path):
    cases = []
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            text = line.strip()
            at = "%s:%d" % (os.path.basename(path), number)
            if not text or text.startswith("#"):
                continue
            word, _, rest = text.partition(" ")
            rest = rest.strip()
            if word == "case":
                cases.append(Case(rest, at))
            elif not cases or word not in WORDS:
                raise SystemExit("%s: unknown word '%s'" % (at, word))
            elif word == "for":
                name, _, values = rest.partition(" in ")
                cases[-1].loops.append((name.strip(), strings(values, at)))
            else:
                cases[-1].lines.append((word, rest))
    return cases


def strings(text, at):
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    if not found:
        raise SystemExit("%s: a string in double quotes is expected" % at)
    return found


def unescape(text):
    """Python's escapes; a quote that a function produced needs none."""
    return ast.literal_eval('b"' + re.sub(r'(\\.)|"', lambda m: m.group(1) or '\\"', text) + '"')


def escape(data):
    return "".join(chr(c) if 0x20 <= c < 0x7f and chr(c) not in '\\"${}(),' else "\\x%02x" % c for c in data)


def deflated(data, window):
    packer = zlib.compressobj(6, zlib.DEFLATED, window)
    return packer.compress(data) + packer.flush()


def dns_name(name):
    """A subjectAltName of one DNS name, in DER."""
    return b"\x30" + vector(1, b"\x82" + vector(1, name))


class Values:
    """Variables and the functions around them, applied to the text of a string before its escapes."""

    FUNCTIONS = {
        "b64": base64.b64encode,
        "b64url": lambda t: base64.urlsafe_b64encode(t).rstrip(b"="),
        "b64at1": lambda t: base64.b64encode(b"x" + t),
        "b64at2": lambda t: base64.b64encode(b"xy" + t),
        "url": lambda t: urllib.parse.quote(t, safe="").encode(),
        "all": lambda t: b"".join(b"%%%02X" % c for c in t),
        "low": lambda t: b"".join(b"%%%02x" % c for c in t),
        "json": lambda t: b"".join(b"\\u%04x" % c for c in t),
        "quoted": lambda t: json.dumps(t.decode()).encode()[1:-1],
        "html": lambda t: b"".join(b"&#%d;" % c for c in t),
        "hex": lambda t: t.hex().encode(),
        "HEX": lambda t: t.hex().upper().encode(),
        "rev": lambda t: t[::-1],
        "upper": bytes.upper,
        "first": lambda t: t[:1],
        "rest": lambda t: t[1:],
        "half": lambda t: t[:len(t) // 2],
        "otherhalf": lambda t: t[len(t) // 2:],
        "twist": lambda t: t[:-1] + (b"A" if t[-1:] != b"A" else b"B"),
        "lower": bytes.lower,
        "htmlhex": lambda t: b"".join(b"&#x%x;" % c for c in t),
        "utf16": lambda t: t.decode().encode("utf-16-le"),
        "utf16be": lambda t: t.decode().encode("utf-16-be"),
        "dns": lambda t: dns_labels(t.decode("latin-1")),
        "san": lambda t: dns_name(t).hex(":").encode(),
        "size": lambda t: b"%d" % len(t),
        "chunk": lambda t: b"%x\r\n%s\r\n" % (len(t), t),
        "chunks": lambda t: b"".join(b"1\r\n%c\r\n" % c for c in t),
        "hello": lambda t: client_hello(sni_list(t)),
        "records": lambda t: tls_records(t.split(b",", 1)[1][5:], int(t.split(b",", 1)[0])),
        "gzip": lambda t: deflated(t, 31),
        "zlib": lambda t: deflated(t, 15),
        "rawdeflate": lambda t: deflated(t, -15),
        "times": lambda t: t.split(b",", 1)[1] * int(t.split(b",", 1)[0]),
        "count": lambda t: b"".join(t.split(b",", 1)[1].replace(b"#", b"%d" % i) for i in range(int(t.split(b",", 1)[0]))),
    }

    def __init__(self, values):
        self.values = values

    def fill(self, text):
        previous = None
        names = "|".join(sorted(self.FUNCTIONS, key=len, reverse=True))
        while previous != text:
            previous = text
            text = re.sub(r"\$\{([A-Za-z_]+)\}", lambda m: self.values.get(m.group(1), m.group(0)), text)
            text = re.sub(r"\$\{(%s)\(([^()$]*)\)\}" % names,
                          lambda m: escape(self.FUNCTIONS[m.group(1)](unescape(m.group(2)))), text)
        if "${" in text:
            raise SystemExit("nothing is known of %s" % text[text.index("${"):][:60])
        return text

    def bytes(self, text):
        return unescape(self.fill(text))


def expand(case):
    """One (name, variables) for each combination of the loops."""
    runs = [(case.name, {})]
    for name, values in case.loops:
        runs = [("%s [%s]" % (n, v[:48]), dict(known, **{name: v})) for n, known in runs for v in values]
    return runs


def cuts(size, whole):
    """The ways in which the same bytes are sent: whole, every byte, and in two."""
    if whole or size < 2:
        return [[], [], []] if not whole else [[]]
    chooser = random.Random(SEED + size)
    places = list(range(1, size))
    some = places if SPLITS >= len(places) else sorted(chooser.sample(places, SPLITS))
    return [[], places if size < 3000 else places[::97]] + [[p] for p in some]


def pieces(data, at):
    last = 0
    for place in at + [len(data)]:
        if place > last:
            yield data[last:place]
        last = place


# ---- clients ----

class Plain:
    """A client in clear; can end its sending side."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(15)

    def send(self, data):
        self.sock.sendall(data)

    def finish(self):
        self.sock.shutdown(socket.SHUT_WR)

    def receive(self):
        return self.sock.recv(65536)

    def close(self):
        self.sock.close()


class Secure:
    """A TLS client that can end its sending side and read on, which Python's own socket cannot."""

    def __init__(self, sock, context, name):
        self.sock = sock
        sock.settimeout(15)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self._do(self.tls.do_handshake)

    def _flush(self):
        if self.outgoing.pending:
            self.sock.sendall(self.outgoing.read())

    def _do(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self._flush()
                data = self.sock.recv(65536)
                if data:
                    self.incoming.write(data)
                else:
                    self.incoming.write_eof()
            finally:
                self._flush()

    def send(self, data):
        self.tls.write(data)
        self._flush()

    def finish(self):
        try:
            self.tls.unwrap()
        except ssl.SSLError:
            pass
        self._flush()
        self.sock.shutdown(socket.SHUT_WR)

    def receive(self):
        try:
            return self._do(lambda: self.tls.read(65536))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def close(self):
        self.sock.close()


def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def sni_list(name):
    return vector(2, b"\0" + vector(2, name))


def client_hello(sni, more=()):
    """A ClientHello in one record that any TLS 1.3 server answers; sni: the extension's body, or None."""
    extensions = list(more)
    if sni is not None:
        extensions.append((0, sni))
    extensions += [(43, b"\x02\x03\x04"), (10, b"\0\x02\0\x1d"), (13, b"\0\x06\x04\x03\x08\x04\x04\x01"),
                   (51, vector(2, b"\0\x1d" + vector(2, b"\x05" * 32)))]
    body = b"\x03\x03" + b"\x11" * 32 + vector(1, b"\x22" * 32) + vector(2, b"\x13\x01\x13\x02") + b"\x01\0" + vector(
        2, b"".join(struct.pack(">H", number) + vector(2, data) for number, data in extensions))
    return tls_records(b"\x01" + vector(3, body), 16000)


def tls_records(message, size):
    return b"".join(b"\x16\x03\x01" + vector(2, part) for part in pieces(message, list(range(size, len(message), size))))


ALERTS = {10: "unexpected_message", 40: "handshake_failure", 47: "illegal_parameter", 49: "access_denied",
          50: "decode_error", 70: "protocol_version", 80: "internal_error", 112: "unrecognized_name",
          120: "no_application_protocol"}


# ---- one run ----

class Seen:
    def __init__(self):
        self.bytes, self.alert, self.handshake, self.opened, self.names = b"", None, False, False, None

    @property
    def statuses(self):
        """Of final answers."""
        return [int(s) for s in re.findall(rb"HTTP/1\.[01] ([2-9]\d\d)[ \r]", self.bytes)]

    def _refusal(self, part):
        # A field of the head, so that a refused HEAD tells it, too.
        found = re.search(rb"exeat-refusal: [^\r]*\(([a-z_]+); record ([^)\r]+)\)", self.bytes)
        return found.group(part).decode() if found else None

    @property
    def reason(self):
        return self._refusal(1)

    @property
    def record_id(self):
        return self._refusal(2)

    @property
    def refused(self):
        return not self.statuses or self.reason is not None

    def __str__(self):
        return repr(self.bytes[:500]) if self.bytes else "alert %s" % self.alert


class Trail:
    """The audit log, read on from where it was read last."""

    def __init__(self, place):
        self.path, self.at, self.records = place.path("state", "audit", "audit.jsonl"), 0, []

    def read(self):
        with open(self.path, "rb") as f:
            f.seek(self.at)
            data = f.read()
        whole = data[:data.rfind(b"\n") + 1]
        self.at += len(whole)
        self.records += [json.loads(line) for line in whole.splitlines()]
        return self.records

    def decisions(self, since):
        return [r for r in self.read()[since:] if r["kind"] == "decision" and r["origin"].startswith("egress")]


class Runner:
    def __init__(self, place, values, secrets, hidden, default_host):
        self.place, self.values, self.default_host = place, values, default_host
        self.secrets, self.hidden = secrets, hidden
        self.trail = Trail(place)
        self.settled, self.unsettled = 0, False

    # ---- sending ----

    def _hello(self, case, values, host):
        sni, raw = case.word("sni"), case.word("sni-raw")
        name = values.bytes(strings(sni, case.at)[0]) if sni is not None else host.rsplit(":", 1)[0].encode()
        body = values.bytes(strings(raw, case.at)[0]) if raw is not None else sni_list(name)
        more = [(int(values.fill(rest.split()[0]), 0), values.bytes(strings(rest, case.at)[0])) for rest in case.words("extension")]
        return client_hello(None if raw == '""' else body, more)

    def _open(self, mode, host, sandbox, case, values, seen):
        if mode == "proxy":
            return Plain(self.place.connect(sandbox))
        sock = self.place.tunnel(sandbox, host)
        seen.opened = True
        if mode in ("tunnel", "hello"):
            return Plain(sock)
        name, sni = host.rsplit(":", 1)[0], case.word("sni")
        context = self.place.client_context()
        if sni is not None:
            context = ssl.create_default_context(cafile=self.place.path("state", "public", "ca.pem"))
            context.check_hostname = False
            name = values.bytes(strings(sni, case.at)[0]).decode("ascii")
        try:
            return Secure(sock, context, name.strip("[]"))
        except ssl.SSLError as failure:
            seen.alert = str(failure.reason)
            sock.close()
            return None

    def _aim(self, case, values):
        words = values.fill(case.word("in", "tls")).split()
        sandbox = words[words.index("as") + 1] if "as" in words else "a"
        words = words[:words.index("as")] if "as" in words else words
        host = words[1] if len(words) > 1 else self.default_host
        if not re.search(r":\d+$", host) or host.endswith("]"):
            host += ":%s" % self.place.values["port"]
        return words[0], host, sandbox

    def _exchange(self, case, values, at, data):
        seen = Seen()
        mode, host, sandbox = self._aim(case, values)
        stream = self._open(mode, host, sandbox, case, values, seen)
        if not stream:
            return seen
        seen.handshake = mode == "tls"
        if mode == "tls":
            seen.names = [v for k, v in (stream.tls.getpeercert() or {}).get("subjectAltName", ())]
        try:
            for piece in pieces(data, at):
                stream.send(piece)
            if not case.has("open") and not data.startswith(b"CONNECT"):
                stream.finish()
        except OSError:
            pass
        self._receive(case, stream, seen)
        stream.close()
        if mode == "hello":
            self._read_hello(seen)
        return seen

    @staticmethod
    def _receive(case, stream, seen):
        wanted = [int(r.split()[1]) for r in case.words("see") if r.startswith("answers")]
        while True:
            if case.has("open") and wanted and len(seen.statuses) >= wanted[0] and not seen.reason:
                return
            try:
                data = stream.receive()
            except (OSError, ssl.SSLError):
                return
            if not data:
                return
            seen.bytes += data
            # A ServerHello, by itself or behind the answer to CONNECT: nothing more comes without a handshake.
            if re.match(rb"(?:HTTP/1\.1 200 [^\r]*\r\n\r\n)?\x16.{5}", seen.bytes, re.S):
                return

    @staticmethod
    def _read_hello(seen):
        if seen.bytes[:1] == b"\x16" and seen.bytes[5:6] == b"\x02":
            seen.handshake = True
        elif seen.bytes[:1] == b"\x15" and len(seen.bytes) >= 7:
            seen.alert = ALERTS.get(seen.bytes[6], str(seen.bytes[6]))
        seen.bytes = b"" if seen.handshake or seen.alert else seen.bytes

    # ---- judging ----

    def _check_see(self, case, values, seen):
        for rest in case.words("within"):
            assert seen.seconds <= float(rest), "it took %.1f s" % seen.seconds
        for rest in case.words("see"):
            word, _, more = rest.partition(" ")
            if word.isdigit():
                want = int(word)
                assert seen.statuses and seen.statuses[-1] == want, "saw %s" % seen
                if more:
                    assert seen.reason == more, "reason %s, saw %s" % (seen.reason, seen)
            elif word == "closed":
                assert seen.bytes == b"" and not seen.alert and seen.handshake == (case.word("in", "tls")[:3] == "tls"), \
                    "saw %s" % seen
            elif word == "alert":
                assert seen.alert and more.upper() in seen.alert.upper().replace(" ", "_"), "saw %s" % seen
            elif word == "handshake":
                assert seen.handshake, "saw %s" % seen
            elif word == "answers":
                assert len(seen.statuses) == int(more), "answers %r" % seen.statuses
            elif word in ("text", "no"):
                needle = values.bytes(strings(more, case.at)[0])
                assert (needle in seen.bytes) == (word == "text"), "saw %s" % seen
            else:
                raise SystemExit("%s: see %s?" % (case.at, word))

    def _check_upstream(self, case, values, seen):
        up = self.place.upstream
        wanted = case.words("upstream")
        if not wanted and seen.refused:
            wanted = ["nothing"]
        for rest in wanted:
            word, _, more = rest.partition(" ")
            if word == "incomplete":
                # What had left when the rest turned out bad was cut: no server takes it for a request.
                assert not up.requests, "upstream got a whole request: %r" % up.requests[0][:300]
                continue
            got = b"".join(up.requests + up.broken)
            if word == "nothing":
                assert got == b"" and up.connections == 0, "upstream got %d connections, %r" % (up.connections, got[:300])
            elif word == "requests":
                assert len(up.requests) == int(more) and not up.broken, "upstream got %r" % got[:300]
            elif word in ("text", "no"):
                needle = values.bytes(strings(more, case.at)[0])
                assert (needle in got) == (word == "text"), "upstream got %r" % got[:600]
            else:
                raise SystemExit("%s: upstream %s?" % (case.at, word))

    def _check_resolver(self, case, seen):
        if self.place.resolver and seen.refused and not case.words("upstream"):
            assert not self.place.resolver.asked, "DNS was asked for %r" % self.place.resolver.asked

    def _check_name(self, case, values, seen):
        """The leaf names the one host of the tunnel and nothing else (P3, TI-09)."""
        if seen.names is None:
            return
        host = self._aim(case, values)[1].rsplit(":", 1)[0].lower().rstrip(".").strip("[]")
        if ":" in host:
            seen.names, host = [ipaddress.ip_address(name) for name in seen.names], ipaddress.ip_address(host)
        assert seen.names == [host], "the leaf names %r" % seen.names

    def _check_record(self, case, values, seen):
        expected = max(1, len(seen.statuses))
        found = wait_for(lambda: len(self.trail.decisions(self.settled)) >= expected, 5) and \
            self.trail.decisions(self.settled)
        self.settled = len(self.trail.records)
        assert found, "no record of it"
        # A request that turns out bad behind its head has a record of what became of its head as well.
        most = expected + ("incomplete" in case.words("upstream"))
        assert expected <= len(found) <= most, "%d decision records for %d: %r" % (len(found), expected, found)
        record = found[-1]
        if seen.record_id:
            assert record["id"] == seen.record_id, "the refusal names record %s: %r" % (seen.record_id, record)
            if record["verdict"] == "allow":
                outcome = self._outcome(record["id"])
                assert outcome and outcome["reason"] == seen.reason, "outcome %r" % outcome
            else:
                assert SHOWN.get(record["reason"], record["reason"]) == seen.reason, "record %r" % record
        assert record["verdict"] == ("allow" if not seen.refused else "deny") or case.words("record") or case.words("last"), "record %r" % record
        for rest in case.words("record"):
            word, _, more = rest.partition(" ")
            if word in ("allow", "deny"):
                assert record["verdict"] == word, "record %r" % record
                assert not more or record["reason"] == more, "record %r" % record
            elif word == "has":
                field, _, text = more.partition(" ")
                needle = values.bytes(strings(text, case.at)[0]).decode("latin-1")
                assert needle in str(record.get(field, "")), "record %r" % record
            elif word == "no":
                needle = values.bytes(strings(more, case.at)[0]).decode("latin-1")
                assert needle not in json.dumps(record), "record %r" % record
            else:
                raise SystemExit("%s: record %s?" % (case.at, word))
        if case.words("outcome"):
            self._check_record_words(case, values, case.words("outcome"), self._outcome(record["id"]))
        if case.words("last"):
            self._check_record_words(case, values, case.words("last"), record if record["verdict"] == "deny" else self._outcome(record["id"]))

    def _outcome(self, record_id):
        return wait_for(lambda: next((r for r in self.trail.read() if r["kind"] == "outcome"
                                      and r.get("id") == record_id), None))

    def _check_record_words(self, case, values, words, outcome):
        for rest in words:
            word, _, more = rest.partition(" ")
            field, _, text = more.partition(" ")
            if word == "has":
                needle = values.bytes(strings(text, case.at)[0]).decode("latin-1")
                assert outcome and needle in str(outcome.get(field, "")), "outcome %r" % outcome
            else:
                assert outcome and outcome.get("reason", "allowed") == word, "outcome %r" % outcome

    def _check_secrets(self, seen):
        for secret in self.secrets:
            for form in forms(secret):
                assert form not in seen.bytes, "a secret reached the sandbox: %s" % seen

    # ---- running ----

    def _script(self, reply, at, hangup):
        def script(request, stream):
            for piece in pieces(reply, at):
                stream.sendall(piece)
            return None if hangup else b""
        return script

    def _run_once(self, case, values, at, data, reply, reply_at):
        """Once more where the case before this one left a connection or a question in the making: what came late was that one's."""
        unsettled, self.unsettled = self.unsettled, "incomplete" in case.words("upstream") or case.has("dns")
        try:
            self._try_once(case, values, at, data, reply, reply_at)
        except AssertionError:
            if not unsettled:
                raise
            self.place.records()  # waits until no more come
            self.settled = len(self.trail.read())
            self._try_once(case, values, at, data, reply, reply_at)

    def _try_once(self, case, values, at, data, reply, reply_at):
        up = self.place.upstream
        up.forget()
        if self.place.resolver:
            self.place.resolver.asked.clear()
        up.script = self._script(reply, reply_at, case.has("hangup"))
        if not self.place.scene and any(case.has(word) for word in SURROUNDINGS):
            raise SystemExit("%s: nothing surrounds the daemon here" % case.at)
        if self.place.scene:
            self.place.scene.begin(case, values, self._aim(case, values)[1].rsplit(":", 1)[0].strip("[]"))
        begun = time.monotonic()
        seen = self._exchange(case, values, at, data)
        seen.seconds = time.monotonic() - begun
        self._check_see(case, values, seen)
        self._check_secrets(seen)
        self._check_name(case, values, seen)
        self._check_record(case, values, seen)
        self._check_upstream(case, values, seen)
        self._check_resolver(case, seen)
        if self.place.scene:
            self.place.scene.check(case, values)

    def _run_case(self, case, values):
        data = b"".join(values.bytes(strings(s, case.at)[0]) for s in case.words("send"))
        reply = b"".join(values.bytes(strings(s, case.at)[0]) for s in case.words("reply")) or OK_ANSWER
        if case.word("in", "").startswith("hello") and not data:
            data = self._hello(case, values, self._aim(case, values)[1])
        whole = case.has("whole") or any(case.has(word) for word in SURROUNDINGS)
        ways, replies = cuts(len(data), whole), cuts(len(reply), whole)
        for number, at in enumerate(ways):
            try:
                self._run_once(case, values, at, data, reply, replies[number % len(replies)])
            except AssertionError as why:
                how = "whole" if not at else "every byte" if len(at) > 1 else "cut at %d" % at[0]
                self.settled = len(self.trail.read())
                raise AssertionError("%s, %s: %s" % (case.at, how, why))

    def run(self, report, case):
        for name, known in expand(case):
            try:
                self._run_case(case, Values(dict(self.values, **known)))
                report.ok(name)
            except AssertionError as why:
                report.bad(name, why)
            except OSError as why:
                report.bad(name, "%s: %s: %s" % (case.at, type(why).__name__, why))


# ---- secrets ----

def forms(secret):
    """The spellings of a secret that the catalogue names."""
    raw = secret.encode()
    return (raw, base64.b64encode(raw)[:-4], base64.b64encode(b"x" + raw)[4:-4], base64.b64encode(b"xy" + raw)[4:-4],
            raw.hex().encode(), raw.hex().upper().encode(), b"".join(b"%%%02X" % c for c in raw))


def check_secrets_at_rest(place, secrets):
    """No form of a secret in the log, the audit trail or any file of the state directory (in clear)."""
    for root, _, files in os.walk(place.directory):
        for name in files:
            if name.endswith(".sock"):
                continue
            with open(os.path.join(root, name), "rb") as f:
                content = f.read()
            for secret in secrets:
                for form in forms(secret):
                    assert form not in content, "%s holds a secret in clear" % name


def run_files(names, world):
    """Runs the named files of cases in one place; world makes it (see case_world.py)."""
    report = Report()
    place, values, secrets, hidden = world()
    try:
        place.start()
        values = values(place)
        runner = Runner(place, values, secrets, hidden, "api.allowed.test")
        chosen = os.environ.get("EXEAT_CASE", "")
        for name in names:
            for case in parse(os.path.join(FOLDER, name + ".case")):
                if chosen in case.name:
                    runner.run(report, case)
        # The record of a whole theme still verifies, and its processes are those that began it.
        place.secret_values, place.hidden_values = secrets, hidden(place)
        report.run(secrets_are_in_no_file, place)
        report.run(placeholders_are_in_no_log, place)
        report.run(no_process_was_lost, place)
    finally:
        place.__exit__()
    report.end()


def secrets_are_in_no_file(place):
    check_secrets_at_rest(place, place.secret_values)


def placeholders_are_in_no_log(place):
    for path in (place.path("exeatd.log"), place.path("state", "audit", "audit.jsonl")):
        with open(path, "rb") as f:
            content = f.read()
        for placeholder in place.hidden_values:
            assert placeholder.encode() not in content, "%s holds a placeholder" % path


def no_process_was_lost(place):
    lost = [line for line in place.log().splitlines() if " ended: " in line or "broke the contract" in line]
    assert not lost, "; ".join(lost)
