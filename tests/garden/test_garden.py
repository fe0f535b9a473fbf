"""The garden: the same bytes through exeat to every server that is installed, and what each made of them.

For each input and server, over TLS and in clear: the server saw exactly the requests that the audit trail says left, with the
same method, target and body, or exeat refused; and the client saw exactly one answer for each. An input of which
nothing left on its way to the witness is not sent to the other servers: exeat decides before it connects.

EXEAT_SERVER=NAME and EXEAT_CASE=TEXT choose among servers and inputs.
"""
import collections
import hashlib
import json
import os
import re
import socket
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system"))
from cases import Plain, Secure, Values, expand, parse, strings  # noqa: E402
from place import Place, Report, wait_for  # noqa: E402
import servers  # noqa: E402

DOORS = ("tls", "clear")
Input = collections.namedtuple("Input", "name template known")
Request = collections.namedtuple("Request", "method path length digest")


class Run:
    """One input at one server: what the client got, and then what everybody says of it."""

    def __init__(self, wanted, door, number):
        self.wanted, self.door, self.number = wanted, door, number
        self.client, self.bytes, self.failure = None, b"", None
        self.decisions, self.seen, self.logged = [], [], []

    @property
    def is_plain(self):
        return self.wanted.name.startswith("plain")

    @property
    def allowed(self):
        return [d for d in self.decisions if d["verdict"] == "allow"]


def inputs():
    """All of inputs.case; a name has the values of its loops, and a number, since long values are cut."""
    chosen = os.environ.get("EXEAT_CASE", "")
    for case in parse(os.path.join(HERE, "inputs.case")):
        template = "".join(strings(s, case.at)[0] for s in case.words("send"))
        for number, (name, known) in enumerate(expand(case), 1):
            name = "%s #%d" % (name, number) if known else name
            if chosen in name:
                yield Input(name, template, known)


# ---- the client ----

def take_chunks(data):
    """(body, rest) of a chunked body at the beginning of data."""
    body, at = b"", 0
    while True:
        line = data.index(b"\r\n", at)
        size, at = int(data[at:line].partition(b";")[0], 16), line + 2
        if size == 0:
            break
        if data[at + size:at + size + 2] != b"\r\n":
            raise ValueError
        body, at = body + data[at:at + size], at + size + 2
    while not data.startswith(b"\r\n", at):
        at = data.index(b"\r\n", at) + 2
    return body, data[at + 2:]


