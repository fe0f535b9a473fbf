#!/usr/bin/env python3
"""The commands on policies that need no daemon: what they print, and how they exit."""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXEAT = os.path.join(os.environ.get("EXEAT_BUILD", os.path.join(ROOT, "build")), "exeat")
YES, NO, USAGE, INVALID, UNSEEN = 0, 1, 2, 3, 6
tests = []


def test(function):
    tests.append(function)
    return function


class Place:
    def __init__(self, directory):
        self.directory = directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return name

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def policy(self, *args):
        """Exit code, standard output, standard error."""
        done = subprocess.run([EXEAT, "policy", *args], cwd=self.directory, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stdout, done.stderr


DEMO = """service demo-api {
    host api.example.com
    credential demo-key { in header authorization scheme bearer }
    limit body 64K
    operation read { GET /v1/items; GET /v1/items/** }
    operation create { POST /v1/items }
    never { * /v1/items/*/share }
    expect allow GET /v1/items/7
}

sandbox worker-1 {
    grant demo-api read
}
"""


# ---- fmt ----

@test
def fmt_prints_checks_and_writes(place):
    loose = DEMO.replace("    ", "\t").replace("host ", "host   ")
    place.write("p", loose)
    assert place.policy("fmt", "p") == (YES, DEMO, "")
    assert place.policy("fmt", "--check", "p")[0] == NO and place.read("p") == loose
    os.chmod(place.path("p"), 0o640)
    assert place.policy("fmt", "--write", "p") == (YES, "", "")
    assert place.read("p") == DEMO and os.stat(place.path("p")).st_mode & 0o777 == 0o640
    assert place.policy("fmt", "--check", "p") == (YES, "", "")
    assert os.listdir(place.directory) == ["p"]


@test
def fmt_leaves_a_bad_file_as_it_is(place):
    place.write("p", "service a { hots b.test }\n")
    code, out, err = place.policy("fmt", "--write", "p")
    assert code == INVALID and out == "" and "p:1:13: 'hots' is no word of a service" in err, err
    assert place.read("p") == "service a { hots b.test }\n"


# ---- the JSON form ----

@test
def a_policy_goes_to_json_and_back_with_its_notes(place):
    text = DEMO.replace("limit body 64K", "limit body 64K # enough\n\n    # who reads\n    # what")
    place.write("p", text)
    code, as_json, err = place.policy("fmt", "--to", "json", "p")
    assert (code, err) == (YES, "") and json.loads(as_json)["policy"][0]["words"] == ["service", "demo-api"], as_json
    place.write("p.json", as_json)
    assert place.policy("fmt", "p.json") == (YES, as_json, "")
    assert place.policy("fmt", "--check", "p.json") == (YES, "", "")
    assert place.policy("fmt", "--to", "text", "p.json") == (YES, text, "")
    place.write("loose.json", json.dumps(json.loads(as_json)))
    assert place.policy("fmt", "--check", "loose.json")[0] == NO
    assert place.policy("fmt", "--write", "loose.json")[0] == YES and place.read("loose.json") == as_json
    assert place.policy("fmt", "--to", "yaml", "p")[0] == USAGE


@test
def every_policy_that_comes_with_exeat_goes_to_json_and_back(place):
    folder = os.path.join(ROOT, "policy", "services")
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))] + [os.path.join(ROOT, "docs/examples/policy")]
    assert len(files) > 10
    for name in files:
        code, formatted, err = place.policy("fmt", name)
        assert code == YES, err
        place.write("p.json", place.policy("fmt", "--to", "json", name)[1])
        assert place.policy("fmt", "--to", "text", "p.json") == (YES, formatted, ""), name


@test
def the_tools_take_json_and_text_alike(place):
    place.write("p", DEMO)
    place.write("p.json", place.policy("fmt", "--to", "json", "p")[1])
    for command in (("check",), ("lint",), ("diff", "p"), ("explain", "--policy"), ("test", "--policy")):
        more = {"explain": ("POST", "https://api.example.com/v1/items"), "test": ("t",)}.get(command[0], ())
        place.write("t", "expect allow as worker-1 GET https://api.example.com/v1/items\n")
        code, out, err = place.policy(*command, "p.json", *more)
        assert (code, out.replace("p.json", "p"), err) == place.policy(*command, "p", *more), (command, code, out, err)
    place.write("outer", 'include p.json\n')
    assert place.policy("check", "outer") == (YES, "outer: good\n", "")
    place.write("outer.json", json.dumps({"policy": [{"words": ["include", "p"]}]}))
    assert place.policy("check", "outer.json")[0] == YES


@test
def errors_in_json_name_place_and_pointer(place):
    bad = '{"policy": [\n {"words": ["service", "a"], "block": [\n  {"words": ["hots", "a.test"]}]}]}\n'
    place.write("p.json", bad)
    wanted = "p.json:3:14: /policy/0/block/0/words/0: 'hots' is no word of a service, did you mean 'host'?\n"
    for command in ("check", "fmt", "lint"):
        code, out, err = place.policy(command, "p.json")
        assert code == INVALID and err.startswith(wanted), err
    assert '    {"words": ["hots"' in err.replace("      ", "    ")
    place.write("outer", "include p.json\n")
    code, out, err = place.policy("check", "outer")
    assert code == INVALID and err.startswith(wanted), err
    told = json.loads(place.policy("check", "--json", "p.json")[1])["errors"][0]
    assert (told["file"], told["line"], told["column"]) == ("p.json", 3, 14), told
    place.write("p.json", '{"policy": [\n {"words": ["a b"]}]}')
    assert "p.json:2:13: /policy/0/words/0: this is no word" in place.policy("check", "p.json")[2]
    place.write("p.json", '{"policy": [\n')
    code, out, err = place.policy("check", "p.json")
    assert code == INVALID and re.match(r"p\.json:\d+:\d+: JSON: ", err), err
    code, out, err = place.policy("check", "outer")
    assert code == INVALID and "outer:1:9: 'p.json': this JSON is no form of a policy" in err, err


# ---- lint ----

def findings(place, text):
    """The codes that are found, with their lines."""
    code, out, err = place.policy("lint", "--json", place.write("p", text))
    found = json.loads(out)["findings"]
    assert code == (NO if found else YES), (code, out, err)
    assert all(f["text"] and f["remedy"] and f["file"] == "p" and f["column"] for f in found), found
    return [(f["code"], f["line"]) for f in found]


TIDY = DEMO.replace("grant demo-api read", "grant demo-api all")


@test
def lint_finds_nothing_in_a_tidy_policy(place):
    assert findings(place, TIDY) == []
    assert place.policy("lint", "p") == (YES, "p: nothing suspicious\n", "")


