#!/usr/bin/env python3
"""`exeat run`: a command behaves as without it, its user is told what is wrong, and a running exeatd serves it."""
import fcntl
import hashlib
import json
import os
import pty
import pwd
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from helpers import HOSTS, POLICY, SECRET, answer, exists
from place import Place, Skip, wait_for
from run_scene import CONNECT, ORDINARY, PYTHON, Scene, children, directory_of, init_of, try_all

# ---- as if it were not there ----

def the_exit_status_is_the_commands(scene):
    plain = scene.write("plain", "no program")
    for words, code in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "exit 255"], 255), (["sh", "-c", "kill -TERM $$"], -15),
                        (["sh", "-c", "kill -KILL $$"], -9), (["sh", "-c", "kill -SEGV $$"], -11), ([plain], 126),
                        (["no-such-program"], 127)):
        done = scene.run(*words)
        assert done.returncode == code, (words, done.returncode, done.stderr)
    for code in (1, 2, 6, 125):
        done = scene.run("sh", "-c", "exit %d" % code)
        assert done.returncode == code and done.stderr == b"", (code, done)


def signals_reach_the_command(scene):
    script = "trap 'echo %s; exit 3' %s; echo go; while :; do sleep 0.05; done"
    for name in ("TERM", "HUP", "USR1", "INT"):
        with scene.going(script % (name, name)) as process:
            process.send_signal(getattr(signal, "SIG" + name))
            assert process.stdout.readline().decode() == name + "\n"
            assert process.wait(20) == 3


def a_killed_launcher_leaves_nobody_behind(scene):
    with scene.going("echo go; sleep 60") as process:
        pids, directory = [init_of(process), *children(process.pid)], directory_of(process)
        process.kill()
        process.wait()
        left = wait_for(lambda: not [p for p in pids if exists(p)], 20)
        assert left, pids
    assert wait_for(lambda: not os.path.exists(directory), 20), "what a killed launcher had is left"
    left, others = (os.path.join(os.path.dirname(directory), "exeat-run-" + os.urandom(3).hex()) for _ in range(2))
    for path, mode in ((left, 0o700), (others, 0o777)):
        os.mkdir(path)
        os.chmod(scene.own(path), mode)
    with scene.going("echo go; sleep 60") as process:
        assert not os.path.exists(left), "what one has left that was killed with its keeper is there"
        assert os.path.exists(others), "what others can write to was taken for one's own"
        os.rmdir(others)
        other = directory_of(process)
        scene.output("true")
        assert os.path.isdir(other), "that of one that runs is gone"


def is_left(path, uid):
    """It is this user's, and nobody holds the lock of it: its launcher is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(fd).st_nlink > 0 and os.fstat(fd).st_uid == uid
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def left_by(uid):
    """Folders of launchers of this user that are gone; others may be made in this moment."""
    paths = [os.path.join(base, name) for base in ("/tmp", "/dev/shm") for name in os.listdir(base) if name.startswith("exeat-run-")]
    return {p for p in paths if is_left(p, uid)}


def a_signal_during_the_start_ends_it_and_leaves_nothing(scene):
    uid = scene.user or 0
    before = left_by(uid)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        for delay in (0.005, 0.03, 0.06, 0.12, 0.25):
            process = subprocess.Popen(scene.words(["sleep", "30"]), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **scene.how())
            time.sleep(delay)
            process.send_signal(number)
            said = process.communicate(timeout=20)[1]
            assert process.returncode == -number and said == b"", (number, delay, process.returncode, said)
    assert wait_for(lambda: left_by(uid) <= before, 2), left_by(uid) - before


def who_ends_of_those_that_serve_the_command_is_told(scene):
    """Of the command's failures nobody would see the cause, and the trail has what was recorded until then."""
    log = os.path.join(scene.home, "trail")
    for who, word in (("exeatd", b"exeatd was ended before the command, by a signal (Killed)"), ("init", b"first process was ended by a signal (Killed)")):
        with subprocess.Popen(scene.words(["sh", "-c", "curl -s -o /dev/null http://evil.example.net/; echo go; read line"], ["--log", log]),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **scene.how()) as process:
            assert process.stdout.readline() == b"go\n"
            init = init_of(process)
            victim = init if who == "init" else next(p for p in children(process.pid) if p != init)
            os.kill(victim, signal.SIGKILL)
            assert wait_for(lambda: not exists(victim))
            said = process.communicate(b"\n", timeout=20)[1]
        assert word in said and process.returncode == (125 if who == "init" else 0), (who, process.returncode, said)
        with open(log) as f:
            assert "evil.example.net" in f.read(), who
        os.unlink(log)


