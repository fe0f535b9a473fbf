"""One exeat for all clients, the servers behind it, and what it takes to run a client in a sandbox's environment."""
import os
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import registries  # noqa: E402
from helpers import SECRET, resident, small_place  # noqa: E402
from place import Report, Skip  # noqa: E402, F401
from servers import Api, Elsewhere, GitCgi, Server  # noqa: E402

GIT_SECRET = "ghp-like-9aB8cD7eF6gH5iJ4kL3mN2oP1qR0"
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")

POLICY = """
service api {
    host api.allowed.test
    port {port}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation every { GET HEAD POST PUT /** }
    operation page anonymous { GET /page }
}
service elsewhere {
    host elsewhere.allowed.test
    port {port}
    range 127.0.0.0/8
    operation read { GET /** }
}
service git {
    host git.allowed.test
    port {port}
    range 127.0.0.0/8
    credential git-key { in basic password }
    operation clone { GET /*/info/refs; POST /*/git-upload-pack }
    operation push  { POST /*/git-receive-pack }
}
service registries {
    host %s
    port {port}
    range 127.0.0.0/8
    operation read { GET HEAD /** }
}
sandbox own { grant api all; grant elsewhere all; grant git all; grant registries all }
sandbox shared { grant api all; grant elsewhere all; grant git all; grant registries all }
"""


class World:
    def __init__(self):
        names = {name: name + ".registry.test" for name in registries.REGISTRIES}
        hosts = ("api.allowed.test", "elsewhere.allowed.test", "git.allowed.test", *names.values())
        self.place = small_place(POLICY % " ".join(names.values()), {"own": "sandbox own", "shared": "shared shared"},
                                 sandboxes=(), hosts=hosts, values={"port": 0},
                                 secrets={"demo-key": (SECRET, "sk-demo-"), "git-key": (GIT_SECRET, None)})
        server = Server(*self.place.ca.leaf("clients", list(hosts)))
        self.url = {host.split(".")[0]: "https://%s:%d" % (host, server.port) for host in hosts}
        self.repositories = self.folder("repositories")
        self.api, self.elsewhere = Api(self.url["elsewhere"]), Elsewhere()
        self.git = GitCgi(self.repositories, GIT_SECRET)
        self.registry = {name: registries.Registry(make(self.url[name])) for name, make in registries.REGISTRIES.items()}
        server.handlers = {"api.allowed.test": self.api, "elsewhere.allowed.test": self.elsewhere, "git.allowed.test": self.git,
                           **{names[name]: registry for name, registry in self.registry.items()}}
        self.place.values["port"] = server.port
        self.place.start()
        self.environment = {sandbox: self.print_environment(sandbox) for sandbox in ("own", "shared")}
        self.memory = Memory([pid for (_, lane), pid in self.place.pids().items() if lane in (0, 1)])

    def print_environment(self, sandbox):
        """What `exeat sandbox add` prints for a shell, taken by a shell that has nothing else."""
        printed = self.place.exeat("sandbox", "add", sandbox, "--format", "sh")
        out = subprocess.run(["sh", "-c", 'eval "$1"; env -0', "sh", printed], stdout=subprocess.PIPE, check=True,
                             env={"PATH": os.environ["PATH"]}).stdout
        return dict(item.split("=", 1) for item in out.decode().split("\0") if "=" in item)

    def folder(self, name):
        path = self.place.path(name)
        os.makedirs(path, exist_ok=True)
        return path

    def close(self):
        self.memory.stop()
        # Go's module cache is read-only.
        for top, folders, _ in os.walk(self.place.directory):
            for name in folders:
                if not os.path.islink(os.path.join(top, name)):
                    os.chmod(os.path.join(top, name), 0o755)
        self.place.__exit__()


class Memory:
    """Watches how much the processes of the lanes hold while the clients run."""

    def __init__(self, pids):
        self.before = {pid: resident(pid) for pid in pids}
        self.most, self.ended = dict(self.before), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self):
        while not self.ended.wait(0.1):
            for pid in self.most:
                self.most[pid] = max(self.most[pid], resident(pid))

    def stop(self):
        self.ended.set()
        self.thread.join()

    def growth(self):
        return max(self.most[pid] - self.before[pid] for pid in self.most)


class Sandbox:
    """A folder of its own and an environment for one client. settings: what the client is told beyond it, by its user."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.work = world.folder("work-" + name)

    def run(self, *command, sandbox="own", seconds=180, **settings):
        env = dict(self.world.environment[sandbox], HOME=self.work, LANG="C.UTF-8", **settings)
        env = {name: value for name, value in env.items() if value is not None}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds, cwd=self.work)
        assert done.returncode == 0, "%s: %d: %s%s" % (command[0], done.returncode, done.stdout[-4000:], done.stderr[-1200:])
        return done

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name), "rb") as f:
            return f.read()


def need(program):
    found = shutil.which(program)
    if not found:
        raise Skip("there is no %s here" % program)
    return found


def python_with(module):
    """A Python that has the module, this one or Debian's; its path."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import " + module], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    raise Skip("there is no Python with %s here" % module)
