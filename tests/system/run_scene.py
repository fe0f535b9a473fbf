"""A sandbox of `exeat run` for tests: what it is given, what is seen of it from outside, and in which worlds it is tried."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

from helpers import HOSTS, POLICY, SECRET
from place import Place, Report

ORDINARY = 65534
PYTHON = "/usr/bin/python3"

# Says of each address what a connection to it ends with, and after how many milliseconds.
CONNECT = """
import socket, sys, time
for word in sys.argv[1:]:
    kind, host, port = word.rsplit('/', 2)
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM if kind == 'udp' else socket.SOCK_STREAM)
    s.settimeout(2)
    begin = time.monotonic()
    try:
        s.connect((host, int(port)))
        s.send(b'x')
        s.recv(1)
        end = 'open'
    except OSError as e:
        end = type(e).__name__
    print(word, end, int(1000 * (time.monotonic() - begin)))
"""


class Scene:
    """An upstream, a policy and what `exeat run` takes; the files are where the sandbox sees them."""

    def __init__(self, user):
        self.place = Place(POLICY, {}, hosts=HOSTS, user=user)
        self.user = user
        self.visible = tempfile.mkdtemp(prefix="exeat-run-test-", dir="/var/tmp")
        if user:
            os.chown(self.visible, user, user)
        self.home = self.file("home")
        self.make(self.home)
        self.policy = self.write("policy", self.place.fill(POLICY))
        self.settings = self.write("settings", "trust file %s\n" % self.place.ca.pem + "".join(
            "host %s 127.0.0.1\n" % h for h in HOSTS))

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.place.__exit__()
        shutil.rmtree(self.visible, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.visible, name)

    def own(self, path):
        if self.user:
            os.chown(path, self.user, self.user)
        return path

    def make(self, path):
        os.mkdir(path)
        return self.own(path)

    def write(self, name, text):
        with open(self.file(name), "w") as f:
            f.write(text)
        return self.own(self.file(name))

    @property
    def exeat(self):
        return os.path.join(self.place.build, "exeat")

    def words(self, command, options=(), sandbox="a"):
        return [self.exeat, "run", "--policy", self.policy, "--settings", self.settings, "--sandbox", sandbox, *options, "--",
                *command]

    def how(self, env=None):
        base = {"PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "LANG": "C.UTF-8",
                "DEMO_KEY": SECRET}
        return {"env": {**base, **(env or {})}, "cwd": "/", **self.place.as_user}

    def raw(self, words, env=None, stdin=b"", **more):
        return subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **self.how(env), **more)

    def run(self, *command, options=(), env=None, stdin=b"", **more):
        return self.raw(self.words(command, options), env, stdin, **more)

    def output(self, *command, **how):
        done = self.run(*command, **how)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    @contextlib.contextmanager
    def going(self, script, **how):
        """A sandbox with a shell script that has said "go", and is ended."""
        process = subprocess.Popen(self.words(["sh", "-c", script]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **self.how(**how))
        try:
            line = process.stdout.readline()
            assert line == b"go\n", (line, process.stderr.read() if process.poll() is not None else "")
            yield process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def init_of(process):
    """The first process of a sandbox: the child of the launcher that is no exeatd."""
    def is_exeatd(pid):
        with open("/proc/%d/comm" % pid) as f:
            return f.read() == "exeatd\n"
    return next(pid for pid in children(process.pid) if not is_exeatd(pid))


def directory_of(process):
    """Where the exeatd of its own keeps what it has."""
    daemon = next(pid for pid in children(process.pid) if pid != init_of(process))
    with open("/proc/%d/cmdline" % daemon) as f:
        return os.path.dirname(f.read().split("\0")[2])


def ends(text):
    """What CONNECT printed: word to (end, milliseconds)."""
    return {w: (end, int(ms)) for w, end, ms in (line.split() for line in text.splitlines())}


def refusal(user):
    """Why namespaces cannot be made here, as in a container that forbids them; None when they can."""
    done = subprocess.run(["unshare", "-Urnmpf", "--mount-proc", "true"], stderr=subprocess.PIPE, text=True,
                          **({"user": user, "group": user, "extra_groups": []} if user else {}))
    return done.stderr.strip() if done.returncode else None


def try_all(functions, attached=None):
    """
    Those of the functions that take a `scene`, as root and as an ordinary user; and those that take an `attached` in
    what `attached` makes.
    """
    # A shell cannot trap what was ignored when it began, as under nohup and in the background.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    tests, attaching = ([f for f in functions if getattr(f, "__code__", None) and f.__code__.co_argcount == 1
                         and f.__code__.co_varnames[0] == subject] for subject in ("scene", "attached"))
    report = Report()
    if not os.path.exists(PYTHON):
        raise SystemExit("the sandbox needs a %s" % PYTHON)
    worlds = [(None, "as root" if os.getuid() == 0 else "as this user")] + [(ORDINARY, "as an ordinary user")] * (os.getuid() == 0)
    for user, where in worlds:
        why = refusal(user)
        if why:
            report.skip("a command is run in a sandbox (%s)" % where, why)
            continue
        report.run_in(lambda: Scene(user), tests, where)
        if user and attached:
            report.run_in(attached, attaching)
    report.end()
