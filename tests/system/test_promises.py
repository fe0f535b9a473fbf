"""P1 to P10 of docs/threat-model.md, each shown from outside with raw bytes against a running exeatd."""
import glob
import gzip
import json
import os
import re
import ssl
import subprocess
import threading

from cases import check_secrets_at_rest, client_hello, forms, sni_list
from helpers import (HOSTS, SECRET, Answer, all_pids, ask, ask_quietly, exists, head, holds, is_served, kill_and_wait,
                     open_tls, small_place)
from place import OK_ANSWER, Report, Skip, UpstreamCa, need_root, openssl, read_all, wait_for

# Not even their own user may: that is the point of them.
LOOK_INSIDE = "look into undumpable processes"
ROLES_WITHOUT_SECRETS = ("proxy", "inspect", "audit", "control", "ca", "dialer")


def status_of(pid, field):
    with open("/proc/%d/status" % pid) as f:
        return re.search(r"^%s:\s*(.*)$" % field, f.read(), re.M).group(1).split()


# ---- P1: the process that reads a sandbox's bytes is worth nothing ----

def p1_every_process_but_the_parent_is_filtered_and_may_gain_nothing(place):
    for (role, lane), pid in all_pids(place).items():
        assert status_of(pid, "Seccomp") == ["2"], "%s %d runs without seccomp" % (role, lane)
        assert status_of(pid, "NoNewPrivs") == ["1"], "%s %d may gain privileges" % (role, lane)
        assert status_of(pid, "CapEff") == ["0000000000000000"], "%s %d has capabilities" % (role, lane)


def p1_every_process_has_a_uid_of_its_own_where_that_is_possible(place):
    if os.getuid() != 0:
        return
    uids = {}
    for key, pid in all_pids(place).items():
        uid = status_of(pid, "Uid")[0]
        assert uid != "0", "%s %d runs as root" % key
        uids.setdefault(uid, []).append(key)
    for uid, keys in uids.items():
        assert len(keys) == 1 or len({lane for _, lane in keys}) == 1, "uid %s is shared by %r" % (uid, keys)


def p1_proxy_and_inspect_hold_no_file_and_no_directory(place):
    need_root(LOOK_INSIDE)
    for (role, lane), pid in all_pids(place).items():
        if role not in ("proxy", "inspect"):
            continue
        for fd in os.listdir("/proc/%d/fd" % pid):
            to = os.readlink("/proc/%d/fd/%s" % (pid, fd))
            assert to.startswith(("socket:", "anon_inode:", "pipe:", "/dev/null", "/memfd:")) or \
                to.endswith("exeatd.log"), "%s %d holds %s" % (role, lane, to)


# ---- P2: where a secret is in clear ----

def p2_a_secret_is_in_the_memory_of_broker_and_of_its_lane_and_nowhere_else(place):
    need_root(LOOK_INSIDE)
    place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(r), r)
    for _ in range(3):
        assert ask(place, fields="X-Odd: %s\r\n" % ("y" * 2000)).status == 200
    place.upstream.script = lambda r, s: OK_ANSWER
    for (role, lane), pid in all_pids(place).items():
        found = holds(pid, SECRET)
        if role in ROLES_WITHOUT_SECRETS or (role == "egress" and lane == 2):
            assert not found, "%s %d has the secret in memory" % (role, lane)
    assert not holds(place.daemon.pid, SECRET), "the parent has the secret in memory"


def p2_neither_inspect_nor_egress_keeps_anything_of_an_echo_in_a_compressed_answer(place):
    need_root(LOOK_INSIDE)
    assert all_pids(place)[("inspect", 1)]

    def echo(request, stream, end):
        body = gzip.compress(b"".join(b"%d %s\n" % (i, request) for i in range(400)), 1)[:end]
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    script = place.upstream.script
    try:
        for end in (None, -1, -9, -200):  # whole, and cut short
            place.upstream.script = lambda r, s: echo(r, s, end)
            for _ in range(3):
                answer = ask_quietly(place)
                assert end or (answer.status == 200 and answer.body.count(b"GET ") == 400)
    finally:
        place.upstream.script = script
    inspect, egress = (place.pids()[(role, 1)] for role in ("inspect", "egress"))
    assert wait_for(lambda: not holds(inspect, SECRET), 5, 0.2), "inspect still has %r" % holds(inspect, SECRET)
    assert wait_for(lambda: not unlocked(egress), 5, 0.2), "egress still has it: %s" % "; ".join(unlocked(egress))


