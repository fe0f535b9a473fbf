#!/usr/bin/env python3
"""`exeat run`: what rights a command has left, and which files it sees."""
import fcntl
import os
import re
import shutil
import subprocess
import tempfile

from place import Skip
from run_scene import PYTHON, try_all

# ---- rights ----

def the_command_is_its_user_without_rights(scene):
    text = scene.output("sh", "-c", "id -u; id -g; grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status")
    lines = text.split("\n")
    assert lines[:2] == [str(scene.user or os.getuid())] * 2, text
    assert len(re.findall(r"^Cap\w+:\t0{16}$", text, re.M)) == 5 and "NoNewPrivs:\t1" in text and "Seccomp:\t2" in text, text


def other_kinds_of_sockets_and_typing_into_the_terminal_are_refused(scene):
    text = scene.output(PYTHON, "-c", """
import ctypes, fcntl, os, platform, socket
for family in (40, 16, 17, 38, 31, 44, 200):
    try:
        socket.socket(family, socket.SOCK_DGRAM, 0).close()
        print(family, 'made')
    except OSError as e:
        print(family, e.errno)
libc = ctypes.CDLL(None, use_errno=True)
for family in (1, 40, 30):
    print('pair', libc.socketpair(family, socket.SOCK_STREAM, 0, ctypes.create_string_buffer(8)), ctypes.get_errno())
    ctypes.set_errno(0)
for ioctl in (0x5412, 0x541c, 0x5412 | 1 << 32):
    libc.ioctl(0, ctypes.c_ulong(ioctl), b'x')
    print(ioctl & 0xffffffff, ctypes.get_errno())
libc.syscall(425, 1, ctypes.create_string_buffer(120))
print('ring', ctypes.get_errno())
""")
    assert text.split("\n")[:-1] == ["40 97", "16 made", "17 97", "38 97", "31 97", "44 97", "200 97", "pair 0 0", "pair -1 97", "pair -1 97", "21522 1", "21532 1", "21522 1",
                                     "ring 38"], text


def inherited_descriptors_are_closed(scene):
    with open(scene.policy) as f:
        os.set_inheritable(f.fileno(), True)
        text = scene.output("sh", "-c", "ls /proc/self/fd", pass_fds=[f.fileno()])
    assert text.split() == ["0", "1", "2", "3"], text  # 3: ls reads the folder


def a_folder_as_standard_input_is_refused(scene):
    folder = os.open("/tmp", os.O_RDONLY)
    try:
        done = subprocess.run(scene.words(["true"]), stdin=folder, stderr=subprocess.PIPE, **scene.how())
    finally:
        os.close(folder)
    assert done.returncode == 125 and b"is a folder" in done.stderr, done


# ---- files ----

def the_bundle_of_the_system_holds_our_root_too(scene):
    text = scene.output("sh", "-c", "cat /etc/ssl/certs/ca-certificates.crt /run/exeat/bundle.pem; cat /run/exeat/ca.pem | sha256sum; "
                        "touch /run/exeat/x 2>&1 || true; test -s /run/exeat/roots.p12 && echo java")
    assert text.count("BEGIN CERTIFICATE") > 2 and "Read-only" in text and text.endswith("java\n")
    port = scene.place.values["port"]
    done = scene.run("env", "-i", "/usr/bin/curl", "-sS", "-x", "http://127.0.0.1:3128", "https://open.allowed.test:%d/" % port)
    assert done.returncode == 0, done.stderr


def strict_trust_leaves_only_our_root(scene):
    text = scene.output("sh", "-c", "cat $(find -L /etc/ssl/certs -name '*.*' -type f)", options=["--strict-trust"])
    assert text.count("BEGIN CERTIFICATE") == 1, text
    done = scene.run("env", "-i", "/usr/bin/curl", "-sS", "-x", "http://127.0.0.1:3128",
                     "https://open.allowed.test:%d/" % scene.place.values["port"], options=["--strict-trust"])
    assert done.returncode == 0, done.stderr


