#!/usr/bin/env python3
"""
Ordinary clients, unmodified, in two ways: with nothing but the environment that `exeat sandbox add` prints, and captured, with nothing
set at all. One entry a client in http_clients.py and tools.py. EXEAT_CASE chooses by a part of the name. With
--write FILE the table of results is written there too, unless something failed or was skipped.
"""
import concurrent.futures
import contextlib
import functools
import os
import sys
import time

from captured import Captured
from http_clients import CLIENTS, run_client
from tools import MORE_TOOLS, TOOLS, run_tool
from world import Report, Skip, Told, World

# What a lane may grow by while the clients run, two at a time: windows of bodies under way, TLS, what malloc keeps.
ROOM = 48 << 20
HEAD = """# Clients

What unmodified clients did through exeat when `make clients-table` wrote this page, all of it as it should be, in two ways:

- **with the environment** that `exeat sandbox add` and `exeat env` print, and nothing else, besides what a client's own user would tell it: an
  address, a registry, a password;
- **captured, with nothing set**: as an ordinary user in [`exeat run`](run.md), with all of its variables unset. What is left is that connections and DNS
  are captured, and that exeat's roots are shown in place of the system's.

Behind exeat were servers that want the real credential, and a trap at an address that policy does not allow: nothing arrived there. A cell
that says *fails* was run, too, failed for this reason, and reached nobody. With all of the environment in `exeat run` both ways are
there at once. The clients ran two at a time; no process of a lane grew by more than %d MiB.

%s
## What a client's user has to know

- Node's `fetch` and `https` heed the environment from Node 22.21 and 24 on. Python's aiohttp wants `trust_env=True`.
- Chromium takes a CA only from its NSS database. `exeat run` brings one where `certutil` is installed; elsewhere
  `certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n exeat -i .../ca.pem`.
- aria2 wants `--ca-certificate=.../bundle.pem` where its roots are not replaced.
- git reads `ssh://git@HOST/PATH` as `https://HOST/PATH` (`GIT_CONFIG_SYSTEM`); for `git@HOST:PATH` its user sets `url.https://HOST/.insteadOf`.
- PHP's streams get the proxy as their default context: a program that makes a context of its own names the proxy in it. Through this
  default they reach no server inside of the sandbox.
- A client that keeps its credential when it is redirected to another host is refused there (`placeholder_wrong_destination`).
- wget, urllib, and curl with `--data-binary` call a body a form unless they are told a `Content-Type`. At a service with a credential
  forms are read, any bytes as one: a program's text with `token=` in it is refused (`foreign_credential`), and so is what
  begins with `{` or `[` and is no JSON. Then say what it is: `-H 'Content-Type: application/octet-stream'`.
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
        row = self.rows.setdefault(client, {"version": version, "environment": [], "captured": [], "cannot": []})
        row["version"] = row["version"] or version
        row[way].extend(done)
        row["cannot"] += [why for why in cannot if why not in row["cannot"]]

    def table(self):
        rows = sorted(self.rows.items(), key=lambda row: row[0].lower())
        return "\n".join(["| client | version | with the environment | captured, with nothing set | what it does not do by itself |",
                          "|---|---|---|---|---|"] + [
            "| %s | %s | %s | %s | %s |" % (client, row["version"] or "", *("; ".join(row[k]) for k in ("environment", "captured", "cannot")))
            for client, row in rows]) + "\n"


def jobs(ways, results):
    """(name, function) of everything there is to do, the long ones first."""
    def http(way, name, *entry):
        with results.check("%s is there (%s)" % (name, way.name)):
            results.row(name, way.name, *run_client(way, results, name, *entry))

    def tool(way, name, function):
        row = run_tool(way, results, name, function)
        if row:
            results.row(name, way.name, *row)

    for way in ways:
        for name, function in TOOLS + (MORE_TOOLS if way.name == "environment" else []):
            yield "%s %s %s" % (name, function.__name__, way.name), functools.partial(tool, way, name, function)
        for name, *entry in CLIENTS:
            yield "%s %s" % (name, way.name), functools.partial(http, way, name, *entry)


def nothing_escaped(world, results):
    with results.check("nothing arrived at an address that policy does not allow"):
        assert world.trap.connections == 0, "%d connections" % world.trap.connections


def memory_stayed_bounded(world, results):
    # A sanitizer keeps what was freed.
    room = ROOM * (20 if "address" in world.place.build else 1)
    with results.check("no process of a lane grows with what goes through it"):
        assert world.memory.growth() < room, "by %d KiB" % (world.memory.growth() >> 10)
    print("a lane's process grew by %.1f MiB at most" % (world.memory.growth() / (1 << 20)))


def ways_of(world, results, stack):
    yield stack.enter_context(contextlib.closing(Told(world)))
    with results.check("clients are captured here"):
        yield stack.enter_context(contextlib.closing(Captured(world)))


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
