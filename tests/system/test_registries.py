#!/usr/bin/env python3
"""`exeat policy registries`: services for exactly the hosts that the clients are set up for, in a home and a system made up for it."""
import os
import re
import subprocess
import tempfile

from place import BUILD, Report

EXEAT = os.path.join(BUILD, "exeat")
FILES = {
    "home/.npmrc": "; npm\n@acme:registry=https://npm.acme.test/repo/npm-private/\n//npm.acme.test/:_authToken=secret-token-1\n",
    "home/.config/pip/pip.conf": "[global]\nindex-url = https://joe:secr@et-2-secret@mirror.acme.test/pypi/simple\n"
                                 "extra-index-url =\n    https://one.acme.test/simple\n    https://two.acme.test:8443/simple/\n"
                                 "proxy = https://not-a-registry.test\n",
    "home/.pypirc": "[acme]\nrepository: https://upload.acme.test/legacy/\nusername = joe\npassword = secret-3\n",
    "home/.cargo/config.toml": '[source.crates-io]\nreplace-with = "acme"\n[source.acme]\n'
                               'registry = "sparse+https://cargo.acme.test/index/"\n',
    "home/.cargo/registry/index/x-1/config.json": '{"dl":"https://files.acme.test/crates","api":"https://api.acme.test"}',
    "home/.m2/settings.xml": "<settings><!-- <url>https://example-in-a-comment.test</url>\n <url>https://another.test</url> -->\n"
                             "<mirror>\n<url>https://mvn.acme.test/maven2</url>\n</mirror>\n"
                             "<mirror>\n<url>http://0.0.0.0/</url></mirror></settings>\n",
    "system/etc/apt/sources.list": "# deb http://commented.test/debian stable main\n"
                                   "deb [signed-by=/x.gpg] http://apt.acme.test/debian stable main\n",
    "system/etc/apt/sources.list.d/a.sources": "Types: deb\nURIs: https://deb.acme.test/one\n https://deb.acme.test/two\nSuites: x\n",
    "system/etc/npmrc": "registry = http://127.0.0.1:4873/\n",
}
CLIENTS = {
    "npm": "echo https://npm.acme.test/repo/npm/",
    "go": 'case $2 in GOPROXY) echo "https://go.acme.test/mod|https://go2.acme.test,direct";; GOSUMDB) echo "sum.acme.test+ab+cd/ef";; esac',
    "gem": "echo '*** CURRENT SOURCES ***'; echo; echo https://gems.acme.test/",
    "python3": 'case $2 in *file_storage*) echo https://default-files.test;; *) echo https://default.test/simple;; esac',
}
# What each service is for: its base, requests of `install`, and those of `publish`.
WANTED = {
    "https://npm.acme.test/repo/npm-private": (["/x", "/@acme%2fx", "/@acme/x/-/x-1.tgz"], ["PUT /x"]),
    "https://npm.acme.test/repo/npm": (["/left-pad", "/left-pad/-/left-pad-1.3.0.tgz"], ["PUT /left-pad"]),
    "http://127.0.0.1:4873": (["/left-pad"], ["PUT /left-pad"]),
    "https://mirror.acme.test/pypi": (["/simple/requests/", "/packages/a/b.whl"], ["POST /"]),
    "https://one.acme.test": (["/simple/requests/"], ["POST /legacy/"]),
    "https://two.acme.test:8443": (["/simple/requests/"], ["POST /"]),
    "https://upload.acme.test": ([], ["POST /legacy", "POST /legacy/"]),
    "https://cargo.acme.test/index": (["/config.json", "/se/rd/serde", "/3/l/log"], []),
    "https://files.acme.test/crates": (["/serde/1.0.0/download"], []),
    "https://api.acme.test": ([], ["PUT /api/v1/crates/new"]),
    "https://mvn.acme.test/maven2": (["/com/a/1/a-1.jar"], ["PUT /com/a/1/a-1.jar"]),
    "http://apt.acme.test/debian": (["/dists/stable/InRelease", "/pool/main/a/a.deb"], []),
    "https://deb.acme.test/one": (["/dists/x/InRelease"], []),
    "https://deb.acme.test/two": (["/dists/x/InRelease"], []),
    "https://go.acme.test/mod": (["/example.com/m/@v/v1.0.0.zip", "/example.com/m/@latest"], []),
    "https://go2.acme.test": (["/example.com/m/@v/list"], []),
    "https://sum.acme.test": (["/lookup/example.com/m@v1.0.0", "/tile/8/0/000"], []),
    "https://gems.acme.test": (["/info/rake", "/gems/rake-1.gem", "/versions"], ["POST /api/v1/gems"]),
}


