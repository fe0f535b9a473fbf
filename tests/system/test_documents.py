#!/usr/bin/env python3
"""What the documents say is what the programs do: limits, words, commands, and every example in them."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from place import BUILD, ROOT, Report, Skip, free_port

EXEAT = os.path.join(BUILD, "exeat")
INVALID, UNREACHABLE = 3, 4
tests = []


def test(function):
    tests.append(function)
    return function


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def exeat(*args):
    return subprocess.run([EXEAT, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def blocks(text):
    """The fenced code of a document."""
    return [b for language, b in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if not language]


def statements(block):
    """Its statements: lines, or several where braces are open at the end of one."""
    out, depth = [], 0
    for line in block.split("\n"):
        if depth == 0:
            out.append("")
        out[-1] += line + "\n"
        depth += line.count("{") - line.count("}")
    return [s for s in out if s.strip() and not s.strip().startswith("#")]


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as f:
        f.write(text)
    return path


# ---- limits ----

@test
def limits_md_has_what_the_command_prints(_):
    assert exeat("limits").stdout in read("docs", "limits.md"), "docs/limits.md is not `exeat limits`"


@test
def reasons_md_has_what_the_command_prints(_):
    printed = exeat("reasons").stdout
    codes = set(re.findall(r'"([a-z_]+)", \d+,', read("policy", "reason.c")))
    assert len(codes) > 60 and codes == set(re.findall(r"^\| `(\w+)` \|", printed, re.M)), codes
    assert printed in read("docs", "reasons.md"), "docs/reasons.md is not `exeat reasons`"
    for code in codes:
        one = exeat("reasons", code)
        assert one.returncode == 0 and one.stdout.startswith(code) and len(one.stdout.splitlines()) == 3, one
    assert exeat("reasons", "no_such_code").returncode == 1


@test
def bash_completes_every_command_and_option(_):
    """Words that are typed, the last one not yet whole, and all that it can become."""
    names = re.findall(r"^  (\S+)(?: ([a-z]+))? ", exeat("help").stdout, re.M)
    nouns = {noun for noun, _ in names if noun != "exit"}
    cases = [(["exeat", "ve"], {"version"}), (["exeat", ""], nouns | {"help"}), (["exeat", "nft", "p"], {"print"}), (["exeat", "log", "v"], {"verify"}),
             (["exeat", "log", "--den"], {"--denied"}), (["exeat", "log", "--sandbox", "x", "--den"], {"--denied"}),
             (["exeat", "secret", "add", "name", "--l"], {"--like"}), (["exeat", "run", "--sec"], {"--secret"}),
             (["exeat", "policy", "fmt", "--"], {"--check", "--write", "--to", "--config", "--json", "--help"}), (["exeat", "nonsense", ""], set())]
    for words, expected in cases:
        said = subprocess.run(["bash", "-c", '. <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _exeat; '
                               'printf "%s\\n" "${COMPREPLY[@]}"', EXEAT, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert said.returncode == 0 and set(said.stdout.split()) == expected, (words, said)
    for shell in ("zsh", "fish"):
        text = exeat("completion", shell).stdout
        assert all(noun in text for noun in nouns) and "client-certificate" in text, text
        if shutil.which(shell):
            assert subprocess.run([shell, "-n"], input=text, text=True).returncode == 0, shell
    assert exeat("completion", "csh").returncode == 2


# ---- the policy ----

# In one of these every fragment must load.
SERVICE = """service demo-api {{
    host scaffold.example.com
    operation read {{ GET /v1/items/** }}
    operation create {{ POST /v1/items }}
    operation start {anonymous}{{ GET /docs/start }}
    {credential}
    {fragment}
}}
sandbox worker-1 {{ grant demo-api all }}
"""
CREDENTIAL = {"anonymous": "anonymous ", "credential": "credential k { in header x-api-key }"}
NONE = {"anonymous": "", "credential": ""}
SANDBOX = """service demo-api { host a.example.com; operation read { GET / }; operation create { POST / } }
service docs { host docs.example.com; operation read { GET / } }
sandbox worker-9 { FRAGMENT }
"""


def surroundings(fragment, tutorial):
    yield fragment
    yield tutorial + fragment
    yield SERVICE.format(fragment=fragment, **CREDENTIAL)
    yield SERVICE.format(fragment=fragment, **NONE)
    yield SERVICE.format(fragment=fragment, anonymous="anonymous ", credential="")
    yield "service bare { host b.example.com; %s\n%s }\n" % (CREDENTIAL["credential"], fragment)
    # Addresses of documents are not public.
    yield SERVICE.format(fragment=fragment + "range 192.0.2.0/24 2001:db8::/32", **NONE)
    yield SANDBOX.replace("FRAGMENT", fragment)


def loads(directory, text):
    return exeat("policy", "check", write(directory, "policy", text)).returncode == 0


@test
def every_example_of_policy_md_loads(directory):
    found = [b for b in blocks(read("docs", "policy.md")) if not re.match(r"\$ |policy:|policy +=", b)]
    tutorial = found[0]
    assert loads(directory, tutorial), "the tutorial does not load"
    count = 0
    for block in found[1:]:
        for statement in [block] if block.startswith("service") else statements(block):
            count += 1
            assert any(loads(directory, t) for t in surroundings(statement, tutorial)), statement
    assert count > 15, "only %d examples were found" % count


@test
def the_json_of_policy_md_is_a_policy_in_its_canonical_form(directory):
    found = re.findall(r"^```json\n(.*?)^```$", read("docs", "policy.md"), re.M | re.S)
    assert len(found) == 1
    path = write(directory, "policy.json", found[0])
    assert exeat("policy", "check", path).returncode == 0, exeat("policy", "check", path).stdout
    assert exeat("policy", "fmt", "--check", path).returncode == 0, exeat("policy", "fmt", path).stdout


@test
def the_table_of_path_patterns_is_true(directory):
    rows = re.findall(r"^\| (`/\S*`) \| (.*?) \| (.*?) \|$", read("docs", "policy.md"), re.M)
    assert len(rows) >= 7
    for pattern, matches, others in rows:
        allowed = ["/x/y"] if matches.startswith("everything") else re.findall(r"`(\S+)`", matches)
        denied = ["/x/y"] if others.startswith("everything") else re.findall(r"`(\S+)`", others)
        assert allowed and denied, pattern
        lines = ["expect allow GET " + p for p in allowed] + ["expect deny GET " + p for p in denied]
        text = "service a { host a.example.com; operation r { GET %s }\n%s }\n" % (pattern.strip("`"), "\n".join(lines))
        assert loads(directory, text), text


@test
def the_order_of_reasons_in_policy_md_names_known_ones(_):
    known = set(re.findall(r'TOLD\(\w+, "(\w+)"', read("policy", "reason.c")))
    known |= set(re.findall(r'\bREASON_\w+, "(\w+)"', read("policy", "reason.c")))
    known |= set(re.findall(r'"(\w+)", \d+,', read("policy", "reason.c")))
    section = read("docs", "policy.md").split("## How a request is judged")[1].split("## ")[0]
    told = re.findall(r"\| `(\w+)` \|$", section, re.M)
    assert len(told) > 12
    for reason in told:
        assert reason in known, reason
        assert reason in read("docs", "man", "exeat-policy.5"), reason + " is not in exeat-policy(5)"


# ---- the configuration ----

BASE = "state state\npolicy policy\nlisten tcp 127.0.0.1:1 { sandbox z }\n"


def is_configuration(directory, text):
    """With a good one the command only misses the daemon."""
    return exeat("--config", write(directory, "exeat.conf", text), "secret", "list").returncode == UNREACHABLE


@test
def every_example_of_configuration_md_is_read(directory):
    assert is_configuration(directory, BASE) and not is_configuration(directory, BASE + "nonsense\n")
    found = [b for b in blocks(read("docs", "configuration.md") + read("docs", "service.md"))
             if not b.startswith("configuration =")]
    for block in found:
        assert is_configuration(directory, block if block.startswith("state") else BASE + block), block
    assert len(found) >= 5


@test
def the_examples_that_are_installed_belong_together(directory):
    text = read("docs", "examples", "exeat.conf")
    assert is_configuration(directory, text)
    policy = os.path.join(ROOT, "docs", "examples", re.search(r"^policy +(\S+)$", text, re.M).group(1))
    checked = exeat("policy", "check", policy)
    assert checked.returncode == 0, checked.stdout
    for sandbox in re.findall(r"sandbox (\S+) }", text):
        assert re.search(r"^sandbox %s " % sandbox, read("docs", "examples", "policy"), re.M), sandbox
    first = re.search(r"^uids +(\d+) - \d+", text, re.M).group(1)
    assert "exeat-broker  %s" % first in read("systemd", "exeat.sysusers"), first


def includes_what_is_installed_with_it(prefix, directory):
    """Whatever prefix it was built for."""
    policy, env = os.path.join(directory, "policy"), {k: v for k, v in os.environ.items() if k != "EXEAT_SHARE"}
    for name, code in (("github", 0), ("nowhere", 3)):
        with open(policy, "w") as f:
            f.write("include services/%s.policy\n" % name)
        done = subprocess.run([prefix + "/bin/exeat", "policy", "check", policy], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        assert done.returncode == code and (code == 0 or prefix + "/share/exeat" in done.stdout), done.stdout
    # Where nothing lies beside it, the prefix that it was built for counts, however often it is asked for.
    alone = os.path.join(directory, "alone", "bin")
    os.makedirs(alone)
    shutil.copy(prefix + "/bin/exeat", alone)
    done = subprocess.run([alone + "/exeat", "policy", "check", policy], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 3 and "share/exeat" in done.stdout and "alone" not in done.stdout, done.stdout
    os.unlink(policy)


@test
def all_that_is_installed_is_there(directory):
    done = subprocess.run(["make", "-s", "-C", ROOT, "B=" + os.path.dirname(os.path.abspath(EXEAT)), "DESTDIR=" + directory,
                           "PREFIX=/usr", "-o", "all", "install"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    empty = [path for path, folders, files in os.walk(directory) if not folders and not files]
    assert not empty, empty
    for name in ("bin/exeat", "bin/exeatd", "share/exeat/policy", "share/exeat/exeat.conf", "share/exeat/services/github.policy", "share/exeat/apparmor/exeat",
                 "share/man/man1/exeat.1", "share/bash-completion/completions/exeat", "share/zsh/site-functions/_exeat",
                 "share/fish/vendor_completions.d/exeat.fish",
                 "share/doc/exeat/policy.md", "lib/systemd/system/exeatd.service", "lib/sysusers.d/exeat.conf"):
        assert os.path.getsize(os.path.join(directory, "usr", name)) > 0, name
    includes_what_is_installed_with_it(os.path.join(directory, "usr"), directory)
    count = 0
    for path, _, files in os.walk(os.path.join(directory, "usr", "share", "doc", "exeat")):
        for name in files:
            with open(os.path.join(path, name)) as f:
                for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", f.read()):
                    assert os.path.exists(os.path.join(path, link)), (name, link)
                    count += 1
    assert count > 20, count


# ---- man pages ----

def manual(name):
    """Its words, without macros."""
    return re.sub(r"\\&", "", read("docs", "man", name))


def words_of(*files):
    """Every keyword that a reader of a text compares with."""
    source = "".join(read(*f.split("/")) for f in files)
    words = re.findall(r'lexer_(?:skip|at)_word\(l, "([^"]+)"\)', source)
    words += re.findall(r'\{"([a-z-]+)", (?:read|config)_\w+, \w+\}', source)
    words += re.findall(r'\{"([a-z]+)", BODY_\w+\}', source)
    for table in re.findall(r"const char \*const (?:known|kinds|halves|presets|modes)\[\] = \{([^}]*)\}", source):
        words += re.findall(r'"([^"]+)"', table)
    return set(words)


def policy_words():
    found = glob.glob(os.path.join(ROOT, "policy", "reader*.c"))
    assert len(found) >= 8, found
    return words_of(*["policy/" + os.path.basename(f) for f in found])


def check_words(words, least, page):
    text = manual(page)
    assert len(words) >= least, sorted(words)
    for word in sorted(words):
        assert re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(word), text), "%s is not in %s" % (word, page)


@test
def exeat_policy_5_has_every_word_of_the_policy(_):
    check_words(policy_words(), 90, "exeat-policy.5")


@test
def exeat_policy_5_has_the_grammar_and_the_examples_of_policy_md(_):
    grammar = read("docs", "policy.md").split("## Grammar\n\n```\n")[1].split("```")[0]
    assert ".Bd -literal\n%s.Ed\n" % grammar in read("docs", "man", "exeat-policy.5"), "the grammar of exeat-policy(5)"
    examples = read("docs", "man", "exeat-policy.5").split("\n.Sh EXAMPLES\n")[1]
    assert examples.split(".Bd -literal\n")[2].split(".Ed")[0] in read("docs", "policy.md"), "the example of exeat-policy(5)"


@test
def exeat_conf_5_has_every_word_of_the_configuration(_):
    check_words(words_of("daemon/config.c", "daemon/config_listen.c"), 20, "exeat.conf.5")


@test
def the_documents_of_both_grammars_have_every_word(_):
    for document, words in (("policy.md", policy_words()),
                            ("configuration.md", words_of("daemon/config.c", "daemon/config_listen.c"))):
        for word in words:
            assert '"%s"' % word in read("docs", document) or "`%s" % word in read("docs", document), (document, word)


@test
def exeat_1_has_every_command_and_option(_):
    text = manual("exeat.1").replace("Fl Fl ", "--")
    commands = re.findall(r"^  (\S+)(?: ([a-z]+))?(.*)$", exeat("help").stdout, re.M)
    names = [c for c in commands if c[0] != "exit"]
    assert len(names) >= 20
    for noun, verb, rest in names:
        line = re.search(r"^\.It Cm %s\b(?! (?:verify|head)).*$" % re.escape((noun + " " + verb).strip()), text, re.M)
        assert line, "exeat %s %s is not in exeat(1)" % (noun, verb)
        said = exeat(*[word for word in (noun, verb) if word], "--help")
        assert said.returncode == 0 and said.stdout.startswith("usage: exeat %s" % (noun + " " + verb).strip()), said
        assert all(len(row) <= 100 for row in said.stdout.splitlines() if not row.startswith("usage: ")), said.stdout
        options = re.findall(r"^  (--[a-z-]+)\b.* \S+$", said.stdout, re.M)
        assert set(re.findall(r"--[a-z-]+", rest)) <= set(options) and len(set(options)) == len(options), (noun, verb, options)
        for option in options:
            assert option in line.group(0), "%s of exeat %s %s" % (option, noun, verb)
        for option in set(re.findall(r"--[a-z][a-z-]*", line.group(0))):
            assert option in options or noun == "env", "%s of exeat %s %s is not in its help" % (option, noun, verb)
    source = read("cli", "command.h")
    for code in re.findall(r"EXIT_\w+ = (\d)", source):
        assert re.search(r"^\.It %s$" % code, text, re.M), "exit status %s" % code


@test
def json_is_printed_or_refused(directory):
    """By every command, as exeat(1) says; those that were given something wrong refuse it before they look at it."""
    page = re.search(r"refuse it, with exit status 2:\n(.*?)^\.It ", read("docs", "man", "exeat.1"), re.M | re.S).group(1)
    refusing = set(re.findall(r"^\.Cm ([a-z ]+?)(?: [,;.])?$", page, re.M))
    assert len(refusing - {"run"}) == 8, refusing
    for noun, verb in re.findall(r"^  (\S+)(?: ([a-z]+))? ", exeat("help").stdout, re.M):
        name = (noun + " " + verb).strip()
        if noun in ("exit", "run"):
            continue
        done = exeat("--config", directory + "/none", "--json", *name.split(), "x", "y", "--nonsense")
        assert ("do without --json" in done.stdout) == (name in refusing) and (name not in refusing or done.returncode == 2), (name, done)


@test
def exeatd_8_has_every_option_of_the_usage(_):
    text = manual("exeatd.8").replace("Fl Fl ", "--")
    help_text = subprocess.run([os.path.join(os.path.dirname(EXEAT), "exeatd"), "--help"], stdout=subprocess.PIPE,
                               text=True).stdout
    options = set(re.findall(r"--[a-z-]+", help_text))
    assert options >= {"--config", "--debug", "--version"}
    for option in options:
        assert option in text, option


@test
def examples_in_man_pages_are_true(directory):
    examples = read("docs", "man", "exeat-policy.5").split("\n.Sh EXAMPLES\n")[1]
    policies = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed", examples, re.M | re.S)
    assert len(policies) == 2
    for policy in policies:
        assert loads(directory, policy), policy
    config = re.search(r"^\.Sh EXAMPLES\n\.Bd -literal\n(.*?)^\.Ed", read("docs", "man", "exeat.conf.5"), re.M | re.S)
    assert is_configuration(directory, config.group(1)), "the example of exeat.conf(5)"


@test
def man_pages_are_clean(_):
    if not shutil.which("mandoc"):
        raise Skip("mandoc is not installed")
    pages = [os.path.join(ROOT, "docs", "man", p) for p in ("exeat.1", "exeatd.8", "exeat.conf.5", "exeat-policy.5")]
    said = subprocess.run(["mandoc", "-T", "lint", "-W", "style", *pages], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True).stdout
    # Whether they are installed, and mandoc knows of it, is not their fault.
    faults = [line for line in said.split("\n")
              if line and "referenced manual not found" not in line and "outdated mandoc.db" not in line]
    assert not faults, "\n".join(faults)


# ---- the README ----

@test
def the_walk_through_of_the_readme_works(directory):
    """Its blocks, as they stand but for ports and the directory, in one shell."""
    shell = "".join(re.findall(r"^```sh\n(.*?)^```$", read("README.md"), re.M | re.S))
    assert shell.count("\ncat >") == 2 and shell.count("curl") >= 5
    os.chmod(directory, 0o755)  # roles of several uids own folders in it
    port, api_port = str(free_port()), str(free_port())
    shell = shell.replace("3128", port).replace("8443", api_port).replace("/tmp/try-exeat", directory + "/try")
    shell = shell.replace("$PWD/build:", os.path.dirname(os.path.abspath(EXEAT)) + ":")
    ended = "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
    done = subprocess.run(["bash", "-euc", ended + shell], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    for expected in ("policy: good", "demo-key: added", '"key": "accepted"', "foreign_credential",
                     "operation_not_allowed", "(never;", "host_not_allowed", "good: ", "operation_not_allowed\n",
                     "\nstopped\n"):
        assert expected in done.stdout, "no '%s' in:\n%s" % (expected, done.stdout)
    assert "sk-live-0123456789" not in done.stdout, "the key is shown"


@test
def links_of_documents_lead_somewhere(_):
    for document in ("README.md", "docs/policy.md", "docs/configuration.md", "docs/limits.md", "docs/architecture.md",
                     "docs/audit.md", "docs/threat-model.md", "docs/service.md", "docs/run.md"):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(*document.split("/"))):
            assert os.path.exists(os.path.join(ROOT, os.path.dirname(document), link)), (document, link)


@test
def other_policies_of_the_readme_load(directory):
    for text in re.findall(r"^```\n(service .*?)^```$", read("README.md"), re.M | re.S):
        assert loads(directory, text), text


# ---- the demo ----

@test
def the_demo_policy_loads(directory):
    text = re.search(r"cat >policy.exeat <<EOF\n(.*?)^EOF$", read("demo", "demo.sh"), re.M | re.S).group(1)
    assert loads(directory, text.replace("$api_port", "8443")), text


def main():
    report = Report()
    for function in tests:
        report.run_in(lambda: tempfile.TemporaryDirectory(prefix="exeat-documents-"), [function])
    report.end()


if __name__ == "__main__":
    main()