def java_trusts_us_without_being_told(scene):
    """By its default store, as any program that reads none of our variables; it needs to be told of the proxy."""
    if not shutil.which("java") or not os.path.exists("/etc/ssl/certs/java/cacerts"):
        raise Skip("there is no Java")
    source = scene.write("Get.java", """public class Get { public static void main(String[] a) throws Exception {
        System.out.println(((java.net.HttpURLConnection) new java.net.URL(a[0]).openConnection()).getResponseCode()); } }""")
    text = scene.output("env", "-u", "JAVA_TOOL_OPTIONS", "java", "-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=3128",
                        source, "https://open.allowed.test:%d/" % scene.place.values["port"])
    assert text == "200\n", text


def an_nss_database_of_the_sandbox_trusts_us(scene):
    """In place of the user's own, which the command neither sees nor changes; writable, since browsers want that."""
    if not os.access("/usr/bin/certutil", os.X_OK):
        raise Skip("there is no certutil (libnss3-tools)")
    folder = os.path.join(scene.home, ".pki")
    script = 'cd "$HOME/.pki/nssdb" && ls && certutil -L -d sql:. && certutil -D -d sql:. -n exeat-1 && echo removed'
    def works(options=()):
        text = scene.output("sh", "-c", script, options=options)
        assert text.startswith("cert9.db\nkey4.db\npkcs11.txt\n") and re.search(r"^exeat-1 +C,,", text, re.M), text
        assert text.endswith("removed\n"), text
    try:
        for options in [], ["--ro", "/"]:
            works(options)
            assert not os.path.exists(folder), "what was made for it is left"
        # It is removed by who uses it last.
        with scene.going('ls "$HOME/.pki/nssdb" >/dev/null && echo go; read line; ls "$HOME/.pki/nssdb"') as other:
            works()
            assert os.path.isdir(folder + "/nssdb")
            assert other.communicate(b"\n", timeout=20)[0].startswith(b"cert9.db\n")
        assert not os.path.exists(folder), "what was made for two is left"
        # The user's own stays, empty or not.
        scene.make(folder)
        works()
        assert os.listdir(folder) == [], os.listdir(folder)
        scene.make(folder + "/nssdb")
        for theirs in [], ["own.txt"]:
            works()
            assert os.listdir(folder + "/nssdb") == theirs, os.listdir(folder + "/nssdb")
            scene.write("home/.pki/nssdb/own.txt", "")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def a_lock_on_the_folder_of_it_keeps_nobody_waiting(scene):
    """A sandbox sees the user's own ~/.pki and can lock it."""
    if not os.access("/usr/bin/certutil", os.X_OK):
        raise Skip("there is no certutil (libnss3-tools)")
    folder = scene.make(os.path.join(scene.home, ".pki"))
    locked = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert scene.output("echo", "runs") == "runs\n"
        assert os.path.isdir(folder)
    finally:
        os.close(locked)
        shutil.rmtree(folder)


def an_nss_database_covers_nothing_that_a_link_leads_to(scene):
    link = os.path.join(scene.home, ".pki")
    os.symlink(scene.make(scene.file("linked")), link)
    try:
        text = scene.output("sh", "-c", 'ls -A "$0"; ls -dl "$HOME/.pki/nssdb" 2>&1 | grep -c "No such"', scene.file("linked"))
        assert text == "1\n" and os.listdir(scene.file("linked")) == [], text
    finally:
        os.unlink(link)
        os.rmdir(scene.file("linked"))


def paths_are_read_only_hidden_and_shown_as_asked(scene):
    scene.make(scene.file("tree"))
    scene.make(scene.file("tree/inner"))
    scene.write("tree/secret", "secret")
    shown = tempfile.mkdtemp(prefix="exeat-shown-")
    scene.own(shown)
    try:
        tree = scene.file("tree")
        text = scene.output("sh", "-c", "cd %s; touch a 2>&1; touch inner/b && echo inner; cat secret; touch %s/c && echo shown; "
                            "touch /tmp/deep/place/d && echo there; touch %s/e 2>&1 || true" % (tree, shown, scene.visible),
                            options=["--ro", "/", "--bind", tree + "/inner", "--hide", tree + "/secret", "--bind", shown,
                                     "--bind=%s:/tmp/deep/place" % shown] + ["--ro=" + scene.visible])
        assert text.count("Read-only file system") == 2 and "inner\nshown\nthere\n" in text and "secret" not in text.split(), text
    finally:
        shutil.rmtree(shown)
        shutil.rmtree(tree)


