"""Package managers, each at a registry of one package. Each function returns the version and what was done."""
import glob
import json
import os
import subprocess

from http_clients import BRINGS_ROOTS, find_node, made, node_modules, version, version_of
from registries import NAME, VERSION
from world import Skip, need, python_with


def npm_install(way):
    """With a Node that trusts what its makers do, and without what this machine's npm was told."""
    npm, box = os.path.realpath(need("npm")), way.sandbox("npm")
    box.write("package.json", '{"name": "app", "version": "1.0.0"}')
    box.run(find_node(box), npm, "install", "--globalconfig", os.devnull, "--fetch-retries", "0", "--registry", way.world.url["npm"], NAME)
    assert b"installed" in box.read("node_modules/%s/index.js" % NAME)
    return version("npm", "--version"), ["install from a registry"]


def other_npm(way, name, script, *words, **settings):
    box = way.sandbox(name.replace("/", "-"))
    box.write("package.json", '{"name": "app", "version": "1.0.0"}')
    command = [find_node(box), os.path.join(node_modules(box), name, "bin", script)]
    box.run(*command, "add", *words, NAME, **settings)
    assert b"installed" in box.read("node_modules/%s/index.js" % NAME)
    return version("node", os.path.join(made("node"), "node_modules", name, "bin", script), "--version"), ["install from a registry"]


def pnpm_add(way):
    return other_npm(way, "pnpm", "pnpm.cjs", "--fetch-retries", "0", "--registry", way.world.url["npm"])


def yarn_add(way):
    """Its cache would be the machine's for root."""
    return other_npm(way, "yarn", "yarn.js", "--cache-folder", "cache", "--registry", way.world.url["npm"])


def yarn_4_add(way):
    return other_npm(way, "@yarnpkg/cli-dist", "yarn.js", YARN_NPM_REGISTRY_SERVER=way.world.url["npm"], YARN_NODE_LINKER="node-modules",
                     YARN_ENABLE_TELEMETRY="0", YARN_HTTP_RETRY="0")


def bun_add(way):
    box = way.sandbox("bun")
    box.write("package.json", '{"name": "app", "version": "1.0.0"}')
    bun = os.path.join(node_modules(box), ".bin", "bun")
    box.run(bun, "add", "--registry", way.world.url["npm"], NAME)
    assert b"installed" in box.read("node_modules/%s/index.js" % NAME)
    return version(bun, "--version"), ["install from a registry"]


