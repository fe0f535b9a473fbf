"""What is looked at: memory and descriptors of every process, secrets in memory and on disk, what the ledgers say."""
import calendar
import collections
import json
import os
import re
import subprocess
import threading
import time

from world import DIRECT, SECRET, exchange

from cases import forms
from helpers import holds

# Whoever may never have a secret in clear; broker and egress hold one for the length of a lease. An upstream's echo
# in a compressed answer passes through inspect, and leaves nothing there (docs/threat-model.md, P2).
WITHOUT_SECRETS = ("parent", "proxy", "inspect", "audit", "control", "ca", "dialer")
Sample = collections.namedtuple("Sample", "pss fds")


# ---- processes ----

def measure(pid):
    """KiB of memory that is this process' own share, and open descriptors; None when it is gone."""
    try:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            pss = int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1))
        return Sample(pss, len(os.listdir("/proc/%d/fd" % pid)))
    except (OSError, AttributeError):
        return None


class Sampler:
    """Samples every process once a second; `now` is the newest sample of each, by (role, lane, pid)."""

    def __init__(self, place):
        self.place, self.now, self.peak = place, {}, {}
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def sample(self):
        found = dict(self.place.pids())
        found[("parent", 0)] = self.place.daemon.pid
        got = {key + (pid,): measure(pid) for key, pid in found.items()}
        self.now = {k: s for k, s in got.items() if s}
        for (role, lane, _), s in self.now.items():
            old = self.peak.get((role, lane), s)
            self.peak[(role, lane)] = Sample(max(old.pss, s.pss), max(old.fds, s.fds))
        return self.now

    def run(self):
        while not self.end.wait(1):
            self.sample()

    def stop(self):
        self.end.set()
        self.thread.join()


def secrets_in_memory(place):
    """Names of processes that hold the secret in any spelling, and may not."""
    found = dict(place.pids())
    found[("parent", 0)] = place.daemon.pid
    bad = []
    for (role, lane), pid in found.items():
        try:
            if role in WITHOUT_SECRETS and holds(pid, SECRET):
                bad.append("%s %d" % (role, lane))
        except OSError:
            continue  # it was killed meanwhile
    return bad


def secrets_on_disk(directory):
    """Files that hold the secret in any spelling; pieces overlap by more than the longest one."""
    wanted, bad = forms(SECRET), []
    for root, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(root, name)
            if name.endswith(".sock") or not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                tail = b""
                while piece := f.read(1 << 22):
                    if any(form in tail + piece for form in wanted):
                        bad.append(path)
                        break
                    tail = piece[-256:]
    return bad


# ---- ledgers ----

def log_command(place, word):
    return [os.path.join(place.build, "exeat"), "--config", place.path("exeat.conf"), "log", word]


def verify(place):
    """Whether the trail is good, and what the command says of it."""
    done = subprocess.run(log_command(place, "verify"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout.decode().strip()


Answer = collections.namedtuple("Answer", "begin end who what detail ident")


def answers(path):
    """What clients got, by the ledger of load.work."""
    with open(path) as f:
        for line in f:
            begin, ms, who, what, detail, ident = line.split()
            yield Answer(float(begin), float(begin) + float(ms) / 1000, who, what, detail, ident)


class Trail:
    """
    The audit trail against what the upstreams saw. unrecorded: arrivals without an allowing record written
    before; altered: arrivals that were not what the client had sent; unlent: those without the secret in its
    place; repeated: those that arrived oftener than they may; lost: numbers that audit itself says it lost.
    """

    def __init__(self, place, sightings):
        self.allowed, self.open = collections.defaultdict(list), {}
        self.records = self.lost = 0
        self.read_log(place)
        self.unrecorded, self.altered, self.unlent, self.repeated, self.seen = [], [], [], [], 0
        for path in sightings:
            self.read_sightings(path)

    def read_log(self, place):
        with subprocess.Popen(log_command(place, "--json"), stdout=subprocess.PIPE) as log:
            for line in log.stdout:
                self.take(json.loads(line))

    def take(self, record):
        self.records += 1
        if record.get("event") == "gap":
            self.lost += record["last"] - record["first"] + 1
        elif record["kind"] == "decision" and record["verdict"] == "allow" and "path" in record:
            self.allowed[record["path"].rsplit("/", 1)[1]].append(record["time"])
            self.open[record["id"]] = record["time"]
        elif record["kind"] == "outcome":
            self.open.pop(record["id"], None)

    def read_sightings(self, path):
        times = collections.Counter()
        with open(path) as f:
            for line in f:
                at, ident, method, right, lent = line.split()
                if ident.startswith(DIRECT):
                    continue
                self.seen += 1
                times[ident] += 1
                before = [t for t in self.allowed.get(ident, ()) if seconds(t) <= float(at)]
                if not before:
                    self.unrecorded.append((float(at), ident))
                if right != "1":
                    self.altered.append(ident)
                if lent != "1":
                    self.unlent.append(ident)
        # What is safe to repeat is sent once more when a kept connection turns out to be dead.
        self.repeated += [i for i, n in times.items() if n > (2 if exchange(i).method == "GET" else 1)]


def seconds(text):
    """The time of a record, in seconds since 1970."""
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + text[19:].rstrip("Z"))