def the_policy_cannot_be_changed_for_the_next_time(scene):
    text = scene.output("sh", "-c", "echo >>%s || echo kept; rm -f %s || echo kept; mv %s /var/tmp/ || echo kept" % ((scene.policy,) * 3))
    assert text == "kept\n" * 3, text


def the_policy_cannot_be_changed_by_way_of_its_folder(scene):
    """Nor where a bind shows the folder; the user's other files in it can."""
    folder = scene.make(scene.make(scene.file("project")) + "/inner")
    policy = scene.own(shutil.copy(scene.policy, folder))
    script = ("echo >>%s || echo kept; mv %s %s.old || echo kept; mv %s %s.old || echo kept; echo x >%s/file && echo written" % (
        policy, folder, folder, os.path.dirname(folder), os.path.dirname(folder), folder))
    for options in ((), ("--ro", "/", "--bind", os.path.dirname(folder))):
        words = [scene.exeat, "run", "--policy", policy, "--sandbox", "a", *options, "--", "sh", "-c", script]
        done = scene.raw(words)
        assert done.stdout == b"kept\nkept\nkept\nwritten\n", done
    shutil.rmtree(os.path.dirname(folder))


def what_the_policy_includes_cannot_be_changed_either(scene):
    folder = scene.make(scene.file("project"))
    scene.write("project/policy", "include rules/more\nsandbox a { grant api read }\n")
    scene.make(folder + "/other")
    os.symlink("other", folder + "/rules")
    scene.write("project/other/more", "include ../last\nservice api { host api.allowed.test; operation read { GET /** } }\n")
    scene.write("project/last", "guard last { * /x }\n")
    script = "cd %s; for name in last rules other/more; do mv $name x; rm $name; done; echo >>last || echo >>other/more || echo kept" % folder
    done = scene.raw([scene.exeat, "run", "--policy", folder + "/policy", "--", "sh", "-c", script])
    shutil.rmtree(folder)
    assert done.stdout == b"kept\n" and done.stderr.count(b"busy") == 6, done


def no_file_gets_before_one_that_comes_with_exeat(scene):
    """A name that is free beside the policy is looked for there first; what is the same, or was the user's own before, is as good."""
    share, project, own = (scene.make(scene.file(name)) for name in ("share", "project", "own"))
    for folder in (share, project, scene.make(own + "/exeat")):
        scene.make(folder + "/services")
    here, there = "project/services/s.policy", "share/services/s.policy"
    service = "service s { host %s; operation read { GET /** } }\n"
    scene.write(there, service % "s.example.com")
    for folder in ("project", "own/exeat"):
        scene.write(folder + "/policy", "include services/s.policy\nsandbox a { grant s read }\n")

    def run(policy, *command):
        return scene.raw([scene.exeat, "run", "--policy", policy, "--", *command], {"EXEAT_SHARE": share, "XDG_CONFIG_HOME": own})
    policy = scene.file("project/policy")
    done = run(policy, "sh", "-c", "echo '%s' >%s" % (service % "evil.example.net", scene.file(here)))
    assert done.returncode == 0, done
    done = run(policy, "echo", "ran")
    assert done.returncode == 125 and not done.stdout and ("includes " + scene.file(here)).encode() in done.stderr, done
    os.unlink(scene.file(here))
    os.mkfifo(scene.file(here))
    done = run(policy, "echo", "ran")
    assert done.returncode == 125 and not done.stdout and b"no regular one" in done.stderr, done
    os.unlink(scene.file(here))
    shutil.copy(scene.file(there), scene.file(here))
    scene.write("own/exeat/services/s.policy", service % "other.example.com")
    for name in (policy, own + "/exeat/policy"):
        done = run(name, "echo", "ran")
        assert done.stdout == b"ran\n", done
    for folder in (share, project, own):
        shutil.rmtree(folder)


