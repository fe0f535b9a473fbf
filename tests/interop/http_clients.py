"""
HTTP clients and libraries. Each entry is a program that is run as `PROGRAM METHOD URL [FILE]`: it sends
FILE, follows redirects as its library does, puts the answer's body on its standard output as it
comes, and the status on its standard error. KEY is what it sends as bearer token, EXPECT whether to expect 100.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess

from servers import BIG, BIG_SHA256, EVENTS, PIECE
from world import PROGRAMS, SECRET, Skip, need, python_with

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# ---- the programs ----

def shell(name):
    def make(box):
        need(name)
        return [need("sh"), box.program(name + ".sh")]
    return make


def python(module, library=None, *words):
    return lambda box: [python_with(library or module), box.program(module + "_client.py"), *words]


def made(name):
    """A folder below build that `make clients` has made."""
    path = os.path.join(ROOT, "build", name)
    if not os.path.isdir(path):
        raise Skip("`make clients` brought no %s here" % name)
    return path


def node_modules(box):
    """What is in build/node, where the sandbox sees it."""
    return os.path.join(box.way.bring(made("node")), "node_modules")


def find_node(box):
    """A Node that heeds proxy variables: 24 or later."""
    return os.path.join(node_modules(box), ".bin", "node")


def node(name, *words):
    def make(box):
        os.symlink(node_modules(box), os.path.join(box.work, "node_modules"))
        return [find_node(box), box.program(name), *words]
    return make


def old_node(name):
    """Of before Node heeded proxy variables: Debian's."""
    def make(box):
        program = need("node")
        if int(version_of(subprocess.run([program, "--version"], stdout=subprocess.PIPE).stdout).split(".")[0]) > 20:
            raise Skip("Node.js here is not an old one")
        return [program, box.program(name)]
    return make


def other_runtime(name, *words):
    return lambda box: [os.path.join(node_modules(box), ".bin", name), *words, box.program("fetch.mjs")]


def of_package(name):
    return ["{program}", "-p", "require('%s/build/node/node_modules/%s/package.json').version" % (ROOT, name)]


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


def okhttp(box):
    need("javac")
    path = os.pathsep.join([box.work, os.path.join(box.way.bring(made("okhttp")), "*")])
    subprocess.run(["javac", "-cp", path, "-d", box.work, os.path.join(PROGRAMS, "OkClient.java")], check=True, stderr=subprocess.DEVNULL)
    return ["java", "-cp", path, "OkClient"]


def reqwest(tls):
    return lambda box: [shutil.copy(os.path.join(made("reqwest"), "target/debug/client"), box.work), tls]


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
BRINGS_ROOTS = "brings roots of its own, and takes others from a variable only"
OWN_ROOTS = {"captured": (BRINGS_ROOTS, b"certificate")}

NO_PROXY = {"environment": ("reads no variable of a proxy", b"ENOTFOUND|EAI_AGAIN|fetch failed")}
UNDICI = {**NO_EXPECT, **OWN_ROOTS, "redirect": "follows no redirect"}
COMPILED_IN = ("its roots are compiled in", b"UnknownIssuer")
OF_REQWEST = ["sed", "-n", 's/^name = "reqwest"//; T; n; p', os.path.join(ROOT, "build/reqwest/Cargo.lock")]
OF_OKHTTP = ["sh", "-c", "basename %s/build/okhttp/okhttp-*.jar" % ROOT]