def take_answer(data, method, cut):
    """
    (status, body, rest) of the first final answer in data, read as a strict client would; cut: its record says that
    it did not come whole, as of a server that answers an upload that it does not read and then resets.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/1\.1 (\d\d\d) ", head)
    assert end and found, "no answer: %r" % data[:200]
    status = int(found.group(1))
    if status < 200:
        return take_answer(rest, method, cut)
    fields = dict((k.lower(), v.strip()) for k, _, v in (line.partition(b":") for line in head.split(b"\r\n")[1:]))
    if method == "HEAD" or status in (204, 304):
        return status, b"", rest
    if fields.get(b"transfer-encoding") == b"chunked":
        return (status, *take_chunks(rest))
    length = int(fields.get(b"content-length", len(rest)))
    assert len(rest) >= length or cut, "an answer of %d bytes has %d" % (length, len(rest))
    return status, rest[:length], rest[length:]


def answers(data, decisions):
    """(status, body) of all answers; there must be no bytes that are none."""
    found = []
    while data:
        d = decisions[len(found)] if len(found) < len(decisions) else {"outcome": {}}
        try:
            status, body, data = take_answer(data, d.get("method", "GET"), was_cut(d))
        except ValueError:
            raise AssertionError("a chunked answer is not whole: %r" % data[:200])
        found.append((status, body))
    return found


class Sources(Place):
    """A place whose clients have an address of their own each, by which their records are found."""
    source = "127.0.0.1"

    def connect(self, listener):
        sock = socket.create_connection(("127.0.0.1", self.ports[listener]), 15, (self.source, 0))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


class Garden:
    def __init__(self, report, kinds):
        self.report, self.kinds = report, kinds
        self.place = Sources("", {"a": "sandbox a"}, sandboxes=["a"], hosts=[c.name + ".garden.test" for c in servers.ALL],
                           config="limit new-names 100000\nlimit body-stall-time 20\n")
        self.serial = 0
        self.servers = []

    def __enter__(self):
        self.certificate = self.place.ca.leaf("garden", self.place.hosts)
        os.chmod(self.certificate[1], 0o644)
        for kind in self.kinds:
            missing = kind.missing()
            if missing:
                self.report.skip("the garden has %s" % kind.name, "%s is not installed (dependencies.sh garden)" % missing)
            else:
                self.servers.append(kind(self.place.directory, self.certificate))
        self.place.policy_text = "".join(
            "service %s { host %s.garden.test; port %d %d; range 127.0.0.0/8; clear; accept any credential; path allow parameters\n"
            "    operation every { * /; * /** } }\n" % (s.name, s.name, s.tls, s.clear) for s in self.servers)
        self.place.policy_text += "sandbox a {\n%s}\n" % "".join("    grant %s all\n" % s.name for s in self.servers)
        self.place.start()
        return self

    def __exit__(self, *ignored):
        for server in self.servers:
            server.stop()
        self.place.__exit__()

    # ---- sending ----

    def _bytes(self, run, server, authority):
        name, port = authority.split(":")
        known = {"HOST": authority, "NAME": name, "PORT": port, "HEAD": "Host: %s\\r\\n" % authority,
                 "P": "/g%d" % run.number, "Q": "/s", "MEGABYTE": "m" * 1000000}
        return Values(dict(known, **run.wanted.known)).bytes(run.wanted.template)

    def _send(self, server, run):
        authority = "%s.garden.test:%d" % (server.name, server.tls if run.door == "tls" else server.clear)
        data = self._bytes(run, server, authority)
        run.client = self.place.source = "127.1.%d.%d" % (run.number // 250, 1 + run.number % 250)
        sock = self.place.tunnel("a", authority)
        try:
            stream = Secure(sock, self.place.client_context(), authority.split(":")[0]) if run.door == "tls" else Plain(sock)
            try:
                stream.send(data)
                stream.finish()
            except OSError:
                pass  # the answer came first
            while True:
                more = stream.receive()
                if not more:
                    break
                run.bytes += more
        except OSError as why:
            run.failure = str(why)
        finally:
            sock.close()

    def runs(self, server, wanted):
        """Sends all; wanted: inputs by door."""
        found = []
        for door in DOORS:
            for each in wanted[door]:
                if any(word in each.name for word in server.cannot):
                    continue
                self.serial += 1
                found.append(Run(each, door, self.serial))
                self._send(server, found[-1])
        self._read_trail(server, found)
        self._settle(server, len([d for run in found for d in run.allowed]))
        self._read_server(server, found)
        return found

    # ---- what the others say ----

    @staticmethod
    def _settle(server, requests):
        """Until nothing more is said; some write their logs seconds later."""
        if server.logged() is not None:
            wait_for(lambda: len(server.logged()) >= requests, 6, 0.2)

        def said():
            return len(server.seen()[0]), len(server.logged() or ())
        before = [None]

        def quiet():
            was, before[0] = before[0], said()
            return was == before[0]
        wait_for(quiet, 20, 0.4)

    def _read_trail(self, server, runs):
        """Until each run has its records and no more come; audit may be behind."""
        counts = [0]

        def all_there():
            counts.append(self._take_trail(server, runs))
            return counts[-1] == counts[-2] and all(
                run.decisions and all(d["outcome"] or d["verdict"] != "allow" for d in run.decisions) for run in runs)
        wait_for(all_there, 15, 0.2)

    def _take_trail(self, server, runs):
        records = [json.loads(line) for line in
                   self.place.exeat("log", "--json", "--host", server.name + ".garden.test").splitlines()]
        outcomes = {r["id"]: r for r in records if r["kind"] == "outcome"}
        by_client = {}
        for r in records:
            if r["kind"] == "decision" and r["origin"].startswith("egress"):
                by_client.setdefault(r["client"].rpartition(":")[0], []).append(r)
        for run in runs:
            run.decisions = by_client.get(run.client, [])
            for d in run.decisions:
                d["outcome"] = outcomes.get(d["id"], {})
        return len(records)

    @staticmethod
    def _read_server(server, runs):
        by_number = {run.number: run for run in runs}
        server.strays, server.unread, server.unwritten = [], [], []
        for request in server.seen()[0]:
            run = by_number.get(number_of(request[1]))
            (run.seen if run else server.strays).append(Request(*request))
        for method, target, status in server.logged() or ():
            run = by_number.get(number_of(target)) if method else None
            (run.logged if run else server.unread).append((method, target, status))


def number_of(target):
    found = re.match(r"/g(\d+)", target)
    return int(found.group(1)) if found else None


# ---- comparing ----

def query_names(query):
    return "&".join(p.partition("=")[0] for p in query.split("&") if p)


def same_target(server, decision, method, target):
    """The record has the path and the names of the query's parameters, and a digest where they are cut."""
    if decision["method"] != method:
        return False
    if "target_sha256" in decision:
        return decision["target_sha256"] == hashlib.sha256(target.encode("latin-1")).hexdigest()
    path, _, query = target.partition("?")
    said, was = (path, query_names(query)), (decision.get("path", ""), decision.get("query", ""))
    if server.respells:
        said, was = [[urllib.parse.unquote(t, "latin-1") for t in pair] for pair in (said, was)]
    return tuple(said) == tuple(was)