def what_is_named_by_a_link_cannot_be_changed_by_way_of_the_link(scene):
    """Also where a folder on the way is one, and where a bind shows it."""
    folder = scene.make(scene.make(scene.file("project")) + "/inner")
    policy, rc = scene.own(shutil.copy(scene.policy, folder)), scene.write("project/inner/rc", "as it was")
    for link, to in (("link", "inner"), ("policy", "link/policy"), ("rc", "inner/rc")):
        os.symlink(to, scene.file("project/" + link))
    scene.own(scene.file("project"))
    script = ("cd %s; for name in link policy rc; do ln -sfn x $name; mv $name other; rm $name; "
              "unshare -Um --propagation unchanged rm $name; done; echo; grep -c service policy; cat rc")
    for options, place in (((), "project"), (("--bind=%s:/tmp/deep" % scene.file("project"),), "/tmp/deep")):
        words = [scene.exeat, "run", "--policy", scene.file("project/policy"), "--sandbox", "a", "--ro", scene.file("project/rc"), *options,
                 "--", "sh", "-c", script % os.path.join(scene.visible, place)]
        done = scene.raw(words)
        assert done.stdout == b"\n2\nas it was" and done.stderr.count(b"busy") == 12, done
    shutil.rmtree(scene.file("project"))


def a_folder_that_its_owner_may_unlock_is_kept_as_one_that_he_may_write_to(scene):
    """Whether another folder or a link is in it."""
    outer = scene.make(scene.file("outer"))
    policy = scene.own(shutil.copy(scene.policy, scene.make(outer + "/inner")))
    os.symlink("inner/policy", outer + "/link")
    os.chmod(outer, 0o555)
    for name in (policy, outer + "/link"):
        script = "chmod 755 %s; cd %s; rm %s || mv inner away || echo kept; chmod 555 ." % (outer, outer, name)
        done = scene.raw([scene.exeat, "run", "--policy", name, "--sandbox", "a", "--", "sh", "-c", script])
        assert done.stdout == b"kept\n" and done.stderr.count(b"busy") == 2, done
    os.chmod(outer, 0o755)
    shutil.rmtree(outer)


def what_its_owner_has_locked_up_is_kept(scene):
    """The policy of a configuration, of which only the exeatd that has read it knew the way."""
    locked = scene.make(scene.file("locked"))
    policy = scene.own(shutil.copy(scene.policy, locked))
    configuration = scene.write("some.conf", "state %s\npolicy %s\ncontrol %s\nattach %s\n" % (
        scene.file("state"), policy, scene.file("control.sock"), scene.file("attach.sock")))
    os.chmod(locked, 0)
    words = scene.words(["sh", "-c", "chmod 700 %s; echo >%s; mv %s %s.away || echo kept" % (locked, policy, locked, locked)])
    done = scene.raw([words[0], "--config", configuration, *words[1:]])
    shutil.rmtree(locked)
    assert done.stdout == b"kept\n" and b"Read-only" in done.stderr and b"busy" in done.stderr, done


def what_a_configuration_with_errors_names_is_hidden_and_kept_all_the_same(scene):
    """The exeatd that has it may have been started before it was changed."""
    scene.make(scene.file("state"))
    key, policy = scene.write("state/vault.key", "key"), scene.write("other", "policy")
    configuration = scene.write("some.conf", "nonsense\nstate %s\npolicy %s\ncontrol %s\nattach %s\n" % (
        scene.file("state"), policy, scene.file("control.sock"), scene.file("attach.sock")))
    words = scene.words(["sh", "-c", "cat %s; echo >>%s; echo >>%s" % (key, policy, configuration)])
    done = scene.raw([words[0], "--config", configuration, *words[1:]])
    shutil.rmtree(scene.file("state"))
    assert not done.stdout and done.stderr.count(b"Read-only") == 2 and b"nonsense" in done.stderr, done


def the_name_of_a_hidden_file_is_not_given_to_another_by_way_of_its_folder(scene):
    outer = scene.make(scene.file("outer"))
    secret = scene.write("outer/secret", "secret")
    script = "mv %s %s.away || echo kept; cat %s" % (outer, outer, secret)
    text = scene.output("sh", "-c", script, options=["--hide", secret])
    shutil.rmtree(outer)
    assert text == "kept\n", text