@test
def lint_finds_a_spliced_service_once(place):
    spliced = "service s { host s.test; tls splice\nexpect allow GET /x }\nsandbox w { grant s all }\n"
    assert findings(place, spliced) == [("splice", 1)]


@test
def lint_finds_each_kind_with_its_place_and_remedy(place):
    def demo(before, after):
        assert before in TIDY
        return findings(place, TIDY.replace(before, after))
    assert demo("limit body 64K\n", "\n") == [("no-body-limit", 6)]
    assert demo("limit body 64K\n    operation", "operation limited { PUT /l { body at most 1K } }\n operation") == [("no-body-limit", 6)]
    assert demo("expect allow GET /v1/items/7", "") == [("no-expectation", 1)]
    assert demo("GET /v1/items;", "GET /v1/items; GET /v1/items/{n:int};") == [("shadowed", 5)]
    assert demo("GET /v1/items;", "GET /v1/items; GET /v1/items/{n:int} { query x };") == [("shadowed", 5)]
    assert demo("GET /v1/items;", "GET /v1/items { query x }; GET /v1/items { header y };") == []
    assert demo("POST /v1/items }", "POST /v1/items; PUT /v1/items/{n}/Share.json }") == [("unreachable", 6)]
    assert demo("POST /v1/items }", "POST /v1/items; PUT /v1/items/*/* }") == []
    assert demo("GET /v1/items/** }", "GET /v1/items/**; GET /** }")[-1:] == [("credential-without-path", 5)]
    wide = TIDY.replace("    credential demo-key { in header authorization scheme bearer }\n", "").replace("POST /v1/items }", "* /** }")
    assert findings(place, wide) == [("wide-rule", 5)]
    assert findings(place, TIDY.replace("host api.example.com", "host api.example.com *.github.io wide")) == [("wide-host", 2)]
    ungranted = TIDY.replace("grant demo-api all", "grant demo-api read")
    assert findings(place, ungranted) == [("not-granted", 6)]
    assert findings(place, ungranted + "sandbox ci-* { grant demo-api create }\n") == []
    assert findings(place, ungranted + "sandbox * label l { grant demo-api create }\n") == [("not-granted", 6)]
    assert findings(place, ungranted + "sandbox x label l { }\nsandbox * label l { grant demo-api create }\n") == []
    place.write("inner", TIDY.split("sandbox")[0])
    assert findings(place, "include inner\nsandbox worker-1 { grant demo-api read }\n") == []
    closed = "service closed { host **.example.com; never all; expect deny GET https://x.example.com/ }\n"
    assert findings(place, TIDY.replace("expect allow GET", "expect deny GET") + closed) == [("unreachable", 1)]


@test
def lint_tells_of_bodies_without_a_limit_once_a_service_and_where_they_can_leave(place):
    many = TIDY.replace("    limit body 64K\n", "").replace("POST /v1/items }", "POST /v1/items; PUT DELETE /v1/items/{n}/x; PATCH /v1/items/{n}/y }")
    assert findings(place, many) == [("no-body-limit", 5)]
    assert "by this line, and by 2 more of the service\n" in place.policy("lint", "p")[1]
    place.write("inner", many.split("sandbox")[0])
    assert findings(place, "include inner\nsandbox worker-1 { grant demo-api read }\n") == []
    assert place.policy("lint", "inner")[0] == NO


@test
def lint_tells_the_place_and_the_remedy_in_text(place):
    place.write("p", TIDY.replace("    expect allow GET /v1/items/7\n", ""))
    assert place.policy("lint", "p") == (NO, "p:1:9: no-expectation: the service 'demo-api' has no expectation\n"
                                         "    add 'expect allow' and 'expect deny' lines to the service\n", "")


# ---- test ----

@test
def test_tells_what_was_decided_instead_and_where(place):
    place.write("p", DEMO)
    place.write("t", "# what worker-1 may\nexpect allow as worker-1 GET https://api.example.com/v1/items/7\n"
                "expect deny as worker-1 POST https://api.example.com/v1/items reason operation_not_granted\n")
    assert place.policy("test", "--policy", "p", "t") == (YES, "t: 2 expectations, 0 failed\n", "")
    place.write("one", "expect allow as worker-1 GET https://api.example.com/v1/items/7\n")
    assert place.policy("test", "--policy", "p", "one") == (YES, "one: 1 expectation, 0 failed\n", "")
    place.write("t", "expect deny as worker-1 GET https://api.example.com/v1/items/7\n"
                "expect allow as worker-1 GET https://api.example.com/v1/items/7/share\n"
                "expect deny as worker-1 with none GET https://api.example.com/v1/items reason never\n")
    code, out, err = place.policy("test", "--policy", "p", "t")
    assert (code, err) == (NO, ""), (code, err)
    said = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert said == ["t:1:1: expected deny, but this is allowed by 'read' at p:5:37",
                    "t:2:1: expected allow, but this is refused at p:7:13: never (The policy forbids this request whatever else is granted)",
                    "t:3:1: expected the reason never, but it is credential_missing at p:3:16",
                    "t: 3 expectations, 3 failed"], said
    told = json.loads(place.policy("test", "--json", "--policy", "p", "t")[1])
    assert (told["expectations"], told["failed"]) == (3, 3) and told["failures"][1]["line"] == 2, told


@test
def test_refuses_what_is_no_file_of_expectations(place):
    place.write("p", DEMO)
    for text, why in (("sandbox x { }", "'sandbox' is no word of this file"),
                      ("expect allow as worker-2 GET https://api.example.com/", "no sandbox 'worker-2', did you mean 'worker-1'?"),
                      ("expect allow GET /v1/items", "expected 'as' and the name of a sandbox")):
        code, out, err = place.policy("test", "--policy", "p", place.write("t", text + "\n"))
        assert code == INVALID and out == "" and why in err, (code, out, err)
    for text in ("", "# expect allow as worker-1 GET https://api.example.com/v1/items/7\n"):
        code, out, err = place.policy("test", "--policy", "p", place.write("t", text))
        assert (code, out) == (UNSEEN, "") and "t: there is no expectation in it" in err, (code, out, err)
    assert place.policy("test", "t")[0] == USAGE


# ---- explain ----

EXPLAINED = DEMO.replace("create { POST /v1/items }", "create { POST /v1/items/{n:int} { query mode is x; no header y } }")


def nearest(place, *args):
    """The operation that comes nearest, and the clauses that fail with their columns."""
    code, out, err = place.policy("explain", "--json", "--policy", place.write("p", EXPLAINED), *args)
    assert code == NO, (code, out, err)
    found = json.loads(out)["nearest"]
    assert all(f["text"] for f in found["failures"]), found
    return found["operation"], [(f["clause"], f.get("line"), f.get("column")) for f in found["failures"]]