def made_up(files, clients, environment=None):
    """What the command prints for them."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in list(files.items()) + [("bin/" + n, "#!/bin/sh\n%s\n" % t) for n, t in clients.items()]:
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o755)
        os.makedirs(os.path.join(directory, "bin"), exist_ok=True)
        done = subprocess.run([EXEAT, "policy", "registries", "--root", os.path.join(directory, "system")], timeout=60,
                              env=dict({"PATH": directory + "/bin", "HOME": directory + "/home"}, **(environment or {})),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done


def hosts(text):
    return sorted(re.findall(r"^    host (\S+)$", text, re.M))


def check(text):
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(text)
        f.flush()
        return subprocess.run([EXEAT, "policy", "check", f.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def exactly_these_hosts_and_no_secret(text):
    wanted = sorted(re.sub(r"^https?://([^/:]+).*", r"\1", url) for url in WANTED)
    assert hosts(text) == wanted, set(hosts(text)) ^ set(wanted)
    assert "secret" not in text and "joe" not in text and "et-2" not in text


def install_is_apart_from_publish(text):
    """GF-05: somebody who may install may not publish; somebody who may do both can."""
    names = re.findall(r"^service (\S+) \{", text, re.M)
    blocks = re.split(r"^service ", text, flags=re.M)[1:]
    installs = [n for n, b in zip(names, blocks) if "operation install" in b]
    policy = text + "sandbox reader { %s }\nsandbox all { %s }\n" % (
        "; ".join("grant %s install" % n for n in installs), "; ".join("grant %s all" % n for n in names))
    for base, (reads, writes) in WANTED.items():
        for path in reads:
            policy += "expect allow as reader GET %s%s\nexpect deny as reader DELETE %s%s\n" % (base, path, base, path)
        for write in writes:
            method, path = write.split(" ")
            policy += "expect deny as reader %s %s%s\nexpect allow as all %s %s%s\n" % (method, base, path, method, base, path)
    policy += "expect deny as reader GET https://npm.acme.test/repo/elsewhere/left-pad\n"
    policy += "expect deny as all GET https://mirror.acme.test/other/simple/requests/\n"
    done = check(policy)
    assert done.returncode == 0, done.stdout
    assert check(policy.replace("expect allow as reader GET", "expect deny as reader GET", 1)).returncode == 3


def what_is_blocked_by_a_mirror_is_only_told(text):
    assert "settings.xml names what is no host" in text and "host 0.0.0.0" not in text


def defaults_are_asked_of_the_clients(_):
    text = made_up({}, CLIENTS).stdout
    assert hosts(text) == sorted(["npm.acme.test", "go.acme.test", "go2.acme.test", "sum.acme.test", "gems.acme.test", "default.test",
                                  "default-files.test"]), text


def an_extra_index_stands_beside_the_default_and_an_index_in_its_place(_):
    python = {"python3": CLIENTS["python3"]}
    text = made_up({}, python, {"PIP_EXTRA_INDEX_URL": "https://extra.test/simple"}).stdout
    assert hosts(text) == ["default-files.test", "default.test", "extra.test"], text
    text = made_up({}, python, {"PIP_INDEX_URL": "https://mine.test/simple", "npm_config_registry": "https://npm.test"}).stdout
    assert hosts(text) == ["mine.test", "npm.test"], text


def odd_configuration_makes_no_odd_policy(_):
    odd = {"home/.npmrc": "registry=https://a.test/x y } never all\n@b:registry=https://b.test/%zz\n@c:registry=https://c.test/../d\n"
                          "@d:registry=https://exa mple/\n@e:registry=ftp://e.test/\n@f:registry=https://\n"
                          "@g:registry=https://g.test/}\n@h:registry=https://user@h.test@i.test/\n",
           "home/.pypirc": "[x]\nrepository = https://root.test\n"}
    done = made_up(odd, {})
    assert done.returncode == 0, done.stderr
    assert "never" not in done.stdout and check(done.stdout).returncode == 0
    assert hosts(done.stdout)[0] == "a.test" and "root.test" in done.stdout


def without_any_client_there_is_nothing_to_print(_):
    done = made_up({}, {})
    assert done.returncode == 1 and not done.stdout and "no client" in done.stderr


def main():
    report = Report()
    done = made_up(FILES, CLIENTS)
    assert done.returncode == 0, done
    for test in (exactly_these_hosts_and_no_secret, install_is_apart_from_publish, what_is_blocked_by_a_mirror_is_only_told):
        report.run(test, done.stdout)
    for test in (defaults_are_asked_of_the_clients, an_extra_index_stands_beside_the_default_and_an_index_in_its_place,
                 odd_configuration_makes_no_odd_policy, without_any_client_there_is_nothing_to_print):
        report.run(test, None)
    report.end()


if __name__ == "__main__":
    main()