def who_kills_its_launcher_is_in_the_log_all_the_same(scene):
    """The command is of its process group."""
    log = os.path.join(scene.home, "trail")
    script = "curl -s -o /dev/null http://evil.example.net/; kill -KILL 0"
    with subprocess.Popen(scene.words(["sh", "-c", script], ["--log", log]), start_new_session=True, stdout=subprocess.PIPE, **scene.how()) as process:
        assert process.wait(30) == -signal.SIGKILL

    def tried():
        with open(log) as f:
            return any(json.loads(line).get("host") == "evil.example.net" for line in f)

    assert wait_for(tried, 20), "no record of what was tried"
    os.unlink(log)


def a_killed_launchers_trail_is_kept_whatever_descriptors_it_was_left(scene):
    """By a careless parent: more than the keeper has of its own."""
    log, left = scene.file("trail"), [os.open("/dev/null", os.O_RDONLY) for _ in range(120)]
    with subprocess.Popen(scene.words(["sh", "-c", "curl -s http://evil.example.net/; echo go; sleep 60"], ["--log", log]), pass_fds=left,
                          stdout=subprocess.PIPE, **scene.how()) as process:
        assert b"go\n" in iter(process.stdout.readline, b"")
        directory = directory_of(process)
        process.kill()
    for fd in left:
        os.close(fd)
    assert wait_for(lambda: not os.path.exists(directory), 20), directory
    with open(log) as f:
        assert "evil.example.net" in f.read()
    os.unlink(log)


def the_umask_is_the_commands_and_hinders_nobody(scene):
    script = "umask; curl -sS -o /dev/null -w '%{http_code}' http://evil.example.net/"
    for mask in (0o077, 0o777, 0):
        assert scene.output("sh", "-c", script, umask=mask) == "%04o\n403" % mask


def much_goes_through_standard_input_and_output(scene):
    data = os.urandom(1 << 20) * 24
    done = scene.run("cat", stdin=data)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest(), len(done.stdout)


def orphans_are_reaped_and_end_with_the_command(scene):
    text = scene.output("sh", "-c", "(sleep 0.01 &); (sleep 60 &); sleep 0.3; grep -l ') Z' /proc/[0-9]*/stat 2>/dev/null | wc -l")
    assert text == "0\n", text


def nothing_is_left_afterwards(scene):
    with scene.going("echo go; read line") as process:
        directory = directory_of(process)
        assert os.path.isdir(directory), directory
        process.communicate(b"\n", timeout=20)
        assert process.returncode == 0 and not os.path.exists(directory), directory