def p2_a_secret_is_only_in_locked_memory(place):
    """In broker and egress it lies in a mapping that is locked and left out of dumps."""
    need_root(LOOK_INSIDE)
    kill_and_wait(place, ("egress", 1))
    assert is_served(place)
    for _ in range(5):
        assert ask(place, "POST /v1/items", fields="Content-Type: text/plain\r\n", body=b"y" * 30000).status == 200
    for (role, lane), pid in place.pids().items():
        if role not in ("broker", "egress") or (role == "egress" and lane == 2):
            continue
        assert not unlocked(pid), "%s %d has it: %s" % (role, lane, "; ".join(unlocked(pid)))


def unlocked(pid):
    """Where a process has the secret in memory that is not locked, or not left out of dumps."""
    return ["at %x, flags %s" % (start, " ".join(flags)) for start, flags in mappings(pid)
            if not ("lo" in flags and "dd" in flags)
            and any(form in mapping(pid, start) for form in forms(SECRET))]


def mappings(pid):
    """(start, flags) of each readable mapping."""
    start = None
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            if re.match(r"[0-9a-f]+-", line):
                start = int(line.split("-")[0], 16) if " r" in line and "[v" not in line else None
            elif line.startswith("VmFlags:") and start is not None:
                yield start, line.split()[1:]


def mapping(pid, start):
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as mem:
        for line in maps:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if low == start and high - low <= 1 << 32:
                try:
                    mem.seek(low)
                    return mem.read(high - low)
                except OSError:
                    return b""
    return b""


def p2_no_process_can_be_dumped(place):
    for key, pid in list(all_pids(place).items()) + [(("parent", 0), place.daemon.pid)]:
        if key[0] == "parent":
            continue
        # /proc/PID of an undumpable process belongs to root.
        if os.getuid() == 0:
            assert os.stat("/proc/%d/environ" % pid).st_uid == 0, "%s %d is dumpable" % key
        with open("/proc/%d/limits" % pid) as f:
            assert re.search(r"Max core file size\s+0\s+0", f.read()), "%s %d may leave a core" % key


def p2_a_crash_leaves_no_core_and_no_secret_on_disk(place):
    ask(place)
    pid = place.pids()[("egress", 1)]
    os.kill(pid, 6)
    assert wait_for(lambda: not exists(pid)), "egress outlives SIGABRT"
    assert is_served(place), "no service after a crash"
    assert not [f for f in glob.glob(place.path("**"), recursive=True) if "core" in os.path.basename(f)], "a core file"
    check_secrets_at_rest(place, [SECRET])


def p2_a_secret_is_in_no_file_and_no_log(place):
    check_secrets_at_rest(place, [SECRET])
    for key, pid in place.pids().items():
        with open("/proc/%d/cmdline" % pid, "rb") as c:
            assert SECRET.encode() not in c.read(), "%r has it on its command line" % (key,)
    listed = place.exeat("secret", "list") + place.exeat("secret", "list", "--json") + place.exeat("sandbox", "list")
    assert SECRET not in listed


# ---- P3: one authority ----

def p3_a_wrong_sni_ends_in_unrecognized_name(place):
    s = place.tunnel("a", "api.allowed.test:%d" % place.values["port"])
    s.sendall(client_hello(sni_list(b"open.allowed.test")))
    assert s.recv(100) == b"\x15\x03\x03\x00\x02\x02\x70"


