"""Tools that speak more than one request: git, package managers, a browser. Each returns its version and what it did."""
import base64
import glob
import json
import os
import random
import re
import subprocess

from http_clients import NODE_MODULES, find_node, node_modules, version_of
from registries import NAME, VERSION
from world import SECRET, Skip, need, python_with

PUSH = {"environment": 200, "captured": 20}  # MB


def version(*command):
    return version_of(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)


# ---- git ----

GIT = {"GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com", "GIT_COMMITTER_NAME": "t",
       "GIT_COMMITTER_EMAIL": "t@example.com", "GIT_CONFIG_NOSYSTEM": "1",
       # What does not compress needs no try.
       "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "core.compression", "GIT_CONFIG_VALUE_0": "0",
       "GIT_CONFIG_KEY_1": "pack.window", "GIT_CONFIG_VALUE_1": "0"}


def bare_repository(way, name):
    path = os.path.join(way.world.repositories, name)
    subprocess.run(["git", "init", "-q", "--bare", path], check=True)
    subprocess.run(["git", "-C", path, "config", "http.receivepack", "true"], check=True)


def git_url(way, name, sandbox="own"):
    return way.world.url["git"].replace("//", "//x:%s@" % way.key("GIT_KEY", sandbox)) + "/" + name


def commit(box, content):
    """A clone that is still empty gets a file."""
    box.write("one/file", content)
    box.run("git", "-C", "one", "add", "file", **GIT)
    box.run("git", "-C", "one", "commit", "-q", "-m", "one", **GIT)


def git_clone_and_push(way):
    need("git")
    size = PUSH[way.name]
    name = way.name + ".git"
    box, url = way.sandbox("git"), git_url(way, name)
    bare_repository(way, name)
    box.run("git", "clone", "-q", url, "one", **GIT)
    content = random.Random(1).randbytes(size << 20)
    commit(box, content)
    box.run("git", "-C", "one", "push", "-q", url, "HEAD:main", **GIT)
    box.run("git", "clone", "-q", "-b", "main", url, "two", **GIT)
    assert box.read("two/file") == content
    assert ("POST", "/%s/git-receive-pack" % name) in way.world.git.served
    return version("git", "--version"), ["push of %d MB" % size, "clone of %d MB" % size, "placeholder as password"]


def git_after_407(way):
    need("git")
    box, url = way.sandbox("git-407"), git_url(way, "after-407.git", "shared")
    bare_repository(way, "after-407.git")
    settings = dict(GIT, GIT_HTTP_PROXY_AUTHMETHOD=None, sandbox="shared")
    box.run("git", "clone", "-q", url, "one", **settings)
    commit(box, b"small")
    done = box.run("git", "-C", "one", "push", "-q", "origin", "HEAD:main", **settings, GIT_CURL_VERBOSE="1")
    assert b"HTTP/1.1 407" in done.stderr, done.stderr[-500:]
    assert ("POST", "/after-407.git/git-receive-pack") in way.world.git.served
    return version("git", "--version"), ["token only after 407: clone and push"]


def git_by_an_ssh_address(way):
    need("git")
    box = way.sandbox("git-ssh")
    bare_repository(way, "ssh.git")
    login = base64.b64encode(("x:" + way.key("GIT_KEY")).encode()).decode()
    settings = dict(GIT, GIT_CONFIG_NOSYSTEM=None, GIT_CONFIG_KEY_0="http.extraHeader", GIT_CONFIG_VALUE_0="Authorization: Basic " + login)
    before = len(way.world.git.served)
    box.run("git", "ls-remote", way.world.url["git"].replace("https://", "ssh://git@") + "/ssh.git", **settings)
    assert ("GET", "/ssh.git/info/refs") in [(m, p.partition("?")[0]) for m, p in way.world.git.served[before:]]
    return version("git", "--version"), ["an ssh:// address, over HTTPS"]


def git_with_a_foreign_password(way):
    need("git")
    box, before = way.sandbox("git-foreign"), len(way.world.git.served)
    url = way.world.url["git"].replace("//", "//x:ghp_attackersOwn@") + "/r.git"
    done = box.run("sh", "-c", 'git ls-remote "$1" || echo "exit $?"', "sh", url, **GIT)
    assert b"exit 128" in done.stdout and b"403" in done.stderr and len(way.world.git.served) == before, done
    return version("git", "--version"), ["foreign password: refused"]


