"""Tools that speak more than one request: git, package managers, a browser. Each returns its version and what it did."""
import glob
import json
import os
import random
import re
import subprocess
import sys

from http_clients import version_of
from registries import NAME, VERSION
from world import SECRET, Sandbox, Skip, need

PUSH = 200 << 20


def version(*command):
    return version_of(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)


# ---- git ----

GIT = {"GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "t",
       "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_CONFIG_NOSYSTEM": "1",
       # 200 MB that do not compress need no try.
       "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "core.compression", "GIT_CONFIG_VALUE_0": "0",
       "GIT_CONFIG_KEY_1": "pack.window", "GIT_CONFIG_VALUE_1": "0"}


def bare_repository(world, name):
    path = os.path.join(world.repositories, name)
    subprocess.run(["git", "init", "-q", "--bare", path], check=True)
    subprocess.run(["git", "-C", path, "config", "http.receivepack", "true"], check=True)


def git_url(world, name, sandbox="own"):
    return world.url["git"].replace("//", "//x:%s@" % world.environment[sandbox]["GIT_KEY"]) + "/" + name


def commit(box, content):
    """A clone that is still empty gets a file."""
    box.write("one/file", content)
    box.run("git", "-C", "one", "add", "file", **GIT)
    box.run("git", "-C", "one", "commit", "-q", "-m", "one", **GIT)


def git_clone_and_push(world):
    need("git")
    box, url = Sandbox(world, "git"), git_url(world, "r.git")
    bare_repository(world, "r.git")
    box.run("git", "clone", "-q", url, "one", **GIT)
    content = random.Random(1).randbytes(PUSH)
    commit(box, content)
    box.run("git", "-C", "one", "push", "-q", "origin", "HEAD:main", **GIT)
    box.run("git", "clone", "-q", "-b", "main", url, "two", **GIT)
    assert box.read("two/file") == content
    assert ("POST", "/r.git/git-receive-pack") in world.git.served
    return version("git", "--version"), ["push of 200 MB", "clone of 200 MB", "placeholder as password"]


def git_after_407(world):
    need("git")
    box, url = Sandbox(world, "git-407"), git_url(world, "after-407.git", "shared")
    bare_repository(world, "after-407.git")
    settings = dict(GIT, GIT_HTTP_PROXY_AUTHMETHOD=None, sandbox="shared")
    box.run("git", "clone", "-q", url, "one", **settings)
    commit(box, b"small")
    done = box.run("git", "-C", "one", "push", "-q", "origin", "HEAD:main", **settings, GIT_CURL_VERBOSE="1")
    assert b"HTTP/1.1 407" in done.stderr, done.stderr[-500:]
    assert ("POST", "/after-407.git/git-receive-pack") in world.git.served
    return version("git", "--version"), ["token only after 407: clone and push"]


def git_with_a_foreign_password(world):
    need("git")
    box, before = Sandbox(world, "git-foreign"), len(world.git.served)
    url = world.url["git"].replace("//", "//x:ghp_attackersOwn@") + "/r.git"
    done = box.run("sh", "-c", 'git ls-remote "$1" || echo "exit $?"', "sh", url, **GIT)
    assert b"exit 128" in done.stdout and b"403" in done.stderr and len(world.git.served) == before, done
    return version("git", "--version"), ["foreign password: refused"]


# ---- curl beyond what every client does ----

def curl_after_407(world):
    need("curl")
    box, env = Sandbox(world, "curl-407"), world.environment["shared"]
    done = box.run("curl", "-sS", "--fail", "-v", "--proxy-anyauth", "-H", "Authorization: Bearer " + env["DEMO_KEY"],
                   world.url["api"] + "/v1/after-407", sandbox="shared")
    assert b" 407 " in done.stderr and json.loads(done.stdout)["path"] == "/v1/after-407", done.stderr[-600:]
    return version("curl", "--version"), ["token only after 407"]


def curl_at_a_host_that_is_not_allowed(world):
    need("curl")
    done = Sandbox(world, "curl-evil").run("sh", "-c", 'curl -sS -v https://evil.test/ || echo "exit $?"')
    assert done.stdout == b"exit 56\n" and b"host_not_allowed" in done.stderr, done
    return version("curl", "--version"), ["CONNECT to a host that is not allowed: refused"]


def curl_uses_a_connection_again(world):
    need("curl")
    box = Sandbox(world, "curl-again")
    done = box.run("curl", "-sS", "--fail", "-v", "-H", "Authorization: Bearer " + world.environment["own"]["DEMO_KEY"],
                   *[world.url["api"] + "/v1/%d" % i for i in range(5)])
    assert done.stdout.count(b'"path"') == 5
    # curl 8 says which kind of connection it is in between.
    assert len(re.findall(rb"Re-using existing [a-z: ]*connection", done.stderr)) == 4, done.stderr[-500:]
    return version("curl", "--version"), ["five requests over one connection"]


# ---- package managers ----

def npm_install(world):
    need("npm")
    box = Sandbox(world, "npm")
    box.write("package.json", '{"name": "app", "version": "1.0.0"}')
    box.run("npm", "install", "--registry", world.url["npm"], NAME)
    assert b"installed" in box.read("node_modules/%s/index.js" % NAME)
    return version("npm", "--version"), ["install from a registry"]


def pip_download(world):
    box = Sandbox(world, "pip")
    done = subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Skip("there is no pip here")
    box.run(sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--index-url",
            world.url["pip"] + "/simple", "-d", "got", NAME)
    assert glob.glob(os.path.join(box.work, "got", "*.whl"))
    return version_of(done.stdout), ["download from an index"]


