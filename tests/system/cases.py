"""Cases as data: bytes in, verdict, what the upstream saw, what the record says.

A file of tests/system/cases reads like this; a security person can add to it without knowing C:

    case SM-01 content-length beside transfer-encoding
      in tls                              # proxy | tunnel | tls | hello, then HOST (api.allowed.test)
      send "POST /v1/items HTTP/1.1\\r\\nHost: ${HOST}\\r\\n"
      send "Content-Length: 6\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nG"
      see 400 malformed_request
      upstream nothing
      record deny malformed_request

`for X in "a" "b"` runs the case once for each value of ${X}. Words:

    in MODE [HOST[:PORT]] [as SANDBOX]    proxy: bytes go to the listener; tunnel: behind a CONNECT; tls: inside
                                          TLS behind a CONNECT; hello: a TLS handshake with `sni "NAME"`
    send "BYTES"                          pieces are joined; escapes as in Python
    reply "BYTES"                         what the upstream answers (default: 200 and "ok")
    see STATUS [REASON] | closed | alert NAME | handshake | text "T" | no "T" | answers N
    upstream nothing | requests N | text "T" | no "T"
    record allow | deny REASON | has FIELD "TEXT"
    whole                                 not in splits (the case is about timing or size)

Variables: ${HOST} ${OTHER} ${PORT} ${PH_A} ${PH_B} ${PH_OTHER} ${SECRET_A} ${ATTACKER}, with b64(…), url(…)
and hex(…) around any text inside a string: "Basic ${b64(user:${PH_A})}". Each case is run with its bytes
whole, one byte at a time, and cut in two at some places (all places with EXEAT_SPLITS=all). Whatever a
case says, no form of a secret may stand in what the sandbox got, in the log or in the audit trail.
"""
import ast
import base64
import json
import os
import random
import re
import socket
import ssl
import urllib.parse

from place import OK_ANSWER, read_all

SPLITS = int(os.environ.get("EXEAT_SPLITS", "2").replace("all", "100000"))
SEED = int(os.environ.get("EXEAT_SEED", "20261129"))


class Case:
    def __init__(self, name, at):
        self.name, self.at = name, at
        self.lines, self.loops = [], []

    def words(self, wanted):
        return [rest for word, rest in self.lines if word == wanted]

    def word(self, wanted, default=None):
        found = self.words(wanted)
        return found[0] if found else default


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
            elif not cases or word not in ("in", "send", "reply", "see", "upstream", "record", "for", "whole", "sni"):
                raise SystemExit("%s: unknown word '%s'" % (at, word))
            elif word == "for":
                name, _, values = rest.partition(" in ")
                cases[-1].loops.append((name.strip(), strings(values, at)))
            else:
                cases[-1].lines.append((word, rest))
    return cases


def strings(text, at):
    found = re.findall(r'"(?:[^"\\]|\\.)*"', text)
    if not found:
        raise SystemExit("%s: a string in double quotes is expected" % at)
    return [s[1:-1] for s in found]


def unescape(text):
    return ast.literal_eval('b"' + text.replace('"', '\\"').replace('\\\\"', '\\"') + '"')


class Values:
    """Variables and the functions around them, applied to the text of a string before its escapes."""

    def __init__(self, values):
        self.values = values

    def fill(self, text):
        previous = None
        while previous != text:
            previous = text
            text = re.sub(r"\$\{([A-Za-z_]+)\}", lambda m: self.values.get(m.group(1), m.group(0)), text)
            text = re.sub(r"\$\{(b64|b64url|url|hex|all|rev|upper)\(([^(){}$]*)\)\}", self._call, text)
        return text

    @staticmethod
    def _call(match):
        name, text = match.group(1), ast.literal_eval('b"' + match.group(2) + '"')
        return {
            "b64": lambda t: base64.b64encode(t).decode(),
            "b64url": lambda t: base64.urlsafe_b64encode(t).decode().rstrip("="),
            "url": lambda t: urllib.parse.quote(t, safe=""),
            "all": lambda t: "".join("%%%02X" % c for c in t),
            "hex": lambda t: t.hex(),
            "rev": lambda t: t[::-1].decode(),
            "upper": lambda t: t.decode().upper(),
        }[name](text)

    def bytes(self, text):
        return unescape(self.fill(text))


