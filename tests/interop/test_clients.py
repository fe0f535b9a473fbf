#!/usr/bin/env python3
"""
Ordinary clients, unmodified, with nothing but the environment that `exeat sandbox add` prints: one
entry a client in http_clients.py and tools.py. EXEAT_CASE chooses by a part of the name. With
--write FILE the table of results is written there too, unless something failed or was skipped.
"""
import concurrent.futures
import contextlib
import os
import sys
import time

from world import Report, Skip, World
from http_clients import CLIENTS, run_client
from tools import TOOLS

# What a lane may grow by while the clients run, two at a time: windows of bodies under way, TLS, what malloc keeps.
ROOM = 48 << 20
HEAD = """# Clients

What unmodified clients did through exeat when `make clients-table` wrote this page, all of it as it should be. Each had the environment
that `exeat sandbox add` prints and nothing else, besides what its own user would tell it: an address, a registry, a password.
Behind exeat were servers that want the real credential. The clients ran two at a time; no process of a lane grew by more than %d MiB.

%s
## What a client's user has to know

- Node's `fetch` and `https` heed the environment from Node 22.21 and 24 on. Python's aiohttp wants `trust_env=True`.
- Chromium takes a CA only from its NSS database: `certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n exeat -i .../ca.pem`.
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

    def row(self, client, version, done, cannot=()):
        did, does_not = self.rows.setdefault((client, version), ([], []))
        did.extend(done)
        does_not.extend(cannot)

    def table(self):
        rows = sorted(self.rows.items(), key=lambda row: row[0][0].lower())
        return "\n".join(["| client | version | what was done | what it does not do by itself |", "|---|---|---|---|"] + [
            "| %s | %s | %s | %s |" % (*key, "; ".join(did), "; ".join(does_not)) for key, (did, does_not) in rows]) + "\n"


def jobs(world, results):
    """(name, function) of everything there is to do, the long ones first."""
    def http(name, *entry):
        with results.check(name + " is there"):
            results.row(name, *run_client(world, results, name, *entry))

    def tool(name, function):
        with results.check(function.__name__.replace("_", " ")):
            results.row(name, *function(world))

    for name, function in TOOLS:
        yield name + " " + function.__name__, lambda name=name, function=function: tool(name, function)
    for name, *entry in CLIENTS:
        yield name, lambda name=name, entry=entry: http(name, *entry)


def memory_stayed_bounded(world, results):
    # A sanitizer keeps what was freed.
    room = ROOM * (20 if "address" in world.place.build else 1)
    with results.check("no process of a lane grows with what goes through it"):
        assert world.memory.growth() < room, "by %d KiB" % (world.memory.growth() >> 10)
    print("a lane's process grew by %.1f MiB at most" % (world.memory.growth() / (1 << 20)))


def main():
    chosen, results = os.environ.get("EXEAT_CASE", ""), Results()
    world = World()
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: job[1](), [job for job in jobs(world, results) if chosen.lower() in job[0].lower()]))
        memory_stayed_bounded(world, results)
    finally:
        world.close()
    print(results.table())
    if "--write" in sys.argv and not chosen and not results.failed and not results.skipped:
        with open(sys.argv[sys.argv.index("--write") + 1], "w") as f:
            f.write(HEAD % (-(-world.memory.growth() >> 20), results.table()))
    results.end()


if __name__ == "__main__":
    main()