def was_cut(decision):
    return bool(decision["outcome"].get("reason"))


def was_cut_or_refused(decision):
    """The server cannot have read it whole, or it answered with an error by itself."""
    return was_cut(decision) or decision["outcome"].get("status", 0) >= 400


def match(run, server, what, found, may_miss):
    """Each allowed request, in order, with what the server has of it (None when it may miss)."""
    found, pairs = list(found), []
    for d in run.allowed:
        if found and same_target(server, d, found[0][0], found[0][1]):
            pairs.append((d, found.pop(0)))
            continue
        assert may_miss(d) or number_of(d.get("path", "")) is None, "%s does not have %s %s, but %r" % (
            what, d["method"], d.get("path"), found[:3])
        pairs.append((d, None))
    assert not found, "%s has more than left: %r" % (what, found[:3])
    return pairs


def check_answers(run, server):
    """One for each request, and each its own: with the record's status and, where the server says it, the request."""
    found = answers(run.bytes, run.decisions)
    assert not run.failure, run.failure
    # A head whose rest was bad has two records, but one answer.
    most = len(run.decisions)
    least = len([d for d in run.decisions if (d["outcome"] or d).get("status") and not was_cut(d)])
    assert least <= len(found) <= most and (found or not run.bytes), "%d answers (%r) to %d decisions" % (
        len(found), found, most)
    if len(found) < most:
        return
    for d, (status, body) in zip(run.decisions, found):
        said = (d["outcome"] or d).get("status")
        assert said == status, "the record says %s, the client saw %d" % (said, status)
        told = re.fullmatch(r"(\S+) (\S+) \d+ [0-9a-f]{64}\n", body.decode("latin-1"))
        assert not told or same_target(server, d, *told.groups()), "%s %s was answered with %r" % (
            d["method"], d.get("path"), body[:200])


def check_run(run, server, reference):
    """What one server made of one input."""
    assert run.decisions, "no record of it; the client saw %r" % run.bytes[:200]
    check_answers(run, server)
    pairs = match(run, server, server.name, run.seen, was_cut_or_refused)
    for d, seen in pairs:
        if seen:
            assert not was_cut(d) or d["outcome"]["reason"] in AFTER, "%s took what was cut: %r, %r" % (
                server.name, seen[:3], d["outcome"])
            assert seen.length == d["outcome"].get("bytes_out", 0), "%s saw %d bytes of body, the record says %r" % (
                server.name, seen.length, d["outcome"])
    if server.logged() is not None:
        pairs_of_log = match(run, server, "the log of " + server.name, run.logged, was_cut_or_refused)
        server.unwritten += [d for d, line in pairs_of_log if not line]
    if reference:
        check_same_bodies(run, pairs, reference)
    if run.is_plain:
        check_plain(run, server, pairs)