# name, program, what tells its version, and what the client itself cannot do, by check below or, wholly, by way.
CLIENTS = [
    ("curl", shell("curl"), ["curl", "--version"], {}),
    ("wget", shell("wget"), ["wget", "--version"], NO_EXPECT),
    ("Python urllib", python("urllib", "urllib.request"), ["{program}", "--version"], NO_EXPECT),
    ("Python requests", python("requests"), ["{program}", "-c", "import requests; print(requests.__version__)"], NO_EXPECT),
    ("Python httpx", python("httpx"), ["{program}", "-c", "import httpx; print(httpx.__version__)"], NO_EXPECT),
    ("Python httpx, HTTP/2 offered", python("httpx", "h2, httpx", "h2"), ["{program}", "-c", "import httpx; print(httpx.__version__)"],
     {**NO_EXPECT, "big": "not run with 100 MB, as httpx was"}),
    ("Python aiohttp", python("aiohttp"), ["{program}", "-c", "import aiohttp; print(aiohttp.__version__)"], {}),
    ("Node fetch", node("fetch.mjs"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS}),
    ("Node fetch (before 22.21)", old_node("fetch.mjs"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS, **NO_PROXY}),
    ("Node https", node("https.mjs"), ["{program}", "--version"], {"redirect": "follows no redirect", **OWN_ROOTS}),
    ("Deno fetch", other_runtime("deno", "run", "-A"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS}),
    ("Bun fetch", other_runtime("bun", "run"), ["{program}", "--version"], {**NO_EXPECT, **OWN_ROOTS}),
    ("axios", node("axios.cjs"), of_package("axios"), {**NO_EXPECT, **OWN_ROOTS}),
    ("got", node("got.mjs"), of_package("got"), OWN_ROOTS),
    ("undici 7", node("undici.mjs", "undici"), of_package("undici"), UNDICI),
    ("undici 8", node("undici.mjs", "undici-8"), of_package("undici-8"), {**UNDICI, "big": "not run with 100 MB, as undici 7 was"}),
    ("Go net/http", go, ["go", "version"], {}),
    ("reqwest, native-tls", reqwest("native"), OF_REQWEST, NO_EXPECT),
    ("reqwest, rustls", reqwest("rustls"), OF_REQWEST, NO_EXPECT),
    ("reqwest, rustls with webpki-roots", reqwest("webpki"), OF_REQWEST, {way: COMPILED_IN for way in ("environment", "captured", "both")}),
    ("Java HttpClient", java("ModernClient"), ["java", "--version"], NO_TOKEN),
    ("Java URLConnection", java("ClassicClient"), ["java", "--version"], NO_TOKEN),
    ("OkHttp", okhttp, OF_OKHTTP, NO_TOKEN),
    ("Ruby Net::HTTP", script("ruby", "client.rb"), ["ruby", "--version"], {}),
    ("PHP curl", script("php", "curl.php", *HAS_CURL), ["php", "--version"], {}),
    ("PHP streams", script("php", "streams.php"), ["php", "--version"], {**NO_EXPECT, **PHP_STREAMS}),
    ("Perl LWP", script("perl", "lwp.pl", *HAS_LWP), ["perl", "-e", "print $^V"], NO_EXPECT),
    ("Perl HTTP::Tiny", script("perl", "tiny.pl", *HAS_TLS), ["perl", "-e", "print $^V"], NO_EXPECT),
]


# ---- what each of them does ----

class Client:
    def __init__(self, way, name, make, tells):
        self.name, self.way, self.world = name, way, way.world
        plain = re.sub(r"\W+", "-", name.lower())
        self.slug, self.box = plain + "-" + way.name, way.sandbox(plain)
        self.command = make(self.box)
        command = [self.command[0] if word == "{program}" else word for word in tells]
        self.version = version(*command)

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


def version(*command):
    return version_of(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)


def posts_with_a_placeholder(c):
    file = c.box.write("hello", "hello")
    status, body = c.ask("POST", c.at("v1"), file)
    assert status == 200 and json.loads(body)["size"] == 5, (status, body)
    assert c.world.api.seen["POST /v1/" + c.slug] == "Bearer " + SECRET


def is_told_why_it_is_refused(c):
    status, body = c.ask("GET", c.at("foreign"), key="sk-of-somebody-else-0123456789")
    assert status == 403 and b"foreign_credential" in body, (status, body)
    assert "GET /foreign/" + c.slug not in c.world.api.seen


