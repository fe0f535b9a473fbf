"""What an operator does and sees: reload, rotation, removal, restart, status, log, exit codes, systemd, signals."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from helpers import POLICY, SECRET, all_pids, ask, ask_quietly, code, exists, head, is_served, open_tls, small_place
from place import OK_ANSWER, UIDS, Report, need_root, read_all, read_head, wait_for

NEW_SECRET = "sk-demo-Rotated0123456789abcdefghijKLM"


def reload_with(place, text):
    place.write_policy(text)
    return code(place, "reload")


# ---- reload ----

def a_reload_cuts_what_the_new_policy_denies_while_it_runs(place):
    going = threading.Event()

    def script(request, stream):
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not going.wait(0.02):
            stream.sendall(b"x" * 100)
        return None
    place.upstream.script = script
    try:
        stream = open_tls(place)
        stream.sendall(head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")))
        top, _ = read_head(stream)
        assert top.startswith(b"HTTP/1.1 200"), top
        assert reload_with(place, POLICY.replace("GET HEAD /v1/items;", "")) == 0, place.last.stderr
        stream.settimeout(5)
        data = read_all(stream)  # ends: a cut, or the test's own time
        assert len(data) < 900000
        assert wait_for(lambda: [r for r in place.records() if r["kind"] == "outcome" and r.get("reason") == "cut"], 5), \
            place.records()[-3:]
    finally:
        going.set()
        place.upstream.script = lambda r, s: OK_ANSWER
        assert reload_with(place, POLICY) == 0
    assert is_served(place)


def a_reload_lets_run_what_the_new_policy_allows_too(place):
    going = threading.Event()

    def script(request, stream):
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
        going.wait(10)
        stream.sendall(b"67890")
        return None
    place.upstream.script = script
    try:
        stream = open_tls(place)
        stream.sendall(head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")))
        read_head(stream)
        assert reload_with(place, POLICY + "\n# another text\n") == 0, place.last.stderr
        going.set()
        data = read_all(stream)
        assert data.endswith(b"67890"), data
    finally:
        going.set()
        place.upstream.script = lambda r, s: OK_ANSWER
        reload_with(place, POLICY)


def a_bad_policy_keeps_the_old_one_and_shows_in_status(place):
    before = json.loads(place.exeat("status", "--json"))["generation"]
    assert reload_with(place, POLICY + "\nservice broken {") == 3
    assert b"policy.exeat:" in place.last.stderr, place.last.stderr
    assert ask(place).status == 200
    assert code(place, "status") == 1 and b"REFUSED" in place.last.stdout, place.last
    code(place, "status", "--json")
    status = json.loads(place.last.stdout)
    assert status["generation"] == before and "policy.exeat:" in status["policy_error"], status
    assert reload_with(place, POLICY) == 0 and code(place, "status") == 0


def a_policy_may_include_files_which_every_role_gets(place):
    os.makedirs(place.path("parts"), exist_ok=True)
    with open(place.path("parts/never"), "w") as f:
        f.write("layer organisation\nservice closed { host api.allowed.test; port %s; never { GET /v1/items } }\n" %
                place.values["port"])
    assert reload_with(place, "include parts/never\n" + POLICY) == 0, place.last
    assert ask(place).status == 403
    with open(place.path("parts/never"), "w") as f:
        f.write("\nservise closed { }\n")
    assert code(place, "reload") == 3 and b"parts/never:2:1: 'servise' is no word" in place.last.stderr, place.last
    assert reload_with(place, POLICY) == 0 and ask(place).status == 200


def a_policy_that_newly_allows_something_is_loaded_only_on_request(place):
    place.reload = "confirmed"
    place.configure()
    more = POLICY.replace("GET HEAD /v1/items;", "GET HEAD /v1/items; GET /v1/newly;", 1)
    less = POLICY.replace("GET HEAD /v1/items;", "", 1)
    assert more != POLICY != less
    def generation():
        code(place, "status", "--json")
        return json.loads(place.last.stdout)["generation"]
    before = generation()
    try:
        assert reload_with(place, POLICY + "\n# another text\n") == 0, place.last
        assert reload_with(place, less) == 0 and ask(place).status == 403, place.last
        # Back is more than now.
        assert reload_with(place, POLICY) == 1, place.last
        assert b"the policy newly allows requests: `exeat reload --yes` loads it" in place.last.stderr, place.last
        assert re.search(rb"  a: GET https://api.allowed.test:\d+/v1/items, by \S+policy.exeat:\d+:\d+\n", place.last.stderr), place.last
        assert ask(place).status == 403 and code(place, "status") == 1, place.last
        assert b"REFUSED" in place.last.stdout and b"newly allows" in place.last.stdout, place.last
        assert code(place, "reload", "--yes") == 0 and ask(place).status == 200, place.last
        assert code(place, "status") == 0 and code(place, "reload") == 0
        # A hangup confirms nothing.
        place.write_policy(more)
        os.kill(place.daemon.pid, signal.SIGHUP)
        assert wait_for(lambda: code(place, "status") == 1, 10), place.last
        assert ask(place, "GET /v1/newly").status == 403
        place.write_policy(POLICY.replace("range ", "range 10.0.0.0/8 ", 1))
        assert code(place, "reload") == 1, place.last
        assert re.search(rb"  a: CONNECT https://api.allowed.test:\d+ \(address 10.0.0.0 of the range 10.0.0.0/8\), reaching further, by ",
                         place.last.stderr), place.last
        place.reload = "unconfirmed"
        place.configure()
        assert reload_with(place, more) == 0 and ask(place, "GET /v1/newly").status == 200, place.last
        assert generation() == before + 5
    finally:
        place.reload = "unconfirmed"
        place.configure()
        assert reload_with(place, POLICY) == 0


def a_policy_may_be_json(place):
    place.write("text", place.fill(POLICY))
    assert code(place, "policy", "fmt", "--to", "json", place.path("text")) == 0, place.last
    whole = place.last.stdout.decode()
    place.write("policy.exeat", whole)
    assert code(place, "reload") == 0 and ask(place).status == 200, place.last
    assert ask(place, "GET /v1/other").status == 403
    place.write("policy.exeat", whole.replace('"grant"', '"grnat"', 1))
    assert code(place, "reload") == 3 and b"/words/0: 'grnat' is no word of a sandbox" in place.last.stderr, place.last
    assert reload_with(place, POLICY) == 0


def a_bad_configuration_keeps_the_old_one(place):
    with open(place.path("exeat.conf")) as f:
        good = f.read()
    place.write("exeat.conf", good + "nonsense\n")
    try:
        # The command reads the configuration itself: what is needed in trouble needs little of it.
        assert code(place, "secret", "list") == 3
        assert code(place, "status") == 0 and b"exeat.conf:" in place.last.stderr and b"note:" in place.last.stderr
        assert code(place, "log") == 0 and code(place, "log", "head") == 0
        before = len(place.log())
        place.daemon.send_signal(signal.SIGHUP)
        assert wait_for(lambda: "the new configuration is not used" in place.log()[before:], 5)
    finally:
        place.write("exeat.conf", good)
    assert ask(place).status == 200
    assert code(place, "reload") == 0


def a_reload_that_takes_a_restart_is_no_but_not_invalid(place):
    with open(place.path("exeat.conf")) as f:
        good = f.read()
    place.write("exeat.conf", good + "listen unix c.sock { sandbox c }\n")
    try:
        assert code(place, "reload") == 0, place.last
        place.write("exeat.conf", good + "listen unix c.sock { sandbox c; mode 0600 }\n")
        assert code(place, "reload") == 1, place.last
        assert b"restart" in place.last.stderr, place.last.stderr
        place.write("exeat.conf", good + "trust file nowhere.pem\n")
        assert code(place, "reload") == 3, place.last
    finally:
        place.write("exeat.conf", good)
    assert code(place, "reload") == 0


def what_a_reload_does_not_take_over_is_named(place):
    with open(place.path("exeat.conf")) as f:
        good = f.read()
    with open(place.path("policy.exeat")) as f:
        place.write("other.policy", f.read())
    try:
        place.write("exeat.conf", good.replace("policy policy.exeat\n", "policy other.policy\n") + "debug\ngeo country nowhere.mmdb\n")
        assert code(place, "reload") == 0 and place.last.stdout.endswith(b"in use\nbut for geo, debug: that takes a restart of exeatd\n"), place.last
        status = json.loads(place.exeat("status", "--json"))
        assert status["restart"] == "geo, debug" and status["policy"].endswith("/other.policy"), status
        assert "\nRESTART      geo, debug: the configuration says otherwise now" in place.exeat("status")
        place.daemon.send_signal(signal.SIGHUP)
        assert wait_for(lambda: place.log().count("geo, debug: the configuration says otherwise now, which takes a restart") == 2), place.log()
    finally:
        place.write("exeat.conf", good)
    assert code(place, "reload") == 0 and place.last.stdout.endswith(b"in use\n"), place.last
    assert "restart" not in json.loads(place.exeat("status", "--json"))


def a_configuration_that_is_not_there_is_told_with_what_names_another(place):
    done = subprocess.run([os.path.join(place.build, "exeatd"), "--config", place.path("nowhere.conf")], stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == 3 and done.stderr.decode() == ("exeatd: %s: No such file or directory\n"
                                                             "exeatd: --config FILE or EXEAT_CONFIG names another\n" % place.path("nowhere.conf")), done


def a_storm_of_hangups_harms_nothing(place):
    for _ in range(200):
        place.daemon.send_signal(signal.SIGHUP)
    for _ in range(20):
        assert ask_quietly(place).status in (200, 503)
    assert is_served(place)
    assert wait_for(lambda: code(place, "reload") == 0, 10)
    assert ask(place).status == 200


# ---- secrets and sandboxes ----

def a_rotated_secret_is_used_by_the_next_request_and_the_old_one_is_still_masked(place):
    assert ask(place).status == 200
    place.exeat("secret", "rotate", "demo-key", stdin=NEW_SECRET.encode())
    place.upstream.forget()
    echo = (SECRET + " " + NEW_SECRET).encode()
    place.upstream.script = lambda r, s: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(echo), echo)
    answer = ask(place)
    place.upstream.script = lambda r, s: OK_ANSWER
    assert NEW_SECRET.encode() in place.upstream.requests[0] and SECRET.encode() not in place.upstream.requests[0]
    assert SECRET.encode() not in answer.bytes and NEW_SECRET.encode() not in answer.bytes, answer
    listed = json.loads(place.exeat("secret", "list", "--json"))
    assert NEW_SECRET not in json.dumps(listed) and "demo-key" in json.dumps(listed), listed
    place.exeat("secret", "rotate", "demo-key", stdin=SECRET.encode())


def rotation_under_load_gives_each_request_one_whole_value(place):
    stop, bad = threading.Event(), []
    place.upstream.forget()

    def load():
        while not stop.is_set():
            answer = ask_quietly(place)
            if answer.status != 200:
                bad.append(answer)
    threads = [threading.Thread(target=load) for _ in range(3)]
    for t in threads:
        t.start()
    for value in (NEW_SECRET, SECRET) * 4:
        place.exeat("secret", "rotate", "demo-key", stdin=value.encode())
    stop.set()
    for t in threads:
        t.join()
    assert place.upstream.requests
    for request in place.upstream.requests:
        assert (SECRET.encode() in request) != (NEW_SECRET.encode() in request), request
    assert not bad, bad[:2]


def secrets_that_would_break_a_field_are_refused(place):
    for value in (b"", b"short", b"0123456789abcdef\r\nX: y", b"0123456789abcdef\x00", b"x" * 70000):
        assert code(place, "secret", "add", "odd", stdin=value) == 1, (value[:30], place.last)
    assert b"odd" not in place.exeat("secret", "list").encode()


def a_value_given_as_an_argument_is_refused_and_not_repeated(place):
    for words in (["add", "odd", SECRET], ["rotate", "demo-key", SECRET], ["add", "odd", "--like", "sk-", SECRET]):
        assert code(place, "secret", *words) == 2 and b"is no argument" in place.last.stderr, (words, place.last)
        assert SECRET.encode() not in place.last.stderr + place.last.stdout, place.last
    assert b"odd" not in place.exeat("secret", "list").encode()


def a_removed_sandbox_is_refused(place):
    place.add_sandbox("b")
    assert ask(place, sandbox="b").status == 200
    place.exeat("sandbox", "remove", "b")
    place.upstream.forget()
    answer = ask_quietly(place, sandbox="b")
    assert answer.status in (401, 403) and place.upstream.requests == [], answer
    place.add_sandbox("b")
    assert ask(place, sandbox="b").status == 200


def a_removed_secret_is_refused(place):
    placeholder = place.placeholder("a", "demo-key")
    place.exeat("secret", "remove", "demo-key")
    place.upstream.forget()
    answer = ask_quietly(place, placeholder=placeholder)
    assert answer.status in (403, 503) and place.upstream.requests == [], answer
    place.exeat("secret", "add", "demo-key", "--like", "sk-demo-", stdin=SECRET.encode())
    place.add_sandbox("a")
    place.add_sandbox("b")
    assert ask(place).status == 200


def a_restart_keeps_secrets_sandboxes_and_the_trail(place):
    before = len(place.records())
    place.stop()
    assert place.daemon.returncode == 0, place.daemon.returncode
    place.launch()
    assert ask(place).status == 200
    assert len(place.records()) > before
    assert code(place, "log", "verify") == 0, place.last.stderr


def tampering_shows_in_the_status_until_what_was_found_is_taken_away(_):
    with small_place() as place:
        trail, findings = place.path("state", "audit", "audit.jsonl"), place.path("state", "audit", "findings")
        assert ask(place).status == 200 and code(place, "status") == 0, place.last
        place.stop()
        with open(trail) as f:
            lines = f.readlines()
        with open(trail, "w") as f:
            f.writelines(lines[:3] + lines[4:-2])
        for _ in range(2):  # also at the start after that
            place.launch()
            assert ask(place).status == 200, "it serves on"
            assert code(place, "status") == 1, place.last
            told = re.search(r"^TROUBLE +audit: (.*)$", place.last.stdout.decode(), re.M).group(1)
            assert "audit-000000000001.bad.jsonl: line 4 " in told and "(and 1 more)" in told and findings in told, told
            assert code(place, "status", "--json") == 1, place.last
            audit = [p for p in json.loads(place.last.stdout)["processes"] if p["role"] == "audit"]
            assert told == audit[0]["trouble"] and audit[0]["usable"], audit
            place.stop()
        with open(findings) as f:
            assert "head_mismatch" not in told and "are missing from the end of the log" in f.read()
        os.unlink(findings)
        place.launch()
        assert code(place, "status") == 0 and b"TROUBLE" not in place.last.stdout, place.last
        assert code(place, "log", "verify") == 1, "the trail itself still tells"


def an_environment_is_issued_anew_and_says_so_first(place):
    held = place.placeholder("b", "demo-key")
    for words in (["env", "b"], ["sandbox", "add", "b"]):
        help_text = place.exeat(*words[:-1], "--help")
        assert " anew, which ends " in help_text, help_text
        done = subprocess.run([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **place.as_user)
        said = done.stdout.decode()
        assert said.startswith("exeat: note: the token and placeholders that b had before have ended\n") and held not in said, said
    place.add_sandbox("b")


# ---- the log ----

def the_log_is_a_table_that_can_be_narrowed(place):
    ask(place, "GET /v1/items/7/share")
    everything = place.exeat("log")
    denied = place.exeat("log", "--denied")
    assert "never" in denied and "never" in everything
    assert len(denied.splitlines()) < len(everything.splitlines())
    assert "api.allowed.test" in place.exeat("log", "--sandbox", "a", "--host", "api.allowed.test")
    assert "api.allowed.test" not in place.exeat("log", "--host", "nowhere.test")
    assert SECRET not in everything
    # Which of its placeholders a refused request carried.
    never = [line.split() for line in place.exeat("log", "--reason", "never").splitlines()[1:]]
    assert never and all(words[6:8] == ["never", "demo-key"] for words in never), never
    assert "never" in place.exeat("log", "--denied", "--credential", "demo-key") and \
        "never" not in place.exeat("log", "--credential", "demo")
    # From a time on, and out of a folder, files or standard input.
    time, trail = place.records()[-1]["time"], place.path("state", "audit", "audit.jsonl")
    late = place.exeat("log", "--since", time)
    assert late == place.exeat("log", "--since", time[:-1]) and 1 <= len(late.splitlines()) < 10, late
    assert place.exeat("log", "--since", "1d", "--dir", os.path.dirname(trail)) == place.exeat("log", trail)
    with open(trail, "rb") as f:
        assert place.exeat("log", "--denied", "-", stdin=f.read()) == place.exeat("log", "--denied", "--file", trail)
    for wrong in (["--since", "yesterday"], ["--since", "2026-1-2"], ["--since", "5"], ["--reason", "nonsense"], ["--dir", "x", "y"], ["--follow", "x"]):
        assert code(place, "log", *wrong) == 2, place.last
    # A name that was misspelled is not taken for one to which nothing was refused.
    assert code(place, "log", "--denied", "--sandbox", "nobody") == 0 and place.last.stdout == b"" and \
        b"no record of the trail is of this kind" in place.last.stderr, place.last


def a_refusal_leads_to_its_record(place):
    refused = ask(place, placeholder="sk-live-of-somebody-0123456789")
    wait_for(lambda: code(place, "log", "--record", refused.record) == 0)  # audit gathers for some milliseconds
    shown = place.exeat("log", "--record", refused.record)
    for line in ("verdict      deny", "reason       foreign_credential", "material     "):
        assert line in shown, shown
    assert code(place, "log", "--record", "e9-nothing") == 1 and b"no record" in place.last.stderr, place.last


def a_file_that_is_no_trail_is_said_to_be_none(place):
    trail = place.path("state", "audit", "audit.jsonl")
    place.write("empty", "")
    for other in ("/etc/passwd", place.path("empty"), sys.executable):
        for options in ([], ["--json"], ["--denied"]):
            assert code(place, "log", "--file", trail, "--file", other, *options) == 6, (other, place.last)
            assert place.last.stderr.decode() == "exeat: %s: this is no audit trail: no line of it is a record\n" % other, place.last
    assert code(place, "log", "--file", "/nowhere") == 6 and b"No such file" in place.last.stderr, place.last
    assert code(place, "log", "--file", place.directory) == 6 and b"Is a directory" in place.last.stderr, place.last
    assert code(place, "log", "--file", trail) == 0 and place.last.stderr == b"", place.last


def a_client_that_prints_only_the_status_line_tells_why(place):
    client = http.client.HTTPSConnection("127.0.0.1", place.ports["a"], timeout=10)
    client.set_tunnel("unlisted.test", 443)
    try:
        client.request("GET", "/")
        said = "it was served"
    except OSError as error:
        said = str(error)
    assert "403 exeat: " in said and "(host_not_allowed; record " in said, said


def what_could_not_be_printed_is_no_success(place):
    with open("/dev/full", "w") as full:
        for command in (("sandbox", "add", "b"), ("status",), ("log",), ("reasons",)):
            done = subprocess.run([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), *command],
                                  stdout=full, stderr=subprocess.PIPE)
            assert done.returncode == 1 and b"could not be" in done.stderr, (command, done)
    place.add_sandbox("b")


def the_log_verifies_with_a_head_that_was_kept(place):
    place.write("kept.json", place.exeat("log", "head"))
    ask(place)
    assert code(place, "log", "verify") == 0, place.last.stderr
    assert code(place, "log", "verify", "--head", place.path("kept.json")) == 0, place.last.stderr


def a_head_is_signed_when_it_is_asked_for(place):
    first = json.loads(place.exeat("log", "head"))
    assert place.last.stdout.endswith(b"}\n") and place.last.stdout.count(b"\n") == 1, place.last
    answer = ask(place, "GET /v1/items/7/share")
    second = json.loads(place.exeat("log", "head"))
    record = place.record(answer.record)
    assert first["seq"] < record["seq"] <= second["seq"], (first, record, second)
    place.write("kept.json", json.dumps(second, separators=(",", ":")) + "\n")
    assert code(place, "log", "verify", "--head", place.path("kept.json")) == 0, place.last
    # With nothing new the same head again.
    assert json.loads(place.exeat("log", "head"))["seq"] >= second["seq"]


def without_the_daemon_the_last_head_says_what_it_does_not_cover(place):
    place.exeat("log", "head")
    assert place.record(ask(place, "GET /v1/items/7/share").record)
    place.daemon.kill()
    place.daemon.wait()
    try:
        assert code(place, "log", "head") == 0, place.last
        last = json.loads(place.last.stdout)
        newer = place.records()[-1]["seq"] - last["seq"] - 1
        assert newer > 0 and b"note: %d newer records" % newer in place.last.stderr, (newer, place.last)
        assert code(place, "log", "head", "--dir", place.path("state", "audit")) == 0
        assert b"note: %d newer records" % newer in place.last.stderr, place.last
    finally:
        place.launch()
    place.exeat("stop")
    place.daemon.wait(20)
    assert code(place, "log", "head") == 0 and b"newer" not in place.last.stderr, place.last
    place.launch()
    assert is_served(place)


def the_log_can_be_followed(place):
    follower = subprocess.Popen([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), "log", "--follow"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.set_blocking(follower.stdout.fileno(), False)
    got = []

    def shows():
        ask(place, "GET /v1/items/followed")
        got.append(follower.stdout.read() or b"")
        return b"/v1/items/followed" in b"".join(got)
    try:
        assert wait_for(shows, 10, 0.1), b"".join(got)[-300:]
    finally:
        follower.kill()
        follower.wait()


# ---- what the command tells ----

def the_list_of_sandboxes_tells_issued_from_granted(place):
    def listed():
        return {s["name"]: s for s in json.loads(place.exeat("sandbox", "list", "--json"))}
    assert listed()["a"]["issued"] == ["demo-key"] and listed()["a"]["not_issued"] == []
    assert listed()["c"]["registered"] is False and listed()["c"]["not_issued"] == ["demo-key"]
    more = "\nservice more { host more.test; credential more-key { in header x-api-key }; operation every { GET / } }\n"
    assert reload_with(place, POLICY.replace("sandbox a {", "sandbox a { grant more every;") + more) == 0, place.last
    assert listed()["a"]["issued"] == ["demo-key"] and listed()["a"]["not_issued"] == ["more-key"]
    table = place.exeat("sandbox", "list").splitlines()
    assert table[0].split() == ["NAME", "DECLARED", "REGISTERED", "ISSUED", "ONLY", "GRANTED"], table
    assert [r.split() for r in table if r.startswith("a ")] == [["a", "yes", "yes", "demo-key", "more-key"]], table
    assert reload_with(place, POLICY) == 0


def a_secret_that_no_service_lends_is_noted(place):
    value = b"0123456789abcdefghij"
    try:
        assert code(place, "secret", "add", "demo-kye", stdin=value) == 0
        assert b"demo-kye; the nearest name is demo-key\n" in place.last.stderr, place.last
    finally:
        place.exeat("secret", "remove", "demo-kye")
    # One that is lent has no note.
    more = "\nservice more { host more.test; credential more-key { in header x-api-key }; operation every { GET / } }\n"
    assert reload_with(place, POLICY + more) == 0, place.last
    assert code(place, "secret", "add", "more-key", stdin=value) == 0 and place.last.stderr == b"", place.last
    place.exeat("secret", "remove", "more-key")
    assert reload_with(place, POLICY) == 0


def explain_asks_for_the_sandbox_only_when_there_are_several(place):
    policy = place.path("policy.exeat")
    url = "https://api.allowed.test:%d/v1/items" % place.values["port"]
    assert code(place, "policy", "explain", "--policy", policy, "GET", url) == 2
    assert place.last.stderr.startswith(b"exeat: which sandbox? --sandbox is one of a, b, c, d\n"
                                        b"usage: exeat policy explain "), place.last
    place.write("one", "service s { host one.test; operation every { GET / } }\nsandbox only { grant s every }\n")
    assert code(place, "policy", "explain", "--policy", place.path("one"), "GET", "https://one.test/") == 0, place.last
    place.write("none", "service s { host one.test; operation every { GET / } }\n")
    assert code(place, "policy", "explain", "--policy", place.path("none"), "GET", "https://one.test/") == 2
    assert b"declares no sandbox" in place.last.stderr, place.last


# ---- exit codes ----

def exit_codes_are_those_of_the_manual(place):
    assert code(place, "status") == 0
    assert code(place, "help") == 0
    assert code(place, "secret", "rotate", "nothing", stdin=b"0123456789abcdef0123") == 1
    for usage in (("nonsense",), ("secret",), ("secret", "add"), ("status", "x"), ("log", "--nonsense"), ()):
        assert code(place, *usage) == 2, usage
    place.write("bad", "service {")
    assert code(place, "policy", "check", place.path("bad")) == 3
    assert code(place, "policy", "check", place.path("policy.exeat")) == 0
    explain = ("policy", "explain", "--policy", place.path("policy.exeat"), "--sandbox", "a")
    port = place.values["port"]
    assert code(place, *explain, "GET", "https://api.allowed.test:%d/v1/items" % port) == 0, place.last
    assert code(place, *explain, "GET", "https://evil.test/") == 1
    place.write("elsewhere.conf", "state nowhere\npolicy policy.exeat\ncontrol nowhere.sock\n"
                "listen tcp 127.0.0.1:1 { sandbox a }\n")
    done = subprocess.run([os.path.join(place.build, "exeat"), "--config", place.path("elsewhere.conf"), "status"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 4, done
    if os.getuid() == 0:
        done = subprocess.run([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), "status"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=65534, group=65534, extra_groups=[])
        assert done.returncode == 5 and b"`control { uid N }`" in done.stderr and b"you are uid 65534" in done.stderr, done
        done = subprocess.run([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), "log"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=65534, group=65534, extra_groups=[])
        assert done.returncode == 5 and b"`sudo -u exeat-audit exeat log" in done.stderr, done


def what_cannot_be_read_is_6_or_5_whatever_was_to_be_done_with_it(place):
    """The name of each is told; no file is 6, no permission 5, as an ordinary user finds it."""
    policy, trail, key = place.path("policy.exeat"), place.path("state", "audit", "audit.jsonl"), place.path("state", "audit", "sign.pub")
    commands = [("policy", "check", "FILE"), ("policy", "lint", "FILE"), ("policy", "fmt", "FILE"), ("policy", "diff", policy, "FILE"),
                ("policy", "test", "--policy", policy, "FILE"), ("policy", "replay", policy, "FILE"), ("policy", "suggest", "FILE"),
                ("policy", "suggest", "--policy", "FILE", trail), ("policy", "import", "openapi", "FILE"),
                ("policy", "explain", "--policy", "FILE", "GET", "https://a.test/"),
                ("policy", "explain", "--policy", policy, "--sandbox", "a", "--body", "FILE", "POST", "https://a.test/"),
                ("log", "--file", "FILE"), ("log", "verify", "--file", "FILE"), ("log", "verify", "--dir", "FILE"),
                ("log", "verify", "--file", trail, "--key", "FILE"), ("log", "verify", "--file", trail, "--key", key, "--head", "FILE"),
                ("log", "head", "--dir", "FILE"),
                ("secret", "add", "x", "--file", "FILE"), ("secret", "add", "x", "--client-certificate", "FILE"),
                ("vault", "restore", "FILE"), ("vault", "rekey", "FILE"), ("status", "--config", "FILE")]
    place.write("closed", "")
    os.chmod(place.path("closed"), 0)
    for words in commands:
        words = [word if word != "FILE" else "/nowhere/file" for word in words]
        assert code(place, *words, stdin=b"") == 6 and b"/nowhere/file: " in place.last.stderr, place.last
    if os.getuid() == 0:
        readable = [words for words in commands if not {policy, trail, "vault", "secret", "--dir"} & set(words)]
        assert len(readable) > 8
        for words in readable:
            words = [word if word != "FILE" else place.path("closed") for word in words]
            done = subprocess.run([os.path.join(place.build, "exeat"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=65534,
                                  group=65534, extra_groups=[])
            assert done.returncode == 5 and b"closed: Permission denied" in done.stderr, done
    os.unlink(place.path("closed"))
    place.write("empty", "")
    os.makedirs(place.path("folder"))
    for words in (("--file", place.path("empty")), ("--dir", place.path("folder"))):
        assert code(place, "log", "verify", *words) == 6 and b"%s: this is no audit trail" % words[1].encode() in place.last.stderr, place.last
    place.exeat("log", "head")
    place.write("kept.json", place.exeat("log", "head"))
    assert code(place, "log", "verify", "--dir", place.path("folder"), "--head", place.path("kept.json")) == 1, place.last


# ---- the end of the daemon ----

def inspect_runs_only_once_a_body_needs_it(place):
    assert not [key for key in place.pids() if key[0] == "inspect"]
    first = all_pids(place)[("inspect", 1)]
    assert ("inspect", 2) not in place.pids(), "inspect of a lane that never needed it"
    os.kill(first, signal.SIGKILL)
    assert wait_for(lambda: ("inspect", 1) not in place.pids(), 5)
    assert wait_for(lambda: ask(place, "POST /v1/items", body=b'{"a":1}',
                                fields="Content-Type: application/json\r\n").status == 200, 10, 0.1)
    assert place.pids()[("inspect", 1)] != first


def an_audit_that_does_not_answer_is_not_waited_for(place):
    place.exeat("log", "head")
    audit = place.pids()[("audit", 0)]
    os.kill(audit, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert code(place, "log", "head") == 0, place.last
        assert time.monotonic() - begun < 9
        assert b"audit does not answer" in place.last.stderr and b"seq" in place.last.stdout, place.last
        # Nor one that dies with the question.
        asked = subprocess.Popen([os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), "log", "head"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, **place.as_user)
        time.sleep(0.3)
    finally:
        os.kill(audit, signal.SIGKILL)
    out, said = asked.communicate(timeout=9)
    assert b"audit does not answer" in said and b"seq" in out, (out, said)
    assert is_served(place)


def a_listener_that_cannot_be_opened_is_an_error_of_the_configuration(place):
    with socket.create_server(("127.0.0.1", 0)) as taken, open(place.path("exeat.conf")) as f:
        config = re.sub(r"^(state|control) \S+", r"\1 third", f.read(), flags=re.M).replace("control third", "control third.sock")
        config = re.sub(r"^listen .*\n", "", config, flags=re.M)
        line = config.count("\n") + 1
        place.write("third.conf", config + "listen tcp 127.0.0.1:%d { sandbox a }\n" % taken.getsockname()[1])
        os.makedirs(place.path("third"), 0o755, exist_ok=True)
        if place.user:
            os.chown(place.path("third"), place.user, place.user)
        done = subprocess.run([os.path.join(place.build, "exeatd"), "--config", place.path("third.conf")],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30, **place.as_user)
    assert done.returncode == 3, done
    assert b"third.conf:%d:1: cannot listen on 127.0.0.1:" % line in done.stderr, done


def a_start_that_fails_tells_its_cause_and_no_more(place):
    policy, files = place.path("policy.exeat"), place.path("state", "ca")
    def fails(rc, expected):
        done = subprocess.run([os.path.join(place.build, "exeatd"), "--config", place.path("exeat.conf")],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30, **place.as_user)
        told = [line for line in done.stderr.decode().splitlines() if " info: " not in line]
        assert done.returncode == rc and all(" fatal: " in line for line in told) and re.search(expected, told[0]), (done, told)
        assert "channel" not in done.stderr.decode(), done
        return told
    def refused():
        return [r["detail"] for r in place.records() if r.get("event") == "reload_refused"][-1]
    place.stop()
    try:
        os.rename(policy, policy + ".kept")
        fails(3, r"^parent: fatal: exeatd does not start: \S+policy.exeat: No such file or directory$")
        assert refused() == policy + ": No such file or directory", place.records()[-5:]
        place.write("policy.exeat", "servise a { }\nsandbox b\n")
        assert len(fails(3, r": exeatd does not start: \S+policy.exeat:1:1: 'servise' is no word")) > 3
        assert "policy.exeat:1:1: 'servise' is no word" in refused() and "more lines)" in refused(), refused()
        os.rename(files, files + ".kept")
        assert len(fails(1, r"ca.key: is not there yet")) == 1, "the policy is not even looked at"
        os.rename(files + ".kept", files)
    finally:
        os.rename(policy + ".kept", policy)
        place.launch()
    assert reload_with(place, POLICY + "\nservice broken {") == 3 and "policy.exeat:" in refused(), refused()
    assert reload_with(place, POLICY) == 0 and is_served(place)


def a_killed_parent_leaves_no_process_behind(place):
    pids = list(all_pids(place).values())
    assert len(pids) >= 8
    place.daemon.kill()
    place.daemon.wait()
    assert wait_for(lambda: not [p for p in pids if exists(p)], 5), [p for p in pids if exists(p)]
    place.launch()
    assert ask(place).status == 200
    assert code(place, "log", "verify") == 0, place.last.stderr


def second_daemon(place, config):
    place.write("second.conf", config)
    done = subprocess.run([os.path.join(place.build, "exeatd"), "--config", place.path("second.conf")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, **place.as_user)
    said = [line for line in done.stderr.decode().splitlines() if line]
    assert done.returncode == 3 and len(said) == 1, done
    assert str(place.daemon.pid) in said[0] and "exeat stop" in said[0], said
    return said[0]


def a_second_daemon_is_told_of_the_first(place):
    with open(place.path("exeat.conf")) as f:
        config = f.read()
    assert place.path("state") in second_daemon(place, config)
    os.makedirs(place.path("other"), 0o755, exist_ok=True)
    if place.user:
        os.chown(place.path("other"), place.user, place.user)
    said = second_daemon(place, "state other\npolicy policy.exeat\ncontrol %s\nlisten unix second.sock { sandbox a }\n%s" % (
        re.search(r"^control (\S+)", config, re.M).group(1), UIDS if os.getuid() == 0 and not place.user else ""))
    assert "control socket" in said, said
    assert is_served(place), "the first one was disturbed"


def sigterm_and_stop_end_it_in_order(place):
    pids = list(all_pids(place).values())
    place.exeat("stop")
    # The command comes back when the daemon has ended: its parent is at most waiting to be reaped by us.
    with open("/proc/%d/stat" % place.daemon.pid) as f:
        assert f.read().rpartition(")")[2].split()[0] == "Z"
    assert place.daemon.wait(20) == 0
    assert not [p for p in pids if exists(p)]
    place.launch()
    assert ask(place).status == 200


TESTS = [exit_codes_are_those_of_the_manual, what_cannot_be_read_is_6_or_5_whatever_was_to_be_done_with_it,
         a_reload_cuts_what_the_new_policy_denies_while_it_runs,
         a_reload_lets_run_what_the_new_policy_allows_too, a_bad_policy_keeps_the_old_one_and_shows_in_status,
         a_policy_may_include_files_which_every_role_gets,
         a_policy_may_be_json, a_policy_that_newly_allows_something_is_loaded_only_on_request, a_bad_configuration_keeps_the_old_one, a_reload_that_takes_a_restart_is_no_but_not_invalid,
         what_a_reload_does_not_take_over_is_named, a_configuration_that_is_not_there_is_told_with_what_names_another, a_storm_of_hangups_harms_nothing,
         a_head_is_signed_when_it_is_asked_for, an_audit_that_does_not_answer_is_not_waited_for,
         a_listener_that_cannot_be_opened_is_an_error_of_the_configuration,
         without_the_daemon_the_last_head_says_what_it_does_not_cover,
         the_list_of_sandboxes_tells_issued_from_granted, a_secret_that_no_service_lends_is_noted,
         explain_asks_for_the_sandbox_only_when_there_are_several, a_second_daemon_is_told_of_the_first,
         a_rotated_secret_is_used_by_the_next_request_and_the_old_one_is_still_masked,
         rotation_under_load_gives_each_request_one_whole_value, secrets_that_would_break_a_field_are_refused,
         a_value_given_as_an_argument_is_refused_and_not_repeated,
         a_removed_sandbox_is_refused, a_removed_secret_is_refused, a_restart_keeps_secrets_sandboxes_and_the_trail,
         the_log_is_a_table_that_can_be_narrowed, a_refusal_leads_to_its_record, a_file_that_is_no_trail_is_said_to_be_none,
         a_client_that_prints_only_the_status_line_tells_why,
         what_could_not_be_printed_is_no_success, the_log_verifies_with_a_head_that_was_kept, the_log_can_be_followed,
         inspect_runs_only_once_a_body_needs_it, a_killed_parent_leaves_no_process_behind,
         an_environment_is_issued_anew_and_says_so_first, a_start_that_fails_tells_its_cause_and_no_more, sigterm_and_stop_end_it_in_order]


# ---- started otherwise ----

def systemd_is_told_when_it_is_ready(_):
    place = small_place()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(place.path("notify"))
        listener.settimeout(20)
        os.environ["NOTIFY_SOCKET"] = place.path("notify")
        try:
            with place:
                said = [listener.recv(100)]
            said.append(listener.recv(100))
        finally:
            del os.environ["NOTIFY_SOCKET"]
    assert b"READY=1" in said[0] and b"STOPPING=1" in said[1], said


LAUNCHER = """
import os, socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def a_listener_can_come_from_socket_activation(_):
    """The port is in use by the descriptor: had exeatd to bind it itself, it could not start."""
    place = small_place()
    with place:
        place.stop()
        with open(place.path("exeatd.log"), "ab") as log:
            before = place.log().count("parent: info: ready")
            place.daemon = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(place.ports["a"]), os.path.join(place.build, "exeatd"), "--config",
                 place.path("exeat.conf")], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        assert wait_for(lambda: place.log().count("parent: info: ready") > before, 20), place.log()[-500:]
        assert ask(place).status == 200


