"""The phases of a soak: what is done, for what share of the time, and what clients may see of it."""
import collections
import os
import re
import shutil
import signal
import subprocess
import time

import load
import world

from place import wait_for

SETTLE_SECONDS = 4  # until pools, lingering connections and leases of before are gone
USUAL = {"nofile": 20000, "as": "unlimited"}
SLOW_CLIENTS = 1400
MORE_THAN_A_LANE_TAKES = 2100
OWN_ROLES = [("proxy", 1), ("egress", 1), ("inspect", 1)]
SHARED_ROLES = [("broker", 0), ("ca", 0), ("dialer", 0), ("audit", 0)]
STRANGERS, KNOWN = ["silent", "slow head", "endless head"], ["tunnel", "idle", "half a hello", "slow body"]


# ---- what is done: functions of (soak, seconds) ----

def nothing(soak, seconds):
    time.sleep(seconds)


def idle(soak, seconds):
    """The load pauses; what is open then stays comparable over the hours."""
    soak.pause("busy")
    time.sleep(max(seconds, SETTLE_SECONDS))
    soak.settled.append(soak.sampler.sample())
    soak.resume("busy")


def kill(role, lane=0):
    def run(soak, seconds):
        end = time.monotonic() + seconds
        while True:
            soak.signal(role, lane, signal.SIGKILL)
            time.sleep(0.02)  # until the parent has noticed
            soak.recover("busy")
            if time.monotonic() >= end:
                return
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))
    return run


def freeze(soak, seconds):
    """Each role stands still for a while."""
    roles = OWN_ROLES + SHARED_ROLES + [("control", 0)]
    for role, lane in roles:
        pid = soak.signal(role, lane, signal.SIGSTOP)
        time.sleep(seconds / len(roles) / 2)
        soak.signal_pid(pid, signal.SIGCONT)
        time.sleep(seconds / len(roles) / 2)
    soak.recover("busy")


class Limited:
    """A smaller soft limit for a process, set as its own user would: that takes no right over other users' processes."""

    def __init__(self, pid, which, value):
        self.pid, self.which, self.value = pid, which, value

    def set(self, value):
        with open("/proc/%d/status" % self.pid) as f:
            uid = int(re.search(r"^Uid:\s+(\d+)", f.read(), re.M).group(1))
        subprocess.run(["prlimit", "--pid", str(self.pid), "--%s=%s:" % (self.which, value)], user=uid, group=uid,
                       extra_groups=[], check=True)

    def set_if_it_lives(self, value):
        try:
            self.set(value)
        except (OSError, subprocess.CalledProcessError):
            if os.path.exists("/proc/%d" % self.pid):
                raise

    def __enter__(self):
        self.set_if_it_lives(self.value)

    def __exit__(self, *ignored):
        self.set_if_it_lives(USUAL[self.which])


def starve(which, room, *roles):
    """Each role in turn gets no more of a resource; room(pid): how much it may have."""
    def run(soak, seconds):
        for role, lane in roles:
            pid = wait_for(lambda: soak.place.pids().get((role, lane)), 30, 0.02)
            with Limited(pid, which, room(pid)):
                time.sleep(seconds / len(roles))
            soak.recover("busy")
    return run


def descriptors(pid):
    """What is open stays; for a new one another must have been closed, and then some."""
    return len(os.listdir("/proc/%d/fd" % pid)) // 2


def address_space(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[0]) * 4096


def full_disk(soak, seconds):
    state = soak.place.path("state")
    used = os.statvfs(state)
    kib = (used.f_blocks - used.f_bfree) * used.f_bsize // 1024
    soak.remount(kib + 128)
    try:
        time.sleep(seconds)
        if soak.ask("busy")[0] == "ok":
            soak.broken.append("full disk: a request was served")
    finally:
        soak.remount(soak.TMPFS_KIB)
    soak.recover("busy")


def resolver(soak, seconds):
    moods = list(world.MoodyResolver.LIES) + ["garbage", "stall"]
    for mood in moods:
        soak.place.resolver.mood = mood
        time.sleep(seconds / len(moods))
    soak.place.resolver.mood = None
    soak.recover("busy")


def upstream(mood):
    def run(soak, seconds):
        soak.mood.value = world.MOODS.index(mood)
        time.sleep(seconds)
        soak.mood.value = 0
        soak.recover("busy")
    return run


def slow(sandbox, kinds):
    count = MORE_THAN_A_LANE_TAKES if sandbox == "hog" else SLOW_CLIENTS

    def run(soak, seconds):
        with soak.crawling(sandbox, kinds, count) as opened:
            time.sleep(seconds)
            soak.note("%d slow clients open" % opened.value)
        if sandbox != "hog":
            soak.recover("busy")
    return run