class Terminal:
    """A program that has a terminal of its own as its controlling one."""

    def __init__(self, words, how):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir("/")
                if "user" in how:
                    os.setgroups([])
                    os.setgid(how["group"])
                    os.setuid(how["user"])
                os.execve(words[0], words, how["env"])
            finally:
                os._exit(99)
        self.text = b""

    def expect(self, what, seconds=20):
        end = time.monotonic() + seconds
        while not re.search(what, self.text):
            assert time.monotonic() < end, self.text
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 65536)
                except OSError:
                    raise AssertionError("the terminal ended: %r" % self.text)
        self.text = self.text[re.search(what, self.text).end():]

    def type(self, data):
        os.write(self.fd, data)

    def continue_job(self):
        """By the shell that waits at its prompt; until the terminal is the job's."""
        shell = os.tcgetpgrp(self.fd)
        self.type(b"fg\n")
        assert wait_for(lambda: os.tcgetpgrp(self.fd) != shell), self.text

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def a_terminal_and_job_control_behave_as_without_it(scene):
    how = scene.how({"PS1": "prompt> ", "TERM": "dumb"})
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], how)
    start = " ".join("'%s'" % w for w in scene.words(["sh", "-c", "test -t 0 && stty -a | head -1 && tty && exec sleep 100"]))
    try:
        terminal.expect(b"prompt> ")
        terminal.type(start.encode() + b"\n")
        terminal.expect(rb"speed .*\n/dev/console")
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt> ")
        terminal.continue_job()
        terminal.type(b"\x03")
        terminal.expect(b"prompt> ")
        terminal.type(b"echo code=$?\n")
        terminal.expect(b"code=130")
    finally:
        terminal.close()


def who_sits_at_the_terminal_is_told_what_was_refused(scene):
    ask = "for i in 1 2; do curl -s http://evil$i.example.net/; curl -s http://192.0.2.7:8080/; done; for i in 3 4 5; do curl -s http://evil$i.example.net/; done"
    log = scene.file("told")
    for script, options, wanted in ((ask, [], rb"refused: evil1.example.net \(host_not_allowed\), 192.0.2.7 \(host_not_allowed\), "
                                     rb"evil2.example.net \(host_not_allowed\), evil3.example.net \(host_not_allowed\) and more\. With --log FILE"),
                                    ("curl -s http://evil.example.net/", ["--log", log],
                                     b"refused: evil.example.net \\(host_not_allowed\\)\\. `exeat log --denied --file " + log.encode())):
        terminal = Terminal(scene.words(["sh", "-c", script], options), scene.how())
        try:
            terminal.expect(wanted)
        finally:
            terminal.close()
    assert scene.run("sh", "-c", ask).stderr == b""


def ctrl_c_during_the_start_ends_it(scene):
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], scene.how({"PS1": "prompt> ", "TERM": "dumb"}))
    start = " ".join("'%s'" % w for w in scene.words(["sleep", "100"]))
    try:
        terminal.expect(b"prompt> ")
        for delay in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
            terminal.type(start.encode() + b"\n")
            # Until then the terminal's signals are for the shell.
            assert wait_for(lambda: os.tcgetpgrp(terminal.fd) != terminal.pid, 10)
            time.sleep(delay)
            terminal.type(b"\x03")
            terminal.expect(b"prompt> ")
            terminal.type(b"echo code=$?\n")
            terminal.expect(rb"code=130\r?\n")
            terminal.expect(b"prompt> ")
    finally:
        terminal.close()


def an_interactive_shell_has_jobs_of_its_own(scene):
    how = scene.how({"PS1": "outer> ", "TERM": "dumb"})
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], how)
    start = " ".join("'%s'" % w for w in scene.words(["env", "PS1=inner> ", "/bin/bash", "--norc", "--noprofile", "-i"]))
    try:
        terminal.expect(b"outer> ")
        terminal.type(start.encode() + b"\n")
        terminal.expect(rb"\ninner> |\rinner> ")
        assert b"no job control" not in terminal.text
        terminal.type(b"sleep 100\n")
        time.sleep(0.5)
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"inner> ")
        # Not by `kill -9 %1`: bash itself, on a plain terminal, loses sight of a stopped job's end in two of a hundred times.
        terminal.continue_job()
        terminal.type(b"\x03")
        terminal.expect(b"inner> ")
        terminal.type(b"echo job=$? left=$(jobs)\n")
        terminal.expect(rb"job=130 left=\r?\n")
        terminal.type(b"exit 5\n")
        terminal.expect(b"outer> ")
        terminal.type(b"echo code=$?\n")
        terminal.expect(b"code=5")
    finally:
        terminal.close()


