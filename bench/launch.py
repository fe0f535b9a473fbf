#!/usr/bin/env python3
"""What `exeat run` adds to a command: `echo` alone, in a sandbox with an exeatd of its own, and in one of a running exeatd.
Then many sandboxes of a running exeatd at once, begun one after another and all in the same moment: how long until all run, and the
memory of each.
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

from run import pss_of, tree

SERVICE = "service demo { host api.example.com; operation read { GET /** } }\n"
TARGETS = {"alone": None, "private": 250, "attached": 60}  # milliseconds


def milliseconds(words, env):
    """Until the command's first byte, and until it is over."""
    begin = time.monotonic()
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE) as command:
        command.stdout.read(1)
        first = time.monotonic() - begin
    if command.returncode != 0:
        raise SystemExit("%s: exit status %d" % (" ".join(words), command.returncode))
    return 1000 * first, 1000 * (time.monotonic() - begin)


class Running:
    """An exeatd with an attach socket."""

    def __init__(self, build, directory, env):
        self.config = os.path.join(directory, "exeat.conf")
        with open(self.config, "w") as f:
            f.write("state state\npolicy policy\nattach attach.sock\n" + ("uids 61800 - 61999\n" if os.getuid() == 0 else ""))
        for verb in ("ca", "vault"):
            subprocess.run([os.path.join(build, "exeat"), "--config", self.config, verb, "init"], check=True, stdout=subprocess.DEVNULL)
        log = os.path.join(directory, "log")
        with open(log, "w") as f:
            self.process = subprocess.Popen([os.path.join(build, "exeatd"), "--config", self.config], stderr=f, env=env)
        while "parent: info: ready" not in open(log).read():
            if self.process.poll() is not None:
                raise SystemExit("exeatd does not start:\n" + open(log).read())
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.process.terminate()
        self.process.wait()


def await_run(command):
    if command.stdout.readline() != b"runs\n":
        raise SystemExit("a sandbox does not run: %s" % " ".join(command.args))


def crowd(run, daemon, n, env, together):
    """n sandboxes that are all there at once: seconds until they were, kB of each in exeatd's processes and its own."""
    began, daemon_before = time.monotonic(), pss_of(tree(daemon))
    commands = []
    try:
        for i in range(n):
            commands.append(subprocess.Popen(run + ["--sandbox", "s%d" % i, "--", "sh", "-c", "echo runs; read end"], env=env,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            if not together:
                await_run(commands[-1])
        for command in commands if together else []:
            await_run(command)
        seconds = time.monotonic() - began
        own = sum(pss_of(tree(c.pid)) for c in commands)
        return seconds, (pss_of(tree(daemon)) - daemon_before) / n, own / n
    finally:
        for c in commands:
            c.communicate(b"\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--sandboxes", type=int, default=100, help="at once")
    args = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if not k.startswith("EXEAT_")}
    with tempfile.TemporaryDirectory(prefix="exeat-launch-") as directory:
        os.chmod(directory, 0o755)
        policy = os.path.join(directory, "policy")
        with open(policy, "w") as f:
            f.write(SERVICE + "".join("sandbox s%d { grant demo all }\n" % i for i in range(args.sandboxes + 1)))
        run = [os.path.abspath(os.path.join(args.build, "exeat"))]
        with Running(args.build, directory, env) as running:
            attached = run + ["--config", running.config, "run"]
            ways = {
                "alone": ["echo"],
                "private": run + ["run", "--policy", policy, "--sandbox", "s0", "--", "echo"],
                "attached": attached + ["--sandbox", "s0", "--", "echo"],
            }
            taken = {way: [] for way in ways}
            os.chdir("/")
            for _ in range(args.reps):
                for way, words in ways.items():
                    taken[way].append(milliseconds(words, env))
            many = {how: crowd(attached, running.process.pid, args.sandboxes, env, how == "in the same moment")
                    for how in ("one after another", "in the same moment") if args.sandboxes}
    print("`exeat run -- echo`, milliseconds, %d times in turn" % args.reps)
    print("%-10s %12s %8s %8s %8s   target" % ("", "first byte", "least", "median", "most"))
    for way, times in taken.items():
        first, whole = zip(*times)
        print("%-10s %12.1f %8.1f %8.1f %8.1f   %s" % (way, statistics.median(first), min(whole), statistics.median(whole), max(whole),
                                                  TARGETS[way] or ""))
    for how, figures in many.items():
        print("%d sandboxes at once, started %s in %.1f s; each %.0f kB in exeatd's processes, %.0f kB in its own%s" %
              (args.sandboxes, how, *figures, "" if os.getuid() == 0 else " (of processes that this user may look into)"))


if __name__ == "__main__":
    main()