def gets_nothing_of_other_hosts(c):
    """By a name, and where it is captured by an address, behind which a trap waits."""
    name = c.slug + ".outside.test"
    hosts = [name] + ([c.world.trap.address] if c.way.name == "captured" else [])
    for host in hosts:
        done = c.box.attempt(*c.command, "GET", "https://%s/" % host, KEY=c.way.key("DEMO_KEY"))
        assert b"status 200" not in done.stderr, done.stderr[-800:]
        assert c.way.refused(c.box, host=host, reason="host_not_allowed"), "no record of %s: %r" % (host, done.stderr[-800:])
    assert not c.world.trap.met, c.world.trap.met


def takes_no_credential_to_another_host(c):
    """A client that keeps the credential across hosts is stopped, one that drops it arrives."""
    status, body = c.ask("GET", c.at("redirect"))
    arrived = "/redirect/" + c.slug in c.world.elsewhere.seen
    if arrived:
        assert status == 200 and body == b"landed\n" and not c.world.elsewhere.seen["/redirect/" + c.slug], (status, body)
    else:
        assert status == 403 and b"placeholder_wrong_destination" in body, (status, body)
    return None if arrived else "keeps its credential when it is redirected to another host: refused there"


def gets_events_as_they_come(c):
    running = c.box.start(*c.command, "GET", c.at("events"), KEY=c.way.key("DEMO_KEY"))
    heard = 0
    for line in running.stdout:
        if line.startswith(b"data: event"):
            heard += 1
            c.world.api.heard["/events/" + c.slug].release()
    assert running.wait(60) == 0 and heard == EVENTS, (running.returncode, heard)


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


def uploads_with_expect(c):
    file = c.box.write("expected", PIECE * 4)
    status, body = c.ask("PUT", c.at("expect"), file, EXPECT="1")
    assert status == 200 and json.loads(body)["sha256"] == hashlib.sha256(PIECE * 4).hexdigest(), (status, body)


def proves_itself_at_a_shared_listener(c):
    status, body = c.ask("GET", c.at("shared"), sandbox="shared")
    assert status == 200 and json.loads(body)["path"] == "/shared/" + c.slug, (status, body)


# What is left out by way: what there is only where there is a proxy, and what the others have shown.
LEFT_OUT = {"environment": (), "captured": ("token",), "both": ("token", "big")}
CHECKS = [("post", posts_with_a_placeholder), ("refusal", is_told_why_it_is_refused), ("outside", gets_nothing_of_other_hosts),
          ("redirect", takes_no_credential_to_another_host), ("events", gets_events_as_they_come), ("expect", uploads_with_expect),
          ("big", moves_100_mb_both_ways), ("token", proves_itself_at_a_shared_listener)]


def fails_and_reaches_nobody(c, said):
    """What is said to fail does, for the reason that is said, so that the table stays true."""
    file = c.box.write("hello", "hello")
    done = c.box.attempt(*c.command, "POST", c.at("v1"), file, KEY=c.way.key("DEMO_KEY"))
    assert re.search(said, done.stderr) and "POST /v1/" + c.slug not in c.world.api.seen, done.stderr


def run_client(way, report, name, make, tells, cannot):
    """All checks of one client; its version, what it did, and what it cannot do."""
    client = Client(way, name, make, tells)
    if way.name in cannot:
        why, said = cannot[way.name]
        with report.check("%s %s (%s)" % (name, fails_and_reaches_nobody.__name__.replace("_", " "), way.name)):
            fails_and_reaches_nobody(client, said)
        return client.version, ["fails: " + why], []
    remarks = [why for kind, why in cannot.items() if isinstance(why, str)]
    for kind, check in CHECKS:
        if kind not in cannot and kind not in LEFT_OUT[way.name]:
            with report.check("%s %s (%s)" % (name, check.__name__.replace("_", " "), way.name)):
                remark = check(client)
                remarks += [remark] if remark else []
    return client.version, ["all of HTTP"], remarks
