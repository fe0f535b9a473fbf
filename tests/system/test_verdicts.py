"""What exeat makes of every input of the garden, and of every case of SM and RS, is what tests/garden/verdicts says.

The table is the same with every llhttp: that of Debian 12 and those of Debian 13 and later. After a change that is meant:

  EXEAT_BUILD=build python3 tests/system/test_verdicts.py --write
"""
import difflib
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "garden"))
import case_world  # noqa: E402
from cases import FOLDER, OK_ANSWER, Runner, Values, expand, parse, strings  # noqa: E402
from place import Report, run_all, wait_for  # noqa: E402
import servers  # noqa: E402
from test_garden import DOORS, HERE, Garden, inputs  # noqa: E402

TABLE = os.path.join(HERE, "verdicts")


def verdict_of_run(run):
    """Of each decision the verdict; of what was not answered early or cut, the bytes of its body that went upstream."""
    said = []
    for d in run.decisions:
        if d["verdict"] == "deny":
            said.append("deny %s" % d["reason"])
        elif d["outcome"].get("status") == 200:
            said.append("allow %s %d" % (d["method"], d["outcome"].get("bytes_out", 0)))
        else:
            said.append("allow %s, %s" % (d["method"], d["outcome"].get("reason") or d["outcome"].get("status")))
            if d["outcome"].get("status") == 413:
                break  # whether the next request is still read depends on how much of this one has come by then
    return "; ".join(said)


def verdicts_of_inputs():
    """Each input of the garden, over TLS and in clear, with the witness behind exeat."""
    with Garden(Report(), [servers.Reference]) as garden:
        reference = garden.servers[0]
        for run in garden.runs(reference, {door: list(inputs()) for door in DOORS}):
            yield "%s, %s" % (run.wanted.name, run.door), verdict_of_run(run)


class Judge(Runner):
    """Runs a case once, whole, for its verdict only."""

    def verdict(self, case, values):
        data = b"".join(values.bytes(strings(s, case.at)[0]) for s in case.words("send"))
        reply = b"".join(values.bytes(strings(s, case.at)[0]) for s in case.words("reply")) or OK_ANSWER
        up = self.place.upstream
        up.forget()
        up.script = self._script(reply, [], case.has("hangup"))
        seen = self._exchange(case, values, [], data)
        wait_for(lambda: len(self.trail.decisions(self.settled)) >= len(seen.statuses), 5)
        self.settled = len(self.trail.records)
        whole = "; ".join(str(s) for s in seen.statuses) or "closed"
        return whole + (" %s" % seen.reason if seen.reason else "") + ", %d upstream" % len(up.requests)


def verdicts_of_cases():
    """Each case of SM and RS, as its file has it."""
    place, values, secrets, hidden = case_world.world()
    try:
        place.start()
        known = values(place)
        judge = Judge(place, known, secrets, hidden, "api.allowed.test")
        for name in ("sm", "rs"):
            for case in parse(os.path.join(FOLDER, name + ".case")):
                for number, (title, more) in enumerate(expand(case), 1):
                    yield "%s #%d" % (title, number) if more else title, judge.verdict(case, Values(dict(known, **more)))
    finally:
        place.__exit__()


def lines():
    """One for each: name, TAB, verdict. Names are in the case files' own escapes."""
    for found in (verdicts_of_inputs, verdicts_of_cases):
        for name, verdict in found():
            yield "%s\t%s\n" % (name, verdict)


def every_verdict_is_the_tables(found):
    with open(TABLE, encoding="ascii") as f:
        table = f.readlines()
    assert len(table) > 1000, "the table has %d lines only" % len(table)
    changes = [line.rstrip("\n") for line in difflib.unified_diff(table, found, n=0, lineterm="\n")
               if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert not changes, "%d lines differ: %s" % (len(changes), "; ".join(changes))


def main():
    found = list(lines())
    if sys.argv[1:] == ["--write"]:
        with open(TABLE, "w", encoding="ascii") as f:
            f.writelines(found)
        return
    run_all([every_verdict_is_the_tables], found).end()


if __name__ == "__main__":
    main()