def p3_a_wrong_host_is_421_and_a_malformed_one_400(place):
    place.upstream.forget()
    for host, status in (("open.allowed.test:%d" % place.values["port"], 421), ("a b", 400), ("a..b", 400), ("", 400)):
        stream = open_tls(place)
        stream.sendall(b"GET /v1/items HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % host.encode())
        assert Answer(read_all(stream)).status == status, host
    assert place.upstream.connections == 0


def p3_one_name_from_connect_to_the_upstreams_certificate(place):
    seen = []
    ca = place.ca
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*ca.leaf("named", ["api.allowed.test"]))
    context.sni_callback = lambda sock, name, ctx: seen.append(name)
    old, place.upstream.context = place.upstream.context, context
    try:
        # A new pool: connections of before go with their lane.
        kill_and_wait(place, ("egress", 1))
        assert is_served(place)
        stream = open_tls(place)
        names = stream.getpeercert()["subjectAltName"]
        stream.close()
        place.upstream.forget()
        assert ask(place).status == 200
        assert names == (("DNS", "api.allowed.test"),), names
        assert set(seen) == {"api.allowed.test"}, seen
        assert b"\r\nHost: api.allowed.test:%d\r\n" % place.values["port"] in place.upstream.requests[-1]
    finally:
        place.upstream.context = old


def p3_an_upstream_with_another_name_gets_nothing(place):
    check_upstream_refused(place, ["other.test"])


# ---- P4: one request ----

def p4_what_leaves_is_written_from_the_record_and_not_copied(place):
    place.upstream.forget()
    stream = open_tls(place)
    stream.sendall(b"GET /v1/%%69tems HTTP/1.1\r\nHOST:\tApi.Allowed.Test.:%d \r\nX-Odd:   a  b\t\r\nAuthorization:  bearer %s\r\n"
                   b"Connection: close, x-gone\r\nX-Gone: 1\r\n\r\n" % (
                       place.values["port"], place.placeholder("a", "demo-key").encode()))
    assert Answer(read_all(stream)).status == 200
    assert place.upstream.requests == [
        b"GET /v1/items HTTP/1.1\r\nHost: api.allowed.test:%d\r\nx-odd: a  b\r\nauthorization: bearer %s\r\n"
        b"accept-encoding: identity\r\n\r\n" % (place.values["port"], SECRET.encode())], place.upstream.requests


def p4_the_record_tells_of_the_request_that_left(place):
    answer = ask(place, "GET /v1/items/%37/share")
    record = place.record(answer.record)
    assert (record["method"], record["path"], record["host"], record["verdict"], record["reason"]) == (
        "GET", "/v1/items/7/share", "api.allowed.test", "deny", "never"), record


# ---- P5: nothing for a name that is not allowed ----

