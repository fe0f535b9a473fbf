#!/usr/bin/env python3
"""
Ordinary clients, unmodified, in three ways: with nothing but the environment that `exeat sandbox add` prints; captured, with nothing
set at all; and, those that fail in one of these, captured with the environment. One entry a client in http_clients.py,
tools.py, package_managers.py, rpc_and_browsers.py and agents.py. EXEAT_CASE chooses by a part of the name. With --write FILE the
table of results is written there too, unless something failed or was skipped.
"""
import concurrent.futures
import contextlib
import functools
import os
import re
import sys
import time

from world import Report, Skip, Told, World  # first: it knows the way to what the system tests share
import agents
import package_managers
import rpc_and_browsers
import tools
from captured import Both, Captured
from http_clients import CLIENTS, run_client

TOOLS = tools.TOOLS + package_managers.TOOLS + rpc_and_browsers.TOOLS + agents.TOOLS
# What a lane may grow by while the clients run, two at a time: windows of bodies under way, TLS, what malloc keeps.
ROOM = 48 << 20
HEAD = """# Clients

What unmodified clients did through exeat when `make clients-table` wrote this page, all of it as it should be, in three ways:

- **with the environment** that `exeat sandbox add` and `exeat env` print, and nothing else, besides what a client's own user would tell it: an
  address, a registry, a password;
- **captured, with nothing set**: as an ordinary user in [`exeat run`](run.md), with all of its variables unset. What is left is that connections and DNS
  are captured, and that exeat's roots are shown in place of the system's;
- **captured, with the environment**: in `exeat run` as it is. Only those were run so that fail in one of the others.

*All of HTTP* is: a POST with a placeholder; a refusal with its reason; nothing of hosts that are not allowed; a redirect to another host, where the
credential does not go; a stream of events; `Expect: 100-continue`; 100 MB both ways (not in the third way); the token of a shared listener (in the
first way, where there is one); less what the last column says.

Behind exeat were servers that want the real credential, and a trap at an address that policy does not allow: nothing arrived there. A cell
that says *fails* was run, too, failed for this reason, and reached nobody. The clients ran two at a time; no process of a lane grew by more than %d MiB.

%s
## What a client's user has to know

- Node's `fetch` and `https` heed the environment from Node 22.21 and 24 on; an older one works in `exeat run`. Python's aiohttp wants `trust_env=True`.
- gRPC speaks HTTP/2 only, which exeat does not yet. It works at a service of [`tls splice`](policy.md#tls-intercept-tls-splice-at-most-size-tls-clear),
  which is not looked into and has no credential. That is also what is left for a program with roots compiled into it (rustls with webpki-roots
  and no more), which trusts no CA of its user's.
- Chromium takes a CA only from its NSS database. `exeat run` brings one where `certutil` is installed; elsewhere
  `certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n exeat -i .../ca.pem`.
- Where the system's roots are not replaced, aria2 wants `--ca-certificate=.../bundle.pem` and dnf `--setopt=sslcacert=.../bundle.pem`; Subversion wants
  `http-proxy-host`, `http-proxy-port` and `ssl-authority-files` in its file `servers`.
- git reads `ssh://git@HOST/PATH` as `https://HOST/PATH` (`GIT_CONFIG_SYSTEM`); for `git@HOST:PATH` its user sets `url.https://HOST/.insteadOf`.
- PHP's streams get the proxy as their default context: a program that makes a context of its own names the proxy in it. Through this
  default they reach no server inside of the sandbox.
- Claude Code, Codex and Gemini CLI are content with the [services](services.md) that exeat ships, at their makers' own hosts: `grant anthropic messages`,
  `grant openai responses`, `grant gemini generate`, and the placeholder in the variable where they look for a key (`ANTHROPIC_API_KEY`,
  `CODEX_API_KEY`, `GEMINI_API_KEY`). What else they ask for (telemetry, updates, plugins at github.com) is refused, and they go on. Codex offers its model
  a search of the web, which `responses` refuses: `-c web_search=disabled`, or `grant openai responses-with-tools`; and it tries a WebSocket some times
  before it does without.
- A client that keeps its credential when it is redirected to another host is refused there (`placeholder_wrong_destination`).
- wget, urllib, and curl with `--data-binary` call a body a form unless they are told a `Content-Type`. At a service with a credential
  forms are read, any bytes as one: a program's text with `token=` in it is refused (`foreign_credential`), and so is what
  begins with `{` or `[` and is no JSON. Then say what it is: `-H 'Content-Type: application/octet-stream'`.

## What was not run

- Container engines (Docker's, Podman, Buildah): none can be started in this project's tests. An engine pulls with its own environment and the
  roots of its host, so it is configured there; what a client asks a registry by itself was run (Docker CLI, skopeo).
- Terraform, .NET, PowerShell, conda, snap, apk: they are neither in Debian 12 nor, as programs, at a language's registry. Terraform asks as Go's
  net/http does.
- Playwright's own builds of browsers: Debian's Chromium stands in for them.

Gradle, gcloud and Docker's CLI were there already: `dependencies.sh` does not bring them, and `make interop` skips them where they are not.
"""