def slowhttptest(soak, seconds):
    program = shutil.which("slowhttptest")
    if not program:
        soak.note("not installed")
        return
    per = max(1, int(seconds / 3))
    for kind in ("-H", "-B", "-X"):
        subprocess.run([program, kind, "-c", "1000", "-r", "500", "-i", "1", "-l", str(per), "-u",
                        "http://127.0.0.1:%d/" % soak.place.ports["busy"]], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=per + 60)
    soak.recover("busy")


def reload(soak, seconds):
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        soak.place.write_policy(world.POLICY + "# %d\n" % n)
        soak.place.exeat("reload")
        n += 1
    soak.note("%d reloads" % n)


# ---- the phases ----

# busy, others: reasons that may be given to the busy sandbox, to quiet and calm; `broken`: their connections
# may end. weight: share of the time. steady: the quiet lane's p99 is held against its quiet value.
Phase = collections.namedtuple("Phase", "name weight run busy others steady")
AWAY = {"broker": "broker_unavailable", "ca": "ca_unavailable", "dialer": "dialer_unavailable", "audit": "audit_unavailable"}
# name_not_resolved: a dialer without descriptors cannot ask.
ALL_AWAY = set(AWAY.values()) | {"inspect_unavailable", "name_not_resolved", "too_many", "broken"}
LANE = {"broken", "not_ready"}
# In a long run a role stands still for longer than its peers wait.
LATE = {"connect_timeout", "request_timeout"}


def shared(role):
    return {AWAY[role], "broken"}


PHASES = [
    Phase("nothing, no load", 2, idle, set(), set(), True),
    Phase("load", 2, nothing, set(), set(), True),
    Phase("kill proxy", 2, kill("proxy", 1), LANE, set(), True),
    Phase("kill egress", 2, kill("egress", 1), LANE, set(), True),
    Phase("kill inspect", 2, kill("inspect", 1), {"inspect_unavailable", "broken"}, set(), True),
    Phase("kill broker", 2, kill("broker"), shared("broker"), shared("broker"), False),
    Phase("kill ca", 2, kill("ca"), shared("ca"), shared("ca"), False),
    Phase("kill dialer", 2, kill("dialer"), shared("dialer"), shared("dialer"), False),
    Phase("kill audit", 2, kill("audit"), shared("audit"), shared("audit"), False),
    Phase("kill control", 2, kill("control"), set(), set(), True),
    Phase("freeze each role", 4, freeze, ALL_AWAY | LATE, ALL_AWAY | LATE, False),
    Phase("no descriptors, lane", 3, starve("nofile", descriptors, *OWN_ROLES), ALL_AWAY | LANE, set(), True),
    Phase("no descriptors, shared", 4, starve("nofile", descriptors, *SHARED_ROLES), ALL_AWAY, ALL_AWAY, False),
    Phase("no memory, lane", 3, starve("as", address_space, *OWN_ROLES), ALL_AWAY | LANE, set(), True),
    Phase("no memory, shared", 4, starve("as", address_space, *SHARED_ROLES), ALL_AWAY, ALL_AWAY, False),
    Phase("full disk", 2, full_disk, shared("audit"), shared("audit"), False),
    Phase("slow clients", 4, slow("busy", list(load.SLOW)), {"broken", "too_many"}, set(), True),
    Phase("hog, strangers", 3, slow("hog", STRANGERS), set(), set(), True),
    Phase("hog, with its token", 3, slow("hog", KNOWN), set(), set(), True),
    Phase("idle", 1, idle, set(), set(), True),
    Phase("resolver lies and stalls", 4, resolver, {"address_not_allowed", "name_not_resolved"}, set(), True),
    Phase("upstream resets", 2, upstream(world.reset), {"upstream_closed", "broken"}, set(), True),
    Phase("upstream stalls", 4, upstream(world.stall), {"upstream_timeout", "broken"}, set(), True),
    Phase("upstream truncates", 2, upstream(world.truncate), {"upstream_closed", "malformed_answer", "broken"}, set(), True),
    Phase("upstream floods", 2, upstream(world.flood), {"malformed_answer", "upstream_closed", "broken"}, set(), True),
    Phase("slowhttptest", 3, slowhttptest, {"broken", "too_many"}, set(), True),
    Phase("slow clients again", 3, slow("busy", list(load.SLOW)), {"broken", "too_many"}, set(), True),
    Phase("hog, both ways", 3, slow("hog", STRANGERS + KNOWN), set(), set(), True),
    Phase("reloads", 2, reload, set(), set(), True),
    Phase("idle at the end", 1, idle, set(), set(), True),
]