@test
def explain_tells_the_nearest_line_and_what_fails_of_it(place):
    api = "https://api.example.com"
    create = ("grant", 6, 15)
    for want, args in (
            (("read", [("method", 5, 37)]), ("PUT", api + "/v1/items/7/x")),
            (("read", [("path", 5, 22)]), ("GET", api + "/v1/itens")),
            (("create", [create]), ("POST", api + "/v1/items/7?mode=x")),
            (("create", [("condition", 6, 49), create]), ("POST", api + "/v1/items/7")),
            (("create", [("condition", 6, 49), ("condition", 6, 66), create]), ("--header", "y: 1", "POST", api + "/v1/items/7")),
            (("read", [("refusal", 7, 13)]), ("GET", api + "/v1/items/7/share")),
            (("read", [("refusal", 3, 16)]), ("--with", "foreign", "GET", api + "/v1/items")),
            (("read", [("host", 2, 10)]), ("GET", "https://evil.example.net/v1/items")),
            (("read", [("tls", 1, 9)]), ("GET", "http://api.example.com:443/v1/items")),
            (("read", [("port", 1, 9)]), ("GET", api + ":444/v1/items")),
            (("read", [("grant", None, None)]), ("--sandbox", "worker-2", "GET", api + "/v1/items"))):
        found = nearest(place, *args)
        assert found == want, (args, found)


@test
def explain_prints_the_nearest_line_in_text_and_nothing_for_what_is_allowed(place):
    place.write("p", DEMO)
    code, out, _ = place.policy("explain", "--policy", "p", "PUT", "https://api.example.com/v1/items")
    assert code == NO and out.endswith("nearest: 'read' of 'demo-api' at p:5:22\n"
                                       "  fails: method: PUT is not among GET (p:5:22)\n"), out
    code, out, _ = place.policy("explain", "--policy", "p", "GET", "https://api.example.com/v1/items")
    assert code == YES and "nearest" not in out, out
    place.write("p", "sandbox worker-1 { }\n")
    code, out, _ = place.policy("explain", "--policy", "p", "GET", "https://api.example.com/v1/items")
    assert code == NO and "nearest" not in out, out


@test
def explain_reads_a_body(place):
    place.write("p", DEMO.replace("{ POST /v1/items }", "{ POST /v1/items { body /kind in [small, medium] } }")
                .replace("grant demo-api read", "grant demo-api all"))
    place.write("small", '{"kind":"small"}')
    place.write("large", '{"kind":"large"}')
    ask = ("explain", "--policy", "p")
    url = ("POST", "https://api.example.com/v1/items")
    assert place.policy(*ask, "--type", "application/json", "--body", "small", *url)[0] == YES
    code, out, _ = place.policy(*ask, "--type", "application/json", "--body", "large", *url)
    assert code == NO and "fails: condition: " in out and "/kind" in out, out
    for more in ([], ["--type", "text/plain", "--body", "large"]):
        assert place.policy(*ask, *more, *url)[0] == NO, more
    done = subprocess.run([EXEAT, "policy", *ask, "--type", "application/json", "--body", "-", *url], cwd=place.directory,
                          input=b'{"kind":"medium"}', stdout=subprocess.PIPE)
    assert done.returncode == YES, done
    code, out, err = place.policy(*ask, "--body", "nowhere", *url)
    assert code == 6 and err == "exeat: nowhere: No such file or directory\n", (code, err)


CONDITIONS = """service api {
    host api.example.com
    operation read { GET /v1/items }
    operation add { POST /v1/items { content-type application/json; body /kind is small } }
}
sandbox w { grant api all }
"""


@test
def explain_says_that_only_a_condition_fails_and_which(place):
    place.write("p", CONDITIONS)
    place.write("body", '{"kind":"small"}')
    place.write("cut", '{"kind":')
    ask = ("explain", "--policy", "p", "--body")
    url = ("POST", "https://api.example.com/v1/items")
    unmet = "An operation of this host has this method and path, but not all of its conditions hold\n"
    code, out, _ = place.policy(*ask, "body", "--type", "text/plain", *url)
    assert code == NO and out.startswith("deny: operation_not_allowed\n" + unmet) and "decided by: p:4:38\n" in out, out
    assert "  fails: condition: the condition 'content-type' does not hold (p:4:38)\n" in out, out
    code, out, _ = place.policy(*ask, "body", "--type", "text/plain", url[0], url[1] + "/7")
    assert code == NO and unmet not in out and "No operation of this host has this method and path\n" in out, out
    # A body that cannot be read is no body without the value.
    for name, why in (("cut", ": the body ends too early (p:4:"), ("body", " (p:4:")):
        place.write("body", '{"kind":"large"}')
        code, out, _ = place.policy(*ask, name, "--type", "application/json", *url)
        assert code == NO and "the condition 'body /kind' does not hold" + why in out, (name, out)


@test
def explain_says_of_a_body_that_cannot_be_looked_into_what_the_daemon_says(place):
    """The same as PV-02 with a coding: egress/send_body.c asks the same function."""
    place.write("p", DEMO.replace("grant demo-api read", "grant demo-api all"))
    ask = ("explain", "--policy", "p")
    url = ("POST", "https://api.example.com/v1/items")
    for args, refused in ((("--header", "Content-Encoding: gzip", "--type", "application/json"), True),
                          (("--header", "content-encoding: gzip"), True),
                          (("--header", "content-encoding: gzip", "--type", "application/octet-stream"), False),
                          (("--header", "content-encoding: identity", "--type", "application/json"), False),
                          (("--type", "application/json; charset=utf-16", "--body", place.write("body", "{}")), True)):
        code, out, err = place.policy(*ask, *args, *url)
        assert code == (NO if refused else YES) and out.startswith("deny: body_coding\n" if refused else "allow: "), (args, out, err)
    place.write("p", DEMO.replace("grant demo-api read", "grant demo-api all").replace(
        "    credential demo-key { in header authorization scheme bearer }\n", "    accept any credential\n"))
    assert place.policy(*ask, "--header", "content-encoding: gzip", "--type", "application/json", *url)[0] == YES