# ---- what the user is told ----

def without_a_policy_the_message_has_one_that_loads(scene):
    done = scene.raw([scene.exeat, "run", "--", "true"])
    text = done.stderr.decode()
    assert done.returncode == 125 and "there is no policy" in text, text
    example = scene.write("example", text.split("begin with:\n")[1])
    assert scene.raw([scene.exeat, "policy", "check", example]).returncode == 0, text
    assert scene.raw([scene.exeat, "run", "--policy", example, "--", "sh", "-c", "exit 4"]).returncode == 4


def a_policy_may_have_any_name_that_a_configuration_can_hold(scene):
    for name, ends in ((b"ren\xc3\xa9 { # ; }", 0), (b"\xff\"'" [:2], 0), (b"it's", 0), (b"\"'", 125), (b"a\nb", 125)):
        folder = os.path.join(scene.visible.encode(), name)
        scene.make(folder)
        policy = scene.own(shutil.copy(scene.policy.encode(), folder))
        done = scene.raw([scene.exeat, "run", "--policy", policy, "--sandbox", "b", "--secret", "demo-key", "--log", folder + b"/log", "--", "curl", "-sS", "-o",
                          "/dev/null", "http://evil.example.net/"])
        assert done.returncode == ends and (b"cannot hold the name" in done.stderr) == (ends == 125), (name, done)
        if ends == 0:
            shown = scene.raw([scene.exeat, "log", "verify", "--file", folder + b"/log"])
            assert shown.returncode == 0, (name, shown)
            with open(folder + b"/log", encoding="utf-8") as f:
                assert any(json.loads(line).get("host") == "evil.example.net" for line in f), name
        shutil.rmtree(folder)


def the_users_own_policy_and_settings_are_found(scene):
    folder = os.path.join(scene.home, ".config", "exeat")
    os.makedirs(folder)
    for path in (os.path.dirname(folder), folder):
        scene.own(path)
    for name in ("policy", "settings"):
        scene.own(shutil.copy(scene.file(name), folder))
    try:
        done = scene.raw([scene.exeat, "run", "--sandbox", "a", "--", "sh", "-c", "echo $EXEAT_SANDBOX; ls ~/.config/exeat"])
        assert done.returncode == 0 and done.stdout == b"a\n", done
    finally:
        shutil.rmtree(os.path.dirname(folder))


def mistakes_are_named(scene):
    for words, said in ((["--policy", scene.policy, "--", "true"], "4 sandboxes: --sandbox NAME says which one is meant: a, b, c, d"),
                        (["--policy", scene.policy, "--sandbox", "z", "--", "true"], "no sandbox z, only: a, b, c, d"),
                        (["--policy", "/nowhere", "--", "true"], "No such file"),
                        (["--sandbox", "a", "--config", "/nowhere", "--", "true"], "the configuration /nowhere: No such file"),
                        (["--policy", scene.policy, "--sandbox", "a"], "a command is missing"),
                        (["--policy", scene.policy, "--sandbox", "a", "true"], "behind a `--`"),
                        (["--policy", scene.policy, "--sandbox", "a", "--ro", "/nowhere", "--", "true"], "--ro /nowhere"),
                        (["--policy", scene.policy, "--sandbox", "a", "--secret", "k=NO_SUCH", "--", "true"], "NO_SUCH"),
                        (["--policy", scene.policy, "--sandbox", "a", "--secret", "k=HOME", "--", "true"], "--secret k: the policy lends a no"),
                        (["--policy", scene.policy, "--sandbox", "b", "--", "true"], "--secret demo-key=VARIABLE"),
                        (["--policy", scene.policy, "--sandbox", "a", "--settings", scene.policy, "--", "true"], scene.policy + ":2:1: ")):
        done = scene.raw([scene.exeat, "run", *words], env={} if "VARIABLE" not in said else {"DEMO_KEY": ""})
        assert done.returncode == 125 and said in done.stderr.decode(), (words, done)


