"""Ordinary clients, unmodified, with nothing but the environment that `exeat sandbox add` prints."""
import base64
import hashlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

from helpers import SECRET, Answer, ask, resident, small_place
from place import Report, read_all

GIT_SECRET = "ghp-like-9aB8cD7eF6gH5iJ4kL3mN2oP1qR0"
BIG = 100 << 20
PIECE = bytes(range(256)) * 256  # 64 KiB

POLICY = """
service api {
    host api.allowed.test
    port {port}
    range 127.0.0.0/8
    credential demo-key { in header authorization scheme bearer }
    operation every { GET HEAD POST PUT DELETE PATCH /; GET HEAD POST PUT DELETE PATCH /** }
}
service git {
    host git.allowed.test
    port {git_port}
    range 127.0.0.0/8
    credential git-key { in basic password }
    operation clone { GET /*/info/refs; POST /*/git-upload-pack }
    operation push  { POST /*/git-receive-pack }
}
sandbox a { grant api every; grant git all }
sandbox b { grant api every }
sandbox u { grant api every }
"""


# ---- upstreams ----

class Receiver:
    """Reads the body of one request from a stream, whatever its framing; feeds it to a function."""

    def __init__(self, stream, fields, rest):
        self.stream, self.fields, self.rest = stream, fields, rest

    def _more(self):
        data = self.stream.recv(1 << 18)
        if not data:
            raise OSError("the request was cut")
        self.rest += data

    def _line(self):
        while b"\r\n" not in self.rest:
            self._more()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line

    def _exactly(self, size, feed):
        while size > 0:
            if not self.rest:
                self._more()
            piece, self.rest = self.rest[:size], self.rest[size:]
            feed(piece)
            size -= len(piece)

    def read(self, feed):
        if self.fields.get("transfer-encoding") != "chunked":
            self._exactly(int(self.fields.get("content-length", "0")), feed)
            return
        while True:
            size = int(self._line(), 16)
            self._exactly(size, feed)
            self._line()
            if size == 0:
                return


class Server:
    """A TLS server with a handler for each request: handler(line, fields, receiver, stream)."""

    def __init__(self, cert, key, handler):
        self.handler, self.context = handler, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                raw, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw):
        try:
            raw.settimeout(60)
            stream = self.context.wrap_socket(raw, server_side=True)
            rest = b""
            while True:
                while b"\r\n\r\n" not in rest:
                    data = stream.recv(65536)
                    if not data:
                        return
                    rest += data
                top, rest = rest.split(b"\r\n\r\n", 1)
                line, *lines = top.decode("latin-1").split("\r\n")
                fields = {l.partition(":")[0].lower(): l.partition(":")[2].strip() for l in lines}
                receiver = Receiver(stream, fields, rest)
                self.handler(line, fields, receiver, stream)
                rest = receiver.rest
        except OSError:
            pass
        finally:
            raw.close()


class Api:
    """GET /big gives 100 MiB; other GETs tell method and Authorization; uploads are summed up."""

    def __init__(self):
        self.seen = []

    def __call__(self, line, fields, receiver, stream):
        method, path, _ = line.split(" ")
        self.seen.append((method, path, fields.get("authorization")))
        if path == "/big":
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
            for _ in range(BIG // len(PIECE)):
                stream.sendall(PIECE)
            return
        summed, size = hashlib.sha256(), [0]

        def feed(piece):
            summed.update(piece)
            size[0] += len(piece)
        receiver.read(feed)
        body = json.dumps({"method": method, "path": path, "size": size[0], "sha256": summed.hexdigest(),
                           "authorization": fields.get("authorization")}).encode()
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            len(body), b"" if method == "HEAD" else body))


