#!/usr/bin/env python3
"""What `exeat run` adds to a command: `true` alone, in a sandbox with an exeatd of its own, and in one of a running exeatd."""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

POLICY = """service demo { host api.example.com; operation read { GET /** } }
sandbox a { grant demo all }
"""
TARGETS = {"alone": None, "private": 250, "attached": 60}  # milliseconds


def milliseconds(words, env):
    begin = time.monotonic()
    subprocess.run(words, check=True, env=env)
    return 1000 * (time.monotonic() - begin)


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--reps", type=int, default=20)
    args = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if not k.startswith("EXEAT_")}
    with tempfile.TemporaryDirectory(prefix="exeat-launch-") as directory:
        os.chmod(directory, 0o755)
        policy = os.path.join(directory, "policy")
        with open(policy, "w") as f:
            f.write(POLICY)
        run = [os.path.abspath(os.path.join(args.build, "exeat"))]
        with Running(args.build, directory, env) as running:
            ways = {
                "alone": ["true"],
                "private": run + ["run", "--policy", policy, "--", "true"],
                "attached": run + ["--config", running.config, "run", "--sandbox", "a", "--", "true"],
            }
            taken = {way: [] for way in ways}
            os.chdir("/")
            for _ in range(args.reps):
                for way, words in ways.items():
                    taken[way].append(milliseconds(words, env))
    print("`exeat run -- true`, milliseconds, %d times in turn" % args.reps)
    print("%-10s %8s %8s %8s   target" % ("", "least", "median", "most"))
    for way, times in taken.items():
        print("%-10s %8.1f %8.1f %8.1f   %s" % (way, min(times), statistics.median(times), max(times), TARGETS[way] or ""))


if __name__ == "__main__":
    main()