@test
def a_policy_whose_expectations_fail_can_be_asked_why(place):
    place.write("p", CONDITIONS + "expect allow as w POST https://api.example.com/v1/items type application/json body '{}'\n"
                "expect allow as w GET https://api.example.com/v1/things\n")
    code, _, err = place.policy("check", "p")
    said = [line for line in err.splitlines() if line.startswith("p:")]
    assert code == INVALID and len(said) == 2 and said[0].startswith(
        "p:7:1: expected allow, but this is refused at p:4:69: operation_not_allowed (An operation of this host"), said
    assert said[0].endswith("nearest is 'add' at p:4:21: the condition 'body /kind' does not hold"), said
    assert said[1].endswith("nearest is 'read' at p:3:22: '/v1/things' does not match '/v1/items'"), said
    note = "exeat: note: this policy does not load: expectations fail (2, the first at p:7:1); `exeat policy check p` tells which\n"
    code, out, err = place.policy("explain", "--policy", "p", "--type", "application/json", "POST", "https://api.example.com/v1/items")
    assert code == NO and "fails: condition: the condition 'body /kind' does not hold" in out and err == note, (out, err)
    place.write("good", CONDITIONS)
    code, out, err = place.policy("diff", "good", "p")
    assert code == YES and "newly allowed: 0, newly refused: 0" in out and err == note, (out, err)
    place.write("log", record(reason="operation_not_allowed", sandbox="w"))
    assert place.policy("replay", "p", "log")[::2] == (YES, note)
    # Anything else that is wrong with it is an error as ever, and whoever uses a policy takes none of this kind.
    assert place.policy("explain", "--policy", place.write("bad", CONDITIONS + "sandbox w { }\n"), "GET", "https://a.test/")[0] == INVALID
    assert place.policy("lint", "p")[0] == INVALID and place.policy("suggest", "--policy", "p", "log")[0] == INVALID
    place.write("json", place.policy("fmt", "--to", "json", "p")[1])
    code, out, err = place.policy("explain", "--policy", "json", "GET", "https://api.example.com/v1/items")
    assert code == YES and err.startswith("exeat: note: this policy does not load: expectations fail (2, the first at json:"), err


# ---- diff ----

@test
def diff_tells_what_is_newly_allowed_by_an_example_and_exits_with_one(place):
    place.write("old", DEMO)
    place.write("new", DEMO.replace("grant demo-api read", "grant demo-api all"))
    code, out, _ = place.policy("diff", "old", "old")
    assert code == YES and out == "newly allowed: 0, newly refused: 0; by 0 requests put to both\n", out
    code, out, err = place.policy("diff", "old", "new")
    assert (code, err) == (NO, "") and out.startswith(
        "+ worker-1: POST https://api.example.com/v1/items\n"
        "    was refused: operation_not_granted\n"
        "    is allowed by 'create' of 'demo-api' at new:6:24, credential demo-key\n"
        "newly allowed: 1, newly refused: 0; by "), out
    code, out, _ = place.policy("diff", "--json", "new", "old")
    told = json.loads(out)
    assert code == YES and told["denied"] == 1 and told["allowed"] == 0 and told["whole"] is True, told
    assert told["differences"][0]["before"]["operation"] == "create", told


@test
def diff_shows_the_limits_that_differ(place):
    place.write("a", DEMO.replace("grant demo-api read", "grant demo-api read uses 5 rate 10/m"))
    place.write("b", DEMO.replace("grant demo-api read", "grant demo-api read uses 5"))
    place.write("c", DEMO)
    for old, new, was, now in (("a", "b", ", while uses 5 rate 10/m at a:12:11", ", while uses 5 at b:12:11"),
                               ("b", "c", ", while uses 5 at b:12:11", ", without limits of its grant"),
                               ("c", "a", ", without limits of its grant", ", while uses 5 rate 10/m at a:12:11")):
        code, out, _ = place.policy("diff", old, new)
        assert code == (YES if new == "a" else NO), (code, out)
        rows = [line for line in out.splitlines() if line.startswith("    was ") or line.startswith("    is ")]
        assert rows and all(line.endswith(was if line.startswith("    was ") else now) for line in rows), rows
    told = json.loads(place.policy("diff", "--json", "a", "b")[1])["differences"][0]
    assert (told["before"]["grants"][0]["terms"], told["after"]["grants"][0]["terms"]) == ("uses 5 rate 10/m", "uses 5"), told
    place.write("s", "service t { host t.example.com; tls splice at most 1M }\nsandbox w { grant t all }\n")
    place.write("t", "service t { host t.example.com; tls splice at most 2M }\nsandbox w { grant t all }\n")
    out = place.policy("diff", "s", "t")[1]
    assert ", at most 1048576 bytes each way, " in out and ", at most 2097152 bytes each way, " in out, out


