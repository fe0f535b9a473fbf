#!/usr/bin/env python3
"""Runs the tests that `make check` has built, several at a time.

  tests/run.py --build DIR [--only unit,fuzz,system,interop,garden] [--match TEXT] [--show] [-j N]

A unit test is a cmocka program, a fuzz test a replay of seeds and past crashes, a system test a
Python program of tests/system that prints "ok NAME", "not ok NAME: WHY" or "skip NAME: WHY", an
interop or garden test one of tests/interop or tests/garden, which is only run when it is asked for. --show prints what they
print, too. The last line is the sum.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_SECONDS = 900


class Result:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, [], []
        self.output, self.seconds, self.unsteady = "", 0.0, []


def execute(result, command, build):
    env = dict(os.environ, EXEAT_BUILD=build, PYTHONDONTWRITEBYTECODE="1")
    begun = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT, env=env,
                              timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL)
        result.output, code = done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as late:
        result.output, code = (late.stdout or b"").decode(errors="replace"), "no end in %d s" % LIMIT_SECONDS
    result.seconds = time.monotonic() - begun
    return code


def run_unit(path, build):
    result = Result("unit " + os.path.basename(path))
    code = execute(result, [path], build)
    result.passed = len(re.findall(r"^\[\s+OK \]", result.output, re.M))
    result.failed = sorted(set(re.findall(r"^\[  FAILED  \] (?!\d+ test)(\S+)", result.output, re.M)))
    result.skipped = sorted(set(re.findall(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", result.output, re.M)))
    if code != 0 and not result.failed:
        result.failed = ["the program ended with %s" % code]
    return result


def run_fuzz(path, build):
    name = os.path.basename(path)
    result = Result("fuzz " + name)
    inputs = sorted(glob.glob("%s/fuzz/seeds/%s/*" % (ROOT, name)) + glob.glob("%s/fuzz/crashes/%s/*" % (ROOT, name)))
    code = execute(result, [path] + inputs, build)
    if code == 0:
        result.passed = 1
    else:
        result.failed = ["the program ended with %s" % code]
    return result


def run_system(path, build):
    result = Result("system " + os.path.basename(path)[5:-3])
    code = execute(result, [sys.executable, path], build)
    result.passed = len(re.findall(r"^ok ", result.output, re.M))
    result.failed = re.findall(r"^not ok (.*)$", result.output, re.M)
    result.skipped = re.findall(r"^skip (.*)$", result.output, re.M)
    if code != 0 and not result.failed:
        result.failed = ["the program ended with %s" % code]
    return result


KINDS = [
    ("unit", run_unit, lambda b: glob.glob(b + "/tests/*")),
    ("fuzz", run_fuzz, lambda b: glob.glob(b + "/replay/*")),
    ("system", run_system, lambda b: glob.glob(ROOT + "/tests/system/test_*.py")),
    ("interop", run_system, lambda b: glob.glob(ROOT + "/tests/interop/test_*.py")),
    ("garden", run_system, lambda b: glob.glob(ROOT + "/tests/garden/test_*.py")),
]


def collect(options):
    only, jobs = options.only.split(","), []
    for kind, run, find in KINDS:
        for path in sorted(find(options.build)):
            if kind not in only or path.endswith((".d", ".gcda", ".gcno")) or not os.path.isfile(path):
                continue
            if options.match in os.path.basename(path):
                jobs.append((run, path))
    # The long ones first: system tests start a whole daemon.
    return jobs[::-1]


def tell(result):
    print("%-6s %-28s %4d passed%s%s  %.1f s" % (
        "FAIL" if result.failed else "ok", result.name, result.passed,
        ", %d failed" % len(result.failed) if result.failed else "",
        ", %d skipped" % len(result.skipped) if result.skipped else "", result.seconds), flush=True)
    if result.failed:
        print(result.output[-6000:], flush=True)


def once_more(first, run, path, build):
    """
    A system test that failed beside others is run again alone: a fault fails twice. What only failed
    once is named at the end, since it is a test to mend or a race to find.
    """
    second = run(path, build)
    second.unsteady = first.failed
    tell(second)
    return second


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", default="unit,fuzz,system")
    parser.add_argument("--match", default="")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("-j", type=int, default=max(2, os.cpu_count() or 2))
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        jobs = {pool.submit(r, p, options.build): (r, p) for r, p in collect(options)}
        for job in concurrent.futures.as_completed(jobs):
            tell(job.result())
            if options.show:
                print(job.result().output, flush=True)
            results.append((job.result(), jobs[job]))
    results = [once_more(r, *job, options.build) if r.failed and job[0] is run_system else r for r, job in results]
    failed = ["%s: %s" % (r.name, what) for r in results for what in r.failed]
    skipped = ["%s: %s" % (r.name, what) for r in results for what in r.skipped]
    for what in skipped:
        print("SKIPPED " + what)
    for r in results:
        for what in r.unsteady:
            if not r.failed:
                print("UNSTEADY %s: failed once, then passed: %s" % (r.name, what))
    for what in failed:
        print("FAILED " + what)
    passed = sum(r.passed for r in results)
    print("%d passed, %d failed%s" % (passed, len(failed), ", %d skipped" % len(skipped) if skipped else ""))
    sys.exit(1 if failed or passed == 0 else 0)


if __name__ == "__main__":
    main()