def an_ordinary_user_can_run_it(_):
    """All processes have the user's uid; seccomp and the rest are what keeps them apart."""
    with small_place(user=65534 if os.getuid() == 0 else None) as place:
        assert ask(place).status == 200
        assert ask(place, placeholder="sk-demo-foreign").status == 403
        for key, pid in place.pids().items():
            with open("/proc/%d/status" % pid) as f:
                text = f.read()
            assert re.search(r"^Seccomp:\s*2$", text, re.M) and re.search(r"^NoNewPrivs:\s*1$", text, re.M), key


def too_few_descriptors_are_told_of(_):
    """Of an ordinary user: root raises the limit."""
    with small_place(user=65534 if os.getuid() == 0 else None) as place:
        place.stop()
        done = subprocess.run(["prlimit", "--nofile=300", os.path.join(place.build, "exeatd"), "--config", place.path("exeat.conf")],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30, **place.as_user)
    told = done.stderr.decode().splitlines()
    assert done.returncode == 1 and len(told) == 1 and "`ulimit -Hn`) is 300: raise it to 512" in told[0], done


def descriptors_are_as_many_as_a_container_permits(_):
    """Its root may not go beyond the hard limit."""
    need_root("take a right from root")
    with small_place() as place:
        place.stop()
        done = subprocess.run(["prlimit", "--nofile=300:4000", "setpriv", "--bounding-set=-sys_resource",
                               os.path.join(place.build, "exeatd"), "--config", place.path("no.conf")],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30)
    assert b"no.conf: No such file" in done.stderr, done