def what_is_wrong_in_the_settings_is_told_with_its_place_in_the_users_file(scene):
    """Whatever finds it: the launcher, exeatd as it reads them, or exeatd as it uses them."""
    for text, said in (("# one\nlimit nonsense 3", "{}:2:7: there is no limit 'nonsense'\n    limit nonsense 3\n          ^\n"),
                       ("debug\npolicy p\n", "{}: a second 'policy' in this file, the first is in line 2; behind its lines come `state`"),
                       ("limit ask-time 5s\nhost a {", "{}: "),
                       ("# one\n\ntrust file /nowhere.pem\n", "/nowhere.pem: No such file or directory\nparent: fatal: {}:3:12: it is named here\n"),
                       ("trust file beside.pem\n", "the paths in --settings have to be absolute\n")):
        settings = scene.write("wrong", text)
        done = scene.raw([scene.exeat, "run", "--policy", scene.policy, "--sandbox", "a", "--settings", settings, "--", "true"])
        told = done.stderr.decode()
        assert done.returncode == 125 and said.format(settings) in told and "exeat.conf" not in told and ": info: " not in told, (text, told)


def within_a_sandbox_there_is_no_other(scene):
    shown = ["--bind", os.path.dirname(scene.exeat)]
    for options in [], ["--policy", scene.policy]:
        done = scene.raw(scene.words([scene.exeat, "run", *options, "--", "echo", "inner"], shown))
        assert done.returncode == 125 and done.stdout == b"" and b"inside of a sandbox of `exeat run` already" in done.stderr, done


def words_behind_the_dashes_are_the_commands(scene):
    assert scene.output("echo", "--json", "--config", "x", "--help") == "--json --config x --help\n"


def where_namespaces_are_refused_the_rule_is_named(scene):
    done = scene.raw(["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"',
                      *scene.words(["echo", "unenforced"])])
    assert done.returncode == 125 and b"user.max_user_namespaces is 0" in done.stderr, done
    assert b"unenforced" not in done.stdout


def without_a_sandbox_a_command_runs_only_with_the_word_for_it_and_marked(scene):
    log = scene.file("unenforced.jsonl")
    script = """echo "$EXEAT_UNENFORCED $PS1"; curl -sS -o /dev/null -w '%%{http_code}\\n' -H "Authorization: Bearer $DEMO_KEY" \
        https://api.allowed.test:%d/v1/items; curl -sS https://evil.test/; echo "$DEMO_KEY"; readlink /proc/self/ns/net
        curl -s -o /dev/null -w '%%{http_connect}\n' -x "http://${https_proxy##*@}" https://api.allowed.test:%d/; kill -TERM $$
        """ % (2 * (scene.place.values["port"],))
    done = scene.run("sh", "-c", script, options=["--unenforced", "--log", log], env={"PS1": "me> "})
    lines = done.stdout.decode().split("\n")
    assert done.returncode == -signal.SIGTERM, done
    assert lines[0] == "1 (exeat UNENFORCED) me> " and lines[1] == "200", done
    assert SECRET not in lines[2] and lines[3] == os.readlink("/proc/self/ns/net"), done
    assert lines[4] == "407", "its port serves who has not got its environment: %s" % done
    assert b"UNENFORCED: there is no sandbox" in done.stderr and b"403" in done.stderr, done
    records = [json.loads(line) for line in scene.raw([scene.exeat, "log", "--file", log, "--json"]).stdout.splitlines()]
    os.unlink(log)
    decisions = [r for r in records if r["kind"] in ("decision", "outcome")]
    assert len(decisions) >= 3 and all(r.get("unenforced") == 1 for r in decisions), decisions
    for options in (["--ro", "/"], ["--hide", "/etc"], ["--bind", "/etc"]):
        done = scene.run("true", options=["--unenforced", *options])
        assert done.returncode == 125 and b"--unenforced does without" in done.stderr, done
    assert scene.run("/nowhere", options=["--unenforced"]).returncode == 127