def go_get(world):
    need("go")
    box = Sandbox(world, "go-get")
    box.write("go.mod", "module example.test/app\n\ngo 1.18\n")
    box.run("go", "get", "example.test/demo@latest", GOPROXY=world.url["go"], GOSUMDB="off", GOTOOLCHAIN="local", GOFLAGS="-mod=mod")
    assert b"example.test/demo v1.0.0" in box.read("go.mod")
    assert os.path.exists(os.path.join(box.work, "go/pkg/mod/example.test/demo@v1.0.0/demo.go"))
    return version("go", "version"), ["get from a module proxy"]


def cargo_fetch(world):
    need("cargo")
    found = version("cargo", "--version")
    if [int(n) for n in found.split(".")[:2]] < [1, 70]:
        raise Skip("cargo %s knows no sparse registries" % found)
    box = Sandbox(world, "cargo")
    box.write("Cargo.toml", '[package]\nname = "app"\nversion = "1.0.0"\n[dependencies]\n%s = "1"\n' % NAME)
    box.write("src/lib.rs", "")
    box.write(".cargo/config.toml", '[source.crates-io]\nreplace-with = "local"\n[source.local]\nregistry = "sparse+%s/"\n'
              % world.url["cargo"])
    rustup = os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup")
    box.run("cargo", "fetch", RUSTUP_HOME=rustup if os.path.exists(rustup) else None)
    assert glob.glob(os.path.join(box.work, ".cargo/registry/src/*/%s-%s/src/lib.rs" % (NAME, VERSION)))
    return found, ["fetch from a sparse registry"]


MAVEN_POM = """<project><modelVersion>4.0.0</modelVersion>
<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>%s</version><relativePath/></parent>
<artifactId>app</artifactId><packaging>pom</packaging>
<build><extensions><extension><groupId>org.example</groupId><artifactId>extension</artifactId><version>%s</version></extension>
</extensions></build></project>""" % (VERSION, VERSION)
MAVEN_SETTINGS = """<settings><mirrors><mirror><id>local</id><mirrorOf>*</mirrorOf><url>%s</url></mirror></mirrors></settings>"""


def maven_resolve(world):
    need("mvn")
    box = Sandbox(world, "maven")
    box.write("pom.xml", MAVEN_POM)
    settings = box.write("settings.xml", MAVEN_SETTINGS % world.url["maven"])
    repository = os.path.join(box.work, "repository")
    box.run("mvn", "-B", "-q", "-s", settings, "-gs", settings, "-Dmaven.repo.local=" + repository, "validate")
    assert os.path.exists(os.path.join(repository, "org/example/extension", VERSION, "extension-%s.jar" % VERSION))
    return version("mvn", "--version"), ["parent and extension from a repository"]


def apt_update_and_download(world):
    need("apt-get")
    box = Sandbox(world, "apt")
    # apt drops to a user of its own when it is root.
    os.chmod(box.work, 0o777)
    for folder in ("state/lists/partial", "cache/archives/partial", "etc"):
        os.makedirs(os.path.join(box.work, folder))
    sources, status = box.write("etc/sources.list", "deb [trusted=yes] %s ./\n" % world.url["apt"]), box.write("state/status", "")
    options = ["-o", "Dir::State=" + os.path.join(box.work, "state"), "-o", "Dir::State::status=" + status,
               "-o", "Dir::Cache=" + os.path.join(box.work, "cache"), "-o", "Dir::Etc::sourcelist=" + sources,
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Debug::NoLocking=1"]
    box.run("apt-get", "-q", *options, "update")
    box.run("apt-get", "-q", *options, "download", NAME)
    assert box.read("%s_%s_all.deb" % (NAME, VERSION)).startswith(b"!<arch>")
    return version("apt-get", "--version"), ["update and download over https"]


# ---- a browser ----

def chromium_posts_from_a_page(world):
    """Its NSS database is the one place where it looks for a CA of its user's, and no variable names it."""
    need("chromium")
    need("certutil")
    box = Sandbox(world, "chromium")
    database = "sql:" + os.path.join(box.work, ".pki/nssdb")
    os.makedirs(database[4:])
    box.run("certutil", "-d", database, "-N", "--empty-password")
    box.run("certutil", "-d", database, "-A", "-t", "C,,", "-n", "exeat", "-i", world.environment["own"]["NODE_EXTRA_CA_CERTS"])
    page = "%s/page#|%s/v1/chromium|%s" % (world.url["api"], world.url["api"], world.environment["own"]["DEMO_KEY"])
    done = box.run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--user-data-dir=" + os.path.join(box.work, "profile"), "--virtual-time-budget=10000", "--dump-dom", page)
    assert b"200 {" in done.stdout and b'"size": 5' in done.stdout, done.stdout[-500:]
    assert world.api.seen["POST /v1/chromium"] == "Bearer " + SECRET
    return version("chromium", "--version"), ["page, and a POST from its script"]


TOOLS = [
    ("git", git_clone_and_push), ("git", git_after_407), ("git", git_with_a_foreign_password),
    ("curl", curl_after_407), ("curl", curl_at_a_host_that_is_not_allowed), ("curl", curl_uses_a_connection_again),
    ("npm", npm_install), ("pip", pip_download), ("go get", go_get), ("cargo", cargo_fetch), ("Maven", maven_resolve),
    ("apt", apt_update_and_download), ("Chromium", chromium_posts_from_a_page),
]