def exeats_own_folder_is_hidden_whichever_variable_names_it(scene):
    """And may be a link, as those who keep such files elsewhere have it."""
    own, other = scene.make(scene.make(scene.home + "/.config") + "/exeat"), scene.make(scene.make(scene.file("xdg")) + "/elsewhere")
    for folder in (own, other):
        scene.own(shutil.copy(scene.policy, folder))
    os.symlink("elsewhere", scene.file("xdg/exeat"))
    script = "ls %s %s; rm -r %s; rm %s" % (own, other, own, scene.file("xdg/exeat"))
    done = scene.run("sh", "-c", script, env={"XDG_CONFIG_HOME": scene.file("xdg")})
    shutil.rmtree(scene.home + "/.config")
    shutil.rmtree(scene.file("xdg"))
    assert b"policy" not in done.stdout and done.stderr.count(b"busy") == 2, done


def the_folder_of_the_session_may_be_a_link_or_long_or_nowhere(scene):
    """A link into what is covered leads to an empty one, where a socket's name is too long another one serves."""
    there, link, long = scene.own(tempfile.mkdtemp(prefix="exeat-session-")), scene.file("session"), scene.make(scene.file("x" * 80))
    os.symlink(there, link)
    for folder, found in ((link, "0 0\n"), (long, "0 0\n"), (scene.file("nowhere/at/all"), "0 2\n")):
        with open(os.path.join(there, "file"), "w"), open(os.path.join(long, "file"), "w"):
            text = scene.output("sh", "-c", 'ls "$XDG_RUNTIME_DIR" 2>/dev/null | wc -l | tr "\\n" " "; ls "$XDG_RUNTIME_DIR" 2>/dev/null; echo $?',
                                env={"XDG_RUNTIME_DIR": folder})
        assert text == found, (folder, text)
    os.unlink(link)
    shutil.rmtree(there)
    shutil.rmtree(long)


def what_is_hidden_or_read_only_stays_so_inside_of_what_is_shown(scene):
    tree = scene.make(scene.file("tree"))
    own = scene.make(scene.make(tree + "/.config") + "/exeat")
    for name in ("tree/secret", "tree/kept", "tree/.config/exeat/policy"):
        scene.write(name, name)
    script = "cd %s && cat secret; ls .config/exeat; mv .config other; echo x >>kept; touch new && echo new"
    options = ["--ro", "/", "--hide", tree + "/secret", "--ro", tree + "/kept"]
    env = {"XDG_CONFIG_HOME": tree + "/.config"}
    for place in (tree, "/tmp/deep/tree"):
        done = scene.run("sh", "-c", script % place, options=[*options, "--bind=%s:%s" % (tree, place)], env=env)
        assert done.stdout == b"new\n", done
        assert b"kept: Read-only" in done.stderr and b"busy" in done.stderr, done
    done = scene.run("cat", tree + "/secret", own + "/policy", env=env,
                     options=[*options, "--bind", tree, "--bind", tree + "/secret", "--bind", own + "/policy"])
    assert done.stdout == b"tree/secrettree/.config/exeat/policy", done
    shutil.rmtree(tree)


def the_folder_that_keys_of_sandboxes_are_in_cannot_be_shown(scene):
    for folder in ("/tmp", "/", "/dev/shm", "/dev"):
        done = scene.run("sh", "-c", "cat /tmp/exeat-run-*/state/vault.key", options=["--bind", folder])
        assert done.returncode == 125 and b"sandboxes keep what is theirs" in done.stderr and not done.stdout, done


def a_working_directory_that_is_hidden_is_named_with_the_remedy(scene):
    folder = scene.own(tempfile.mkdtemp(prefix="exeat-cwd-"))
    try:
        for options, code in (((), 125), (("--bind", folder), 0)):
            done = subprocess.run(scene.words(["pwd"], options), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  **{**scene.how(), "cwd": folder})
            assert done.returncode == code and (b"--bind " + folder.encode() in done.stderr or code == 0), done
        assert done.stdout.decode() == folder + "\n", done
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    try_all(list(globals().values()))