def p5_no_dns_query_for_a_name_that_is_not_listed(place):
    place.resolver.asked.clear()
    for door in (b"CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n", b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n"):
        for name in (b"evil.test", b"c2VjcmV0.evil.test", b"api.allowed.test.evil.test", b"xapi.allowed.test"):
            s = place.connect("a")
            s.sendall(door % (name, name))
            assert Answer(read_all(s)).status == 403
    stream = open_tls(place)
    stream.sendall(head(place, "GET /", "evil.test"))
    assert Answer(read_all(stream)).status == 421
    assert place.resolver.asked == [], place.resolver.asked


def p5_no_query_and_no_connection_for_a_request_that_is_refused(place):
    place.resolver.asked.clear()
    place.upstream.forget()
    assert ask(place, "GET /v1/items/7/share").status == 403
    assert ask(place, placeholder="sk-demo-foreign").status == 403
    assert place.resolver.asked == [] and place.upstream.connections == 0


def p5_no_leaf_for_a_name_that_is_not_listed(place):
    place.exeat("log", "head")  # all that was recorded until now is in the file then
    before = len([r for r in place.records() if r["origin"] == "ca"])
    s = place.tunnel("a", "api.allowed.test:%d" % place.values["port"])
    s.sendall(client_hello(sni_list(b"evil.test")))
    s.recv(100)
    s = place.connect("a")
    s.sendall(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n")
    read_all(s)
    assert not [r for r in place.records() if r["origin"] == "ca" and "evil" in json.dumps(r)]
    assert len([r for r in place.records() if r["origin"] == "ca"]) == before


# ---- P6: a secret is released last ----

def check_upstream_refused(place, names, ca=None, **leaf):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*(ca or place.ca).leaf("odd%d" % len(os.listdir(place.directory)), names, **leaf))
    old, place.upstream.context = place.upstream.context, context
    try:
        kill_and_wait(place, ("egress", 1))  # an empty pool
        assert wait_for(lambda: ask_quietly(place).status is not None, 15, 0.05)
        place.upstream.forget()
        answer = ask(place)
        assert (answer.status, answer.reason) == (502, "upstream_tls"), answer
        assert place.upstream.requests == [] and place.upstream.broken == []
        assert not [r for r in place.records() if r["origin"] == "broker" and r.get("id") == answer.record]
    finally:
        place.upstream.context = old


def p6_no_secret_to_an_upstream_whose_certificate_is_not_verified(place):
    other = os.path.join(place.directory, "other-ca")
    os.mkdir(other)
    check_upstream_refused(place, ["api.allowed.test"], ca=UpstreamCa(other))


def p6_no_secret_to_an_upstream_whose_certificate_has_ended(place):
    # openssl of Debian 12 takes no negative days before a date; notAfter is a second after notBefore.
    check_upstream_refused(place, ["api.allowed.test"], days=-1)


def p6_no_secret_over_clear_text(place):
    place.upstream.forget()
    port = place.values["port"]
    placeholder = place.placeholder("a", "demo-key").encode()
    s = place.tunnel("a", "api.allowed.test:%d" % port)
    s.sendall(b"GET /v1/items HTTP/1.1\r\nHost: api.allowed.test:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (port, placeholder))
    assert Answer(read_all(s)).reason == "clear_not_allowed"
    s = place.connect("a")
    s.sendall(b"GET http://api.allowed.test:%d/v1/items HTTP/1.1\r\nHost: api.allowed.test:%d\r\nAuthorization: Bearer %s\r\n\r\n"
              % (port, port, placeholder))
    assert Answer(read_all(s)).reason == "clear_not_allowed"
    assert place.upstream.connections == 0


def p6_no_secret_for_a_request_that_policy_refuses(place):
    place.upstream.forget()
    for line in ("GET /v1/items/7/share", "DELETE /v1/items", "GET /other"):
        assert ask(place, line).status == 403
    assert ask(place, "POST /v1/items", "b").status == 403
    assert place.upstream.connections == 0


# ---- P7: only what exeat issued to this sandbox ----

def p7_a_foreign_credential_is_refused_wherever_it_would_be_read(place):
    place.upstream.forget()
    foreign = "sk-demo-AttackersOwnKey0000000000000000"
    for fields in ("X-Api-Key: %s\r\n", "Cookie: session=%s\r\n", "Authorization: Basic %s\r\n", "DPoP: %s\r\n",
                   "Sec-WebSocket-Protocol: openai-insecure-api-key.%s\r\n"):
        assert ask(place, fields=fields % foreign).status in (400, 403), fields
    for line in ("GET /v1/items?key=%s", "GET /v1/items?access_token=%s", "GET /v1/items?X-Amz-Signature=%s"):
        assert ask(place, line % foreign).reason == "foreign_credential", line
    for kind, body in (("application/json", '{"api_key":"%s"}'), ("application/x-www-form-urlencoded", "token=%s")):
        answer = ask(place, "POST /v1/items", fields="Content-Type: %s\r\n" % kind, body=(body % foreign).encode())
        assert answer.reason == "foreign_credential", answer
    assert ask(place, placeholder=place.placeholder("b", "demo-key")).reason == "foreign_credential"
    assert ask(place, placeholder=None).reason == "credential_missing"
    assert place.upstream.requests == []


# ---- P8: a lent secret never comes back ----

def p8_an_echo_is_masked_in_every_spelling_and_every_cut(place):
    for form in forms(SECRET):
        body = b"before " + form + b" after"
        for size in (1, 7, len(body)):
            def script(request, stream, body=body, size=size):
                stream.sendall(b"HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n" % (form, len(body)))
                for at in range(0, len(body), size):
                    stream.sendall(body[at:at + size])
                return b""
            place.upstream.script = script
            answer = ask(place)
            assert answer.status == 200 and b"before " in answer.bytes and b"**" in answer.bytes, answer
            for other in forms(SECRET):
                assert other not in answer.bytes, "%r came back" % other
    place.upstream.script = lambda r, s: OK_ANSWER


def p8_what_was_lent_to_one_request_is_masked_in_the_next_at_another_host(place):
    assert ask(place).status == 200
    place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SECRET), SECRET.encode())
    answer = ask(place, "GET /x", host="open.allowed.test", placeholder=None)
    place.upstream.script = lambda r, s: OK_ANSWER
    assert answer.status == 200 and SECRET.encode() not in answer.bytes, answer


