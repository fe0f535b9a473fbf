#!/usr/bin/env python3
"""A soak: exeat under load while one thing after another breaks. `make soak TIME=600`.

Three lanes. The busy one has the load, and most of what breaks is its own; the quiet one must not
notice; on the shared one the sandbox `hog` takes what it can, and `calm` must still be served. phases.py
has the list of what is done. At the end there is a table, and every broken promise is a line that
begins with `not ok`.
"""
import argparse
import base64
import collections
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import load
import watch
import world
from phases import ALL_AWAY, PHASES, full_disk, idle
from place import UpstreamCa, wait_for
from world import SANDBOXES

SPAWN = multiprocessing.get_context("spawn")
SAMPLES_OF_A_P99 = 1000


# ---- running them ----

class Soak:
    TMPFS_KIB = 4 << 20  # of which an hour fills a quarter

    def __init__(self, place, scratch, mood):
        self.place, self.scratch, self.mood, self.sampler = place, scratch, mood, watch.Sampler(place)
        self.notes, self.settled, self.workers, self.ledgers = [], [], {}, {}
        self.recoveries = collections.defaultdict(list)
        self.broken = []

    # ---- clients ----

    def facts(self, sandbox):
        if sandbox == "direct":
            return {"port": None, "ca": self.place.ca.pem, "placeholder": world.SECRET, "host": world.QUIET,
                    "upstream": self.place.values["quiet"]}
        issued = self.place.sandboxes[sandbox]
        listener = "shared" if SANDBOXES[sandbox] == world.SHARED else sandbox
        fields = "Proxy-Authorization: Basic %s\r\n" % basic(issued) if listener == "shared" else ""
        host = SANDBOXES[sandbox]
        return {"port": self.place.ports[listener], "ca": self.place.path("state", "public", "ca.pem"), "proxy_fields": fields,
                "placeholder": issued["credentials"]["demo-key"], "host": host,
                "upstream": self.place.values[world.HOSTS[host]]}

    def resume(self, sandbox, threads=6, rate=20.0):
        """Starts the sandbox's process of clients."""
        stop = SPAWN.Event()
        ledger = self.ledgers.setdefault(sandbox, os.path.join(self.scratch, "answers-" + sandbox))
        process = SPAWN.Process(target=load.work, args=(self.facts(sandbox), sandbox, ledger, stop, threads, rate), daemon=True)
        process.start()
        self.workers[sandbox] = (process, stop)

    def pause(self, sandbox):
        process, stop = self.workers.pop(sandbox)
        stop.set()
        process.join(60)

    def ask(self, sandbox):
        """One request over a connection of its own, which takes every role to answer."""
        client = load.Client(self.facts(sandbox))
        try:
            return client.ask("b11f" + os.urandom(6).hex())
        finally:
            client.close()

    def is_whole(self):
        processes = json.loads(self.place.exeat("status", "--json", check=False) or "{}").get("processes")
        return processes and all(p["state"] in ("up", "asleep") for p in processes)

    def recover(self, sandbox):
        """Waits until all processes are up and it is served; notes how long that took."""
        begun = time.monotonic()
        if not wait_for(lambda: self.is_whole() and self.ask(sandbox)[0] == "ok", 40, 0.02):
            self.broken.append("%s: no service for 40 s" % self.phase.name)
        self.recoveries[self.phase.name].append(time.monotonic() - begun)

    def crawling(self, sandbox, kinds, count):
        return Crawl(self.facts(sandbox), kinds, count)

    # ---- processes ----

    def signal(self, role, lane, number):
        pid = wait_for(lambda: self.place.pids().get((role, lane)), 30, 0.02)
        if pid:
            self.signal_pid(pid, number)
        return pid

    @staticmethod
    def signal_pid(pid, number):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, TypeError):
            pass

    def remount(self, kib):
        subprocess.run(["mount", "-o", "remount,size=%dk" % kib, self.place.path("state")], check=True)

    def note(self, text):
        self.notes.append(text)

    # ---- the whole ----

    def run(self, phases, seconds):
        whole = sum(p.weight for p in phases)
        self.spans = []
        for phase in phases:
            self.phase, self.notes, begun = phase, [], time.time()
            phase.run(self, max(1.0, seconds * phase.weight / whole))
            self.spans.append((phase, begun, time.time(), "; ".join(self.notes)))
            bad = watch.secrets_in_memory(self.place)
            if bad:
                self.broken.append("%s: the secret is in the memory of %s" % (phase.name, ", ".join(bad)))
            print("   %-28s %5.1f s  %s" % (phase.name, time.time() - begun, self.spans[-1][3]), flush=True)