def expand(case):
    """One (name, variables) for each combination of the loops."""
    runs = [(case.name, {})]
    for name, values in case.loops:
        runs = [("%s [%s]" % (n, v[:40]), dict(known, **{name: v})) for n, known in runs for v in values]
    return runs


def cuts(size, whole):
    """The ways in which the same bytes are sent."""
    if whole or size < 2:
        return [[]]
    chooser = random.Random(SEED + size)
    places = list(range(1, size))
    some = places if SPLITS >= len(places) else sorted(chooser.sample(places, SPLITS))
    return [[], places] + [[p] for p in some]


def pieces(data, at):
    last = 0
    for place in at + [len(data)]:
        if place > last:
            yield data[last:place]
        last = place


class Seen:
    def __init__(self):
        self.bytes, self.alert, self.handshake = b"", None, False

    @property
    def statuses(self):
        return [int(s) for s in re.findall(rb"HTTP/1\.[01] (\d\d\d)[ \r]", self.bytes)]

    @property
    def reason(self):
        found = re.search(rb'"reason":"([a-z_]+)"', self.bytes)
        return found.group(1).decode() if found else None

    @property
    def record_id(self):
        found = re.search(rb'"record":"([^"]+)"', self.bytes)
        return found.group(1).decode() if found else None


class Runner:
    def __init__(self, place, values, secrets, default_host):
        self.place, self.values, self.secrets, self.default_host = place, values, secrets, default_host

    # ---- sending ----

    def _open(self, mode, host, sandbox, case, values):
        if mode == "proxy":
            return self.place.connect(sandbox)
        if mode == "tunnel":
            return self.place.tunnel(sandbox, host)
        sni = case.word("sni")
        if sni is not None:
            sni = values.bytes(strings(sni, case.at)[0]).decode("latin-1")
        return self.place.tls(sandbox, host, sni=sni)

    def _exchange(self, case, values, at, data):
        seen = Seen()
        words = case.word("in", "tls").split()
        sandbox = words[words.index("as") + 1] if "as" in words else "a"
        words = words[:words.index("as")] if "as" in words else words
        host = values.fill(words[1]) if len(words) > 1 else self.default_host
        if ":" not in host:
            host += ":%s" % self.place.values["port"]
        try:
            stream = self._open(words[0], host, sandbox, case, values)
        except (ssl.SSLError, OSError) as failure:
            seen.alert = str(getattr(failure, "reason", failure))
            return seen
        seen.handshake = True
        try:
            stream.settimeout(20)
            for piece in pieces(data, at):
                stream.sendall(piece)
            if isinstance(stream, ssl.SSLSocket):
                # Python cannot half-close TLS; a request that asks for a close gets one.
                pass
            else:
                stream.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        seen.bytes = read_all(stream)
        stream.close()
        return seen

    # ---- judging ----

    def _check_see(self, case, values, seen):
        for rest in case.words("see"):
            word, _, more = rest.partition(" ")
            if word.isdigit():
                want = int(word)
                assert seen.statuses and seen.statuses[-1] == want, "saw %r" % (seen.bytes[:300] or seen.alert)
                if more:
                    assert seen.reason == more, "reason %s" % seen.reason
            elif word == "closed":
                assert seen.bytes == b"", "saw %r" % seen.bytes[:300]
            elif word == "alert":
                assert seen.alert and more.upper().replace("_", " ") in seen.alert.upper().replace("_", " "), \
                    "alert %s" % seen.alert
            elif word == "handshake":
                assert seen.handshake, "alert %s" % seen.alert
            elif word == "answers":
                assert len(seen.statuses) == int(more), "answers %r" % seen.statuses
            elif word in ("text", "no"):
                needle = values.bytes(strings(more, case.at)[0])
                assert (needle in seen.bytes) == (word == "text"), "saw %r" % seen.bytes[:600]
            else:
                raise SystemExit("%s: see %s?" % (case.at, word))

    def _check_upstream(self, case, values):
        up = self.place.upstream
        for rest in case.words("upstream"):
            word, _, more = rest.partition(" ")
            got = b"".join(up.requests + up.broken)
            if word == "nothing":
                assert got == b"", "upstream got %r" % got[:300]
            elif word == "requests":
                assert len(up.requests) == int(more) and not up.broken, "upstream got %r" % got[:300]
            elif word in ("text", "no"):
                needle = values.bytes(strings(more, case.at)[0])
                assert (needle in got) == (word == "text"), "upstream got %r" % got[:600]
            else:
                raise SystemExit("%s: upstream %s?" % (case.at, word))

    def _newest_record(self, seen, since):
        if seen.record_id:
            return self.place.record(seen.record_id)
        from place import wait_for
        return wait_for(lambda: next((r for r in reversed(self.place.records())
                                      if r["kind"] == "decision" and r["seq"] > since), None), 5, 0.05)

    def _check_record(self, case, values, seen, since):
        wanted = case.words("record")
        if not wanted:
            return
        record = self._newest_record(seen, since)
        assert record, "no record"
        for rest in wanted:
            word, _, more = rest.partition(" ")
            if word in ("allow", "deny"):
                assert record["verdict"] == word, "record %r" % record
                assert not more or record["reason"] == more, "record's reason %s" % record["reason"]
            elif word == "has":
                field, _, text = more.partition(" ")
                needle = values.bytes(strings(text, case.at)[0]).decode("latin-1")
                assert needle in str(record.get(field, "")), "record's %s: %r" % (field, record.get(field))
            else:
                raise SystemExit("%s: record %s?" % (case.at, word))

    def _check_secrets(self, seen):
        for secret in self.secrets:
            raw = secret.encode()
            for form in (raw, base64.b64encode(raw)[:-4], raw.hex().encode()):
                assert form not in seen.bytes, "a secret reached the sandbox"

    def _last_seq(self):
        records = self.place.records()
        return records[-1]["seq"] if records else 0

    def run(self, report, case):
        for name, known in expand(case):
            values = Values(dict(self.values, **known))
            data = b"".join(values.bytes(strings(s, case.at)[0]) for s in case.words("send"))
            reply = b"".join(values.bytes(strings(s, case.at)[0]) for s in case.words("reply"))
            self.place.upstream.script = lambda request, stream, r=reply: r or OK_ANSWER
            try:
                for number, at in enumerate(cuts(len(data), case.words("whole") or case.word("in", "").startswith("hello"))):
                    self.place.upstream.forget()
                    since = self._last_seq() if number == 0 else 0
                    seen = self._exchange(case, values, at, data)
                    try:
                        self._check_see(case, values, seen)
                        self._check_upstream(case, values)
                        self._check_secrets(seen)
                        if number == 0:
                            self._check_record(case, values, seen, since)
                    except AssertionError as why:
                        raise AssertionError("%s, cut at %s: %s" % (case.at, at if len(at) < 4 else "every byte", why))
                report.ok(name)
            except AssertionError as why:
                report.bad(name, why)


def check_secrets_at_rest(place, secrets):
    """No form of a secret in the log, the audit trail or any file of the state directory (in clear)."""
    for root, _, files in os.walk(place.directory):
        for name in files:
            if name.endswith(".sock"):
                continue
            with open(os.path.join(root, name), "rb") as f:
                content = f.read()
            for secret in secrets:
                raw = secret.encode()
                for form in (raw, base64.b64encode(raw)[:-4], raw.hex().encode(), urllib.parse.quote(raw).encode()):
                    assert form not in content, "%s holds a secret in clear" % name
