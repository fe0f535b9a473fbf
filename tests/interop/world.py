"""One exeat for all clients, the servers behind it, and what it takes to run a client in one of its ways (Told; Captured and Both in captured.py).

As root everything is at port 443, of loopback addresses of its own, so that it is also found by clients that are captured.
"""
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import registries  # noqa: E402
from agent_apis import Anthropic, Gemini, OpenAi  # noqa: E402
from helpers import SECRET, resident, small_place  # noqa: E402
from place import Listener, Report, Skip  # noqa: E402, F401
from programs_as_servers import GrpcServer, SvnServer  # noqa: E402
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
    operation every { GET PUT /** }
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
service grpc {
    host grpc.allowed.test
    port {grpc_port}
    range 127.0.0.0/8
    tls splice at most 16M
}
service svn {
    host svn.allowed.test
    port {svn_port}
    range 127.0.0.0/8
    operation every { * /** }
}
sandbox own {
    grant api all; grant elsewhere all; grant git all; grant registries all; grant grpc all; grant svn all
    grant anthropic messages; grant openai responses; grant gemini generate
}
sandbox shared { grant api all; grant elsewhere all; grant git all; grant registries all }
"""

# Those of the makers of agents: a service that exeat ships, its host, and what answers there.
AGENTS = {"anthropic": ("api.anthropic.com", Anthropic), "openai": ("api.openai.com", OpenAi),
          "gemini": ("generativelanguage.googleapis.com", Gemini)}
SECRETS = {"demo-key": (SECRET, "sk-demo-"), "git-key": (GIT_SECRET, None),
           **{name + "-key": ("%s-real-%s" % (name, SECRET), None) for name in AGENTS}}


def shipped(name, host):
    """A service as exeat ships it, but at a server of ours."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "policy", "services", name + ".policy")) as f:
        return re.sub(r"(host +%s\n)" % re.escape(host), r"\1    port {port}\n    range 127.0.0.0/8\n", f.read())


def own_address():
    """A loopback address that no other test has, and the port of https, if this user may have it; else any port."""
    address = "127.%d.%d.%d" % (random.randint(64, 127), random.randint(0, 255), random.randint(1, 254))
    try:
        with socket.create_server((address, 443)):
            return address, 443
    except OSError:
        return "127.0.0.1", 0


# What `exeat doctor` says to every listener of a machine, whoever runs it there.
DOCTOR = b"GET http://echo.exeat.internal/doctor "


class Trap:
    """Where nothing may arrive: an address outside that policy does not allow. met: who came nevertheless, and what they said first."""

    def __init__(self):
        self.address, port = own_address()
        self.met = []
        self.listener = Listener(self._serve, port, self.address)

    def _serve(self, connection):
        met = [connection.getpeername(), b""]
        self.met.append(met)
        connection.settimeout(2)
        try:
            met[1] = connection.recv(300)
        except OSError:
            pass
        if met[1].startswith(DOCTOR):
            self.met.remove(met)
        connection.close()


class World:
    def __init__(self):
        names = {name: name + ".registry.test" for name in registries.REGISTRIES}
        ours = ("api.allowed.test", "elsewhere.allowed.test", "git.allowed.test", *names.values())
        hosts = (*ours, *(host for host, _ in AGENTS.values()))
        self.address, port = own_address()
        self.grpc, self.svn = GrpcServer(*own_address()), SvnServer(*own_address())
        policy = POLICY % " ".join(names.values()) + "".join(shipped(name, host) for name, (host, _) in AGENTS.items())
        self.place = small_place(policy, {"own": "sandbox own", "shared": "shared shared"},
                                 sandboxes=(), hosts=hosts, values={"port": 0, "grpc_port": self.grpc.port, "svn_port": self.svn.port},
                                 config="".join("host %s %s\n" % (host, self.address) for host in hosts)
                                 + "".join("host %s %s\n" % (one.host, one.address) for one in (self.grpc, self.svn)),
                                 secrets=SECRETS)
        self.secrets = {name.upper().replace("-", "_"): value for name, (value, _) in SECRETS.items()}
        self.place.hosts = ()  # which would be at another address
        self.grpc.place = self.svn.place = self.place
        server, self.trap = Server(*self.place.ca.leaf("clients", list(hosts)), port, self.address), Trap()
        self.url = {host.split(".")[0]: "https://" + host + (":%d" % server.port if server.port != 443 else "") for host in ours}
        self.repositories = self.folder("repositories")
        self.api, self.elsewhere = Api(self.url["elsewhere"]), Elsewhere()
        self.git = GitCgi(self.repositories, GIT_SECRET)
        self.registry = {name: registries.Registry(make(self.url[name])) for name, make in registries.REGISTRIES.items()}
        self.agents = {name: make() for name, (_, make) in AGENTS.items()}
        server.handlers = {"api.allowed.test": self.api, "elsewhere.allowed.test": self.elsewhere, "git.allowed.test": self.git,
                           **{names[name]: registry for name, registry in self.registry.items()},
                           **{host: self.agents[name] for name, (host, _) in AGENTS.items()}}
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
        self.grpc.close()
        self.svn.close()
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
    """A folder of its own for one client. settings: what the client is told beyond its environment, by its user."""

    def __init__(self, way, name):
        self.way, self.work = way, way.folder("work-%s-%s" % (name, way.name))

    def attempt(self, *command, seconds=180, **how):
        """How it ended, whatever that is."""
        return subprocess.run(**self.words(command, **how), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds)

    def run(self, *command, **how):
        done = self.attempt(*command, **how)
        assert done.returncode == 0, "%s: %d: %s%s" % (command[0], done.returncode, done.stderr[-4000:], done.stdout[-4000:])
        return done

    def start(self, *command, **how):
        return subprocess.Popen(**self.words(command, **how), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def words(self, command, sandbox="own", **settings):
        """What subprocess takes to run it."""
        env = dict(self.way.world.environment[sandbox], HOME=self.work, LANG="C.UTF-8", **settings)
        return {"args": command, "env": {name: value for name, value in env.items() if value is not None}, "cwd": self.work}

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.work, name), "rb") as f:
            return f.read()

    def program(self, name):
        """A copy of it here, where its user can read it."""
        return shutil.copy(os.path.join(PROGRAMS, name), self.work)


class Told:
    """Clients with the environment that `exeat sandbox add` prints, in no namespace of their own."""

    name = "environment"

    def __init__(self, world):
        self.world, self.upstream_roots = world, world.place.ca.pem

    def close(self):
        pass

    def folder(self, name):
        return self.world.folder(name)

    def sandbox(self, name):
        return Sandbox(self, name)

    def bring(self, folder):
        """Where it is found inside."""
        return folder

    def key(self, variable, sandbox="own"):
        return self.world.environment[sandbox][variable]

    def refused(self, box, **facts):
        """Whether the trail has a refusal with these facts."""
        return any(r.get("verdict") == "deny" and facts.items() <= r.items() for r in self.world.place.records())


def need(program):
    """Its path: Debian's, if there is one."""
    found = shutil.which(program, path="/usr/bin:/usr/sbin") or shutil.which(program)
    if not found:
        raise Skip("there is no %s here" % program)
    return found


def python_with(module):
    """A Python that has the module, Debian's or this one; its path."""
    for python in ("/usr/bin/python3", sys.executable):
        if os.path.exists(python) and subprocess.run([python, "-c", "import " + module], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    raise Skip("there is no Python with %s here" % module)