class GitCgi:
    """`git http-backend` behind TLS, which wants the real password."""

    def __init__(self, root):
        self.root, self.served = root, []

    def __call__(self, line, fields, receiver, stream):
        method, target, _ = line.split(" ")
        path, _, query = target.partition("?")
        body = []
        receiver.read(body.append)
        wanted = "Basic " + base64.b64encode(("x:" + GIT_SECRET).encode()).decode()
        if fields.get("authorization") != wanted:
            stream.sendall(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=git\r\nContent-Length: 0\r\n\r\n")
            return
        self.served.append((method, target))
        data = b"".join(body)
        env = {"GIT_PROJECT_ROOT": self.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
               "REQUEST_METHOD": method, "CONTENT_TYPE": fields.get("content-type", ""), "REMOTE_USER": "x",
               "REMOTE_ADDR": "127.0.0.1", "CONTENT_LENGTH": str(len(data)), "PATH": os.environ["PATH"],
               "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""), "HOME": self.root,
               "GIT_PROTOCOL": fields.get("git-protocol", "")}
        done = subprocess.run(["git", "http-backend"], input=data, stdout=subprocess.PIPE, env=env, check=False)
        top, _, answer = done.stdout.partition(b"\r\n\r\n")
        status, lines = b"200 OK", []
        for l in top.split(b"\r\n"):
            if l.lower().startswith(b"status:"):
                status = l.split(b":", 1)[1].strip()
            else:
                lines.append(l)
        stream.sendall(b"HTTP/1.1 %s\r\n%s\r\nContent-Length: %d\r\n\r\n%s" % (status, b"\r\n".join(lines), len(answer), answer))


# ---- the world ----

class World:
    def __init__(self):
        hosts = ("api.allowed.test", "git.allowed.test")
        self.place = small_place(
            POLICY, {"a": "sandbox a", "b": "shared b", "unix": "sandbox u"}, sandboxes=("u",), hosts=hosts,
            secrets={"demo-key": (SECRET, "sk-demo-"), "git-key": (GIT_SECRET, None)}, values={"port": 0, "git_port": 0})
        cert = self.place.ca.leaf("clients", list(hosts))
        self.root = os.path.join(self.place.directory, "repositories")
        os.mkdir(self.root)
        self.api, self.cgi = Api(), GitCgi(self.root)
        self.api_server, self.git_server = Server(*cert, self.api), Server(*cert, self.cgi)
        self.place.values.update(port=self.api_server.port, git_port=self.git_server.port)
        self.place.start()
        self.url = "https://api.allowed.test:%d" % self.api_server.port
        self.environments = {}
        self.work = tempfile.mkdtemp(dir=self.place.directory)
        self.env = self.environment("a")
        self.key = self.env["DEMO_KEY"]

    def environment(self, sandbox):
        """What `exeat sandbox add` prints for a shell, taken by a shell; once for each sandbox."""
        if sandbox not in self.environments:
            printed = self.place.exeat("sandbox", "add", sandbox, "--format", "sh")
            out = subprocess.run(["sh", "-c", 'eval "$1"; env -0', "sh", printed], stdout=subprocess.PIPE, check=True,
                                 env={"PATH": os.environ["PATH"], "HOME": self.work}).stdout
            self.environments[sandbox] = dict(item.split("=", 1) for item in out.decode().split("\0") if "=" in item)
        return self.environments[sandbox]

    def close(self):
        self.place.__exit__()


def run(world, *command, env=None, stdin=None, seconds=120):
    done = subprocess.run(command, env=env or world.env, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds, cwd=world.work)
    world.last = done
    assert done.returncode == 0, "%s: %d: %s%s" % (command[0], done.returncode, done.stdout[-400:], done.stderr[-800:])
    return done.stdout


class Skip(Exception):
    pass


def need(program):
    if not shutil.which(program):
        raise Skip("there is no %s here" % program)


def told(data):
    answer = json.loads(data)
    assert answer["authorization"] in (None, "Bearer " + "*" * len(SECRET)), answer
    return answer


# ---- curl ----

def curl_gets_with_the_placeholder(world):
    need("curl")
    answer = told(run(world, "curl", "-sS", "--fail", "-H", "Authorization: Bearer " + world.key, world.url + "/v1/x"))
    assert answer["path"] == "/v1/x" and world.api.seen[-1][2] == "Bearer " + SECRET


def curl_is_told_why_it_is_refused(world):
    need("curl")
    out = run(world, "curl", "-sS", "-o", "-", "-w", "%{http_code}", world.url + "/v1/x")
    assert b"credential_missing" in out and out.endswith(b"403"), out
    done = subprocess.run(["curl", "-sS", "-v", "https://evil.test/"], env=world.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 56 and b"host_not_allowed" in done.stderr, done


def curl_heads(world):
    need("curl")
    out = run(world, "curl", "-sS", "-I", "-H", "Authorization: Bearer " + world.key, world.url + "/v1/x")
    assert out.startswith(b"HTTP/1.1 200"), out


def curl_uploads_with_expect(world):
    need("curl")
    path = os.path.join(world.work, "upload")
    with open(path, "wb") as f:
        f.write(PIECE * 40)
    for extra in ([], ["-H", "Expect: 100-continue"], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect:"]):
        answer = told(run(world, "curl", "-sS", "--fail", "-T", path, *extra, "-H", "Authorization: Bearer " + world.key,
                          world.url + "/v1/up"))
        assert answer["sha256"] == hashlib.sha256(PIECE * 40).hexdigest(), (extra, answer)


def curl_uses_a_connection_again(world):
    need("curl")
    out = run(world, "curl", "-sS", "--fail", "-v", "-H", "Authorization: Bearer " + world.key,
              *[world.url + "/v1/%d" % i for i in range(5)])
    assert out.count(b'"path"') == 5
    # curl 8 says which kind of connection it is in between.
    assert re.search(rb"Re-using existing [a-z: ]*connection", world.last.stderr), world.last.stderr[-500:]


def curl_moves_100_mb_both_ways_and_no_process_grows(world):
    need("curl")
    path = os.path.join(world.work, "big")
    with open(path, "wb") as f:
        for _ in range(BIG // len(PIECE)):
            f.write(PIECE)
    pids = [pid for (_, lane), pid in world.place.pids().items() if lane in (0, 1)]
    before, most, stop = {p: resident(p) for p in pids}, {}, threading.Event()

    def watch():
        while not stop.is_set():
            for p in pids:
                most[p] = max(most.get(p, 0), resident(p))
            stop.wait(0.05)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        answer = told(run(world, "curl", "-sS", "--fail", "-T", path, "-H", "Authorization: Bearer " + world.key,
                          world.url + "/v1/up"))
        summed = hashlib.sha256()
        with open(path, "rb") as f:
            while piece := f.read(1 << 20):
                summed.update(piece)
        assert answer["size"] == BIG and answer["sha256"] == summed.hexdigest()
        run(world, "curl", "-sS", "--fail", "-o", path, "-H", "Authorization: Bearer " + world.key, world.url + "/big")
        assert os.path.getsize(path) == BIG
    finally:
        stop.set()
        watcher.join()
        os.unlink(path)
    # A sanitizer keeps what was freed.
    room = (512 if "address" in world.place.build else 12) << 20
    for p in pids:
        assert most[p] - before[p] < room, "process %d grew from %d to %d" % (p, before[p], most[p])


# ---- git ----

def git_environment(world):
    return dict(world.env, GIT_TERMINAL_PROMPT="0", GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@example.com",
               GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@example.com", GIT_CONFIG_NOSYSTEM="1")


def git_clones_and_pushes_with_a_placeholder_as_password(world):
    need("git")
    env = git_environment(world)
    bare = os.path.join(world.root, "r.git")
    run(world, "git", "init", "-q", "--bare", bare, env=env)
    run(world, "git", "-C", bare, "config", "http.receivepack", "true", env=env)
    url = "https://x:%s@git.allowed.test:%d/r.git" % (world.env["GIT_KEY"], world.git_server.port)
    run(world, "git", "clone", "-q", url, "one", env=env)
    one = os.path.join(world.work, "one")
    with open(os.path.join(one, "big"), "wb") as f:
        f.write(os.urandom(3 << 20))  # more than git's post buffer: chunked
    run(world, "git", "-C", one, "add", "big", env=env)
    run(world, "git", "-C", one, "commit", "-q", "-m", "one", env=env)
    run(world, "git", "-C", one, "push", "-q", "origin", "HEAD:main", env=env)
    run(world, "git", "clone", "-q", "-b", "main", url, "two", env=env)
    with open(os.path.join(one, "big"), "rb") as a, open(os.path.join(world.work, "two", "big"), "rb") as b:
        assert a.read() == b.read()
    assert ("POST", "/r.git/git-receive-pack") in world.cgi.served


def git_with_a_foreign_password_is_refused(world):
    need("git")
    url = "https://x:ghp_attackersOwn@git.allowed.test:%d/r.git" % world.git_server.port
    before = len(world.cgi.served)
    done = subprocess.run(["git", "ls-remote", url], env=git_environment(world), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=world.work)
    assert done.returncode != 0 and len(world.cgi.served) == before, done


# ---- Python ----

def python_urllib(world):
    script = """
import json, os, ssl, urllib.request
r = urllib.request.Request(os.environ["URL"] + "/v1/urllib", headers={"Authorization": "Bearer " + os.environ["KEY"]})
print(urllib.request.urlopen(r).read().decode())
"""
    env = dict(world.env, URL=world.url, KEY=world.key)
    assert told(run(world, sys.executable, "-c", script, env=env))["path"] == "/v1/urllib"


def python_requests(world):
    if subprocess.run([sys.executable, "-c", "import requests"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("there is no requests here")
    script = """
import os, requests
s = requests.Session()
s.headers["Authorization"] = "Bearer " + os.environ["KEY"]
for i in range(3):
    r = s.post(os.environ["URL"] + "/v1/requests", json={"n": i})
    r.raise_for_status()
print(r.text)
r = requests.get(os.environ["URL"] + "/v1/requests", headers={"Authorization": "Bearer nonsense"})
assert r.status_code == 403 and r.json()["reason"] == "foreign_credential", r.text
"""
    env = dict(world.env, URL=world.url, KEY=world.key)
    assert told(run(world, sys.executable, "-c", script, env=env))["size"] == 8


# ---- Node ----

NODE_FETCH = """
const r = await fetch(process.env.URL_ + "/v1/fetch", {method: "POST", body: "hello", headers: {Authorization: "Bearer " + process.env.KEY}});
console.log(await r.text());
"""
NODE_HTTPS = """
import https from "node:https"; import http from "node:http"; import tls from "node:tls";
const proxy = new URL(process.env.https_proxy), to = new URL(process.env.URL_);
const c = http.request({host: proxy.hostname, port: proxy.port, method: "CONNECT", path: to.host});
c.on("connect", (res, socket) => {
  const s = tls.connect({socket, servername: to.hostname}, () => {
    https.get(process.env.URL_ + "/v1/https", {createConnection: () => s, headers: {Authorization: "Bearer " + process.env.KEY}},
      (r) => { let t = ""; r.on("data", (d) => t += d); r.on("end", () => { console.log(t); process.exit(0); }); });
  });
});
c.end();
"""


def node_fetch(world):
    need("node")
    version = int(run(world, "node", "-p", "process.versions.node.split('.')[0]"))
    env = dict(world.env, URL_=world.url, KEY=world.key)
    if version < 24:
        raise Skip("node %d's fetch knows no proxy variables" % version)
    assert told(run(world, "node", "--input-type=module", "-e", NODE_FETCH, env=env))["size"] == 5


def node_https(world):
    need("node")
    env = dict(world.env, URL_=world.url, KEY=world.key)
    assert told(run(world, "node", "--input-type=module", "-e", NODE_HTTPS, env=env))["path"] == "/v1/https"


# ---- Go ----

GO = """
package main

import ("fmt"; "io"; "net/http"; "os"; "strings")

func main() {
	req, _ := http.NewRequest("POST", os.Getenv("URL")+"/v1/go", strings.NewReader("hello"))
	req.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	r, err := http.DefaultClient.Do(req)
	if err != nil { fmt.Println(err); os.Exit(1) }
	io.Copy(os.Stdout, r.Body)
}
"""


def go_net_http(world):
    need("go")
    folder = os.path.join(world.work, "go")
    os.mkdir(folder)
    with open(os.path.join(folder, "main.go"), "w") as f:
        f.write(GO)
    cache = os.environ.get("GOCACHE") or os.path.expanduser("~/.cache/go-build")
    env = {"PATH": os.environ["PATH"], "HOME": world.work, "GOCACHE": cache, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0",
           "GO111MODULE": "off", "GOTOOLCHAIN": "local"}
    run(world, "go", "build", "-o", os.path.join(world.work, "client"), os.path.join(folder, "main.go"), env=env, seconds=300)
    env = dict(world.env, URL=world.url, KEY=world.key)
    assert told(run(world, os.path.join(world.work, "client"), env=env))["size"] == 5


# ---- the shared listener, and the one on a Unix socket ----

def a_shared_listener_takes_the_token_at_once(world):
    need("curl")
    env = world.environment("b")
    answer = told(run(world, "curl", "-sS", "--fail", "-H", "Authorization: Bearer " + env["DEMO_KEY"], world.url + "/v1/b", env=env))
    assert answer["path"] == "/v1/b"


def a_shared_listener_takes_the_token_after_407(world):
    need("curl")
    env = world.environment("b")
    out = run(world, "curl", "-sS", "--fail", "-v", "--proxy-anyauth", "-H", "Authorization: Bearer " + env["DEMO_KEY"],
              world.url + "/v1/b", env=env)
    assert b" 407 " in world.last.stderr and told(out)["path"] == "/v1/b", world.last.stderr[-600:]


def a_shared_listener_without_a_token_is_407(world):
    s = world.place.connect("b")
    s.sendall(b"CONNECT api.allowed.test:%d HTTP/1.1\r\nHost: x\r\n\r\n" % world.api_server.port)
    answer = Answer(read_all(s))
    assert answer.status == 407 and b"proxy-authenticate: Basic" in answer.bytes, answer


def a_unix_socket_is_a_listener_like_any_other(world):
    answer = ask(world.place, "GET /v1/unix", "u", listener="unix")
    assert answer.status == 200 and json.loads(answer.body)["path"] == "/v1/unix", answer
    record = [r for r in world.place.records() if r.get("path") == "/v1/unix"][0]
    assert record["sandbox"] == "u" and record["client"].startswith("unix"), record


TESTS = [curl_gets_with_the_placeholder, curl_is_told_why_it_is_refused, curl_heads, curl_uploads_with_expect,
         curl_uses_a_connection_again, git_clones_and_pushes_with_a_placeholder_as_password,
         git_with_a_foreign_password_is_refused, python_urllib, python_requests, node_fetch, node_https, go_net_http,
         a_shared_listener_takes_the_token_at_once, a_shared_listener_takes_the_token_after_407,
         a_shared_listener_without_a_token_is_407, a_unix_socket_is_a_listener_like_any_other,
         curl_moves_100_mb_both_ways_and_no_process_grows]


def main():
    report = Report()
    chosen = os.environ.get("EXEAT_CASE", "")
    world = World()
    try:
        for test in TESTS:
            if chosen not in test.__name__:
                continue
            try:
                test(world)
                report.ok(test.__name__.replace("_", " "))
            except Skip as why:
                report.skip(test.__name__.replace("_", " "), why)
            except Exception as why:
                report.bad(test.__name__.replace("_", " "), "%s: %s" % (type(why).__name__, why))
    finally:
        world.close()
    report.end()


if __name__ == "__main__":
    main()