# Ends that leave the request whole: its answer was not.
AFTER = ("upstream_closed", "malformed_answer", "client_closed", "client_gone")


def check_same_bodies(run, pairs, reference):
    """
    The witness saw the same requests of the same input, whose bodies had the same bytes. There may be more
    or fewer of them: what is pipelined behind an answer that ends the connection is not read.
    """
    exact = {i: r for i, r in enumerate(reference.seen)} if len(reference.seen) == len(reference.allowed) else {}
    for i, (d, seen) in enumerate(pairs):
        if seen and i in exact:
            assert seen.digest == exact[i].digest, "the body of %s %s is another one" % (d["method"], d.get("path"))


def check_plain(run, server, pairs):
    for d, seen in pairs:
        status = d["outcome"].get("status")
        assert status and (status < 400 or d["path"].endswith("answer-404")), "%s answered %s to %s %s" % (
            server.name, status, d["method"], d["path"])
        assert seen, "%s does not have %s %s" % (server.name, d["method"], d["path"])
    assert len(pairs) == len(run.decisions), "exeat refused: %r" % [d.get("reason") for d in run.decisions]


def check_strays(server, runs):
    """What belongs to no input: "*" and "/", which exeat let through, and lines without a request."""
    let = [(d["method"], d.get("path")) for run in runs for d in run.allowed if number_of(d.get("path", "")) is None]
    strays = [(r.method, r.path.partition("?")[0]) for r in server.strays]
    assert not [s for s in strays if s not in let] and len(strays) <= len(let), "%s has %r" % (server.name, strays)
    # A request whose line was too much for a server stands in its log as an error without a target; one that was cut, or not.
    unread = [u for u in server.unread if (u[0], u[1].partition("?")[0]) not in let and u[2]]
    least = len([d for d in server.unwritten if number_of(d["path"]) and not was_cut(d)])
    most = least + len([d for d in server.unwritten if was_cut(d)])
    assert least <= len(unread) <= most and not [u for u in unread if u[2] < 400], \
        "the log of %s has %r, and not %r" % (server.name, unread, [d["path"] for d in server.unwritten])


def reached(runs):
    """Inputs of which something left, by door."""
    return {door: [run.wanted for run in runs if run.door == door and run.allowed] for door in DOORS}


def tend(garden, report, server, wanted, references):
    """Starts a server, sends it everything, compares; its runs."""
    server.start()
    runs = garden.runs(server, wanted)
    agreed = 0
    for run in runs:
        try:
            check_run(run, server, references.get((run.wanted.name, run.door)))
            agreed += 1
        except AssertionError as why:
            report.bad("%s, %s: %s" % (server.name, run.door, run.wanted.name), why)
    try:
        check_strays(server, runs)
        assert not server.seen()[1], "the witness was handed what is no message: %r" % server.seen()[1][:3]
    except AssertionError as why:
        report.bad("%s: nothing else" % server.name, why)
    asked = sum(len(run.allowed) for run in runs)
    assert asked >= 100 or os.environ.get("EXEAT_CASE"), "only %d requests left for %s" % (asked, server.name)
    report.ok("%s saw what the trail says: %d inputs, %d requests of which it took %d" % (
        server.name, agreed, asked, sum(len(run.seen) for run in runs)))
    server.stop()
    return runs


def main():
    report = Report()
    chosen = os.environ.get("EXEAT_SERVER", "")
    with Garden(report, [k for k in servers.ALL if k is servers.Reference or chosen in k.name]) as garden:
        wanted, references = {door: list(inputs()) for door in DOORS}, {}
        for server in garden.servers:
            try:
                runs = tend(garden, report, server, wanted, references)
            except (AssertionError, OSError) as why:
                report.bad("%s is tended" % server.name, why)
                if not references:
                    break  # the witness is the first one, and what all others are compared with
                continue
            if not references:
                wanted, references = reached(runs), {(run.wanted.name, run.door): run for run in runs}
    report.end()


if __name__ == "__main__":
    main()
