#!/usr/bin/env python3
"""Starts the origin, one proxy after the other and the load generator, and measures. README.md says what the modes do."""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import peers
import report
from scratch import PLAIN_PORT, TLS_PORT, Scratch

TICK = os.sysconf("SC_CLK_TCK")


# ---- processes ----

def stat_of(pid):
    """The fields behind the name in /proc/PID/stat, or None."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def tree(root):
    """Process ids of root, its descendants and its session."""
    stats = {int(p): stat_of(int(p)) for p in os.listdir("/proc") if p.isdigit()}
    stats = {p: s for p, s in stats.items() if s}
    found = {p for p, s in stats.items() if p == root or int(s[3]) == root}
    while True:
        more = {p for p, s in stats.items() if int(s[1]) in found} - found
        if not more:
            return sorted(found)
        found |= more


def cpu_of(pids):
    """User and system seconds used by these processes and by children they have reaped."""
    stats = [s for s in map(stat_of, pids) if s]
    return (sum(int(s[11]) + int(s[13]) for s in stats) / TICK, sum(int(s[12]) + int(s[14]) for s in stats) / TICK)


def pss_of(pids):
    """Proportional set size in kB, summed."""
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            continue
    return total


def core_busy(core):
    """Busy and stolen seconds of one core since boot."""
    with open("/proc/stat") as f:
        v = next([int(x) for x in line.split()[1:]] for line in f if line.startswith("cpu%d " % core))
    return (v[0] + v[1] + v[2] + v[5] + v[6]) / TICK, v[7] / TICK


def spawn(cmd, core, nice, env=None, hosts=None, **kw):
    def child():
        os.setsid()
        os.sched_setaffinity(0, {core})
        if nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)

    if hosts:
        cmd = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts, *cmd]
    return subprocess.Popen(cmd, preexec_fn=child, env=dict(os.environ, **(env or {})), **kw)


def stop(proc):
    if proc is None:
        return
    pids = tree(proc.pid)
    proc.send_signal(signal.SIGTERM)
    try:
        proc.wait(10)
    except subprocess.TimeoutExpired:
        pass
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    proc.wait()


def wait_port(port, proc, seconds=30):
    end = time.time() + seconds
    while time.time() < end and proc.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


# ---- one target ----

class Bench:
    def __init__(self, args, scratch):
        self.a, self.w, self.proxy, self.peer, self.name = args, scratch, None, None, None
        self.tools = os.path.join(args.build, "bench")
        self.origin = spawn([os.path.join(self.tools, "origin"), "-s", str(TLS_PORT), "-p", str(PLAIN_PORT), "-c",
                             self.w.file("origin.pem"), "-k", self.w.file("origin.key"), "-A", peers.REAL],
                            args.load_core, args.nice, stdout=subprocess.PIPE)
        if self.origin.stdout.readline() != b"ready\n":
            raise SystemExit("the origin did not start (are its ports taken?)")

    def start(self, name):
        self.name, self.peer, self.proxy = name, peers.PEERS[name][0](self.w, self.tools), None
        p = self.peer
        if not p.cmd:
            return True
        with open(self.w.file(name + ".log"), "a") as log:
            self.proxy = spawn(p.cmd, self.a.proxy_core, self.a.nice, p.env, self.w.file("hosts") if p.hosts else None,
                               stderr=log, stdout=subprocess.PIPE if p.sent is None else log)
        if p.sent is None:
            p.sent = self.proxy.stdout.readline().decode().strip()
        return bool(p.sent) and wait_port(p.port, self.proxy)

    def finish(self):
        stop(self.proxy)
        self.proxy = None

    def command(self, mode, *opts, host="h0.bench.test"):
        p = self.peer
        return [os.path.join(self.tools, "load"), mode, "-a", str(p.port), "-v", p.via, "-H", "%s:%d" % (host, TLS_PORT),
                "-A", p.sent, "-C", os.path.join(self.w.dir, p.ca), *map(str, opts)]

    def echo(self):
        return ["-L", 200, "-E", self.peer.echoed]

    def load(self, cmd, swapped=True):
        """Runs the load generator; its figures, and the proxy's share of them."""
        core = self.a.proxy_core
        pids, stats, began = tree(self.proxy.pid) if self.proxy else [], self.origin_stats(), time.time()
        busy, cpu, origin_cpu = core_busy(core), cpu_of(pids), sum(cpu_of([self.origin.pid]))
        proc = spawn(cmd, self.a.load_core, self.a.nice, stdout=subprocess.PIPE)
        out = proc.communicate()[0].decode().strip().splitlines()
        r = json.loads(out[-1]) if out else {"good": 0, "errors": 1, "first_error": "no output"}
        wall = time.time() - began
        if self.proxy:
            was, cpu, now = cpu, cpu_of(tree(self.proxy.pid)), core_busy(core)
            r["proxy_user"], r["proxy_sys"] = round(cpu[0] - was[0], 3), round(cpu[1] - was[1], 3)
            r["proxy_cpu"] = round(sum(cpu) - sum(was), 3)
            known = r["proxy_cpu"]
            if self.a.load_core == core:
                known += r.get("cpu", 0) + sum(cpu_of([self.origin.pid])) - origin_cpu
            r["foreign"] = round(max(0.0, now[0] - busy[0] - known) / wall, 3)
            r["stolen"] = round((now[1] - busy[1]) / wall, 3)
        r["origin"] = {k: v - stats[k] for k, v in self.origin_stats().items()}
        self.check(r, swapped)
        return r

    def check(self, r, swapped):
        """The origin itself must have seen the real secret in every request of a proxy that replaces."""
        saw = r["origin"]["authorized"]
        wanted = r["good"] if swapped and self.peer.seen == peers.REAL else 0
        if saw < wanted or (wanted == 0 and saw):
            r["errors"] += abs(wanted - saw)
            r["first_error"] = "the origin saw the secret in %d of %d requests" % (saw, wanted)

    def origin_stats(self):
        with urllib.request.urlopen("http://127.0.0.1:%d/stats" % PLAIN_PORT) as f:
            return json.load(f)

    # ---- modes ----

    def many_hosts(self, *opts):
        return self.load(self.command("handshake", "-c", 8, *opts, *self.echo(), host="h%d.bench.test"))

    def keep_alive(self, *opts):
        return self.load(self.command("keepalive", *opts, *self.echo()))

    def cold(self):
        """First connection to each of many host names: every leaf is minted."""
        return self.many_hosts("-m", self.a.hosts, "-n", self.a.hosts, "-t", 15)

    def warm(self):
        """The same host names again, full handshakes."""
        return self.many_hosts("-m", self.a.hosts, "-n", 1500, "-t", 4)

    def resume(self):
        return self.many_hosts("-R", "-m", 20, "-n", 1500, "-t", 4)

    def keepalive(self):
        return self.keep_alive("-c", 32, "-n", 100000, "-w", 200, "-t", self.a.seconds)

    def single(self):
        return self.keep_alive("-c", 1, "-n", 10000, "-w", 100, "-t", 2)

    def rate(self):
        return self.keep_alive("-c", 32, "-r", self.a.rate, "-n", self.a.rate * 4, "-w", self.a.rate, "-t", 6)

    def down(self):
        return self.load(self.command("bulk", "-p", "/bytes/50000000", "-L", 50000000, "-c", 1, "-n", 1000, "-t", 3))

    def up(self):
        return self.load(self.command("bulk", "-p", "/sink", "-u", 50000000, "-c", 1, "-n", 1000, "-t", 3))

    def plain(self):
        """Plain HTTP, absolute-form, without a credential, which has no business in clear text."""
        p = self.peer
        if self.proxy and not p.plain:
            return []
        port, via = (p.port, "http") if self.proxy else (PLAIN_PORT, "direct")
        return self.load([os.path.join(self.tools, "load"), "keepalive", "-a", str(port), "-v", via, "-H",
                          "plain.bench.test:%d" % PLAIN_PORT, "-p", "/bytes/200", "-L", "200", "-c", "32", "-n", "100000",
                          "-w", "200", "-t", str(self.a.seconds)], swapped=False)

    def refusal(self):
        """CONNECT to a host that is not allowed, a connection each."""
        if not self.peer.refuses:
            return []
        return self.load(self.command("handshake", "-c", 8, "-n", 4000, "-w", 100, "-t", 4, "-X", 403,
                                      host="refused.test"), swapped=False)

    def scale(self):
        """CPU a request when so many connections are open, of which 64 at most are busy."""
        return [self.scale_of(n) for n in self.a.scale if self.proxy and n <= self.peer.most]

    def scale_of(self, n):
        rounds = max(1, self.a.scale_requests // n)
        proc = spawn(self.command("idle", "-c", n, "-t", 180, "-k", rounds, *self.echo()), self.a.load_core, self.a.nice,
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        proc.stdout.readline()
        time.sleep(0.5)
        pids = tree(self.proxy.pid)
        cpu, stats = cpu_of(pids), self.origin_stats()
        tail = proc.communicate(b"\n")[0].decode().strip().splitlines()
        used = [round(a - b, 3) for a, b in zip(cpu_of(pids), cpu)]
        r = json.loads(tail[-1]) if tail else {"good": 0, "errors": 1}
        r["finished"] -= n  # they were opened by a request each
        r["latency_is_of_opening"] = True
        r.update(conns=n, proxy_user=used[0], proxy_sys=used[1], proxy_cpu=round(sum(used), 3))
        r["origin"] = {k: v - stats[k] for k, v in self.origin_stats().items()}
        return r

    def sse(self):
        return self.load(self.command("sse", "-p", "/sse/100/10", "-c", 8, "-n", 16, "-t", 10))

    def idle(self):
        """Memory of the proxy's processes for each idle connection; the proxy is started anew for each number."""
        return [self.idle_of(n) for n in self.a.idle if self.proxy]

    def idle_of(self, n):
        self.finish()
        self.start(self.name)
        self.load(self.command("keepalive", "-c", 8, "-n", 200))
        time.sleep(1)
        base = pss_of(tree(self.proxy.pid))
        proc = spawn(self.command("idle", "-c", n, "-t", 60, *self.echo()), self.a.load_core, self.a.nice,
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ready = proc.stdout.readline().decode().split()
        time.sleep(2)
        held = pss_of(tree(self.proxy.pid))
        tail = proc.communicate(b"\n")[0].decode().strip().splitlines()
        r = json.loads(tail[-1]) if tail else {"good": 0, "errors": 1}
        alive = int(ready[1]) if len(ready) == 2 else 0
        r.update(conns=n, alive=alive, base_kb=base, held_kb=held, kb_each=round((held - base) / max(alive, 1), 2))
        return r


# Long, and little moved by what else runs: done in the first repetition only.
ONCE = ("idle", "scale")


def measure_target(bench, name, rep, modes, out):
    modes = [m for m in modes if rep == 0 or m not in ONCE]
    try:
        if not bench.start(name):
            raise SystemExit("%s did not start; see its log in %s" % (name, bench.w.dir))
        # One-time work is done before anything is timed.
        bench.load(bench.command("keepalive", "-n", 20, host="warm.bench.test"))
        for mode in modes:
            result = getattr(bench, mode)()
            for r in result if isinstance(result, list) else [result]:
                r.update(target=name, rep=rep, mode="%s-%d" % (mode, r["conns"]) if mode in ("idle", "scale") else mode)
                out.write(json.dumps(r) + "\n")
                out.flush()
                print("  %-10s %-10s %7d good %4d wrong %8.0f/s  %6.2f s of CPU, foreign %.0f %%  %s" %
                      (name, r["mode"], r["good"], r["errors"], r.get("rps", 0), r.get("proxy_cpu", 0),
                       100 * r.get("foreign", 0), r.get("first_error", "")), file=sys.stderr, flush=True)
    finally:
        bench.finish()


def measure(args):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing started is left behind
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    bench = Bench(args, Scratch(args.scratch))
    try:
        with open(args.out, "w") as out:
            for rep in range(args.reps):
                for name in args.targets:
                    measure_target(bench, name, rep, args.modes, out)
    finally:
        bench.finish()
        stop(bench.origin)


def arguments():
    words = lambda s: s.replace(",", " ").split()
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--build", default="build", help="where exeatd, exeat and bench/load are")
    ap.add_argument("--targets", default="direct,relay,haproxy,squid,mitmproxy,exeat", type=words, help="of " + ", ".join(peers.PEERS))
    ap.add_argument("--modes", default=",".join(report.MODES), type=words, help="of " + ", ".join(report.MODES))
    ap.add_argument("--reps", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=4, help="of the keepalive mode")
    ap.add_argument("--hosts", type=int, default=300, help="host names in cold and warm (at most 1000)")
    ap.add_argument("--rate", type=int, default=400, help="requests/s in the rate mode")
    ap.add_argument("--idle", default="1000", type=lambda s: [int(x) for x in words(s)])
    ap.add_argument("--scale", default="1,32,1000,10000", type=lambda s: [int(x) for x in words(s)])
    ap.add_argument("--scale-requests", type=int, default=20000, help="of the scale mode, about, at each number")
    ap.add_argument("--proxy-core", type=int, default=os.cpu_count() - 1)
    ap.add_argument("--load-core", type=int, default=os.cpu_count() - 1, help="of the origin and the load generator")
    ap.add_argument("--nice", type=int, default=-10 if os.getuid() == 0 else 0)
    ap.add_argument("--scratch", default=os.path.join(tempfile.gettempdir(), "exeat-bench"))
    ap.add_argument("--out", default="build/bench/results.jsonl")
    args = ap.parse_args()
    args.build = os.path.abspath(args.build)
    for kind, known in ((args.targets, peers.PEERS), (args.modes, report.MODES)):
        for word in kind:
            if word not in known:
                ap.error("unknown: " + word)
    why = {name: peers.missing(name) for name in args.targets}
    args.missing = [name for name in args.targets if why[name]]
    args.targets = [name for name in args.targets if not why[name]]
    for name in args.missing:
        print("%s is left out: %s" % (name, why[name]), file=sys.stderr)
    return args


def main():
    args = arguments()
    measure(args)
    sys.exit(1 if report.report(args.out, args.missing) else 0)


if __name__ == "__main__":
    main()
