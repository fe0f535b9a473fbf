"""exeatd as a system service: who owns what, what an operator sees when it does not work, and a new CA."""
import json
import os
import re
import shutil
import ssl

from helpers import HOSTS, ask, code, is_served, kill_and_wait, small_place
from place import ROOT, UIDS, Report, Skip, need_root, wait_for

EXEAT = 61799  # for sysusers' `-`: any uid that no user has


def read(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


# ---- as the files in systemd/ have it ----

def users():
    """Names of systemd/exeat.sysusers to uids."""
    rows = re.findall(r"^u (\S+)\s+(\S+)", read("systemd", "exeat.sysusers"), re.M)
    return {name: EXEAT if uid == "-" else int(uid) for name, uid in rows}


def make_directories(place):
    """What systemd-tmpfiles would make, of the state directory."""
    uids = {"root": 0, **users()}
    rows = re.findall(r"^d (\S+)\s+(\d+) (\S+) (\S+)", read("systemd", "exeat.tmpfiles"), re.M)
    for path, mode, user, _ in rows:
        if path.startswith("/var/lib/exeat"):
            own = place.path("state") + path[len("/var/lib/exeat"):]
            os.makedirs(own, exist_ok=True)
            os.chmod(own, int(mode, 8))
            os.chown(own, uids[user], uids[user])


def capabilities():
    names = re.search(r"^AmbientCapabilities=(.*)$", read("systemd", "exeatd.service"), re.M).group(1)
    return ",".join("+" + name[4:].lower() for name in names.split())


def what_root_makes_is_of_use_to_the_service(_):
    need_root("make what is the service's")
    if not shutil.which("setpriv"):
        raise Skip("there is no setpriv here")
    place = small_place()
    try:
        place.prefix = ["setpriv", "--reuid=%d" % EXEAT, "--regid=%d" % EXEAT, "--clear-groups",
                        "--inh-caps=" + capabilities(), "--ambient-caps=" + capabilities(), "--"]
        # The user must get at the program, wherever it was built, and make its sockets.
        shutil.copy(os.path.join(place.build, "exeatd"), place.directory)
        place.build = os.path.dirname(shutil.copy(os.path.join(place.build, "exeat"), place.directory))
        os.chown(place.directory, EXEAT, EXEAT)
        make_directories(place)
        place.start()
        assert ask(place).status == 200
        owners = {p["role"]: os.stat("/proc/%d" % p["pid"]).st_uid
                  for p in json.loads(place.exeat("status", "--json"))["processes"] if p["pid"] and "lane" not in p}
        named = {name[6:]: uid for name, uid in users().items() if "-" in name}
        assert {role: owners.get(role) for role in named} == named, (owners, named)
        place.exeat("ca", "rotate")
        place.exeat("vault", "rekey")
        place.stop()
        place.launch()
        place.context = None
        assert ask(place).status == 200
    finally:
        place.__exit__()


def start_again(place):
    """exit status and what a daemon says that must not start; it has its time to do so all the same."""
    place.stop()
    before = len(place.log())
    try:
        place.launch()
    except AssertionError:
        return place.daemon.wait(20), place.log()[before:]
    return None, "it has started"


def what_others_may_write_or_own_is_refused_with_the_remedy(place):
    need_root("give files away")
    state, ca = place.path("state"), place.path("state", "ca")
    for path, mode, what in ((state, 0o777, "chmod go-w"), (ca, 0o770, "chmod go-w"),
                             (place.path("state", "vault.key"), 0o640, "chmod 0600"),
                             (place.path("state", "ca", "ca.pem"), 0o666, "chmod 0644")):
        right = os.stat(path)
        os.chmod(path, mode)
        os.chown(path, right.st_uid, 4321)
        status, said = start_again(place)
        assert status == 1 and path + ": " in said and what in said and "%04o" % mode in said, (path, said)
        os.chmod(path, right.st_mode & 0o7777)
        os.chown(path, right.st_uid, right.st_gid)
    os.unlink(place.path("state", "lock"))
    for path in (state, ca, place.path("state", "ca", "ca.key")):
        owner = os.stat(path).st_uid
        os.chown(path, 4321, -1)
        status, said = start_again(place)
        assert path.endswith("ca.key") or "lock" not in os.listdir(state), "made in what is somebody else's: " + path
        assert status == 1 and path + ": " in said and "user 4321" in said and "chown" in said, (path, said)
        os.chown(path, owner, -1)
    place.launch()
    assert ask(place).status == 200


def another_range_of_uids_takes_the_files_over(place):
    need_root("be given uids")
    with open(place.path("exeat.conf")) as f:
        before = f.read()
    place.stop()
    place.write("exeat.conf", before.replace(UIDS, "uids 62800 - 62999\n"))
    place.launch()
    assert code(place, "status") == 0 and ask(place).status == 200, place.last
    assert code(place, "log", "verify") == 0, place.last
    place.stop()
    place.write("exeat.conf", before)
    place.launch()
    assert code(place, "status") == 0 and ask(place).status == 200, place.last


def a_second_name_of_a_file_elsewhere_is_not_given_away(place):
    need_root("give files away")
    elsewhere, second = place.path("elsewhere"), place.path("state", "audit", "second")
    place.write("elsewhere", "")
    os.link(elsewhere, second)
    status, said = start_again(place)
    assert status == 1 and second + ": " in said and os.stat(elsewhere).st_uid == 0, said
    os.unlink(second)
    place.launch()
    assert ask(place).status == 200


# ---- a new CA ----

def issuer(place):
    """Who signed the leaf that a sandbox sees now: a client that trusts only the newest CA."""
    newest = read_first(place.path("state", "public", "ca.pem"))
    context = ssl.create_default_context(cadata=newest)
    try:
        place.tls("a", "%s:%d" % (HOSTS[0], place.values["port"]), context=context).close()
    except ssl.SSLCertVerificationError:
        return "old"
    return "new"


def read_first(path):
    with open(path) as f:
        return f.read().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"


def ad_05_a_reload_takes_a_rotated_ca_and_until_then_the_old_one_stays(place):
    assert ask(place).status == 200  # with a leaf that is kept
    place.exeat("ca", "rotate")
    assert b"exeat reload" in place.last.stderr, place.last
    assert issuer(place) == "old"
    assert code(place, "ca", "rotate", "--finish") == 1 and b"exeat reload" in place.last.stderr, place.last
    before = place.pids()
    assert code(place, "reload") == 0, place.last
    assert wait_for(lambda: issuer(place) == "new", 5), "the leaf of the old CA is still given out"
    assert place.pids() == before, "something was started anew"
    assert [r for r in place.records() if r.get("event") == "ca_changed"]
    assert code(place, "ca", "rotate", "--finish") == 0, place.last
    place.context = None  # of clients: trusts what is in public/ca.pem now
    assert ask(place).status == 200


def ad_05_a_ca_that_was_killed_after_a_rotation_leaves_no_old_leaf(place):
    assert ask(place).status == 200
    place.exeat("ca", "rotate")
    assert kill_and_wait(place, ("ca", 0))
    assert wait_for(lambda: issuer(place) == "new", 10, 0.1)
    assert code(place, "reload") == 0 and code(place, "ca", "rotate", "--finish") == 0, place.last
    place.context = None
    assert is_served(place)


def ad_05_a_ca_that_is_of_no_use_is_refused_and_the_one_in_use_signs_on(place):
    before = place.pids()
    for name, spoil in (("ca.pem", lambda good: good.replace("A", "B")), ("ca.pem", lambda good: ""),
                        ("ca.pem", lambda good: good + "#" * 20000), ("ca.key", lambda good: good + "#" * 20000)):
        path = place.path("state", "ca", name)
        with open(path) as f:
            good = f.read()
        with open(path, "w") as f:
            f.write(spoil(good))
        assert code(place, "reload") != 0 and b"ca refused" in place.last.stderr, place.last
        assert ask(place).status == 200
        with open(path, "w") as f:
            f.write(good)
    assert place.pids() == before
    assert code(place, "reload") == 0, place.last


def ad_05_a_reload_without_the_cas_certificate_spoils_no_later_change(place):
    path = place.path("state", "ca", "ca.pem")
    os.rename(path, path + ".away")
    assert code(place, "reload") == 3, place.last
    os.rename(path + ".away", path)
    assert code(place, "sandbox", "remove", "b") == 0, place.last
    place.add_sandbox("b")
    assert ask(place, sandbox="b").status == 200 and code(place, "reload") == 0


# ---- what does not work shows ----

def a_locked_vault_shows_in_the_status_and_is_no_fault_of_the_sandbox(place):
    key = place.path("state", "vault.key")
    with open(key) as f:
        right = f.read()
    place.stop()
    with open(key, "w") as f:
        f.write("0" * 64 + "\n")
    place.launch()
    assert code(place, "status") == 1, place.last
    assert re.search(rb"^TROUBLE +broker: the vault is locked.*vault\.key", place.last.stdout, re.M), place.last.stdout
    got = ask(place)
    assert got.status == 503 and got.reason == "broker_unavailable", got
    assert "the vault is locked" in place.record(got.record)["detail"], place.record(got.record)
    assert ask(place, placeholder="sk-live-of-somebody-0123456789").reason == "foreign_credential"
    place.stop()
    with open(key, "w") as f:
        f.write(right)
    place.launch()
    assert code(place, "status") == 0 and ask(place).status == 200, place.last


def a_vault_that_cannot_be_opened_says_which_file_and_why(place):
    path = place.path("state", "vault", "vault.db")
    place.stop()
    os.chmod(path, 0)
    place.launch()
    assert code(place, "status") == 1 and re.search(
        rb"^TROUBLE +broker: .*vault/vault\.db: Permission denied", place.last.stdout, re.M), place.last.stdout
    place.stop()
    os.chmod(path, 0o600)
    place.launch()
    assert code(place, "status") == 0 and ask(place).status == 200, place.last


def a_token_that_cannot_be_checked_is_no_wrong_one(_):
    """On a shared listener the vault says who a sandbox is."""
    with small_place(listeners={"shared": "shared a b"}) as place:
        place.stop()
        place.write("state/vault.key", "0" * 64 + "\n")
        place.launch()
        got = ask(place, listener="shared", proxy_fields=b"Proxy-Authorization: Basic YTpiYmJi\r\n")
        assert got.status == 503 and got.reason == "broker_unavailable", got


def a_trail_that_cannot_be_written_shows_in_the_status(place):
    log, away = place.path("state", "audit", "audit.jsonl"), place.path("away")
    place.stop()
    os.rename(log, away)
    os.mkdir(log)
    place.launch()
    assert code(place, "status") == 1, place.last
    assert re.search(rb"^TROUBLE +audit: .*/audit: the log cannot be opened.*every request is refused", place.last.stdout,
                     re.M), place.last.stdout
    assert ask(place).reason == "audit_unavailable"
    os.rmdir(log)
    os.rename(away, log)
    assert is_served(place) and wait_for(lambda: code(place, "status") == 0, 5), place.last


def a_process_that_does_not_run_shows_in_the_status(place):
    with open(place.path("state", "ca", "ca.pem")) as f:
        good = f.read()
    place.write("state/ca/ca.pem", "nothing")
    kill_ca = place.pids()[("ca", 0)]
    os.kill(kill_ca, 9)
    shown = wait_for(lambda: code(place, "status") == 1 and
                     re.search(rb"^TROUBLE +ca: does not run", place.last.stdout, re.M), 10, 0.05)
    place.write("state/ca/ca.pem", good)
    assert shown, place.last.stdout
    assert wait_for(lambda: code(place, "status") == 0, 20, 0.1), place.last.stdout


# ---- a socket for a sandbox ----

def a_socket_is_given_to_whom_the_configuration_says(_):
    need_root("give a socket away")
    place = small_place(listeners={"a": "sandbox a", "unix": "sandbox b; owner 1234; group 4321; mode 0620"})
    with place:
        st = os.stat(place.path("unix.sock"))
        assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (1234, 4321, 0o620), st
        text = place.exeat("sandbox", "add", "b")
        assert "export EXEAT_SOCKET='%s'\n" % place.path("unix.sock") in text and "UNIX-CONNECT" in text, text
        assert "https_proxy='" not in text, text


# ---- the vault ----

def a_rekey_that_cannot_be_asked_for_leaves_nothing(place):
    key = place.path("state", "vault.key")
    place.stop()
    assert code(place, "vault", "rekey") == 4 and not os.path.exists(key + ".new"), place.last
    place.launch()
    with open(key) as f:
        before = f.read()
    assert code(place, "vault", "rekey") == 0 and b"vault.key.old" in place.last.stdout, place.last
    with open(key + ".old") as f:
        assert f.read() == before
    assert os.stat(key + ".old").st_mode & 0o777 == 0o600
    place.write("state/vault.key.new", before)
    assert code(place, "vault", "rekey") == 1 and b"interrupted rekey" in place.last.stderr, place.last
    os.unlink(key + ".new")
    assert code(place, "vault", "rekey") == 0 and is_served(place), place.last


def a_restored_copy_tells_who_counts_again(place):
    place.exeat("vault", "backup", place.path("copy"))
    place.exeat("sandbox", "remove", "b")
    assert code(place, "vault", "restore", place.path("copy")) == 0
    assert place.last.stdout.decode().splitlines()[1:] == ["sandboxes whose token and placeholders of then count again: b"], \
        place.last.stdout
    assert ask(place, sandbox="b").status == 200
    back = [r for r in place.records() if r.get("event") == "sandbox_restored"]
    assert [r["sandbox"] for r in back] == ["b"], back


# ---- the trail ----

def au_04_a_trail_that_was_deleted_while_the_daemon_was_down_does_not_verify(place):
    assert ask(place).status == 200
    place.stop()
    os.unlink(place.path("state", "audit", "audit.jsonl"))
    place.launch()
    assert code(place, "log", "verify") == 1, place.last
    assert re.search(rb"^bad: .*missing from the end.*\(audit\.jsonl:\d+\)$", place.last.stdout, re.M), place.last.stdout


TESTS = [a_vault_that_cannot_be_opened_says_which_file_and_why,
         a_rekey_that_cannot_be_asked_for_leaves_nothing, a_restored_copy_tells_who_counts_again,
         a_locked_vault_shows_in_the_status_and_is_no_fault_of_the_sandbox,
         a_trail_that_cannot_be_written_shows_in_the_status, a_process_that_does_not_run_shows_in_the_status,
         ad_05_a_reload_takes_a_rotated_ca_and_until_then_the_old_one_stays,
         ad_05_a_ca_that_was_killed_after_a_rotation_leaves_no_old_leaf,
         ad_05_a_ca_that_is_of_no_use_is_refused_and_the_one_in_use_signs_on,
         ad_05_a_reload_without_the_cas_certificate_spoils_no_later_change,
         au_04_a_trail_that_was_deleted_while_the_daemon_was_down_does_not_verify]


FILES = [what_others_may_write_or_own_is_refused_with_the_remedy, another_range_of_uids_takes_the_files_over,
         a_second_name_of_a_file_elsewhere_is_not_given_away]
# Each in a place of its own.
ALONE = [a_token_that_cannot_be_checked_is_no_wrong_one, what_root_makes_is_of_use_to_the_service,
         a_socket_is_given_to_whom_the_configuration_says]


def main():
    report = Report()
    report.run_in(small_place, TESTS)
    report.run_in(small_place, FILES)
    report.run_all(ALONE)
    report.end()


if __name__ == "__main__":
    main()