def the_trail_is_kept_where_it_is_asked_for(scene):
    log = scene.file("trail.jsonl")
    scene.run("curl", "-sS", "https://evil.example.net/", options=["--log", log])
    scene.run("true", options=["--log", log])
    shown, verified = (scene.raw([scene.exeat, "log", *words, "--file", log, "--json"]) for words in ([], ["verify"]))
    os.unlink(log)
    assert b"evil.example.net" in shown.stdout, shown
    assert verified.returncode == 0 and json.loads(verified.stdout)["trails"] == 2, verified


def the_trail_is_none_of_the_commands(scene):
    """Neither what is recorded of it, nor what earlier ones have left in the file."""
    folder = scene.make(scene.file("trails"))
    link, log = folder + "/latest", folder + "/trail.jsonl"
    scene.run("curl", "-sS", "https://earlier.example.net/", options=["--log", log])
    os.symlink(folder, scene.file("by-link"))
    script = ("dd if=/dev/null of={0}; rm -f {0}; mv {0} {0}.old; mv {1} {1}.old; rm {2}; ln -s /dev/null {3}; "
              "curl -sS https://evil.example.net/").format(log, folder, scene.file("by-link"), link)
    done = scene.run("sh", "-c", script, options=["--log", scene.file("by-link") + "/trail.jsonl"])
    assert done.stderr.count(b"busy") == 4 and b"Read-only" in done.stderr, done
    shown = scene.raw([scene.exeat, "log", "--file", log])
    assert b"earlier.example.net" in shown.stdout and b"evil.example.net" in shown.stdout, shown
    # A link that an earlier command has left is refused, and told before anything runs.
    done = scene.run("echo", "unkept", options=["--log", link])
    os.unlink(scene.file("by-link"))
    shutil.rmtree(folder)
    assert done.returncode == 125 and b"is a link" in done.stderr and b"unkept" not in done.stdout, done


def a_trail_that_cannot_be_kept_is_told_before_anything_runs(scene):
    fifo = scene.file("fifo")
    os.mkfifo(fifo)
    scene.own(fifo)
    for option in ("--log", "--settings"):
        done = scene.run("echo", "unkept", options=[option, fifo])
        assert done.returncode == 125 and b"no regular file" in done.stderr and b"unkept" not in done.stdout, done
    os.unlink(fifo)
    done = scene.run("echo", "unkept", options=["--log", scene.file("no-folder/trail")])
    assert done.returncode == 125 and b"No such file" in done.stderr and b"unkept" not in done.stdout, done


# ---- attached to a running exeatd ----

class Attached(Scene):
    """A running exeatd, and a user who may attach two of its sandboxes."""

    def __init__(self):
        super().__init__(ORDINARY)
        self.daemon = Place(POLICY, {}, {"demo-key": (SECRET, "sk-demo-")}, hosts=HOSTS,
                            config="attach attach.sock { uid %s a b }\n" % pwd.getpwuid(ORDINARY).pw_name).__enter__()

    def __exit__(self, *ignored):
        self.daemon.__exit__()
        super().__exit__()

    def words(self, command, options=(), sandbox="a"):
        return [self.exeat, "--config", self.daemon.path("exeat.conf"), "run", "--sandbox", sandbox, *options, "--", *command]


def a_running_exeatd_serves_the_sandbox(attached):
    port = attached.daemon.values["port"]
    attached.daemon.upstream.script = lambda request, stream: answer(b"from the upstream")
    text = attached.output("sh", "-c", 'curl -sS -H "Authorization: Bearer $DEMO_KEY" https://api.allowed.test:%d/v1/items/attached; '
                           'env | grep -c %s; %s -c "$0" tcp/127.0.0.1/8443' % (port, SECRET, PYTHON), CONNECT)
    assert text.startswith("from the upstream0\n") and "ConnectionRefusedError" in text, text
    assert b"Bearer " + SECRET.encode() in attached.daemon.upstream.requests[-1]
    record = wait_for(lambda: next((r for r in attached.daemon.records() if r.get("path") == "/v1/items/attached"), None))
    assert record and record["sandbox"] == "a" and "unenforced" not in record, record