class Crawl:
    def __init__(self, facts, kinds, count):
        self.stop, self.opened = SPAWN.Event(), SPAWN.Value("i", 0)
        self.process = SPAWN.Process(target=load.crawl, args=(facts, kinds, count, self.stop, self.opened), daemon=True)

    def __enter__(self):
        self.process.start()
        wait_for(lambda: self.opened.value, 10)
        return self.opened

    def __exit__(self, *ignored):
        self.stop.set()
        self.process.join(30)


def basic(issued):
    """What stands in its https_proxy before the @."""
    return base64.b64encode(issued["variables"]["https_proxy"].split("//")[1].rsplit("@")[0].encode()).decode()


# ---- what it all amounts to ----

def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Verdicts:
    """Everybody's answers, phase by phase, and what was promised about them."""

    def __init__(self, soak, floor):
        self.soak, self.floor, self.broken = soak, floor, list(soak.broken)
        self.odd = collections.defaultdict(list)
        self.counts = collections.defaultdict(collections.Counter)
        self.times = collections.defaultdict(list)
        for path in soak.ledgers.values():
            for a in watch.answers(path):
                self.take(a)

    def phases_of(self, answer):
        return [p for p, begin, end, _ in self.soak.spans if answer.begin <= end and answer.end >= begin]

    def take(self, a):
        during = self.phases_of(a)
        for phase in during:
            self.counts[phase.name, a.who][a.what] += 1
            self.times[phase.name, a.who].append((a.end - a.begin) * 1000)
        word = a.detail if a.what == "refused" else a.what
        allowed = set().union(*(p.busy if a.who == "busy" else p.others for p in during)) if during else ALL_AWAY
        if a.what == "wrong" or (a.what != "ok" and word not in allowed):
            self.odd[" / ".join(p.name for p in during), a.who, a.what, a.detail].append(a)

    def judge_answers(self):
        for key, found in self.odd.items():
            self.broken.append("%s: %s got %s %s %d times (%s, after %.1f s)" % (
                *key, len(found), found[0].ident, found[0].end - found[0].begin))

    def judge_times(self):
        """Each phase that gave enough samples for a p99, and all of them together."""
        steady = [p.name for p, _, _, _ in self.soak.spans if p.steady]
        for who in ("quiet", "calm"):
            for names in [steady] + [[name] for name in steady]:
                p99, direct = (percentile(sum((self.times[n, w] for n in names), []), 0.99) for w in (who, "direct"))
                enough = sum(len(self.times[n, who]) for n in names) >= SAMPLES_OF_A_P99
                still = percentile(self.times[PHASES[0].name, who], 0.99)
                if enough and p99 > max(2 * still, 2 * direct, self.floor):
                    where = names[0] if len(names) == 1 else "all faults that are not its own"
                    self.broken.append("%s: %s has a p99 of %.1f ms, %.1f ms in quiet, %.1f ms without exeat" % (
                        where, who, p99, still, direct))

    def judge_growth(self, before, after):
        for key in sorted(set(before) & set(after)):
            a, b = before[key], after[key]
            if b.fds > a.fds + 3 or b.pss > a.pss * 1.25 + 2048:
                self.broken.append("%s %d grew: %d KiB and %d descriptors, then %d and %d" % (key[0], key[1], *a, *b))

    def judge_trail(self, trail):
        for what, found in (("reached the upstream without a record", trail.unrecorded[trail.lost:]),
                            ("reached the upstream altered", trail.altered), ("went without the secret", trail.unlent),
                            ("reached the upstream too often", trail.repeated)):
            if found:
                self.broken.append("%d requests %s, like %s" % (len(found), what, found[0]))
        open_ones = [i for i, at in trail.open.items() if not self.may_end_unrecorded(watch.seconds(at))]
        if len(open_ones) > trail.lost:
            self.broken.append("%d decisions have no outcome, like %s" % (len(open_ones), open_ones[0]))

    def may_end_unrecorded(self, at):
        """Its egress may have been killed before it could tell how the request ended."""
        return any("not_ready" in p.busy and begin - load.TIMEOUT <= at <= end for p, begin, end, _ in self.soak.spans)

    def table(self):
        print("\n%-28s %6s %7s %6s | %6s | %9s %6s | %8s %6s | %s" % (
            "phase", "ok", "refused", "broken", "direct", "quiet p50", "p99", "calm p50", "p99", "recovered after, s"))
        for phase, _, _, note in self.soak.spans:
            c = self.counts[phase.name, "busy"]
            cells = [percentile(self.times[phase.name, "direct"], 0.99)]
            for who in ("quiet", "calm"):
                times = self.times[phase.name, who]
                cells += [statistics.median(times) if times else 0.0, percentile(times, 0.99)]
            recovered = " ".join("%.2f" % s for s in self.soak.recoveries[phase.name][:8])
            print("%-28s %6d %7d %6d | %6.1f | %9.1f %6.1f | %8.1f %6.1f | %s  %s" % (
                phase.name, c["ok"], c["refused"], c["broken"], *cells, recovered, note))