class Results(Report):
    """What Report prints, and the rows of the table."""

    def __init__(self):
        super().__init__()
        self.rows, self.skipped = {}, 0

    @contextlib.contextmanager
    def check(self, name):
        begun = time.monotonic()
        try:
            yield
            self.ok("%s (%.1f s)" % (name, time.monotonic() - begun))
        except Skip as why:
            self.skipped += 1
            self.skip(name, why)
        except Exception as why:
            self.bad(name, "%s: %s" % (type(why).__name__, why))

    def row(self, client, way, version, done, cannot=()):
        """version: None, if it is known from another way."""
        row = self.rows.setdefault(client, {"version": version, "environment": [], "captured": [], "both": [], "cannot": []})
        row["version"] = row["version"] or version
        row[way] += [what for what in done if what not in row[way]]
        row["cannot"] += [why for why in cannot if why not in row["cannot"]]

    def table(self):
        rows = sorted(self.rows.items(), key=lambda row: row[0].lower())
        return "\n".join(["| client | version | with the environment | captured, with nothing set | captured, with the environment "
                          "| what it does not do by itself |", "|---|---|---|---|---|---|"] + [
            "| %s | %s | %s |" % (client, row["version"] or "", " | ".join("; ".join(row[k]) for k in ("environment", "captured", "both", "cannot")))
            for client, row in rows]) + "\n"


def fails_somewhere(fails):
    return any(isinstance(fails.get(way), tuple) for way in ("environment", "captured"))


def jobs(ways, results):
    """(name, function) of everything there is to do, the long ones first."""
    def http(way, name, *entry):
        with results.check("%s is there (%s)" % (name, way.name)):
            results.row(name, way.name, *run_client(way, results, name, *entry))

    def tool(way, name, function, fails):
        row = run_tool(way, results, function, fails)
        if row:
            results.row(name, way.name, *row)

    for way in ways:
        for name, function, fails in TOOLS + (tools.MORE_TOOLS if way.name == "environment" else []):
            if way.name != "both" or fails_somewhere(fails):
                yield "%s %s %s" % (name, function.__name__, way.name), functools.partial(tool, way, name, function, fails)
        for name, *entry in CLIENTS:
            if way.name != "both" or fails_somewhere(entry[-1]):
                yield "%s %s" % (name, way.name), functools.partial(http, way, name, *entry)


def run_tool(way, report, function, fails):
    """Its version, what it did, and nothing that it does not do by itself; None where it did not do what it should."""
    said = "%s (%s)" % (function.__name__.replace("_", " "), way.name)
    if way.name not in fails:
        with report.check(said):
            return (*function(way), [])
        return None
    reason, pattern = fails[way.name]
    with report.check(said + " fails, as it is said"):
        try:
            function(way)
        except AssertionError as failure:
            assert re.search(pattern, str(failure), re.I), failure
            return None, ["fails: " + reason], []
        raise AssertionError("it works")
    return None


def nothing_escaped(world, results):
    with results.check("nothing arrived at an address that policy does not allow"):
        assert not world.trap.met, world.trap.met


def memory_stayed_bounded(world, results):
    # A sanitizer keeps what was freed.
    room = ROOM * (20 if "address" in world.place.build else 1)
    with results.check("no process of a lane grows with what goes through it"):
        assert world.memory.growth() < room, "by %d KiB" % (world.memory.growth() >> 10)
    print("a lane's process grew by %.1f MiB at most" % (world.memory.growth() / (1 << 20)))


def ways_of(world, results, stack):
    yield stack.enter_context(contextlib.closing(Told(world)))
    with results.check("clients are captured here"):
        captured = stack.enter_context(contextlib.closing(Captured(world)))
        yield captured
        yield Both(captured)


def main():
    chosen, results = os.environ.get("EXEAT_CASE", ""), Results()
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(contextlib.closing(World()))
        ways = list(ways_of(world, results, stack))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: job[1](), [job for job in jobs(ways, results) if chosen.lower() in job[0].lower()]))
        memory_stayed_bounded(world, results)
        nothing_escaped(world, results)
    print(results.table())
    if "--write" in sys.argv and not chosen and not results.failed and not results.skipped:
        with open(sys.argv[sys.argv.index("--write") + 1], "w") as f:
            f.write(HEAD % (-(-world.memory.growth() >> 20), results.table()))
    results.end()


if __name__ == "__main__":
    main()
