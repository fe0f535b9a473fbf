"""
Clients in `exeat run`, as an ordinary user and with an exeatd of their own. Captured: with all of its variables unset, so that what is left
is that their connections and DNS are captured, and what is shown in place of the system's roots. Both: with its variables as well.
"""
import json
import os
import shutil
import subprocess
import tempfile
import threading

from world import Sandbox, Skip

ORDINARY = 65534
PYTHON = "/usr/bin/python3"

# Inside: nothing of the environment stays but what is said before "--", unless KEEP is said first; placeholders take the places of their
# variables' names in braces.
ENTER = """
import os, sys
keep = sys.argv[1] == "KEEP"
def fill(word):
    for name, value in os.environ.items():
        if name.endswith("_KEY"):
            word = word.replace("{%s}" % name, value)
    return word
words = [fill(word) for word in sys.argv[1 + keep:]]
cut = words.index("--")
env = dict(os.environ if keep else {}, **dict(word.split("=", 1) for word in words[:cut]))
os.environ["PATH"] = env["PATH"]
os.execvpe(words[cut + 1], words[cut + 1:], env)
"""


def link_or_copy(source, copy):
    try:
        os.link(source, copy)
    except OSError:
        shutil.copy2(source, copy)


class CapturedSandbox(Sandbox):
    def words(self, command, sandbox="own", **settings):
        env = dict(PATH=os.environ["PATH"], HOME=self.work, LANG="C.UTF-8", **settings)
        said = ["%s=%s" % pair for pair in env.items() if pair[1] is not None]
        user = self.way.user_of(command[0])
        if user:
            subprocess.run(["chown", "-R", "%d:%d" % (user, user), self.work], check=True)
        return {"args": [*self.way.launcher, "--sandbox", sandbox, "--log", os.path.join(self.work, "trail.jsonl"), "--",
                         PYTHON, "-c", ENTER, *self.way.keep, *said, "--", *command], "cwd": self.work,
                "env": {"PATH": os.environ["PATH"], "HOME": self.work, **self.way.world.secrets},
                **({"user": user, "group": user, "extra_groups": []} if user else {})}


class Captured:
    name, keep = "captured", ()

    def __init__(self, world):
        if world.address == "127.0.0.1":
            raise Skip("needs root, to serve at the port of https")
        self.world, self.visible = world, tempfile.mkdtemp(prefix="exeat-captured-", dir="/var/tmp")
        os.chmod(self.visible, 0o755)
        self.bringing = threading.Lock()
        for name in ("exeat", "exeatd"):
            shutil.copy(os.path.join(world.place.build, name), self.visible)
        self.upstream_roots = shutil.copy(world.place.ca.pem, os.path.join(self.visible, "upstream.pem"))
        self.launcher = [os.path.join(self.visible, "exeat"), "run", "--policy", self.write("policy", world.place.fill(world.place.policy_text)),
                         "--settings", self.write("settings", "trust file %s\n" % self.upstream_roots
                                                  + world.place.config_text)]

    def close(self):
        shutil.rmtree(self.visible, ignore_errors=True)

    def write(self, name, text):
        with open(os.path.join(self.visible, name), "w") as f:
            f.write(text)
        return f.name

    def folder(self, name):
        path = os.path.join(self.visible, name)
        os.makedirs(path, exist_ok=True)
        return path

    def sandbox(self, name):
        return CapturedSandbox(self, name)

    def bring(self, folder):
        """A copy of it, since there may be nothing inside of the place where it is."""
        copy = os.path.join(self.visible, "of-" + os.path.basename(folder))
        with self.bringing:
            if not os.path.exists(copy):
                shutil.copytree(folder, copy, symlinks=True, copy_function=link_or_copy)
        return copy

    def key(self, variable, sandbox="own"):
        """It is only known inside."""
        return "{%s}" % variable

    @staticmethod
    def user_of(program):
        """An ordinary one, unless only root can reach the program."""
        if os.getuid() != 0:
            return None
        found = shutil.which(program) or program
        reached = subprocess.run([PYTHON, "-c", "import os, sys; sys.exit(not os.access(sys.argv[1], os.X_OK))", found],
                                 user=ORDINARY, group=ORDINARY, extra_groups=[], cwd="/")
        return ORDINARY if reached.returncode == 0 else None

    def refused(self, box, **facts):
        with open(os.path.join(box.work, "trail.jsonl")) as f:
            records = [json.loads(line) for line in f]
        return any(r.get("verdict") == "deny" and facts.items() <= r.items() for r in records)


class Both(Captured):
    """What `exeat run` is without any ado. It shares the folder of one that is captured."""

    name, keep = "both", ("KEEP",)

    def __init__(self, captured):
        self.__dict__.update(captured.__dict__)

    def close(self):
        pass
