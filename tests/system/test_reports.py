"""Cases of AU, PH, BR and XS that take more than bytes in: the operator's acts, policies of their own, several keys."""
import json
import os
import re
import socket

from helpers import POLICY, SECRET, ask, ask_quietly, is_served, small_place
from place import Report, need_root, wait_for

OTHER_SECRET = "sk-demo-Rotated0123456789abcdefghijKLM"


def events(place):
    return [r for r in place.records() if r["kind"] == "event"]


def leaves_an_event(place, name, act, **said):
    """What act does is in the trail as an event of this name, with these members."""
    before = len(events(place))
    act()
    found = wait_for(lambda: [e for e in events(place)[before:] if e["event"] == name], 5, 0.05)
    assert found, "no event %s, only %r" % (name, [e["event"] for e in events(place)[before:]])
    for member, value in said.items():
        assert str(found[-1].get(member)) == str(value), found[-1]
    assert SECRET not in json.dumps(found) and OTHER_SECRET not in json.dumps(found)


def au_06_each_act_on_the_vault_and_on_sandboxes_is_recorded(place):
    me = os.getuid()
    leaves_an_event(place, "secret_added", lambda: place.exeat("secret", "add", "more", stdin=OTHER_SECRET.encode()),
                    principal=me, credential="more")
    leaves_an_event(place, "secret_rotated", lambda: place.exeat("secret", "rotate", "more", stdin=SECRET.encode()),
                    principal=me, credential="more")
    leaves_an_event(place, "secret_removed", lambda: place.exeat("secret", "remove", "more"), principal=me, credential="more")
    leaves_an_event(place, "sandbox_added", lambda: place.add_sandbox("b"), principal=me, sandbox="b")
    leaves_an_event(place, "sandbox_removed", lambda: place.exeat("sandbox", "remove", "b"), principal=me, sandbox="b")
    place.add_sandbox("b")


def au_06_a_policy_that_was_taken_or_refused_is_recorded(place):
    leaves_an_event(place, "generation", lambda: (place.write_policy(POLICY + "\n# more\n"), place.exeat("reload")))
    leaves_an_event(place, "reload_refused", lambda: (place.write_policy("service {"), place.exeat("reload", check=False)))
    leaves_an_event(place, "generation", lambda: (place.write_policy(POLICY), place.exeat("reload")))


def au_06_start_and_stop_are_recorded(place):
    leaves_an_event(place, "start", lambda: (place.stop(), place.launch()))
    assert [e for e in events(place) if e["event"] == "stop"], "the stop has no record"
    assert is_served(place)


def connect_as_nobody(place):
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(5)
                s.connect(place.path("control.sock"))
                s.recv(1)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def au_06_who_may_not_ask_is_recorded(place):
    need_root("be somebody else")
    os.chmod(place.path("control.sock"), 0o777)
    leaves_an_event(place, "control_refused", lambda: connect_as_nobody(place))


def ph_12_br_23_a_placeholder_has_the_shape_that_an_sdk_checks(place):
    shapes = {"sk-ant-api03-": r"sk-ant-api03-[\w-]{20,}", "sk-proj-": r"sk-proj-[\w-]{20,}", "ghp_": r"ghp_[0-9A-Za-z]{36}",
              "github_pat_": r"github_pat_\w{22,}", "xoxb-": r"xoxb-[\w-]{20,}", "glpat-": r"glpat-[\w-]{20,}",
              "hf_": r"hf_[A-Za-z0-9]{34,}", "npm_": r"npm_[A-Za-z0-9]{36}", "pypi-": r"pypi-[\w-]{16,}", "SG.": r"SG\.[\w.-]{20,}"}
    seen = set()
    for prefix, shape in shapes.items():
        place.exeat("secret", "remove", "demo-key")
        place.exeat("secret", "add", "demo-key", "--like", prefix, stdin=(prefix + OTHER_SECRET[8:]).encode())
        value = place.add_sandbox("a")["credentials"]["demo-key"]
        assert re.fullmatch(shape, value), value
        assert "exeat" in value and value not in seen, value
        seen.add(value)
        place.upstream.forget()
        assert ask(place).status == 200
        assert (prefix + OTHER_SECRET[8:]).encode() in place.upstream.requests[-1]
    place.exeat("secret", "remove", "demo-key")
    place.exeat("secret", "add", "demo-key", "--like", "sk-demo-", stdin=SECRET.encode())
    for name in ("a", "b"):
        place.add_sandbox(name)


