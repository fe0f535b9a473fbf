"""
HTTP clients and libraries. Each entry is a program that is run as `PROGRAM METHOD URL [FILE]`: it sends
FILE, follows redirects as its library does, puts the answer's body on its standard output as it
comes, and the status on its standard error. KEY is what it sends as bearer token, EXPECT whether to expect 100.
"""
import hashlib
import json
import os
import re
import subprocess

from servers import BIG, BIG_SHA256, EVENTS, PIECE
from world import PROGRAMS, SECRET, Skip, need, python_with

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODE_MODULES = os.path.join(ROOT, "build", "node", "node_modules")


# ---- the programs ----

def shell(name):
    def make(box):
        need(name)
        return [need("sh"), box.program(name + ".sh")]
    return make


def python(module, library=None):
    return lambda box: [python_with(library or module), box.program(module + "_client.py")]


def node_modules(box):
    """What `make node` brought, where the sandbox sees it."""
    if not os.path.isdir(NODE_MODULES):
        raise Skip("`make node` was not run here")
    return box.way.bring(NODE_MODULES)


def find_node(box):
    """A Node that heeds proxy variables: 24 or later."""
    return os.path.join(node_modules(box), ".bin", "node")


def node(name):
    return lambda box: [find_node(box), box.program(name)]


def other_runtime(name, *words):
    return lambda box: [os.path.join(node_modules(box), ".bin", name), *words, box.program("fetch.mjs")]


def axios(box):
    os.symlink(node_modules(box), os.path.join(box.work, "node_modules"))
    return node("axios.cjs")(box)


def go(box):
    """Built outside of the sandbox, as its user would have done."""
    env = dict(os.environ, CGO_ENABLED="0", GO111MODULE="off", GOTOOLCHAIN="local")
    built = os.path.join(box.work, "client")
    subprocess.run([need("go"), "build", "-o", built, os.path.join(PROGRAMS, "client.go")], env=env, check=True)
    return [built]


def java(name):
    def make(box):
        need("java")
        subprocess.run([need("javac"), "-d", box.work, os.path.join(PROGRAMS, name + ".java")], check=True, stderr=subprocess.DEVNULL)
        return ["java", "-cp", box.work, name]
    return make


