"""testssl.sh against the intercepted side: what a scanner thinks of the TLS that sandboxes get (docs/tls.md)."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))

from helpers import small_place
from place import Listener, Refused, Report

SCANNER = shutil.which("testssl") or shutil.which("testssl.sh")
HOST = "api.allowed.test"
CHECKS = ["-p", "-P", "-S", "-f", "-E", "-U"]  # protocols, preferences, defaults, forward secrecy, ciphers, vulnerabilities
# What the scanner holds against us, and why it is so.
ACCEPTED = {
    "cert_expirationStatus": "a leaf is made for days",
    "cert_notAfter": "a leaf is made for days",
    "cert_revocation": "a leaf of an own CA that lives for days is not revoked",
    "cipher_order": "every suite is as good as the others: the client chooses",
}
FLAWS = ("heartbleed", "CCS", "ticketbleed", "ROBOT", "secure_renego", "secure_client_renego", "CRIME_TLS", "BREACH", "POODLE_SSL",
         "fallback_SCSV", "SWEET32", "FREAK", "DROWN", "LOGJAM", "BEAST", "LUCKY13", "RC4")


class Forwarder:
    """A TCP port behind which every connection is a tunnel through the sandbox's listener."""

    def __init__(self, place, authority):
        self.place, self.authority = place, authority
        self.listener = Listener(self._serve)
        self.port = self.listener.port

    def _serve(self, client):
        try:
            tunnel = self.place.tunnel("a", self.authority)
        except (OSError, Refused):
            client.close()
            return
        for source, sink in ((client, tunnel), (tunnel, client)):
            source.settimeout(60)
            threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()
            sink.close()

    def close(self):
        self.listener.close()


class Scan:
    """One run of the scanner: what it found."""

    def __init__(self, place):
        forwarder = Forwarder(place, "%s:%d" % (HOST, place.values["port"]))
        report = place.path("testssl.json")
        command = [SCANNER, "--ip", "127.0.0.1", "--nodns", "none", "--warnings", "off", "--quiet", "--color", "0", *CHECKS,
                   "--add-ca", place.path("state", "public", "ca.pem"), "--jsonfile", report,
                   "%s:%d" % (HOST, forwarder.port)]
        try:
            self.output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                         timeout=600, text=True, cwd=place.directory, errors="replace").stdout
        finally:
            forwarder.close()
        with open(report) as f:
            self.found = json.load(f)

    def finding(self, name):
        found = [x for x in self.found if x["id"] == name]
        assert found, "the scanner says nothing of %s: %s" % (name, self.output[-300:])
        return found[0]

    def suites(self, version=r"\d_\d"):
        """IANA names of the suites of TLS 1.2 or 1.3."""
        # Newer scanners list one suite several times.
        return sorted({x["finding"].split()[-1] for x in self.found if re.match("cipher-tls%s_" % version, x["id"])})


def nothing_below_tls_1_2_is_offered(scan):
    for name in ("SSLv2", "SSLv3", "TLS1", "TLS1_1"):
        assert scan.finding(name)["finding"].startswith("not offered"), scan.finding(name)
    for name in ("TLS1_2", "TLS1_3"):
        assert scan.finding(name)["finding"].startswith("offered"), scan.finding(name)


def every_suite_is_forward_secret_and_aead(scan):
    for version, shape in (("1_2", "TLS_ECDHE_ECDSA_WITH_.*_(GCM|POLY1305)_SHA"), ("1_3", "TLS_.*_(GCM|POLY1305)_SHA")):
        assert scan.suites(version), "no suite of TLS %s was found" % version
        for suite in scan.suites(version):
            assert re.match(shape, suite), suite


def no_flaw_with_a_name_is_found(scan):
    for name in FLAWS:
        assert scan.finding(name)["severity"] == "OK", scan.finding(name)


def nothing_else_is_held_against_it(scan):
    other = [x for x in scan.found if x["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL", "FATAL")
             and x["id"].split(" ")[0] not in ACCEPTED]
    assert not other, other


def the_leaf_is_for_this_host_and_of_exeats_ca(scan):
    assert scan.finding("cert_chain_of_trust")["severity"] == "OK", scan.finding("cert_chain_of_trust")
    assert scan.finding("cert_subjectAltName")["finding"] == HOST, scan.finding("cert_subjectAltName")


def docs_tls_md_names_the_suites_and_what_is_accepted(scan):
    with open(os.path.join(ROOT, "docs", "tls.md")) as f:
        told = f.read()
    assert sorted(set(re.findall(r"`(TLS_\w+)`", told))) == scan.suites(), scan.suites()
    for name in ACCEPTED:
        assert "`%s`" % name in told, name


TESTS = [nothing_below_tls_1_2_is_offered, every_suite_is_forward_secret_and_aead, no_flaw_with_a_name_is_found,
         nothing_else_is_held_against_it, the_leaf_is_for_this_host_and_of_exeats_ca,
         docs_tls_md_names_the_suites_and_what_is_accepted]


def main():
    report = Report()
    if not SCANNER:
        report.skip("testssl.sh against the intercepted side", "testssl.sh is not installed (dependencies.sh interop)")
        report.end()
    with small_place(sandboxes=("a",)) as place:
        scan = Scan(place)
        report.run_all(TESTS, scan)
    report.end()


if __name__ == "__main__":
    main()