# ---- curl beyond what every client does ----

def curl_after_407(way):
    need("curl")
    box, env = way.sandbox("curl-407"), way.world.environment["shared"]
    done = box.run("curl", "-sS", "--fail", "-v", "--proxy-anyauth", "-H", "Authorization: Bearer " + env["DEMO_KEY"],
                   way.world.url["api"] + "/v1/after-407", sandbox="shared")
    assert b" 407 " in done.stderr and json.loads(done.stdout)["path"] == "/v1/after-407", done.stderr[-600:]
    return version("curl", "--version"), ["token only after 407"]


def curl_at_a_host_that_is_not_allowed(way):
    need("curl")
    done = way.sandbox("curl-evil").run("sh", "-c", 'curl -sS -v https://evil.test/ || echo "exit $?"')
    assert done.stdout == b"exit 56\n" and b"host_not_allowed" in done.stderr, done
    return version("curl", "--version"), ["CONNECT to a host that is not allowed: refused"]


def curl_uses_a_connection_again(way):
    need("curl")
    box = way.sandbox("curl-again")
    done = box.run("curl", "-sS", "--fail", "-v", "-H", "Authorization: Bearer " + way.key("DEMO_KEY"),
                   *[way.world.url["api"] + "/v1/%d" % i for i in range(5)])
    assert done.stdout.count(b'"path"') == 5
    # curl 8 says which kind of connection it is in between.
    assert len(re.findall(rb"Re-using existing [a-z: ]*connection", done.stderr)) == 4, done.stderr[-500:]
    return version("curl", "--version"), ["five requests over one connection"]


# ---- package managers ----

def npm_install(way):
    """With a Node that trusts what its makers do, and without what this machine's npm was told."""
    npm, box = os.path.realpath(need("npm")), way.sandbox("npm")
    box.write("package.json", '{"name": "app", "version": "1.0.0"}')
    box.run(find_node(box), npm, "install", "--globalconfig", os.devnull, "--fetch-retries", "0", "--registry", way.world.url["npm"], NAME)
    assert b"installed" in box.read("node_modules/%s/index.js" % NAME)
    return version("npm", "--version"), ["install from a registry"]


def other_npm(way, name, script, *words):
    box = way.sandbox(name)
    box.write("package.json", '{"name": "app", "version": "1.0.0"}')
    command = [find_node(box), os.path.join(node_modules(box), name, "bin", script)]
    box.run(*command, "add", *words, "--registry", way.world.url["npm"], NAME)
    assert b"installed" in box.read("node_modules/%s/index.js" % NAME)
    return version(os.path.join(NODE_MODULES, ".bin", name), "--version"), ["install from a registry"]


def pnpm_add(way):
    return other_npm(way, "pnpm", "pnpm.cjs", "--fetch-retries", "0")


def yarn_add(way):
    """Its cache would be the machine's for root."""
    return other_npm(way, "yarn", "yarn.js", "--cache-folder", "cache")