def script(interpreter, name, *check):
    """check: what fails where the library is missing."""
    def make(box):
        need(interpreter)
        if check and subprocess.run(check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("%s is without what %s needs" % (interpreter, name))
        return [interpreter, box.program(name)]
    return make


HAS_CURL = ("php", "-r", "exit(extension_loaded('curl') ? 0 : 1);")
HAS_LWP = ("perl", "-MLWP::Protocol::https", "-e1")
HAS_TLS = ("perl", "-MIO::Socket::SSL", "-e1")

NO_EXPECT = {"expect": "does not expect 100"}
NO_TOKEN = {"token": "sends a proxy no password: needs a listener of its own"}
PHP_STREAMS = {"token": "a program's own fields replace the proxy's", "redirect": "keeps the first host's name for TLS behind a proxy",
               "events": "waits for whole buffers of a chunked answer"}
# What makes a whole way fail, and what is then said.
OWN_ROOTS = {"captured": ("brings roots of its own, and takes others from a variable only", b"certificate")}

# name, program, what tells its version, and what the client itself cannot do, by check below or, wholly, by way.
CLIENTS = [
    ("curl", shell("curl"), ["curl", "--version"], {}),
    ("wget", shell("wget"), ["wget", "--version"], NO_EXPECT),
    ("Python urllib", python("urllib", "urllib.request"), ["{program}", "--version"], NO_EXPECT),
    ("Python requests", python("requests"), ["{program}", "-c", "import requests; print(requests.__version__)"], NO_EXPECT),
    ("Python httpx", python("httpx"), ["{program}", "-c", "import httpx; print(httpx.__version__)"], NO_EXPECT),
    ("Python aiohttp", python("aiohttp"), ["{program}", "-c", "import aiohttp; print(aiohttp.__version__)"], {}),
    ("Node fetch", node("fetch.mjs"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS}),
    ("Node https", node("https.mjs"), ["{program}", "--version"], {"redirect": "follows no redirect", **OWN_ROOTS}),
    ("Deno fetch", other_runtime("deno", "run", "-A"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS}),
    ("Bun fetch", other_runtime("bun", "run"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS}),
    ("axios", axios, ["{program}", "-p", "require('%s/axios/package.json').version" % NODE_MODULES], {**NO_EXPECT, **OWN_ROOTS}),
    ("Go net/http", go, ["go", "version"], {}),
    ("Java HttpClient", java("ModernClient"), ["java", "--version"], NO_TOKEN),
    ("Java URLConnection", java("ClassicClient"), ["java", "--version"], NO_TOKEN),
    ("Ruby Net::HTTP", script("ruby", "client.rb"), ["ruby", "--version"], {}),
    ("PHP curl", script("php", "curl.php", *HAS_CURL), ["php", "--version"], {}),
    ("PHP streams", script("php", "streams.php"), ["php", "--version"], {**NO_EXPECT, **PHP_STREAMS}),
    ("Perl LWP", script("perl", "lwp.pl", *HAS_LWP), ["perl", "-e", "print $^V"], NO_EXPECT),
    ("Perl HTTP::Tiny", script("perl", "tiny.pl", *HAS_TLS), ["perl", "-e", "print $^V"], NO_EXPECT),
]


# ---- what each of them does ----

class Client:
    def __init__(self, way, name, make, version):
        self.name, self.way, self.world = name, way, way.world
        self.slug = re.sub(r"\W+", "-", name.lower()) + "-" + way.name
        self.box = way.sandbox(self.slug)
        self.command = make(self.box)
        command = [self.command[0] if word == "{program}" else word for word in version]
        self.version = version_of(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)

    def ask(self, method, url, file=None, key=None, sandbox="own", **settings):
        """(status, body)"""
        settings["KEY"] = key or self.way.key("DEMO_KEY", sandbox)
        done = self.box.run(*self.command, method, url, *([file] if file else []), sandbox=sandbox, **settings)
        status = re.search(rb"^status (\d+)$", done.stderr, re.M)
        assert status, done.stderr[-800:]
        return int(status.group(1)), done.stdout

    def at(self, what, host="api"):
        return "%s/%s/%s" % (self.world.url[host], what, self.slug)


def version_of(text):
    return re.search(r"\d+(\.\d+)+", text.decode()).group(0)


def posts_with_a_placeholder(c):
    file = c.box.write("hello", "hello")
    status, body = c.ask("POST", c.at("v1"), file)
    assert status == 200 and json.loads(body)["size"] == 5, (status, body)
    assert c.world.api.seen["POST /v1/" + c.slug] == "Bearer " + SECRET
    return "POST with a placeholder"


def is_told_why_it_is_refused(c):
    status, body = c.ask("GET", c.at("foreign"), key="sk-of-somebody-else-0123456789")
    assert status == 403 and b"foreign_credential" in body, (status, body)
    assert "GET /foreign/" + c.slug not in c.world.api.seen
    return "refusal with its reason"


def gets_nothing_of_other_hosts(c):
    """By a name, and where it is captured by an address, behind which a trap waits."""
    name = c.slug + ".outside.test"
    hosts = [name] + ([c.world.trap.address] if c.way.name == "captured" else [])
    for host in hosts:
        done = c.box.attempt(*c.command, "GET", "https://%s/" % host, KEY=c.way.key("DEMO_KEY"))
        assert b"status 200" not in done.stderr, done.stderr[-800:]
        assert c.way.refused(c.box, host=host, reason="host_not_allowed"), "no record of %s: %r" % (host, done.stderr[-800:])
    assert c.world.trap.connections == 0
    return "nothing of hosts that are not allowed"


def takes_no_credential_to_another_host(c):
    """A client that keeps the credential across hosts is stopped, one that drops it arrives."""
    status, body = c.ask("GET", c.at("redirect"))
    arrived = "/redirect/" + c.slug in c.world.elsewhere.seen
    if arrived:
        assert status == 200 and body == b"landed\n" and not c.world.elsewhere.seen["/redirect/" + c.slug], (status, body)
    else:
        assert status == 403 and b"placeholder_wrong_destination" in body, (status, body)
    return "redirect to another host " + ("followed without the credential" if arrived else "refused, as it keeps the credential")


def gets_events_as_they_come(c):
    running = c.box.start(*c.command, "GET", c.at("events"), KEY=c.way.key("DEMO_KEY"))
    heard = 0
    for line in running.stdout:
        if line.startswith(b"data: event"):
            heard += 1
            c.world.api.heard["/events/" + c.slug].release()
    assert running.wait(60) == 0 and heard == EVENTS, (running.returncode, heard)
    return "event stream"


def moves_100_mb_both_ways(c):
    status, body = c.ask("GET", c.at("big"))
    assert status == 200 and len(body) == BIG and hashlib.sha256(body).hexdigest() == BIG_SHA256, (status, len(body))
    path = os.path.join(c.box.work, "big")
    with open(path, "wb") as f:
        for _ in range(BIG // len(PIECE)):
            f.write(PIECE)
    status, body = c.ask("PUT", c.at("up"), path)
    os.unlink(path)
    assert status == 200 and json.loads(body)["sha256"] == BIG_SHA256, (status, body)
    return "100 MB both ways"


def uploads_with_expect(c):
    file = c.box.write("expected", PIECE * 4)
    status, body = c.ask("PUT", c.at("expect"), file, EXPECT="1")
    assert status == 200 and json.loads(body)["sha256"] == hashlib.sha256(PIECE * 4).hexdigest(), (status, body)
    return "Expect: 100-continue"


def proves_itself_at_a_shared_listener(c):
    status, body = c.ask("GET", c.at("shared"), sandbox="shared")
    assert status == 200 and json.loads(body)["path"] == "/shared/" + c.slug, (status, body)
    return "token of a shared listener"


CHECKS = [("post", posts_with_a_placeholder), ("refusal", is_told_why_it_is_refused), ("outside", gets_nothing_of_other_hosts),
          ("redirect", takes_no_credential_to_another_host), ("events", gets_events_as_they_come)]
# What there is to do only where there is a proxy, or does not depend on how a request came in.
MORE_CHECKS = [("expect", uploads_with_expect), ("token", proves_itself_at_a_shared_listener), ("big", moves_100_mb_both_ways)]


def fails_and_reaches_nobody(c, said):
    """What is said to fail does, for the reason that is said, so that the table stays true."""
    file = c.box.write("hello", "hello")
    done = c.box.attempt(*c.command, "POST", c.at("v1"), file, KEY=c.way.key("DEMO_KEY"))
    assert said in done.stderr and "POST /v1/" + c.slug not in c.world.api.seen, done.stderr


def run_client(way, report, name, make, version, cannot):
    """All checks of one client; its version, what it did, and what it cannot do."""
    client, done = Client(way, name, make, version), []
    if way.name in cannot:
        why, said = cannot[way.name]
        with report.check("%s %s (%s)" % (name, fails_and_reaches_nobody.__name__.replace("_", " "), way.name)):
            fails_and_reaches_nobody(client, said)
        return client.version, ["fails: " + why], []
    for kind, check in CHECKS + (MORE_CHECKS if way.name == "environment" else []):
        if kind not in cannot:
            with report.check("%s %s (%s)" % (name, check.__name__.replace("_", " "), way.name)):
                done.append(check(client))
    return client.version, done, [why for kind, why in cannot.items() if kind not in ("captured", "environment")]