def ph_05_a_value_that_would_break_a_field_is_refused_when_it_is_written(place):
    for value in (b"", b"0123456789abcdef\r\nX: y", b"0123456789abcdef\x00", b"0123456789\rabcdef", b"0123456789\nabcdef",
                  b"0123456789abc\x7f", b"x" * 70000):
        for act in (("secret", "add", "odd"), ("secret", "rotate", "demo-key")):
            place.exeat(*act, stdin=value, check=False)
            assert place.last.returncode == 1, (act, value[:30], place.last)
    place.upstream.forget()
    assert ask(place).status == 200 and SECRET.encode() in place.upstream.requests[-1]


def ph_11_ph_13_a_placeholder_that_was_issued_anew_is_refused(place):
    old = place.placeholder("a", "demo-key")
    place.exeat("sandbox", "remove", "a")
    place.upstream.forget()
    assert ask_quietly(place, placeholder=old).status != 200
    place.add_sandbox("a")
    got = ask(place, placeholder=old)
    assert got.status == 403 and got.reason == "foreign_credential", got
    assert not place.upstream.requests
    assert ask(place).status == 200


def xs_04_what_one_sandbox_looked_up_and_opened_serves_no_other(place):
    """Connections are kept, and not lent across sandboxes; a cached name is no permission."""
    place.upstream.forget()
    assert ask(place, host="open.allowed.test", line="GET /x", placeholder=None).status == 200
    refused = ask(place, sandbox="b", host="open.allowed.test", line="GET /x", placeholder=None)
    assert refused.reason == "host_not_allowed", refused
    before = place.upstream.connections
    assert ask(place, sandbox="b").status == 200
    assert place.upstream.connections == before + 1, "b was served over what a had opened"


def br_13_a_denied_address_in_an_allowed_range_stays_denied(_):
    policy = POLICY.replace("sandbox a { ", """
service lan { host 127.0.0.1 127.0.0.5; port {port}; range 127.0.0.0/8; operation every { * /; * /** } }
service no { host 127.0.0.5; never all }
sandbox a { grant lan all; """)
    with small_place(policy, hosts=("api.allowed.test", "open.allowed.test", "127.0.0.1", "127.0.0.5")) as place:
        assert ask(place, "GET /x", host="127.0.0.1", placeholder=None).status == 200
        place.upstream.forget()
        got = ask(place, "GET /x", host="127.0.0.5", placeholder=None)
        assert got.status == 403 and got.reason == "never", got
        assert place.upstream.connections == 0


TESTS = [au_06_each_act_on_the_vault_and_on_sandboxes_is_recorded,
         au_06_a_policy_that_was_taken_or_refused_is_recorded,
         ph_05_a_value_that_would_break_a_field_is_refused_when_it_is_written,
         ph_11_ph_13_a_placeholder_that_was_issued_anew_is_refused,
         xs_04_what_one_sandbox_looked_up_and_opened_serves_no_other,
         ph_12_br_23_a_placeholder_has_the_shape_that_an_sdk_checks,
         au_06_start_and_stop_are_recorded,
         au_06_who_may_not_ask_is_recorded]


def main():
    report = Report()
    report.run_in(small_place, TESTS)
    report.run_all([br_13_a_denied_address_in_an_allowed_range_stays_denied])
    report.end()


if __name__ == "__main__":
    main()