def print_growth(sampler, before, after):
    print("\n%-14s %12s %12s %12s %8s %8s %8s" % ("process", "KiB settled", "at the end", "peak", "fds", "at end", "peak"))
    for key in sorted(after):
        a, b, most = before.get(key), after[key], sampler.peak[key[:2]]
        print("%-14s %12s %12d %12d %8s %8d %8d" % ("%s %d" % key[:2], a.pss if a else "-", b.pss, most.pss,
                                                   a.fds if a else "-", b.fds, most.fds))


def start_upstreams(scratch, mood):
    """A process for each host's upstream: ports by service, ledgers, processes."""
    ca = UpstreamCa(scratch)
    ports, ledgers = {}, []
    for host, name in world.HOSTS.items():
        out, ledger = SPAWN.Queue(), os.path.join(scratch, "seen-" + name)
        certificate, key = ca.leaf(name, [host])
        arguments = (out, mood if name == "busy" else None, ledger, certificate, key, 20)
        SPAWN.Process(target=world.serve, args=arguments, daemon=True).start()
        ports[name] = out.get(timeout=20)
        ledgers.append(ledger)
    return ca, ports, ledgers


def conclude(soak, ledgers, floor):
    place = soak.place
    for sandbox in list(soak.workers):
        soak.pause(sandbox)
    soak.sampler.stop()
    good, said = watch.verify(place)
    trail = watch.Trail(place, ledgers)
    verdicts = Verdicts(soak, floor)
    verdicts.judge_answers()
    verdicts.judge_times()
    before, after = soak.settled[-2], soak.settled[-1]
    verdicts.judge_growth(before, after)
    verdicts.judge_trail(trail)
    if not good:
        verdicts.broken.append("exeat log verify: " + said)
    verdicts.broken += ["the secret is in " + path for path in watch.secrets_on_disk(place.directory)]
    verdicts.table()
    print_growth(soak.sampler, before, after)
    print("\n%d requests reached upstreams, %d records, %d lost with audit, %d decisions without an outcome; %s" % (
        trail.seen, trail.records, trail.lost, len(trail.open), said))
    return verdicts.broken


def mount_state(place):
    os.makedirs(place.path("state"), exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk,mode=755" % Soak.TMPFS_KIB, "none", place.path("state")], check=True)


def soak_all(options):
    scratch = tempfile.mkdtemp(prefix="exeat-soak-")
    mood = SPAWN.Value("i", 0)
    ca, ports, ledgers = start_upstreams(scratch, mood)
    place = world.make_place(ports, options.build)
    place.ca = ca
    phases = [p for p in PHASES if options.match in p.name or p.run is idle or p.name == "load"]
    if options.may_mount:
        mount_state(place)
    else:
        print("skip full disk: no file system can be mounted here")
        phases = [p for p in phases if p.run is not full_disk]
    with place:
        soak = Soak(place, scratch, mood)
        for name, threads, rate in (("direct", 1, 40.0), ("quiet", 1, 40.0), ("calm", 1, 40.0), ("busy", 6, 20.0)):
            soak.resume(name, threads, rate)
        soak.run(phases, options.time)
        broken = conclude(soak, ledgers, options.floor)
        if broken and os.environ.get("EXEAT_KEEP"):
            shutil.copytree(place.path("state"), os.path.join(scratch, "state"))
    if options.may_mount:
        subprocess.run(["umount", "-l", place.path("state")], check=False)
    if not os.environ.get("EXEAT_KEEP"):
        shutil.rmtree(place.directory, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)
    return broken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--time", type=float, default=60, help="seconds for all phases")
    parser.add_argument("--match", default="", help="only phases with this in their name")
    parser.add_argument("--floor", type=float, default=25, help="milliseconds below which a p99 is never too much")
    parser.add_argument("--may-mount", action="store_true", help="this is a mount namespace of its own")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    if os.getuid() != 0:
        sys.exit("soak: needs root, to look into processes and to mount a small file system")
    own_mounts = ["unshare", "--mount", "--propagation", "private"]
    if not options.may_mount and subprocess.run(own_mounts + ["mount", "-t", "tmpfs", "none", "/mnt"],
                                                stderr=subprocess.DEVNULL).returncode == 0:
        os.execvp("unshare", own_mounts + [sys.executable] + sys.argv + ["--may-mount"])
    broken = soak_all(options)
    for line in broken:
        print("not ok " + line)
    print("soak: %s" % ("%d promises broken" % len(broken) if broken else "all promises kept"))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
