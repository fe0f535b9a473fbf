"""What surrounds the daemon in a case: the words of case_resolver.py and case_server.py, set and checked.

Worlds of cases about names and addresses run in a network of their own (see in_own_network), in which every
address of the internet is this machine, so that the case sees which one was dialled:

    own ADDRESS                         this machine has this one, too, as long as the case runs
    dialled ADDRESS... | dialled nothing
"""
import os
import re
import subprocess
import sys

from case_resolver import TYPES, ScriptedResolver
from case_server import Server, hello_parts
from place import wait_for

WORDS = {"dns", "resolver", "own", "dialled", "certificate", "server", "hello", "connections"}
BYTES = {"alpn", "first", "instead", "greets", "hello", "data", "raw"}
LISTS = {"extension", "extensions"}
DIFFERENCES = {
    "certificate": {"names", "subject", "days", "key", "digest", "from"} | LISTS,
    "server": {"versions", "ciphers", "dh", "chain", "alpn", "no-alpn", "staple", "asks", "demands", "first", "instead", "greets",
               "hello", "resets", "closes", "resets-once", "renegotiates", "closes-well"},
}


def in_own_network():
    """Runs the program again where the whole internet is this machine; False where that may not be done."""
    if os.environ.get("EXEAT_OWN_NETWORK"):
        return True
    if os.getuid() != 0:
        return False
    script = ("ip link set lo up && ip route add local default dev lo && ip -6 route add local default dev lo && "
              "EXEAT_OWN_NETWORK=1 exec \"$0\" \"$@\"")
    if os.spawnvp(os.P_WAIT, "unshare", ["unshare", "-n", "true"]) != 0:
        return False
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", script, sys.executable] + sys.argv)
    return False


def string_of(text, values):
    """The string in quotes at the front of a text, filled, or the whole text as it is."""
    found = re.match(r'"((?:[^"\\]|\\.)*)"$', text)
    return values.bytes(found.group(1)) if found else values.fill(text).encode()


def differences(case, word, values):
    """What the lines `certificate` or `server` of a case tell, by their second word."""
    told = {}
    for line in case.words(word):
        name, _, rest = values.fill(line).partition(" ")
        if name not in DIFFERENCES[word]:
            raise SystemExit("%s: %s %s?" % (case.at, word, name))
        value = string_of(rest.strip(), values)
        value = value if name in BYTES else value.decode("latin-1")
        if name in LISTS:
            told.setdefault(name, []).append(value)
        else:
            told[name] = value
    return told


def dns_words(text, values):
    for name, rest in re.findall(r'(?:([a-z]+)=)?("(?:[^"\\]|\\.)*"|\S+)', text):
        value = string_of(rest, values)
        value = value if name in BYTES else value.decode("latin-1")
        yield (name, value) if name else (value, "")


class Scene:
    def __init__(self, place, answers):
        place.resolver.close()
        self.place = place
        self.resolver = place.resolver = ScriptedResolver(answers)
        self.server = Server(place)
        place.upstream.open = self.server.open
        self.own = set()

    def _own(self, case, values):
        """The daemon's dialer hears of it from the kernel before it hears of the request."""
        wanted = {values.fill(line) for line in case.words("own")}
        for address in wanted ^ self.own:
            subprocess.run(["ip", "addr", "add" if address in wanted else "del", address, "dev", "lo"], check=True)
        self.own = wanted

    def begin(self, case, values, host):
        """host: of the authority that the case aims at."""
        self._own(case, values)
        lines = []
        for line in case.words("dns"):
            name, kind, rest = (values.fill(line) + "  ").split(" ", 2)
            lines.append((name, kind, list(dns_words(rest, values))))
        self.resolver.script(lines)
        self.server.prepare(differences(case, "certificate", values), differences(case, "server", values), host)
        self.place.upstream.script = self.server.script(self.place.upstream.script)

    def check(self, case, values):
        for line in case.words("resolver"):
            self._check_resolver(line, values)
        for line in case.words("hello"):
            self._check_hello(*line.split(" ", 1), values)
        for line in case.words("connections"):
            opened = len(self.server.dialled)
            assert opened == int(line), "the upstream saw %d connections" % opened
        for line in case.words("dialled"):
            wanted = [] if line == "nothing" else values.fill(line).split()
            assert self.server.dialled == wanted, "dialled %r" % self.server.dialled

    def _check_resolver(self, line, values):
        word, _, rest = line.partition(" ")
        number, _, name = rest.partition(" ")
        asked = self.resolver.tcp if word == "tcp" else self.resolver.asked
        if name:
            asked = [q for q in asked if q[0].encode("latin-1") == string_of(name, values)]
        count = 0 if word == "nothing" else int(number)
        assert len(asked) == count, "the resolver was asked %r" % asked

    def _check_hello(self, word, rest, values):
        assert wait_for(lambda: self.server.hellos, 2), "the upstream saw no ClientHello"
        suites, extensions = hello_parts(self.server.hellos[-1])
        want = string_of(rest, values)
        if word in ("has", "without"):
            assert (int(want) in extensions) == (word == "has"), "extensions are %r" % sorted(extensions)
            return
        found = {"sni": extensions.get(0, b"")[5:], "alpn": extensions.get(16, b"")[2:], "versions": extensions.get(43),
                 "compressions": suites[2 + int.from_bytes(suites[:2], "big"):]}[word]
        assert found == want, "%s: %r" % (word, found)