@test
def a_name_that_was_misspelled_is_answered_with_the_nearest(place):
    place.write("p", DEMO)
    for words, said in ((["polcy"], "there is no command 'polcy', did you mean 'policy'? `exeat help` lists them"),
                        (["--confg", "f", "status"], "there is no option --confg here; `exeat help` lists what there is"),
                        (["frobnicate"], "there is no command 'frobnicate'; `exeat help` lists them"),
                        (["sandbox", "lst"], "there is no command 'sandbox lst', did you mean 'list'? `exeat help sandbox` lists them"),
                        (["help", "lgo"], "there is no command 'lgo', did you mean 'log'? `exeat help` lists them"),
                        (["reasons", "operaton_not_allowed"],
                         "there is no reason 'operaton_not_allowed', did you mean 'operation_not_allowed'? `exeat reasons` lists them"),
                        (["reasons", "zzz"], "there is no reason 'zzz': `exeat reasons` lists them"),
                        (["log", "--reason", "nevr"], "there is no reason 'nevr', did you mean 'never'? `exeat reasons` lists them"),
                        (["log", "--sandbx=w"], "there is no option --sandbx here, did you mean '--sandbox'?"),
                        (["run", "--policy", "p", "--sandbox", "workr-1", "--", "true"],
                         "run: p has no sandbox workr-1, did you mean 'worker-1'? It has only: worker-1"),
                        (["run", "--policy", place.write("none", DEMO.split("sandbox")[0]), "--", "true"],
                         "run: none declares no sandbox by name: add `sandbox NAME { grant SERVICE OPERATION }` to it, or name with "
                         "--sandbox one that a block with a star stands for")):
        done = subprocess.run([EXEAT, *words], cwd=place.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        first = done.stderr.splitlines()[0].replace(os.path.realpath(place.directory) + "/", "").replace(place.directory + "/", "")
        assert done.returncode != 0 and first == "exeat: " + said, (words, done)
    out = place.policy("explain", "--policy", "p", "--sandbox", "workr-1", "GET", "https://api.example.com/v1/items")[1]
    assert "  fails: grant: there is no sandbox 'workr-1', did you mean 'worker-1'?\n" in out, out


@test
def diff_says_when_it_could_not_compare_all(place):
    place.write("p", DEMO.replace("limit body 64K", "operation zq9 { GET /zq9 }"))
    place.write("q", DEMO.replace("limit body 64K", "operation zq9 { GET /zq9 }; limit body 5"))
    code, out, _ = place.policy("diff", "p", "q")
    assert code == NO and out.endswith("this is not all there may be: a policy has the text zq9 or 70007, which stands for anything else here\n"), out
    # What is the same on both sides needs no comparing.
    code, out, _ = place.policy("diff", "p", "p")
    assert code == YES and out == "newly allowed: 0, newly refused: 0; by 0 requests put to both\n", out


@test
def diff_tells_of_further_addresses(place):
    place.write("p", DEMO)
    place.write("q", DEMO.replace("limit body 64K", "limit body 64K; range 10.0.0.0/8"))
    code, out, err = place.policy("diff", "p", "q")
    assert (code, err) == (NO, "") and re.fullmatch(
        r"\+ worker-1: CONNECT https://api.example.com \(address 10.0.0.0 of the range 10.0.0.0/8\)\n"
        r"    was allowed by 'demo-api' at p:\d+:\d+\n"
        r"    is allowed by 'demo-api' at q:\d+:\d+\n"
        r"newly allowed: 0, newly refused: 0, reaching further: 1; by 0 requests put to both\n", out), out
    code, out, _ = place.policy("diff", "q", "p")
    assert code == YES and "- worker-1: CONNECT " in out and "reaching less far: 1" in out, out


@test
def what_is_wrong_with_a_command_line_or_a_file_comes_with_the_remedy(place):
    place.write("p", DEMO.replace("    host", "  host"))
    place.write("api.yaml", "openapi: 3.0.0\npaths: {}\n")
    place.write("i", "include services/nowhere.policy\n")
    place.write("k", "include beside\n")
    place.write("beside.policy", "")
    place.write("j", '{"services":[]}')
    for words, code, said in (
            (("diff", "p"), USAGE, "exeat: an argument is missing\nusage: exeat policy diff OLD NEW\n"),
            (("check", "p", "more"), USAGE, "exeat: there is an argument too many: more\nusage: exeat policy check FILE\n"),
            (("chek", "p"), USAGE, "exeat: there is no command 'policy chek', did you mean 'check'? `exeat help policy` lists them\n"),
            (("explain", "--boddy", "x", "GET", "/"), USAGE, "exeat: there is no option --boddy here, did you mean '--body'?\nusage: exeat policy explain "),
            (("fmt", "--check", "p"), NO, "exeat: p is not formatted; `exeat policy fmt --write p` does it\n"),
            (("import", "openapi", "api.yaml"), NO, "exeat: api.yaml: this is no JSON; a description in YAML must be converted before\n"),
            (("check", "j"), INVALID, "j:1:1: 'services' is no member of this\n"),
            (("check", "i"), INVALID, "i:1:9: 'services/nowhere.policy': there is no such file, neither beside this one nor in /")):
        done = place.policy(*words)
        assert done[0] == code and done[1] == "" and done[2].startswith(said), done
    assert ", but one that ends in '.policy'\n" in place.policy("check", "k")[2]


# ---- replay and suggest ----

def record(verdict="deny", reason=None, method="GET", path="/v1/items/7", host="api.example.com", port=443,
           kind="decision", **more):
    line = {"v": 1, "kind": kind, "id": "id-%d" % len(path), "verdict": verdict, "sandbox": "worker-1", "method": method,
            "scheme": "https", "host": host, "path": path, "port": port}
    if reason:
        line["reason"] = reason
    return json.dumps({**line, **more}, separators=(",", ":")) + "\n"


LOG = (record("allow", credential="demo-key") + record("allow", path="/v1/items/7/x", kind="outcome")
       + record(reason="operation_not_granted", method="POST", path="/v1/items")
       + record(reason="never", path="/v1/items/7/share")
       + record(reason="foreign_credential", material="bearer:3f9c2a1b") + record(reason="malformed_request")
       + record("allow", path="/v1/search", query="q") + record("allow", path="/gone") + "{\n"
       + record("allow", path="/v1/cut", target_bytes=5000, target_sha256="00"))


@test
def replay_tells_which_records_would_be_judged_differently(place):
    place.write("p", DEMO.replace("grant demo-api read", "grant demo-api all")
                .replace("GET /v1/items;", "GET /v1/items; GET /v1/search { query q };"))
    place.write("log", LOG)
    code, out, err = place.policy("replay", "p", "log")
    lines = out.splitlines()
    assert (code, err) == (NO, "") and lines[:3] == [
        "+ id-9 worker-1: POST api.example.com/v1/items: was operation_not_granted, is allowed at p:6:24",
        "- id-5 worker-1: GET api.example.com/gone: was allowed, is operation_not_allowed",
        "newly allowed: 1, newly refused: 1, of 5 requests"], out
    assert lines[3].startswith("1 were allowed and now hang on conditions"), out
    assert lines[4].startswith("2 records left out"), out
    told = json.loads(place.policy("replay", "--json", "p", "log")[1])
    assert [c["id"] for c in told["changes"]] == ["id-9", "id-5"], told
    assert (told["replayed"], told["unsure"], told["left_out"]) == (5, 1, 2), told
    place.write("log", record("allow") + record(reason="never", path="/v1/items/7/share"))
    assert place.policy("replay", "p", "log")[0] == YES
    assert place.policy("replay", "p", "nowhere")[0] == UNSEEN
    place.write("empty", "")
    for command in ("replay", "p"), ("suggest",):
        for other in ("p", "empty"):
            code, out, err = place.policy(*command, other)
            assert (code, out, err) == (UNSEEN, "", "exeat: %s: this is no audit trail: no line of it is a record\n" % other), err


@test
def replay_and_suggest_read_several_files_and_whole_trails(place):
    place.write("p", DEMO)
    gone, newly = record("allow", path="/gone"), record(reason="operation_not_granted", path="/v1/items/9")
    wish = record(reason="operation_not_allowed", path="/a/wish")
    os.mkdir(place.path("audit"))
    place.write("audit/audit.jsonl", newly + '{"kind":"decision"')
    place.write("audit/audit-000000000007.jsonl", wish + "x" * 200000 + "\n")
    place.write("audit/audit-000000000001.jsonl", gone)
    place.write("audit/audit-000000000003.bad.jsonl", gone)
    place.write("audit/other.jsonl", gone)
    code, out, err = place.policy("replay", "p", "audit")
    assert (code, err) == (NO, "") and [line[0] for line in out.splitlines()[:3]] == ["-", "+", "n"], out
    assert out.splitlines()[2] == "newly allowed: 1, newly refused: 1, of 3 requests", out
    parts = ["audit/audit-000000000001.jsonl", "audit/audit-000000000007.jsonl", "audit/audit.jsonl"]
    assert place.policy("replay", "p", *parts) == (code, out, err)
    assert place.policy("replay", "p", *reversed(parts))[1].splitlines()[0][0] == "+"
    code, out, err = place.policy("suggest", "audit")
    assert (code, err) == (YES, "") and '"/a/wish"' in out and '"/v1/items/9"' in out, (out, err)
    assert place.policy("suggest", *parts) == (code, out, err)
    assert place.policy("replay", "p")[0] == USAGE and place.policy("suggest")[0] == USAGE
    assert place.policy("suggest", "audit", "nowhere")[0] == UNSEEN


@test
def suggest_gives_a_policy_that_allows_exactly_what_was_refused(place):
    refused = (("GET", "https://a.example.com/x%20y;v=1", "worker-1"), ("POST", "https://a.example.com/{id}", "worker-2"),
               ("GET", "https://a.example.com/x%20y;v=1", "worker-2"), ("PUT", "http://8.8.8.8:8080/", "worker-1"))
    log = ""
    for method, url, sandbox in refused + refused[:1]:
        scheme, rest = url.split("://")
        host, path = rest.split("/", 1)
        host, port = (host + ":443").split(":")[:2]
        log += record(reason="host_not_allowed", method=method, path="/" + path, host=host, port=int(port), scheme=scheme,
                      sandbox=sandbox)
    log += record(reason="host_not_allowed", host="224.0.0.1") + record(reason="host_not_allowed", host="0.0.0.0")
    log += record(reason="foreign_credential") + record(reason="operation_not_allowed", path="/a/*") + record("allow")
    log += 2 * record(reason="host_not_allowed", method="CONNECT", host="tunnel.example.com", path="")
    for method in ("A", "AAAA"):
        log += record(reason="host_not_allowed", method=method, host="name.example.com", path="", port=None, door="dns")
    log += record(reason="port_not_allowed", method="", host="8.8.4.4", path="", port=25, door="transparent")
    for end in ("192.0.2.1:9", "[2001:db8::1]:443"):  # the doctor's
        log += record(reason="protocol_not_allowed", method="", host="", path="", port=None, door="udp", meant=end)
    place.write("log", log)
    code, out, err = place.policy("suggest", "log")
    assert (code, err) == (YES, ""), (code, out, err)
    assert out.startswith("# 4 refusals left out") and out.count("operation ") == 3, out
    assert "#     worker-1 to tunnel.example.com:443\n" in out and out.count("tunnel") == 1, out
    assert out.count("#     worker-1 to name.example.com\n") == 1 and "#     worker-1 to 8.8.4.4:25\n" in out, out
    place.write("p", out)
    assert place.policy("check", "p")[0] == YES
    for method, url, sandbox in refused:
        for who in ("worker-1", "worker-2"):
            wished = (method, url, who) in refused
            code, told, _ = place.policy("explain", "--policy", "p", "--sandbox", who, method, url)
            assert code == (YES if wished else NO), (method, url, who, told)
    for method, url in (("HEAD", "https://a.example.com/x%20y;v=1"), ("GET", "https://a.example.com/"),
                        ("POST", "https://a.example.com/7")):
        assert place.policy("explain", "--policy", "p", "--sandbox", "worker-2", method, url)[0] == NO
    assert "newly allowed: 5, newly refused: 1, of " in place.policy("replay", "p", "log")[1]


@test
def suggest_makes_no_rule_for_an_address_that_is_not_public(place):
    """A `range` would open the operator's own network; what is refused there is told, as a comment that says so."""
    closed = (("10.1.2.3", "private"), ("169.254.169.254", "metadata"), ("127.0.0.1", "loopback"), ("[fd00::7]", "private"),
              ("100.64.0.1", "shared"), ("192.0.2.7", "documentation"), ("[::ffff:10.0.0.9]", "private"), ("[64:ff9b::a9fe:a9fe]", "metadata"))
    log = "".join(record(reason="host_not_allowed", host=host, path="/p") for host, _ in closed)
    log += record(reason="host_not_allowed", host="10.1.2.4", port=80, method="CONNECT", path="")
    log += record(reason="host_not_allowed", host="10.1.2.3", path="/p", method="PUT", scheme="http", port=8080, sandbox="worker-2")
    inner = {"host": "api.example.com", "path": "/v1/items", "reason": "address_not_allowed"}
    log += record(address="192.168.7.7", **inner) + record(address="8.8.8.8", **inner) + record(**inner)
    place.write("own", DEMO)
    for policy in ([], ["--policy", "own"]):
        place.write("log", log + record(reason="host_not_allowed", host="8.8.8.8", path="/p"))
        code, out, err = place.policy("suggest", *policy, "log")
        notes = err if policy else out
        rules = "".join(line for line in out.splitlines(True) if not line.startswith("#"))
        assert code == YES and "8.8.8.8" in rules and rules.count("range ") == 1, (out, err)
        assert "Refused at addresses that are not public. No rule is made of these: a `range`" in notes and "metadata service" in notes, notes
        for host, kind in closed:
            assert "#     worker-1: GET https://%s/p (%s)\n" % (host, kind) in notes and host.strip("[]") not in rules, (host, notes)
        assert "#     worker-1 to 10.1.2.4:80 (private)\n" in notes and "in `mode observe`" not in notes, notes
        assert "#     worker-2: PUT http://10.1.2.3:8080/p (private)\n" in notes, notes
        assert "#     worker-1: GET https://api.example.com/v1/items, found at 192.168.7.7 (private)\n" in notes, notes
        assert "# 2 refusals left out" in notes, notes
        # Alone they make no rule at all, and what is printed loads.
        place.write("log", log)
        code, out, err = place.policy("suggest", *policy, "log")
        assert code == YES and "suggested-" not in out, out
        place.write("new", out)
        assert place.policy("check", "new")[0] == YES
    # Where a service of the policy has such a host, with its range, it is a service like any other.
    place.write("own", "service db { host 10.1.2.3; range 10.1.2.3; operation read { GET /q } }\nsandbox worker-1 { grant db read }\n")
    code, out, err = place.policy("suggest", "--policy", "own", "log")
    assert code == YES and 'operation suggested-1 { GET "/p" }' in out and "GET https://10.1.2.3/p" not in err, (out, err)


@test
def suggest_takes_nothing_from_a_sandbox_that_another_block_stands_for(place):
    """One in another file, or with a glob: a block of its own would be a second one, or take that one's place."""
    api = "service api { host api.example.com; operation read { GET /v1/** }; operation w { POST /v1/items } }\n"
    place.write("log", record(reason="operation_not_granted", method="POST", path="/v1/items")
                + record(reason="operation_not_granted", method="POST", path="/v1/items", id="again")
                + record(reason="operation_not_allowed", method="PUT", path="/v1/items")
                + record(reason="host_not_allowed", host="new.example.com", path="/n"))
    place.write("boxes", "# ours\n\nsandbox worker-1 {\n    grant api read\n}\n")
    place.write("included", api + 'include "boxes"\n')
    place.write("glob", api + "sandbox worker-* { grant api read }\n")
    place.write("organisation", "layer organisation\nsandbox * { grant api read }\n")
    place.write("layered", api + 'include "organisation"\n')
    where = {"included": "is declared in another file (boxes:3):\n", "glob": "'worker-*' stands for (glob:2): there, or in a block of its own",
             "layered": "'*' stands for (organisation:2): there, or"}
    for name, words in where.items():
        code, out, err = place.policy("suggest", "--policy", name, "log")
        assert code == YES and "sandbox worker-1" not in out and "expect allow as" not in out, (code, out, err)
        assert err.count("# For the sandbox 'worker-1', which " + words) == 3, err
        for grant in ("api w", "api suggested-1", "suggested-2 r1"):
            assert err.count("#     grant %s\n" % grant) == 1, (grant, err)
        place.write("new", out)
        code, told, _ = place.policy("diff", name, "new")
        assert code == YES and "newly allowed: 0, newly refused: 0" in told, told
    # With what is told done there, the requests are allowed.
    code, out, err = place.policy("suggest", "--policy", "included", "log")
    place.write("new", out)
    place.write("boxes", "sandbox worker-1 { grant api read w suggested-1; grant suggested-2 r1 }\n")
    again = place.policy("suggest", "--policy", "new", "log")[1:]
    assert again == (out, "# The policy allows all that was refused.\n"), again


OWN = """# what we have
service api { host api.example.com; credential key { in header authorization scheme bearer }   # ours
    operation read { GET /v1/** }
    operation drop { DELETE /v1/items/* }
    never { * /v1/items/*/share }
}
include "more"
service suggested-3 { host z.example.com; operation a { GET /z } }

sandbox default { grant api read uses 100; grant suggested-3 all }   # all of us
sandbox other { grant api read }
"""

WISHES = (("POST", "https://api.example.com/v1/items", "default"), ("POST", "https://api.example.com/v1/items", "other"),
          ("DELETE", "https://api.example.com/v1/items/7", "default"), ("GET", "https://more.example.com/m", "default"),
          ("POST", "https://z.example.com/q", "default"), ("GET", "https://new.example.com/simple/x/", "default"),
          ("GET", "https://new.example.com/simple/x/", "other"), ("GET", "https://new.example.com:8443/", "newcomer"))


def wish(method, url, sandbox, reason="host_not_allowed"):
    host, path = url.split("://")[1].split("/", 1)
    host, port = (host + ":443").split(":")[:2]
    return record(reason=reason, method=method, path="/" + path, host=host, port=int(port), sandbox=sandbox)


@test
def suggest_tells_of_more_refusals_than_a_policy_has_room_for(place):
    """A sandbox can have any number of them; those that came first are suggested, in a time that does not grow with the square."""
    place.write("log", "".join(record(reason="operation_not_allowed", path="/%d/%s" % (n, "x" * 200)) +
                               record(reason="host_not_allowed", method="CONNECT", host="h%d.example.com" % n, path="")
                               for n in range(9000)))
    place.write("p", DEMO)
    for policy in ([], ["--policy", "p"]):
        code, out, err = place.policy("suggest", *policy, "log")
        notes = err if policy else out
        assert code == YES and "/0/x" in out and "/8999/x" not in out, (code, err[-300:])
        assert re.search(r"(?m)^# \d+ later refusals left out", notes) and "h0.example.com" in notes, notes[:300]
        place.write("new", out)
        assert place.policy("check", "new")[0] == YES


@test
def suggest_puts_its_rules_into_a_policy_that_is_there(place):
    place.write("p", OWN)
    place.write("more", "service more { host more.example.com; operation read { GET /m } }\n")
    place.write("log", "".join(wish(*w) for w in WISHES) + wish("GET", "https://api.example.com/v1/items/9", "other")
                + wish("GET", "https://api.example.com/v1/items/9/share", "other", "operation_not_allowed")
                + wish("GET", "https://api.example.com/a%2Fb", "other", "operation_not_allowed")
                + wish("GET", "https://more.example.com/n", "default") + wish("GET", "https://more.example.com/n", "other"))
    code, out, err = place.policy("suggest", "--policy", "p", "log")
    assert code == YES, (code, err)
    place.write("new", out)
    assert place.policy("check", "new")[0] == YES and place.policy("fmt", "--check", "new")[0] == YES, out
    # It allows what was refused, and of what it does not name nothing is newly allowed.
    for method, url, sandbox in WISHES:
        assert place.policy("explain", "--policy", "new", "--sandbox", sandbox, method, url)[0] == YES, (method, url, sandbox, out)
        assert "expect allow as %s %s \"%s\"" % (sandbox, method, url) in out or url.endswith(("/simple/x/", ":8443/")), out
    code, told, _ = place.policy("diff", "p", "new")
    newly = {(line.split()[1].rstrip(":"), line.split()[2], line.split()[3]) for line in told.splitlines() if line.startswith(("+ ", "- "))}
    assert newly == {(who, method, url.replace("items/7", "items/zq9")) for method, url, who in WISHES}, told
    # What was there stays: comments, terms, blocks. A grant of everything is not made longer.
    for line in ("# what we have\n", "scheme bearer } # ours\n", "    grant api read uses 100\n", "    grant suggested-3 all\n",
                 "} # all of us\n", 'include "more"\n', "    grant more read\n", "    never { * /v1/items/*/share }\n"):
        assert line in out, (line, out)
    assert out.count("sandbox default {") == out.count("sandbox other {") == out.count("service api {") == 1, out
    assert "operation suggested-4 { POST \"/v1/items\" }" in out and "    grant api read suggested-4\n" in out, out
    # What cannot be put there is told beside it.
    assert "# For the service 'more', which is in another file (more:1):\n#     operation suggested-" in err and err.count('GET "/n"') == 1 and "has no operation" not in err, err
    assert "# 2 refusals left out" in err, err
    # Once more, nothing is to be added, nor what was suggested by itself in the JSON form.
    assert place.policy("suggest", "--policy", "new", "log")[1] == out
    place.write("json", place.policy("fmt", "--to", "json", "p")[1])
    code, out, err = place.policy("suggest", "--policy", "json", "log")
    place.write("new-json", out)
    assert code == YES and out.startswith("{") and place.policy("diff", "new", "new-json")[:2] == (YES, place.policy("diff", "new", "new")[1])
    # With an error in it nothing is printed.
    place.write("wrong", OWN + "sandbox default { }\n")
    code, out, err = place.policy("suggest", "--policy", "wrong", "log")
    assert code == INVALID and out == "" and "wrong:12:9: " in err, (code, out, err)


CONDITIONAL = """service api {
    host api.example.com
    port 443 8443
    credential key { in header authorization scheme bearer }
    operation read { GET /v1/items }
    operation add { POST /v1/items { content-type application/json; body at most 10K } }
    never { * /v1/hooks }
}
sandbox w { grant api read add }
sandbox v { grant api read }
sandbox z { }
"""


@test
def suggest_does_not_widen_what_a_condition_refused(place):
    log = wish("POST", "https://api.example.com/v1/items", "w", "operation_not_allowed")
    place.write("p", CONDITIONAL)
    place.write("log", log + wish("POST", "https://api.example.com/v1/items", "v", "operation_not_granted"))
    code, out, err = place.policy("suggest", "--policy", "p", "log")
    assert code == YES and "suggested" not in out and "grant api read\n" in out, (code, out, err)
    assert err == ("# No rule is made of these:\n"
                   "#     w: POST https://api.example.com/v1/items: refused by the conditions of 'add' (p:6:21)\n"
                   "#     v: POST https://api.example.com/v1/items: refused by the conditions of 'add' (p:6:21), which is not granted\n"), err
    # By itself, from what the record says of it: only a condition is the place of such a refusal.
    place.write("log", log.replace('"reason"', '"rule":"p:6:38","reason"') + wish("PUT", "https://api.example.com/v1/items", "w", "operation_not_allowed"))
    code, out, err = place.policy("suggest", "log")
    assert code == YES and 'PUT "/v1/items"' in out and "POST \"" not in out and err == "", (code, out, err)
    assert "#     w: POST https://api.example.com/v1/items: refused by a condition of the policy in use then (p:6:38)\n" in out, out
    # Nor where the request differs in more conditions than another line has words.
    place.write("q", CONDITIONAL.replace("body at most 10K", "body /a; body /b; header x-c; query d")
                .replace("GET /v1/items }", "GET /v1/items; POST /v1/other }"))
    place.write("log", log)
    code, out, err = place.policy("suggest", "--policy", "q", "log")
    assert code == YES and "suggested" not in out and "refused by the conditions of 'add' (q:6:21)" in err, (out, err)
    # Nor under observation, which lets such a request through.
    place.write("o", CONDITIONAL.replace("grant api read add", "grant api read add mode observe"))
    code, out, err = place.policy("suggest", "--policy", "o", "log")
    assert code == YES and "suggested" not in out and "refused by the conditions of 'add' (o:6:21)" in err, (out, err)


@test
def suggest_makes_rules_of_what_was_observed_while_the_policy_still_observes(place):
    place.write("ob", "service api { host api.example.com; operation read { GET /v1 }; operation w { PUT /v1 } }\n"
                "sandbox a { grant api all mode observe }\nsandbox b { grant api read mode observe }\n")
    asked = [("POST", "https://api.example.com/v1/items", "a"), ("GET", "https://api.example.com/v1/items/7", "a"),
             ("PUT", "https://api.example.com/v1", "b")]
    place.write("log", "".join(wish(*w, None).replace('"deny"', '"allow","observed":"operation_not_%s"' % (
        "granted" if w[0] == "PUT" else "allowed")) for w in asked))
    code, out, err = place.policy("suggest", "--policy", "ob", "log")
    assert code == YES and "mode observe" in out, (code, out, err)
    assert err == ("# `mode observe` stays, and lets through what has no rule here until it is taken away:\n"
                   "#     a at api (ob:2:19)\n#     b at api (ob:3:19)\n"), err
    enforced = place.write("new", out.replace(" mode observe", ""))
    for method, url, sandbox in asked:
        assert place.policy("explain", "--policy", "ob", "--sandbox", sandbox, method, url)[1].startswith("allow: allowed\n")
        assert place.policy("explain", "--policy", enforced, "--sandbox", sandbox, method, url)[0] == YES, (method, url, out)
    assert place.policy("explain", "--policy", enforced, "--sandbox", "a", "GET", "https://api.example.com/v1/items")[0] == NO
    place.write("new", out)
    assert place.policy("suggest", "--policy", "new", "log")[1] == out


@test
def suggest_tells_why_a_rule_does_not_fit_and_gives_the_others(place):
    place.write("p", CONDITIONAL + "expect deny as w GET https://api.example.com/private\n")
    good = wish("GET", "https://api.example.com/new", "w", "operation_not_allowed") + wish("GET", "https://o.example.com/a", "w")
    place.write("log", wish("GET", "https://api.example.com:8443/", "w", "clear_not_allowed").replace('"https"', '"http"')
                + wish("GET", "https://api.example.com/private", "w", "operation_not_allowed")
                + good + wish("GET", "https://api.example.com/v1/hooks", "z"))
    code, out, err = place.policy("suggest", "--policy", "p", "log")
    assert code == YES and 'GET "/new"' in out and "host o.example.com" in out, (code, out, err)
    notes = err.splitlines()
    for line, words in ((1, ("w: GET http://api.example.com:8443/: ", "share this host with different credentials", "`host api.example.com`")),
                        (2, ("w: GET https://api.example.com/private: ", "expected deny", "`expect deny as w GET https://api.example.com/private`")),
                        (3, ("z: GET https://api.example.com/v1/hooks: ", "never (The policy forbids", "`expect allow as z GET "))):
        assert all(word in notes[line] for word in words), (line, words, notes)
    assert notes[0] == "# No rule is made of these:" and len(notes) == 4, notes
    # Exactly what the same without them is.
    place.write("log", good)
    assert place.policy("suggest", "--policy", "p", "log") == (YES, out, "")
    # And where more do not fit than are tried, it ends all the same.
    place.write("log", "".join(wish("GET", "https://api.example.com:8443/%d" % n, "w", "clear_not_allowed").replace('"https"', '"http"')
                               for n in range(400)) + good)
    code, out, err = place.policy("suggest", "--policy", "p", "log")
    assert code == YES and "not tried, since too many others do not fit" in err, (code, err[-300:])
    assert place.policy("check", place.write("new", out))[0] == YES and "tls clear" not in out, out


def main():
    failed = 0
    for function in tests:
        with tempfile.TemporaryDirectory() as directory:
            try:
                function(Place(directory))
                print("ok " + function.__name__)
            except Exception as e:
                failed += 1
                print("not ok %s: %s: %s" % (function.__name__, type(e).__name__, e))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