def what_exeatd_is_told_cannot_be_changed_for_its_next_start(attached):
    """The daemon's own user has it in a folder that the command can write to."""
    own = attached.daemon.directory
    before = os.stat(own)
    os.chown(own, ORDINARY, ORDINARY)
    try:
        done = attached.run("sh", "-c", "cd $0; for file in exeat.conf policy.exeat; do mv $file other; ln -sf x $file; done", own,
                            options=["--bind", own])
    finally:
        os.chown(own, before.st_uid, before.st_gid)
    assert done.stderr.count(b"busy") == 4, done


def two_of_them_do_not_see_each_other(attached):
    with attached.going("echo go; exec sleep 60") as process:
        port = attached.daemon.values["port"]
        done = subprocess.run(attached.words(["sh", "-c", 'curl -sS -o /dev/null -w "%%{http_code}" -H "Authorization: Bearer $DEMO_KEY" '
                                              "https://api.allowed.test:%d/v1/items" % port], sandbox="b"), stdout=subprocess.PIPE,
                              **attached.how())
        assert done.stdout == b"200" and process.poll() is None, done
        again = attached.run("true")
        assert again.returncode == 125 and b"attached already" in again.stderr, again
    assert wait_for(lambda: attached.run("true").returncode == 0), "its lane goes on without it"


def ad_05_an_nss_database_trusts_what_exeatd_signs_with_not_what_the_state_has(attached):
    """It is begun for the state's certificates, before exeatd names its own."""
    if not os.access("/usr/bin/certutil", os.X_OK):
        raise Skip("there is no certutil (libnss3-tools)")
    script = 'cd "$HOME/.pki/nssdb" && for name in exeat-1 exeat-2 exeat-3; do certutil -L -d sql:. -n $name -a 2>&-; done; true'
    def trusted():
        return attached.output("sh", "-c", script).replace("\r", "").split("-----BEGIN")[1:]
    before = trusted()
    try:
        attached.daemon.exeat("ca", "rotate")
        assert len(before) == 1 and trusted() == before, "the new one, which signs nothing yet"
        attached.daemon.exeat("reload")
        both = trusted()
        assert len(both) == 2 and both[1:] == before, both
    finally:
        attached.daemon.exeat("ca", "rotate", "--finish", check=False)
        attached.daemon.exeat("reload")


def what_a_probe_tries_is_counted_and_what_the_sandbox_tries_is_shown(attached):
    """A datagram to a metadata service is never the probe's, and never only counted."""
    seen = lambda: [r["meant"] for r in attached.daemon.records() if r.get("door") == "udp"]
    own = "exec 3<&0; %s -c %s udp/169.254.169.254/9 >&2; echo go; read end <&3" % (PYTHON, shlex.quote(CONNECT))
    # Where there is IPv6, two of it as well.
    four = {"192.0.2.1:9", "192.0.2.1:443", "198.51.100.1:9", "198.51.100.1:443"}
    with attached.going(own):
        attached.daemon.exeat("sandbox", "probe", "a")
        assert wait_for(lambda: four | {"169.254.169.254:9"} <= set(seen())), seen()
    tried = [meant for meant in seen() if not meant.startswith("169.254.")]
    shown, every = (attached.daemon.exeat("log", *more) for more in ([], ["--all"]))
    assert all(meant in every and meant not in shown for meant in tried), (shown, every)
    assert shown.count("169.254.") == every.count("169.254.") == 1, (shown, every)
    assert re.search(r"^\d+ more of the kind that the doctor tries", shown, re.M), shown