def p8_a_coding_that_cannot_be_scanned_is_refused(place):
    place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nabcd"
    answer = ask(place)
    place.upstream.script = lambda r, s: OK_ANSWER
    assert answer.reason == "answer_coding", answer


# ---- P9: one record a decision, before bytes leave; loss shows ----

def p9_the_record_is_there_before_the_upstream_sees_a_byte(place):
    found = []

    def script(request, stream):
        found.append(wait_for(lambda: [r for r in place.records() if r.get("path") == "/v1/items/first"], 5))
        return OK_ANSWER
    place.upstream.script = script
    assert ask(place, "GET /v1/items/first").status == 200
    place.upstream.script = lambda r, s: OK_ANSWER
    assert found[0] and found[0][0]["kind"] == "decision" and found[0][0]["verdict"] == "allow"


def verify(place, *args):
    place.exeat("log", "verify", *args, check=False)
    return place.last.returncode


def p9_the_log_verifies_after_audit_or_egress_was_killed_in_the_middle(place):
    stop = threading.Event()

    def load():
        while not stop.is_set():
            ask_quietly(place)
    threads = [threading.Thread(target=load) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for key in (("audit", 0), ("egress", 1), ("audit", 0), ("egress", 1)):
            assert kill_and_wait(place, key), "%s %d does not come back" % key
            assert is_served(place), "no service after kill -9 of %s %d" % key
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert verify(place) == 0, place.last.stdout.decode() + place.last.stderr.decode()
    lost = [r for r in place.records() if r["kind"] == "event" and r["event"] == "role_lost"]
    assert len([r for r in lost if r["detail"].startswith("audit")]) >= 2, lost
    # No request reached the upstream without its decision; the file may be behind what the kernel holds.
    def allowed():
        return len([r for r in place.records() if r["kind"] == "decision" and r["verdict"] == "allow"])
    left = len(place.upstream.requests)
    assert wait_for(lambda: allowed() >= left, 5, 0.1), "%d left, %d recorded" % (left, allowed())


def p9_a_changed_a_missing_and_a_cut_record_are_found(place):
    place.exeat("log", "head")
    place.write("head.json", place.last.stdout.decode())
    assert verify(place, "--head", place.path("head.json")) == 0, place.last.stderr.decode()
    copy = place.path("copy")
    subprocess.run(["cp", "-r", place.path("state", "audit"), copy], check=True)
    path = os.path.join(copy, "audit.jsonl")
    with open(path, "rb") as f:
        lines = f.read().splitlines(True)
    middle = len(lines) // 2
    for what, changed in (("changed", lines[:middle] + [lines[middle].replace(b'"v":1', b'"v":2')] + lines[middle + 1:]),
                          ("missing", lines[:middle] + lines[middle + 1:]),
                          ("swapped", lines[:middle] + [lines[middle + 1], lines[middle]] + lines[middle + 2:])):
        with open(path, "wb") as f:
            f.writelines(changed)
        assert verify(place, "--dir", copy) == 1, "%s: %d" % (what, place.last.returncode)
    with open(place.path("head.json")) as f:
        exported = json.load(f)["seq"]
    with open(path, "wb") as f:
        f.writelines(l for l in lines if json.loads(l)["seq"] < exported)
    newest = os.path.join(copy, "head.json")
    assert verify(place, "--dir", copy) == 1, "a cut tail is not found by head.json"
    assert b"but head.json is of record %d: its end was cut" % exported in place.last.stdout, place.last.stdout
    for gone in (lambda: os.truncate(path, 0), lambda: os.remove(path)):
        gone()
        assert verify(place, "--dir", copy) == 1, "a trail that is gone is not found by head.json"
        assert b"there is no audit log, but head.json is of record %d" % exported in place.last.stdout, place.last.stdout
    with open(path, "wb") as f:
        f.writelines(l for l in lines if json.loads(l)["seq"] < exported)
    with open(newest) as f:
        head = json.load(f)
    for wrong in ("", "{}", json.dumps(dict(head, seq=head["seq"] - 1), separators=(",", ":"))):
        place.write(newest, wrong)
        assert verify(place, "--dir", copy) == 1, "a head.json that nobody signed is not found: %s" % wrong
        os.rename(path, path + ".away")
        assert verify(place, "--dir", copy) == 1, "a trail that is gone is not found beside %s" % wrong
        os.rename(path + ".away", path)
    os.remove(newest)
    assert verify(place, "--dir", copy) == 0, "a whole beginning: %s" % place.last.stderr.decode()
    assert verify(place, "--dir", copy, "--head", place.path("head.json")) == 1, "a cut tail is not found"


def p9_a_copied_file_verifies_by_itself(place):
    place.exeat("log", "head")
    place.exeat("status")
    place.exeat("log", "head")
    place.write("head.json", place.last.stdout.decode())
    copy, key, head = place.path("copied.jsonl"), place.path("state", "audit", "sign.pub"), place.path("head.json")
    with open(place.path("state", "audit", "audit.jsonl"), "rb") as f:
        lines = f.read().splitlines(True)
    heads = [i for i, l in enumerate(lines) if json.loads(l)["kind"] == "head"]
    lines = lines[:heads[-1] + 1]

    def copied(what):
        with open(copy, "wb") as f:
            f.writelines(what)
        return lambda *args: (verify(place, "--file", copy, *args), place.last.stdout.decode())
    behind = "note: behind the last signed head: %d record%s, only chained, "
    check = copied(lines)
    code, text = check()
    assert code == 0 and "was not checked: --key FILE" in text and "only chained" not in text, text
    code, text = check("--key", key)
    assert code == 0 and text.count("\n") == 1 and re.search(r"signed heads \(the newest by key [0-9a-f]{16}\)\n", text), text
    assert check("--key", key, "--head", head)[0] == 0
    # Two trails, as `exeat run --log` appends them; not where a head says which one is meant.
    code, text = copied(lines + lines)()
    assert code == 0 and "%d records" % (2 * len(lines)) in text and "2 trails" in text, text
    assert check("--key", key, "--head", head)[0] == 1
    # What nobody has signed yet is good, and said; in each trail, and not where a head that was kept covers it.
    last, other = heads[-1], heads[-2] + 1
    assert last - other > 0, heads
    for cut, more, n in ((other, [], 0), (other + 1, [], 1), (last, [], last - other), (last, lines[:other + 1], last - other + 1)):
        code, text = copied(lines[:cut] + more)("--key", key)
        assert code == 0 and (behind % (n, "" if n == 1 else "s") in text if n else "only chained" not in text), (n, text)
        assert json.loads(check("--json")[1])["behind"] == n, (n, place.last)
    code, text = copied(lines[:last])("--key", key, "--head", head)
    assert code == 0 and "only chained" not in text, text
    middle = len(lines) // 2
    for changed in (lines[:middle] + [lines[middle].replace(b'"v":1', b'"v":2')] + lines[middle + 1:], lines[:middle] + lines[middle + 1:],
                    lines[1:], lines + lines[middle:], lines + lines[1:]):
        check = copied(changed)
        assert check()[0] == 1 and check("--key", key)[0] == 1, len(changed)
    assert copied([])()[0] == 6
    exported = json.loads(open(head).read())["seq"]
    check = copied(l for l in lines if json.loads(l)["seq"] < exported)
    assert check("--key", key)[0] == 0 and check("--key", key, "--head", head)[0] == 1
    # Signed by nobody: what anybody can write whose records fit.
    unsigned = lines[:[json.loads(l)["kind"] for l in lines].index("head")]
    for made_up in (unsigned, unsigned + lines, lines + unsigned):
        check = copied(made_up)
        code, text = check("--key", key)
        assert check()[0] == 0 and code == 1 and "has no signed head" in text, text
    code, text = copied(unsigned)()
    assert "note: without a signed head: %d records, only chained" % len(unsigned) in text, text
    # Signed by somebody else: the key of another trail, and none.
    openssl(place.directory, "genpkey", "-algorithm", "ed25519", "-out", "other.key")
    openssl(place.directory, "pkey", "-in", "other.key", "-pubout", "-out", "other.pub")
    code, text = copied(lines)("--key", place.path("other.pub"))
    assert code == 1 and "a key that is not in sign.pub" in text, text
    assert verify(place, "--file", copy, "--key", head) == 2 and verify(place, "--file", copy, "--key", "/nowhere") == 6
    assert verify(place, "--file", "/nowhere") == 6 and verify(place, "--head", "/nowhere") == 6
    for wrong in (["--key", key], ["--file", copy, "--dir", place.path("state", "audit")], ["--file", copy, "--head", head]):
        assert verify(place, *wrong) == 2, wrong


# ---- P10: fail closed ----

def p10_kill_9_of_each_process_and_service_comes_back(place):
    for key in sorted(all_pids(place), key=lambda k: (k[1], k[0])):
        assert is_served(place)
        if key[0] == "inspect":
            os.kill(all_pids(place)[key], 9)
            assert wait_for(lambda: key not in place.pids(), 5)
            assert all_pids(place)
        else:
            assert kill_and_wait(place, key), "%s %d does not come back" % key
        assert is_served(place), "no service after kill -9 of %s %d" % key
    def all_is_well():
        place.exeat("status", check=False)
        return place.last.returncode == 0
    assert wait_for(all_is_well, 15, 0.1), place.last.stdout


def p10_without_broker_no_request_that_needs_a_secret_leaves(place):
    check_unavailable(place, "broker", "broker_unavailable", "GET /v1/items")


def p10_without_dialer_nothing_leaves(place):
    check_unavailable(place, "dialer", "dialer_unavailable", "GET /v1/items")


def p10_without_audit_nothing_leaves(place):
    check_unavailable(place, "audit", "audit_unavailable", "GET /v1/items/held")


def check_unavailable(place, role, reason, line):
    """Keeps killing a process faster than it is started again, and looks at what is refused meanwhile."""
    # A fresh lane: nothing is leased or pooled.
    kill_and_wait(place, ("egress", 1))
    assert wait_for(lambda: ask_quietly(place, "GET /v1/nothing").status == 403, 15, 0.05)
    key = (role, 0)
    stream = open_tls(place)
    for _ in range(4):
        kill_and_wait(place, key)  # the back-off grows
    place.upstream.forget()
    os.kill(place.pids()[key], 9)
    stream.sendall(head(place, line, placeholder=place.placeholder("a", "demo-key")))
    answer = Answer(read_all(stream))
    assert answer.status == 503 and answer.reason == reason or answer.status == 200, answer
    assert (answer.status == 200) == bool(place.upstream.requests), place.upstream.requests
    assert is_served(place, seconds=25), "no service after %s came back" % role
    if answer.status == 200:
        # Egress had not heard yet, and handed the record to the kernel, which holds it for audit's successor.
        assert role == "audit", "served although %s was away" % role
        assert [r for r in place.records() if r.get("path") == line.split()[1] and r["kind"] == "decision"], line


def p10_a_policy_that_cannot_be_read_leaves_the_old_one_in_use(place):
    good = place.fill(place.policy_text)
    for bad in ("service {", "", "nonsense\n" + good, good.replace("allow", "\x00", 1), good[:len(good) // 2], None):
        if bad is None:
            os.unlink(place.path("policy.exeat"))
        else:
            place.write("policy.exeat", bad)
        place.exeat("reload", check=False)
        assert place.last.returncode == 3, "%r: %r" % (bad, place.last)
        place.exeat("status", check=False)
        assert place.last.returncode == 1, "%r: %r" % (bad, place.last)
        assert ask(place).status == 200, "the old policy is not in use"
    place.write_policy(place.policy_text)
    place.exeat("reload")
    place.exeat("status")


def p10_empty_means_deny(place):
    place.write_policy("sandbox a { }\nsandbox b { }\n")
    place.exeat("reload")
    place.upstream.forget()
    answer = ask(place)
    assert answer.reason == "host_not_allowed" and place.upstream.connections == 0, answer
    place.write_policy(place.policy_text)
    place.exeat("reload")
    assert ask(place).status == 200


def p10_a_body_over_the_limit_does_not_leave_whole(place):
    place.upstream.forget()
    big = b"x" * 300000
    answer = ask(place, "POST /v1/items", fields="Content-Type: text/plain\r\n", body=big)
    assert answer.reason == "body_too_large", answer
    stream = open_tls(place)
    stream.sendall(head(place, "POST /v1/items", placeholder=place.placeholder("a", "demo-key"),
                        fields="Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"))
    try:
        for _ in range(30):
            stream.sendall(b"2710\r\n" + b"x" * 10000 + b"\r\n")
        stream.sendall(b"0\r\n\r\n")
    except OSError:
        pass
    read_all(stream)
    assert place.upstream.requests == [], "a whole request left"


# ---- the disk of audit is full: a place of its own ----

def p10_with_a_full_disk_nothing_leaves_and_it_recovers_by_itself(_):
    """audit's directory is a small file system, mounted where only this test's processes see it."""
    need_root("mount a small file system")
    place = small_place(sandboxes=("a",))
    audit = place.path("state", "audit")
    mounted = False
    try:
        os.makedirs(audit)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=755", "none", audit], stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise Skip("no file system can be mounted here: %s" % done.stderr.decode().strip())
        mounted = True
        place.start()
        fill_the_disk(place)
    finally:
        place.__exit__()
        if mounted:
            subprocess.run(["umount", "-l", audit], check=False)
            subprocess.run(["rm", "-rf", place.directory], check=False)


def fill_the_disk(place):
    audit = place.path("state", "audit")
    assert is_served(place)
    with open(os.path.join(audit, "ballast"), "wb", 0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    answer = wait_for(lambda: (lambda a: a if a.status == 503 else None)(ask_quietly(place)), 20, 0.01)
    assert answer and answer.reason == "audit_unavailable", answer
    place.upstream.forget()
    for _ in range(5):
        answer = ask_quietly(place)
        assert answer.status in (503, None), answer
    assert place.upstream.requests == [], place.upstream.requests
    os.unlink(os.path.join(audit, "ballast"))
    assert is_served(place, seconds=20), "no service although there is room again"
    assert verify(place) == 0, place.last.stderr.decode()


FULL_DISK = p10_with_a_full_disk_nothing_leaves_and_it_recovers_by_itself
TESTS = [f for n, f in sorted(globals().items()) if re.match(r"p\d+_", n) and f is not FULL_DISK]


def order(test):
    number = int(re.match(r"p(\d+)_", test.__name__).group(1))
    return (number, test.__code__.co_firstlineno)


# These kill one process again and again: in a place of their own, where the back-off of its restarts is still short.
ALONE = (p10_without_broker_no_request_that_needs_a_secret_leaves, p10_without_dialer_nothing_leaves,
         p10_without_audit_nothing_leaves)


def groups(tests):
    """One place for each promise, and those of ALONE."""
    found = {}
    for test in sorted(tests, key=order):
        found.setdefault(test.__name__ if test in ALONE else order(test)[0], []).append(test)
    return found.values()


def promises_place():
    return small_place(dns={h: ["127.0.0.1"] for h in HOSTS}, config="limit request-body 200K\n")


def main():
    report = Report()
    for tests in groups(TESTS):
        report.run_in(promises_place, tests)
    report.run_all([FULL_DISK])
    report.end()


if __name__ == "__main__":
    main()