def as_root_without_uids_it_is_refused(_):
    need_root("start as root")
    place = small_place()
    try:
        place.configure()
        with open(place.path("exeat.conf")) as f:
            text = f.read()
        place.write("exeat.conf", text.replace(UIDS, ""))
        os.makedirs(place.path("state"))
        place.exeat("ca", "init")
        place.exeat("vault", "init")
        done = subprocess.run([os.path.join(place.build, "exeatd"), "--config", place.path("exeat.conf")],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        assert done.returncode != 0 and b"uids" in done.stdout, done
    finally:
        place.__exit__()


# Each in a place of its own.
def rotate_while_it_is_read(copy, parts):
    """The first file of the trail is a pipe: whenever it is read, the file being written is finished and another begun."""
    path = lambda name: os.path.join(copy, name)
    first, content = parts[0]
    os.mkfifo(path(first))
    with open(path("audit.jsonl"), "wb") as f:
        f.write(parts[1][1])
    for finished, following in zip(parts[1:], parts[2:]):
        with open(path(first), "wb") as pipe:
            os.mkfifo(path("next"))
            os.rename(path("next"), path(first))
            os.rename(path("audit.jsonl"), path(finished[0]))
            with open(path("audit.jsonl"), "wb") as f:
                f.write(following[1])
            pipe.write(content)


def a_trail_whose_file_is_finished_while_it_is_verified_is_good(_):
    with small_place(config="limit audit-file 65536\n") as place:
        folder, copy = place.path("state", "audit"), place.path("copy")

        def names():
            return sorted(n for n in os.listdir(folder) if n.startswith("audit-"))
        while len(names()) < 5:
            assert ask(place).status == 200
        parts = []
        for name in names():
            with open(os.path.join(folder, name), "rb") as f:
                parts.append((name, f.read()))
        os.mkdir(copy)
        shutil.copy(os.path.join(folder, "sign.pub"), copy)
        threading.Thread(target=rotate_while_it_is_read, args=(copy, parts), daemon=True).start()
        assert wait_for(lambda: os.path.exists(os.path.join(copy, "audit.jsonl")))
        assert code(place, "log", "verify", "--dir", copy) == 0, place.last.stdout


ALONE = [systemd_is_told_when_it_is_ready, a_listener_can_come_from_socket_activation, an_ordinary_user_can_run_it,
         too_few_descriptors_are_told_of, descriptors_are_as_many_as_a_container_permits, as_root_without_uids_it_is_refused,
         tampering_shows_in_the_status_until_what_was_found_is_taken_away,
         a_trail_whose_file_is_finished_while_it_is_verified_is_good]


def main():
    report = Report()
    report.run_in(small_place, TESTS)
    report.run_all(ALONE)
    report.end()


if __name__ == "__main__":
    main()