def pip_download(way):
    box, python = way.sandbox("pip"), python_with("pip")
    done = subprocess.run([python, "-m", "pip", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    box.run(python, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--index-url",
            way.world.url["pip"] + "/simple", "-d", "got", NAME)
    assert glob.glob(os.path.join(box.work, "got", "*.whl"))
    return version_of(done.stdout), ["download from an index"]


def go_download(way, name, **sums):
    """Gets a module through a module proxy; sums: the variables that say what is held against a database of sums."""
    need("go")
    box = way.sandbox(name)
    box.write("go.mod", "module example.test/app\n\ngo 1.18\n")
    box.run("go", "get", "example.test/demo@latest", GOPROXY=way.world.url["go"], GOTOOLCHAIN="local", GOFLAGS="-mod=mod", **sums)
    assert b"example.test/demo v1.0.0" in box.read("go.mod")
    assert os.path.exists(os.path.join(box.work, "go/pkg/mod/example.test/demo@v1.0.0/demo.go"))
    return version("go", "version")


def go_get(way):
    return go_download(way, "go-get", GOSUMDB="off"), ["get from a module proxy"]


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
GRADLE = """
repositories { maven { url "%s" } }
configurations { demo }
dependencies { demo "org.example:extension:%s@jar" }
task got(type: Copy) { from configurations.demo; into "got" }
"""
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


def gradle_resolve(way):
    need("gradle")
    box = way.sandbox("gradle")
    box.write("build.gradle", GRADLE % (way.world.url["maven"], VERSION))
    box.write("settings.gradle", "")
    box.run("gradle", "--no-daemon", "-q", "-g", os.path.join(box.work, "home"), "got")
    assert box.read("got/extension-%s.jar" % VERSION)
    return version("sh", "-c", "gradle --version 2>/dev/null | grep ^Gradle"), ["a dependency from a repository"]


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


def go_get_beside_the_sums(way):
    """With the database of sums on, but not for what is ours."""
    return go_download(way, "go-sums", GONOSUMDB="example.test"), ["GONOSUMDB"]


def uv_download(way):
    box = way.sandbox("uv")
    uv = os.path.join(box.way.bring(made("python")), "bin", "uv")
    box.run(uv, "pip", "install", "--python", "/usr/bin/python3", "--target", "got", "--default-index", way.world.url["pip"] + "/simple", NAME)
    assert b"INSTALLED" in box.read("got/%s.py" % NAME.replace("-", "_"))
    return version(uv, "--version"), ["install from an index"]


POETRY = """[tool.poetry]
name = "app"
version = "1.0.0"
description = ""
authors = []
[tool.poetry.dependencies]
python = ">=3.9"
%s = "1.0.0"
[[tool.poetry.source]]
name = "local"
url = "%s/simple/"
default = true
"""


def poetry_install(way):
    need("poetry")
    box = way.sandbox("poetry")
    box.write("pyproject.toml", POETRY % (NAME, way.world.url["pip"]))
    box.run("/usr/bin/poetry", "install", "-n", "--no-root", POETRY_VIRTUALENVS_IN_PROJECT="1")
    assert glob.glob(os.path.join(box.work, ".venv/lib/python3*/site-packages/%s.py" % NAME.replace("-", "_")))
    return version("/usr/bin/poetry", "--version"), ["install from an index"]


def pipx_install(way):
    need("pipx")
    box = way.sandbox("pipx")
    box.run("/usr/bin/pipx", "install", NAME, PIPX_HOME=box.work, PIPX_BIN_DIR=box.work, PIP_INDEX_URL=way.world.url["pip"] + "/simple")
    assert os.access(os.path.join(box.work, NAME), os.X_OK)
    return version("/usr/bin/pipx", "--version"), ["install from an index"]


def bundle_install(way):
    need("bundle")
    box = way.sandbox("bundler")
    box.write("Gemfile", 'source "%s"\ngem "%s"\n' % (way.world.url["gems"], NAME))
    box.run("bundle", "install", "--retry", "0", BUNDLE_PATH="gems")
    assert glob.glob(os.path.join(box.work, "gems/ruby/*/gems/%s-%s/lib/demo.rb" % (NAME, VERSION)))
    return version("bundle", "--version"), ["install from a gem server"]


def composer_install(way):
    need("composer")
    box = way.sandbox("composer")
    box.write("composer.json", json.dumps({"repositories": [{"type": "composer", "url": way.world.url["composer"]}, {"packagist": False}],
                                           "require": {"exeat/demo": VERSION}}))
    box.run("composer", "-n", "install")
    assert box.read("vendor/exeat/demo/demo.php")
    return version("composer", "--version"), ["install from a repository"]


def dnf_download(way):
    need("dnf")
    box = way.sandbox("dnf")
    repository = box.write("repos/local.repo", "[local]\nname=local\nbaseurl=%s\n" % way.world.url["dnf"])
    config = box.write("dnf.conf", "[main]\nretries=1\n")
    folders = ["--setopt=%s=%s" % (name, box.work) for name in ("cachedir", "logdir", "persistdir")]
    box.run("dnf", "-q", "--config", config, "--setopt=reposdir=" + os.path.dirname(repository), *folders, "--releasever=1", "download", NAME)
    assert box.read("%s-%s-1.noarch.rpm" % (NAME, VERSION))
    return version("dnf", "--version"), ["download"]


def image(way):
    return way.world.url["images"].replace("https:", "") + "/%s:latest" % NAME


def skopeo_copy(way):
    need("skopeo")
    box = way.sandbox("skopeo")
    policy = box.write("policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}')
    box.run("skopeo", "--policy", policy, "copy", "docker:" + image(way), "dir:got")
    assert json.loads(box.read("got/manifest.json"))["layers"]
    return version("skopeo", "--version"), ["copy of an image"]


def docker_manifest(way):
    """What the client asks a registry itself, without its daemon."""
    need("docker")
    done = way.sandbox("docker").run("docker", "manifest", "inspect", image(way)[2:])
    assert json.loads(done.stdout)["layers"]
    return version("docker", "--version"), ["manifest of an image"]


OF_NODE = {"captured": ("its Node.js " + BRINGS_ROOTS, "certificate")}
OF_ITS_OWN = {"captured": (BRINGS_ROOTS, "UNABLE_TO_VERIFY|UnknownIssuer")}
OPTION_ONLY = {"environment": ("takes roots from an option only", "Cannot download repomd.xml")}
TOOLS = [
    ("npm", npm_install, OF_NODE), ("pnpm", pnpm_add, OF_NODE), ("Yarn 1", yarn_add, OF_NODE), ("Yarn 4", yarn_4_add, OF_NODE),
    ("Bun install", bun_add, OF_ITS_OWN), ("pip", pip_download, {}), ("uv", uv_download, OF_ITS_OWN), ("Poetry", poetry_install, {}),
    ("pipx", pipx_install, {}), ("go get", go_get, {}), ("go get", go_get_beside_the_sums, {}), ("cargo", cargo_fetch, {}),
    ("Maven", maven_resolve, {}), ("Gradle", gradle_resolve, {}), ("apt", apt_update_and_download, {}), ("dnf", dnf_download, OPTION_ONLY),
    ("Bundler", bundle_install, {}), ("Composer", composer_install, {}), ("skopeo", skopeo_copy, {}), ("Docker CLI", docker_manifest, {}),
]
