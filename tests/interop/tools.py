"""Tools: git, curl beyond what every client does, what asks once, clouds. Each returns its version and what it did."""
import base64
import json
import os
import random
import re
import subprocess

from http_clients import BRINGS_ROOTS, version
from world import SECRET, need, python_with

PUSH = {"environment": 200, "captured": 20}  # MB


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
    # Others use the same server meanwhile.
    box, repository = way.sandbox("git-foreign"), "/foreign.git"
    url = way.world.url["git"].replace("//", "//x:ghp_attackersOwn@") + repository
    done = box.run("sh", "-c", 'git ls-remote "$1" || echo "exit $?"', "sh", url, **GIT)
    assert b"exit 128" in done.stdout and b"403" in done.stderr, done
    assert not [path for _, path in way.world.git.served if path.startswith(repository)]
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


def boto3_s3(way):
    python, box = python_with("boto3"), way.sandbox("boto3")
    done = box.run(python, box.program("boto3_client.py"), way.world.url["elsewhere"])
    assert done.stdout == b"landed\n\n", done
    return version(python, "-c", "import boto3; print(boto3.__version__)"), ["put-object and get-object of S3, unsigned"]


def az_rest(way):
    done = way.sandbox("az").run(need("az"), "rest", "--method", "post", "--url", "%s/v1/az-%s" % (way.world.url["api"], way.name),
                                 "--skip-authorization-header", "--headers", "Authorization=Bearer " + way.key("DEMO_KEY"), "--body", "{}", AZURE_CORE_COLLECT_TELEMETRY="0")
    posted(way, "az", done)
    return version("az", "version"), ["POST with a placeholder"]


def gcloud_describe(way):
    """With a file of the token, which is a placeholder."""
    path = "/v1/projects/gcloud-" + way.name
    done = way.sandbox("gcloud").run("sh", "-c", 'echo "$TOKEN" >token; exec "$0" projects describe "$1" --access-token-file token --format json',
                                     need("gcloud"), path.split("/")[-1], TOKEN=way.key("DEMO_KEY"),
                                     CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER=way.world.url["api"] + "/")
    assert way.world.api.seen["GET " + path] == "Bearer " + SECRET, done
    return version("gcloud", "--version"), ["GET with a placeholder as token"]


def r_download(way):
    done = way.sandbox("r").run(need("Rscript"), "-e", 'cat(readLines(url("%s/r")))' % way.world.url["elsewhere"])
    assert done.stdout == b"landed", done
    return version("Rscript", "--version"), ["download"]


TOOLS = [
    ("git", git_clone_and_push, {}), ("HTTPie", httpie_post, {}), ("GitHub CLI", gh_api, {}), ("kubectl", kubectl_get, {}), ("AWS CLI", aws_s3, {}),
    ("boto3", boto3_s3, {}), ("Azure CLI", az_rest, {}),
    ("gcloud", gcloud_describe, {"captured": (BRINGS_ROOTS, "CERTIFICATE_VERIFY_FAILED")}),
    ("R", r_download, {}),
    ("aria2", aria2_download, {"environment": ("takes roots from an option only", "issuer is not known")}),
]
# What there is to do only where there is a proxy.
MORE_TOOLS = [
    ("git", git_after_407, {}), ("git", git_by_an_ssh_address, {}), ("git", git_with_a_foreign_password, {}), ("curl", curl_after_407, {}),
    ("curl", curl_at_a_host_that_is_not_allowed, {}), ("curl", curl_uses_a_connection_again, {}),
]
