#!/usr/bin/env python3
"""The commands on policies that need no daemon: what they print, and how they exit."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXEAT = os.path.join(os.environ.get("EXEAT_BUILD", os.path.join(ROOT, "build")), "exeat")
YES, NO, USAGE, INVALID = range(4)
tests = []


def test(function):
    tests.append(function)
    return function


class Place:
    def __init__(self, directory):
        self.directory = directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return name

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def policy(self, *args):
        """Exit code, standard output, standard error."""
        done = subprocess.run([EXEAT, "policy", *args], cwd=self.directory, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stdout, done.stderr


DEMO = """service demo-api {
    host api.example.com
    credential demo-key { in header authorization scheme bearer }
    limit body 64K
    operation read { GET /v1/items; GET /v1/items/** }
    operation create { POST /v1/items }
    never { * /v1/items/*/share }
    expect allow GET /v1/items/7
}

sandbox worker-1 {
    grant demo-api read
}
"""


# ---- fmt ----

@test
def fmt_prints_checks_and_writes(place):
    loose = DEMO.replace("    ", "\t").replace("host ", "host   ")
    place.write("p", loose)
    assert place.policy("fmt", "p") == (YES, DEMO, "")
    assert place.policy("fmt", "--check", "p")[0] == NO and place.read("p") == loose
    os.chmod(place.path("p"), 0o640)
    assert place.policy("fmt", "--write", "p") == (YES, "", "")
    assert place.read("p") == DEMO and os.stat(place.path("p")).st_mode & 0o777 == 0o640
    assert place.policy("fmt", "--check", "p") == (YES, "", "")
    assert os.listdir(place.directory) == ["p"]


@test
def fmt_leaves_a_bad_file_as_it_is(place):
    place.write("p", "service a { hots b.test }\n")
    code, out, err = place.policy("fmt", "--write", "p")
    assert code == INVALID and out == "" and "p:1:13: 'hots' is no word of a service" in err, err
    assert place.read("p") == "service a { hots b.test }\n"


def main():
    failed = 0
    for function in tests:
        with tempfile.TemporaryDirectory() as directory:
            try:
                function(Place(directory))
                print("ok " + function.__name__)
            except Exception as e:
                failed += 1
                print("not ok %s: %s: %s" % (function.__name__, type(e).__name__, e))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