def pip_download(way):
    box, python = way.sandbox("pip"), python_with("pip")
    done = subprocess.run([python, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    box.run(python, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--index-url",
            way.world.url["pip"] + "/simple", "-d", "got", NAME)
    assert glob.glob(os.path.join(box.work, "got", "*.whl"))
    return version_of(done.stdout), ["download from an index"]


def go_get(way):
    need("go")
    box = way.sandbox("go-get")
    box.write("go.mod", "module example.test/app\n\ngo 1.18\n")
    box.run("go", "get", "example.test/demo@latest", GOPROXY=way.world.url["go"], GOSUMDB="off", GOTOOLCHAIN="local", GOFLAGS="-mod=mod")
    assert b"example.test/demo v1.0.0" in box.read("go.mod")
    assert os.path.exists(os.path.join(box.work, "go/pkg/mod/example.test/demo@v1.0.0/demo.go"))
    return version("go", "version"), ["get from a module proxy"]


def cargo_fetch(way):
    need("cargo")
    found = version("cargo", "--version")
    if [int(n) for n in found.split(".")[:2]] < [1, 70]:
        raise Skip("cargo %s knows no sparse registries" % found)
    box = way.sandbox("cargo")
    box.write("Cargo.toml", '[package]\nname = "app"\nversion = "1.0.0"\n[dependencies]\n%s = "1"\n' % NAME)
    box.write("src/lib.rs", "")
    box.write(".cargo/config.toml", '[source.crates-io]\nreplace-with = "local"\n[source.local]\nregistry = "sparse+%s/"\n'
              % way.world.url["cargo"])
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


def maven_resolve(way):
    need("mvn")
    box = way.sandbox("maven")
    box.write("pom.xml", MAVEN_POM)
    settings = box.write("settings.xml", MAVEN_SETTINGS % way.world.url["maven"])
    repository = os.path.join(box.work, "repository")
    box.run("mvn", "-B", "-q", "-s", settings, "-gs", settings, "-Dmaven.repo.local=" + repository, "validate")
    assert os.path.exists(os.path.join(repository, "org/example/extension", VERSION, "extension-%s.jar" % VERSION))
    return version("mvn", "--version"), ["parent and extension from a repository"]


def apt_update_and_download(way):
    need("apt-get")
    box = way.sandbox("apt")
    # apt drops to a user of its own when it is root.
    os.chmod(box.work, 0o777)
    for folder in ("state/lists/partial", "cache/archives/partial", "etc"):
        os.makedirs(os.path.join(box.work, folder))
    sources, status = box.write("etc/sources.list", "deb [trusted=yes] %s ./\n" % way.world.url["apt"]), box.write("state/status", "")
    options = ["-o", "Dir::State=" + os.path.join(box.work, "state"), "-o", "Dir::State::status=" + status,
               "-o", "Dir::Cache=" + os.path.join(box.work, "cache"), "-o", "Dir::Etc::sourcelist=" + sources,
               "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Debug::NoLocking=1"]
    box.run("apt-get", "-q", *options, "update")
    box.run("apt-get", "-q", *options, "download", NAME)
    assert box.read("%s_%s_all.deb" % (NAME, VERSION)).startswith(b"!<arch>")
    return version("apt-get", "--version"), ["update and download over https"]


# ---- tools that ask once ----

def posted(way, name, done):
    """That the answer is the server's, who saw the real secret."""
    path = "/v1/%s-%s" % (name, way.name)
    assert json.loads(done.stdout)["path"] == path and way.world.api.seen["POST " + path] == "Bearer " + SECRET, done


def httpie_post(way):
    done = way.sandbox("httpie").run(need("http"), "--ignore-stdin", "--print=b", "POST", "%s/v1/httpie-%s" % (way.world.url["api"], way.name),
                                     "Authorization:Bearer " + way.key("DEMO_KEY"), "some=thing")
    posted(way, "httpie", done)
    return version("http", "--version"), ["POST with a placeholder"]


def aria2_download(way):
    box = way.sandbox("aria2")
    box.run(need("aria2c"), "-d", box.work, "-o", "got", way.world.url["elsewhere"] + "/aria2")
    assert box.read("got") == b"landed\n"
    return version("aria2c", "--version"), ["download"]


def gh_api(way):
    done = way.sandbox("gh").run(need("gh"), "api", "-X", "POST", "-H", "Authorization: Bearer " + way.key("DEMO_KEY"),
                                 "%s/v1/gh-%s" % (way.world.url["api"], way.name), GH_TOKEN=way.key("DEMO_KEY"), GH_HOST="api.allowed.test",
                                 GH_ENTERPRISE_TOKEN=way.key("DEMO_KEY"))
    posted(way, "gh", done)
    return version("gh", "--version"), ["POST with a placeholder"]


def kubectl_get(way):
    path = "/v1/kubectl-" + way.name
    done = way.sandbox("kubectl").run(need("kubectl"), "--server", way.world.url["api"], "--token", way.key("DEMO_KEY"), "get", "--raw", path)
    assert json.loads(done.stdout)["path"] == path and way.world.api.seen["GET " + path] == "Bearer " + SECRET, done
    return version("kubectl", "version", "--client"), ["GET with a placeholder as token"]


def aws_s3(way):
    box = way.sandbox("aws")
    config = box.write("config", "[default]\ns3 =\n    addressing_style = path\n")
    box.run(need("aws"), "--no-sign-request", "--endpoint-url", way.world.url["elsewhere"], "s3api", "get-object", "--bucket", "bucket",
            "--key", "key", "got", AWS_CONFIG_FILE=config, AWS_DEFAULT_REGION="us-east-1")
    assert box.read("got") == b"landed\n"
    return version(need("aws"), "--version"), ["get-object of S3, unsigned"]


def r_download(way):
    done = way.sandbox("r").run(need("Rscript"), "-e", 'cat(readLines(url("%s/r")))' % way.world.url["elsewhere"])
    assert done.stdout == b"landed", done
    return version("Rscript", "--version"), ["download"]


def grpc_call(way):
    python, box = python_with("grpc"), way.sandbox("grpc")
    url = way.world.url["api"].replace("https://", "")
    box.run(python, box.program("grpc_client.py"), url if ":" in url else url + ":443")
    return version(python, "-c", "import grpc; print(grpc.__version__)"), ["call"]


# ---- a browser ----

def chromium_posts_from_a_page(way):
    """Its NSS database is the one place where it looks for a CA of its user's, and no variable names it. `exeat run` brings one."""
    need("chromium")
    need("certutil")
    box = way.sandbox("chromium")
    if way.name == "environment":
        database = "sql:" + os.path.join(box.work, ".pki/nssdb")
        os.makedirs(database[4:])
        box.run("certutil", "-d", database, "-A", "-t", "C,,", "-n", "exeat", "-i", way.world.environment["own"]["NODE_EXTRA_CA_CERTS"])
    asked = "/v1/chromium-" + way.name
    page = "%s/page#|%s|%s" % (way.world.url["api"], way.world.url["api"] + asked, way.key("DEMO_KEY"))
    done = box.run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--user-data-dir=" + os.path.join(box.work, "profile"), "--virtual-time-budget=10000", "--dump-dom", page)
    assert b"200 {" in done.stdout and b'"size": 5' in done.stdout, done.stdout[-500:]
    assert way.world.api.seen["POST " + asked] == "Bearer " + SECRET
    return version("chromium", "--version"), ["page, and a POST from its script"]


TOOLS = [
    ("git", git_clone_and_push), ("npm", npm_install), ("pnpm", pnpm_add), ("Yarn 1", yarn_add), ("pip", pip_download), ("go get", go_get), ("cargo", cargo_fetch),
    ("Maven", maven_resolve), ("apt", apt_update_and_download), ("HTTPie", httpie_post), ("aria2", aria2_download), ("GitHub CLI", gh_api),
    ("kubectl", kubectl_get), ("AWS CLI", aws_s3), ("R", r_download), ("gRPC (Python)", grpc_call), ("Chromium", chromium_posts_from_a_page),
]
# What there is to do only where there is a proxy.
MORE_TOOLS = [
    ("git", git_after_407), ("git", git_by_an_ssh_address), ("git", git_with_a_foreign_password), ("curl", curl_after_407),
    ("curl", curl_at_a_host_that_is_not_allowed), ("curl", curl_uses_a_connection_again),
]
# Those that fail, by way: why, and what they then say.
ONLY_HTTP_2 = ("speaks HTTP/2 only, which exeat does not", "ALPN|UNAVAILABLE")
FAIL = {
    **{(name, "captured"): ("its Node.js brings roots of its own, and takes others from a variable only", "certificate")
       for name in ("npm", "pnpm", "Yarn 1")},
    ("aria2", "environment"): ("takes roots from an option only", "issuer is not known"),
    ("gRPC (Python)", "environment"): ONLY_HTTP_2,
    ("gRPC (Python)", "captured"): ONLY_HTTP_2,
}


def run_tool(way, report, name, function):
    """Its version, what it did, and nothing that it does not do by itself; None where it did not do what it should."""
    said = "%s (%s)" % (function.__name__.replace("_", " "), way.name)
    if (name, way.name) not in FAIL:
        with report.check(said):
            return (*function(way), [])
        return None
    reason, pattern = FAIL[name, way.name]
    with report.check(said + " fails, as it is said"):
        try:
            function(way)
        except AssertionError as failure:
            assert re.search(pattern, str(failure), re.I), failure
            return None, ["fails: " + reason], []
        raise AssertionError("it works")
    return None
