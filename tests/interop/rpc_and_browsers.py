"""What is more than HTTP/1: gRPC, browsers, Subversion. Each function returns the version and what was done."""
import os
import re

from http_clients import node, of_package, version
from world import SECRET, need, python_with


# ---- gRPC ----

def target(url):
    return url.replace("https://", "") if re.search(r":\d+$", url) else url.replace("https://", "") + ":443"


def grpc_call(way):
    python, box = python_with("grpc"), way.sandbox("grpc")
    box.run(python, box.program("grpc_client.py"), target(way.world.url["api"]))
    return version(python, "-c", "import grpc; print(grpc.__version__)"), ["call"]


def grpc_call_spliced(way):
    """Then the client itself has to trust the upstream."""
    python, box = python_with("grpc"), way.sandbox("grpc-spliced")
    done = box.run(python, box.program("grpc_client.py"), target(way.world.grpc.url()), way.upstream_roots)
    assert done.stdout == b"heard: hello\n", done
    return version(python, "-c", "import grpc; print(grpc.__version__)"), ["call through `tls splice`"]


def grpc_js(way, name, *words):
    box = way.sandbox(name)
    done = box.run(*node("grpc_client.cjs", *words)(box))
    assert done.stdout == b"heard: hello\n", done


def grpc_js_call(way):
    grpc_js(way, "grpc-js", target(way.world.url["api"]))
    return version("node", *of_package("@grpc/grpc-js")[1:]), ["call"]


def grpc_js_call_spliced(way):
    grpc_js(way, "grpc-js-spliced", target(way.world.grpc.url()), way.upstream_roots)
    return version("node", *of_package("@grpc/grpc-js")[1:]), ["call through `tls splice`"]


# ---- browsers ----

def nss_database(way, box):
    """It is the one place where Chromium looks for a CA of its user's, and no variable names it. `exeat run` brings one."""
    need("certutil")
    if way.name == "environment":
        database = "sql:" + os.path.join(box.work, ".pki/nssdb")
        os.makedirs(database[4:])
        box.run("certutil", "-d", database, "-A", "-t", "C,,", "-n", "exeat", "-i", way.world.environment["own"]["NODE_EXTRA_CA_CERTS"])


def page(way, asked):
    return "%s/page#|%s|%s" % (way.world.url["api"], way.world.url["api"] + asked, way.key("DEMO_KEY"))


def chromium_posts_from_a_page(way):
    need("chromium")
    box, asked = way.sandbox("chromium"), "/v1/chromium-" + way.name
    nss_database(way, box)
    done = box.run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                   "--user-data-dir=" + os.path.join(box.work, "profile"), "--virtual-time-budget=10000", "--dump-dom", page(way, asked))
    assert b"200 {" in done.stdout and b'"size": 5' in done.stdout, done.stdout[-500:]
    assert way.world.api.seen["POST " + asked] == "Bearer " + SECRET
    return version("chromium", "--version"), ["page, and a POST from its script"]


def playwright_posts_from_a_page(way):
    need("chromium")
    box, asked = way.sandbox("playwright"), "/v1/playwright-" + way.name
    nss_database(way, box)
    done = box.run(*node("playwright.cjs", "/usr/bin/chromium", page(way, asked))(box))
    assert b"200 {" in done.stdout and way.world.api.seen["POST " + asked] == "Bearer " + SECRET, done
    return version("node", *of_package("playwright-core")[1:]), ["page, and a POST from its script"]


# ---- Subversion ----

def svn_checkout_and_commit(way):
    need("svn")
    box, url = way.sandbox("svn"), way.world.svn.url()
    options = ["--non-interactive", "--config-dir", os.path.join(box.work, "config")]
    box.run("svn", "checkout", "-q", *options, url + "/r", "one")
    name = "of-" + way.name
    box.write("one/" + name, "content")
    box.run("svn", "add", "-q", *options, "one/" + name)
    box.run("svn", "commit", "-q", *options, "-m", "a file", "one")
    assert name in box.run("svn", "list", *options, url + "/r").stdout.decode().split()
    return version("svn", "--version"), ["checkout, commit, list"]


ONLY_HTTP_2 = {way: ("speaks HTTP/2 only, which exeat does not", "ALPN|UNAVAILABLE|no application protocol")
               for way in ("environment", "captured", "both")}
TOOLS = [
    ("gRPC (Python)", grpc_call, ONLY_HTTP_2), ("gRPC (Python)", grpc_call_spliced, {}), ("gRPC (Node)", grpc_js_call, ONLY_HTTP_2),
    ("gRPC (Node)", grpc_js_call_spliced, {}), ("Chromium", chromium_posts_from_a_page, {}), ("Playwright", playwright_posts_from_a_page, {}),
    ("Subversion", svn_checkout_and_commit, {"environment": ("reads no variable, only its file `servers`", "E670002|Name or service")}),
]
