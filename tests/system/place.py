"""A whole exeat in a temporary directory: daemon, CA, vault, policy, scripted upstream and resolver.

Everything is on loopback and is gone when the `with` block ends. Nothing of the machine is touched.
"""
import base64
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("EXEAT_BUILD", os.path.join(ROOT, "build"))

# As root each role gets a uid of its own; any range that no user of the machine has.
UIDS = "uids 61800 - 61999\n"


def free_port():
    """A port that was free a moment ago, below those that outgoing connections get."""
    while True:
        port = random.randint(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def wait_for(what, seconds=10.0, step=0.01):
    """Waits for a condition, not for a time; what it gave, or None."""
    end = time.monotonic() + seconds
    while True:
        got = what()
        if got or time.monotonic() > end:
            return got
        time.sleep(step)


def openssl(directory, *args):
    subprocess.run(["openssl", *args], cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class UpstreamCa:
    """A throw-away CA for upstreams, and leaves for any names."""

    def __init__(self, directory):
        self.directory = directory
        openssl(directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                "up-ca.key", "-out", "up-ca.pem", "-days", "2", "-subj", "/CN=upstream test CA", "-addext",
                "keyUsage=critical,keyCertSign,cRLSign")

    @property
    def pem(self):
        return os.path.join(self.directory, "up-ca.pem")

    def leaf(self, name, hosts, days=2, extra=""):
        """Paths of certificate and key; hosts are DNS names or IP addresses."""
        names = ",".join(("IP:" if h.replace(".", "").isdigit() or ":" in h else "DNS:") + h for h in hosts)
        with open(os.path.join(self.directory, name + ".ext"), "w") as f:
            f.write("subjectAltName=%s\nextendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n%s" % (names, extra))
        openssl(self.directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        command = ["x509", "-req", "-in", name + ".csr", "-CA", "up-ca.pem", "-CAkey", "up-ca.key", "-CAcreateserial",
                   "-sha256", "-extfile", name + ".ext", "-out", name + ".pem"]
        try:
            openssl(self.directory, *command, "-days", str(days))
        except subprocess.CalledProcessError:
            # OpenSSL 3.5 takes no negative number of days, but dates.
            openssl(self.directory, *command, "-not_before", "20200101000000Z", "-not_after", "20200102000000Z")
        return os.path.join(self.directory, name + ".pem"), os.path.join(self.directory, name + ".key")


OK_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def read_message(stream, data=b""):
    """One HTTP message from stream: (bytes, rest). None when the peer ended before a whole head."""
    while b"\r\n\r\n" not in data:
        more = stream.recv(65536)
        if not more:
            return (None, data)
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    fields = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    message = head + b"\r\n\r\n"
    if fields.get(b"transfer-encoding") == b"chunked":
        while True:
            while b"\r\n" not in rest:
                rest += stream.recv(65536) or b"\r\n"
            size = int(rest.split(b"\r\n", 1)[0].split(b";")[0] or b"0", 16)
            need = rest.index(b"\r\n") + 2 + size + 2
            while len(rest) < need:
                more = stream.recv(65536)
                if not more:
                    return (None, message + rest)
                rest += more
            message, rest = message + rest[:need], rest[need:]
            if size == 0:
                return (message, rest)
    need = int(fields.get(b"content-length", b"0"))
    while len(rest) < need:
        more = stream.recv(65536)
        if not more:
            return (None, message + rest)
        rest += more
    return (message + rest[:need], rest[need:])


class Listener:
    """A TCP port on loopback, each of whose connections `serve` is given in a thread of its own."""

    def __init__(self, serve, port=0, host="127.0.0.1", **how):
        self.serve = serve
        self.socket = socket.create_server((host, port), backlog=256, **how)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        # A thread that waits in accept is not ended by close alone.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Upstream:
    """A server that records exactly what reached it and answers as it is told.

    `script(request, stream)` gets each whole request and returns the bytes to answer, or None when
    it has written to the stream itself and wants the connection closed.
    """

    def __init__(self, cert=None, key=None, port=None, context=None):
        self.requests, self.broken, self.connections = [], [], 0
        self.script = lambda request, stream: OK_ANSWER
        self.lock = threading.Lock()
        self.context = context
        self.open = lambda raw: self.context.wrap_socket(raw, server_side=True) if self.context else raw
        if cert and not context:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(cert, key)
            self.context.set_alpn_protocols(["http/1.1"])
        self.listener = Listener(self._serve, port or 0)
        self.port = self.listener.port

    def listen_everywhere(self):
        """On every address of both families instead, at the same port."""
        self.listener.close()
        self.listener = Listener(self._serve, self.port, "::", family=socket.AF_INET6, dualstack_ipv6=True)

    def _serve(self, raw):
        with self.lock:
            self.connections += 1
        raw.settimeout(30)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream, rest = raw, b""
        try:
            stream = self.open(raw)
            while True:
                request, rest = read_message(stream, rest)
                if request is None:
                    if rest:
                        with self.lock:
                            self.broken.append(rest)
                    break
                with self.lock:
                    self.requests.append(request)
                answer = self.script(request, stream)
                if answer is None:
                    break
                stream.sendall(answer)
        except OSError:
            pass
        finally:
            try:
                stream.close()
            except OSError:
                pass

    def forget(self):
        with self.lock:
            self.requests.clear()
            self.broken.clear()
            self.connections = 0

    def close(self):
        self.listener.close()


class Resolver:
    """A DNS server on loopback that counts what it is asked. answers: name to list of addresses."""

    def __init__(self, answers, port=0):
        self.answers, self.asked = answers, []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                query, peer = self.socket.recvfrom(4096)
            except OSError:
                return
            self.take(query, lambda data, peer=peer: self.socket.sendto(data, peer))

    @staticmethod
    def question(query):
        """(name, type's two bytes, where the question ends)."""
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
            at += 1 + query[at]
        return ".".join(labels), query[at + 1:at + 3], at + 5

    def take(self, query, send):
        name, kind, end = self.question(query)
        self.asked.append((name.lower(), int.from_bytes(kind, "big")))
        reply = self.reply(query, name.lower(), kind, end)
        if reply:
            send(reply)

    def reply(self, query, name, kind, end):
        """The bytes to answer, or None for silence; end: of the question."""
        return self.write(query, kind, end, self.answers.get(name))

    def write(self, query, kind, end, addresses):
        """addresses: None when there is no such name."""
        family = {b"\x00\x01": socket.AF_INET, b"\x00\x1c": socket.AF_INET6}.get(kind)
        found = [a for a in addresses or () if family and (":" in a) == (family == socket.AF_INET6)]
        code = 0x8183 if addresses is None else 0x8180
        reply = query[:2] + code.to_bytes(2, "big") + b"\0\1" + len(found).to_bytes(2, "big") + b"\0\0\0\0" + query[12:end]
        for address in found:
            data = socket.inet_pton(family, address)
            reply += b"\xc0\x0c" + kind + b"\0\1\0\0\0\0" + len(data).to_bytes(2, "big") + data
        return reply

    def close(self):
        self.socket.close()


class Refused(AssertionError):
    """A CONNECT that was not answered 200; data: what was answered."""

    def __init__(self, authority, data):
        super().__init__("CONNECT %s: %r" % (authority, data))
        self.data = data


class Place:
    """
    policy, config: texts, in which {name} is replaced from `values` (ports, paths).
    secrets: {name: (value, like)}; sandboxes: names to add, in order. hosts: what the upstream's
    certificate names; they have addresses in the configuration, unless `dns` (name to addresses) gives
    the daemon a resolver that writes down what it is asked. user: the uid that daemon and commands
    run as (root only), with copies of the programs, which that user can surely read.
    """

    def __init__(self, policy, listeners, secrets=None, sandboxes=(), config="", values=None, build=None, misbehave=None,
                 hosts=("api.allowed.test",), dns=None, user=None):
        self.build, self.user = build or BUILD, user
        self.directory = tempfile.mkdtemp(prefix="exeat-test-")
        os.chmod(self.directory, 0o755)
        self.as_user = {"user": user, "group": user, "extra_groups": []} if user else {}
        if user:
            shutil.copy(os.path.join(self.build, "exeatd"), self.directory)
            self.build = os.path.dirname(shutil.copy(os.path.join(self.build, "exeat"), self.directory))
        self.values = dict(values or {})
        self.policy_text, self.listeners, self.config_text = policy, listeners, config
        self.secrets, self.names, self.misbehave, self.hosts = secrets or {}, sandboxes, misbehave, hosts
        self.reload = "unconfirmed"
        self.daemon = None
        self.sandboxes, self.ports = {}, {}
        self.ca = UpstreamCa(self.directory)
        self.upstream = Upstream(*self.ca.leaf("upstream", list(hosts)))
        self.values.setdefault("port", self.upstream.port)
        self.resolver = Resolver(dns) if dns is not None else None
        self.context = None
        self.prefix = []  # a command that starts exeatd, with its arguments
        self.scene = None  # of cases: what surrounds the daemon (case_scene.py)

    # ---- files ----

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def fill(self, text):
        for name, value in self.values.items():
            text = text.replace("{%s}" % name, str(value))
        return text

    def write_policy(self, text):
        self.write("policy.exeat", self.fill(text))

    def configure(self):
        lines = ["state state\n", "policy policy.exeat\n", "control control.sock\n", "vault key state/vault.key\n",
                 "trust file %s\n" % self.ca.pem, "reload %s\n" % self.reload]
        for name, what in self.listeners.items():
            if name.startswith("unix"):
                lines.append("listen unix %s { %s }\n" % (self.path(name + ".sock"), what))
                continue
            self.ports.setdefault(name, free_port())
            lines.append("listen tcp 127.0.0.1:%d { %s }\n" % (self.ports[name], what))
        if self.resolver:
            lines.append("resolver 127.0.0.1:%d\n" % self.resolver.port)
        else:
            lines += ["host %s 127.0.0.1\n" % h for h in self.hosts if not h.replace(".", "").isdigit()]
        if os.getuid() == 0 and not self.user:
            lines.append(UIDS)
        self.write("exeat.conf", "".join(lines) + self.fill(self.config_text))
        self.write_policy(self.policy_text)

    # ---- the daemon ----

    def exeat(self, *args, stdin=None, check=True):
        """Runs the operator's command; its standard output."""
        done = subprocess.run([os.path.join(self.build, "exeat"), "--config", self.path("exeat.conf"), *args],
                              input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **self.as_user)
        if check and done.returncode != 0:
            raise AssertionError("exeat %s: %d: %s" % (" ".join(args), done.returncode, done.stderr.decode()))
        self.last = done
        return done.stdout.decode()

    def log(self):
        with open(self.path("exeatd.log"), errors="replace") as f:
            return f.read()

    def launch(self):
        self.log_file = open(self.path("exeatd.log"), "ab")
        command = self.prefix + [os.path.join(self.build, "exeatd"), "--config", self.path("exeat.conf")]
        if self.misbehave:
            command += ["--misbehave", self.misbehave]
        self.daemon = subprocess.Popen(command, stdout=self.log_file, stderr=self.log_file, stdin=subprocess.DEVNULL,
                                       **self.as_user)
        before = self.log().count("parent: info: ready")
        wait_for(lambda: self.daemon.poll() is not None or self.log().count("parent: info: ready") > before, 30)
        if self.daemon.poll() is not None or self.log().count("parent: info: ready") <= before:
            raise AssertionError("exeatd does not come up:\n" + self.log())

    def start(self):
        self.configure()
        os.makedirs(self.path("state"), exist_ok=True)
        os.chmod(self.path("state"), 0o755)
        if self.user:
            os.chown(self.directory, self.user, self.user)
            os.chown(self.path("state"), self.user, self.user)
        self.exeat("ca", "init")
        self.exeat("vault", "init")
        self.launch()
        for name, (value, like) in self.secrets.items():
            self.exeat("secret", "add", name, *(["--like", like] if like else []), stdin=value.encode())
        for name in self.names:
            self.add_sandbox(name)
        return self

    def add_sandbox(self, name):
        self.sandboxes[name] = json.loads(self.exeat("sandbox", "add", name, "--format", "json"))
        return self.sandboxes[name]

    def placeholder(self, sandbox, credential):
        return self.sandboxes[sandbox]["credentials"][credential]

    def token(self, sandbox):
        """What it shows at a shared listener: in its environment the proxy is http://NAME:TOKEN@HOST:PORT."""
        return self.sandboxes[sandbox]["variables"]["https_proxy"].partition("@")[0].rpartition(":")[2]

    def identity(self, sandbox):
        """The field that shows it."""
        return b"Proxy-Authorization: %s\r\n" % basic(sandbox, self.token(sandbox))

    def pids(self):
        """(role, lane) to pid of every process of the daemon that is there, by its status."""
        status = json.loads(self.exeat("status", "--json", check=False) or '{"processes":[]}')
        return {(p["role"], p.get("lane", 0)): p["pid"] for p in status["processes"] if p.get("pid", 0) > 1}

    def stop(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
            try:
                self.daemon.wait(25)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()

    def complain(self):
        """A sanitizer's finding is a failure, although the process that had it was started again."""
        found = re.search(r"ERROR: \w+Sanitizer.*|.*: runtime error: .*", self.log() if self.daemon else "")
        if found:
            print("not ok no sanitizer complains: " + found.group(0), flush=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *ignored):
        self.stop()
        self.complain()
        self.upstream.close()
        if self.resolver:
            self.resolver.close()
        if os.environ.get("EXEAT_KEEP"):
            print("kept: " + self.directory, file=sys.stderr)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---- the audit trail ----

    def _trail(self):
        audit = self.path("state", "audit")
        return [os.path.join(audit, name) for name in sorted(os.listdir(audit))
                if name.startswith("audit") and ".jsonl" in name]

    def records(self):
        """All records of the audit log, oldest first. Audit gathers them for some milliseconds: once no more come."""
        sizes, end = None, time.monotonic() + 1
        while sizes != (sizes := [os.stat(f).st_size for f in self._trail()]) and time.monotonic() < end:
            time.sleep(0.02)
        found = []
        for name in self._trail():
            with open(name) as f:
                for line in f:
                    if line.endswith("\n"):
                        found.append(json.loads(line))
        return sorted(found, key=lambda r: r.get("seq", 0))

    def record(self, record_id, kind="decision", seconds=5):
        return wait_for(lambda: next((r for r in self.records() if r.get("id") == record_id and r["kind"] == kind), None),
                        seconds, 0.05)

    # ---- clients ----

    def connect(self, listener):
        if listener.startswith("unix"):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(15)
            s.connect(self.path(listener + ".sock"))
            return s
        s = socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=15)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def tunnel(self, listener, authority, fields=b""):
        """A CONNECT that is expected to be answered 200; the socket behind it."""
        s = self.connect(listener)
        s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (authority.encode(), authority.encode(), fields))
        head, rest = read_head(s)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Refused(authority, head + rest + read_all(s))
        return s

    def client_context(self):
        """What a client of a sandbox uses: it trusts our CA and nobody else. Made once."""
        if not self.context:
            self.context = ssl.create_default_context(cafile=self.path("state", "public", "ca.pem"))
            self.context.set_alpn_protocols(["http/1.1"])
        return self.context

    def tls(self, listener, authority, sni=None, context=None, fields=b""):
        host = authority.rsplit(":", 1)[0]
        return (context or self.client_context()).wrap_socket(self.tunnel(listener, authority, fields),
                                                              server_hostname=sni or host)


def basic(name, password):
    return b"Basic " + base64.b64encode(("%s:%s" % (name, password)).encode())


def read_head(stream, data=b""):
    """(head with its blank line, rest)."""
    while b"\r\n\r\n" not in data:
        more = stream.recv(65536)
        if not more:
            return data, b""
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    return head + b"\r\n\r\n", rest


def read_all(stream):
    """Everything until the peer's end, or a cut."""
    data = b""
    while True:
        try:
            more = stream.recv(65536)
        except (OSError, ssl.SSLError):
            return data
        if not more:
            return data
        data += more


class Skip(Exception):
    """What a test needs is not there; its text says what."""


def need_root(to_do):
    if os.getuid() != 0:
        raise Skip("needs root, to " + to_do)


class Report:
    """
    Runs tests and prints what run.py counts. A test is a function whose name is a sentence, of a subject. EXEAT_CASE=TEXT
    chooses those that have TEXT in the name of their function.
    """

    def __init__(self):
        self.failed, self.chosen = 0, os.environ.get("EXEAT_CASE", "")

    def ok(self, name):
        print("ok " + name, flush=True)

    def bad(self, name, why):
        self.failed += 1
        print("not ok %s: %s" % (name, str(why).replace("\n", " | ")[:1500]), flush=True)

    def skip(self, name, why):
        print("skip %s: %s" % (name, why), flush=True)

    def run(self, function, subject, where=None):
        """where: in which of several worlds."""
        name = function.__name__.replace("_", " ") + (" (%s)" % where if where else "")
        try:
            function(subject)
        except Skip as why:
            self.skip(name, why)
        except AssertionError as failure:
            self.bad(name, failure if str(failure) else "line %d: an assertion" % traceback.extract_tb(failure.__traceback__)[-1].lineno)
        except Exception as failure:  # a broken test is a failing test
            self.bad(name, "%s: %s" % (type(failure).__name__, failure))
        else:
            self.ok(name)

    def run_all(self, tests, subject=None, where=None):
        """Those that are chosen."""
        for test in tests:
            if self.chosen in test.__name__:
                self.run(test, subject, where)

    def run_in(self, make, tests, where=None):
        """The same of what `make` makes, a place or another context, when one is chosen."""
        if any(self.chosen in test.__name__ for test in tests):
            with make() as subject:
                self.run_all(tests, subject, where)

    def end(self):
        sys.exit(1 if self.failed else 0)


def run_all(tests, place):
    report = Report()
    report.run_all(tests, place)
    return report