def keys_of_those_with_an_exeatd_of_their_own_cannot_be_shown(attached):
    """They are in /tmp, where the folder of one that is attached is not."""
    with tempfile.TemporaryDirectory(prefix="exeat-run-", dir="/tmp") as one:
        folders = "/tmp", "/dev/shm", one, os.path.join(one, "state")
        os.mkdir(folders[-1])
        os.chown(one, ORDINARY, ORDINARY)
        refused = [(folder, attached.run("ls", folder, options=["--bind", folder])) for folder in folders]
    for folder, done in refused:
        assert done.returncode == 125 and b"sandboxes keep what is theirs" in done.stderr and not done.stdout, done


def a_probe_is_not_blinded_by_sockets_without_end(attached):
    """A place that is known stands behind those that the command makes, more than are tried."""
    script = """
import os, socket, stat
server = socket.socket(socket.AF_UNIX)
server.bind("/tmp/bound")
for i in range(5000):
    os.mknod("/tmp/" + "x" * 240 + "%05d" % i, stat.S_IFSOCK | 0o600)
print("go", flush=True)
input()
"""
    folder = attached.make(os.path.join(attached.home, ".gnupg"))
    with attached.going("exec %s -c '%s'" % (PYTHON, script)), socket.socket(socket.AF_UNIX) as agent:
        agent.bind(folder + "/S.gpg-agent")
        agent.listen()
        os.chmod(folder + "/S.gpg-agent", 0o777)
        attached.daemon.exeat("sandbox", "probe", "a", check=False)
        assert attached.daemon.last.returncode == 1 and b"too many to be tried" in attached.daemon.last.stdout, attached.daemon.last
    shutil.rmtree(folder)


def a_command_that_went_into_other_namespaces_is_probed_where_it_began(attached):
    """Where it may be nobody, and another user's places would be tried."""
    for how in ("-U", "-Ur", "-Um --propagation unchanged", "-Un"):
        with attached.going('exec unshare %s sh -c "echo go; exec sleep 60"' % how):
            attached.daemon.exeat("sandbox", "probe", "a")
            assert b"0 escaped, 0 unsure" in attached.daemon.last.stdout, attached.daemon.last
        assert wait_for(lambda: attached.run("true").returncode == 0)


def who_may_not_attach_is_told_so(attached):
    done = subprocess.run(attached.words(["true"], sandbox="c"), stderr=subprocess.PIPE, **attached.how())
    assert done.returncode == 125 and b"may not attach" in done.stderr, done


def nobody_attaches_from_inside(attached):
    """Also where somebody shows the socket to the sandbox: it is in another network."""
    probe = """
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.connect(%r)
    try:
        s.send(b"\\2\\0\\0\\0\\1b\\0")
    except OSError:
        pass
    print(s.recv(4096)[:1])
except OSError as e:
    print(type(e).__name__)
""" % attached.daemon.path("attach.sock")
    assert attached.output(PYTHON, "-c", probe) == "FileNotFoundError\n"
    folder = attached.output(PYTHON, "-c", probe, options=["--bind", attached.daemon.directory])
    assert folder == "ConnectionRefusedError\n", folder
    shown = attached.output(PYTHON, "-c", probe, options=["--bind", attached.daemon.path("attach.sock")])
    assert shown == "b'\\x06'\n", shown  # -ERR_DENIED


def what_a_running_exeatd_has_itself_is_not_taken(attached):
    for options in (["--log", "/var/tmp/x"], ["--settings", attached.settings], ["--secret", "demo-key"]):
        done = attached.run("true", options=options)
        assert done.returncode == 125 and b"exeatd of the sandbox's own" in done.stderr, done
    done = attached.raw([attached.exeat, "--config", attached.daemon.path("exeat.conf"), "run", "--", "true"])
    assert done.returncode == 125 and b"--sandbox NAME" in done.stderr, done
    done = attached.run("sh", "-c", "exit 6", options=["--policy", attached.policy, "--settings", attached.settings])
    assert done.returncode == 6, done


if __name__ == "__main__":
    try_all(list(globals().values()), Attached)
