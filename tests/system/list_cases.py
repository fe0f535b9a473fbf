#!/usr/bin/env python3
"""Writes docs/cases.md: which test shows which case of the attack catalogue.

  python3 tests/system/list_cases.py > docs/cases.md

A case's tests are found by its id (a test may name several): in the files of tests/system/cases, and in function names ("rf_03_...") of the unit
and system tests. The notes below say what is not shown and why; a case with neither test nor note is "open".
"""
import glob
import os
import re

from cases import FOLDER, expand, parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

THEMES = [
    ("HC", "Hostname canonicalisation", 17), ("IP", "Address literals and address ranges", 14),
    ("WC", "Wildcards and rule semantics", 10), ("DN", "DNS", 9), ("TI", "TLS identity on the client side", 12),
    ("TU", "Upstream TLS", 12), ("CT", "Ways in", 15), ("SM", "HTTP/1 parsing and request smuggling", 25),
    ("RS", "Hostile or broken upstream answers", 11), ("H2", "HTTP/2", 12),
    ("PN", "Path, query and method normalisation", 11), ("HD", "Header names, values and hop-by-hop games", 8),
    ("WS", "WebSocket and Upgrade", 7), ("RD", "Redirects and locations", 5), ("PH", "Placeholder handling", 15),
    ("RF", "Reflection, side channels", 11), ("PV", "Token provenance", 10),
    ("GF", "Forges, registries, storage, OAuth", 9), ("SF", "Server-side fetch through an allowed API", 7),
    ("AP", "GraphQL, JSON-RPC, MCP, gRPC", 7), ("RX", "Resource exhaustion", 11), ("AU", "Audit and logging", 7),
    ("AD", "Admin surface, CA, vault, config, crash, clock", 10), ("XS", "Identity and cross-sandbox separation", 7),
    ("BR", "Reports of others, rebuilt in small", 83),
]

H2 = "not built: HTTP/2 is not offered (ALPN says http/1.1 only), its preface is refused (CT-15)"
MULTIPART = "multipart bodies are not read for rules: conditions on them are undecided"
HOST = "not exeat's: the network around it must leave the sandbox no other way (threat model)"

NOTES = {
    "HC-07": "the policy takes A-labels only",
    "IP-14": "one address elsewhere, or in no database, refuses the name. A broken database: no start",
    "DN-05": "a lane's new names are limited by the minute; what labels carry is a residual (threat model)",
    "TU-05": "nothing is fetched: no CRL, no OCSP (docs/tls.md)",
    "TU-10": "more than 100 KB of certificates are not read; curves of the upstream's own making are refused",
    "TU-12": "of TLS; for HTTP compression see RF-02",
    "TI-03": H2,
    "TI-06": "an address in SNI is refused as another name would be",
    "CT-13": "in a sandbox of `exeat run`; elsewhere " + HOST,
    "CT-14": "UDP: in a sandbox of `exeat run`; elsewhere " + HOST + "; Alt-Svc is dropped (RS-10)",
    "SM-03": "stricter than RFC 9112: only the lower-case word is taken",
    "SM-14": "two extensions on one chunk line are refused by llhttp 8",
    "WS-02": "not built: every upgrade is refused",
    "WS-04": "not built: every upgrade is refused",
    "WS-05": "not built: every upgrade is refused",
    "WS-06": "subprotocols are shown by PV-09; Origin decides nothing",
    "WS-07": H2,
    "PN-05": "refusals (`never`) also cover a format, dots and blanks behind a segment",
    "PN-06": "operations compare with case, refusals (`never`) without",
    "PN-09": "in fields, query, forms and the outermost object of JSON",
    "PH-07": "percent-encoding and JSON are undone; other disguises are worthless and pass",
    "PH-12": "`exeat secret add --like`",
    "PV-02": "of a JSON body the members of the two outermost levels are looked at (threat model, P7)",
    "RF-06": "a pause in the middle of a secret lets the guard release what it held: fewer than guard-run bytes behind the public head",
    "RF-11": "not built: tokens in answers are not captured; the next request with one is foreign (PV-07)",
    "GF-02": "not built: bytes are recorded, no rule limits them; an allowed server is a channel (threat model, residuals)",
    "GF-06": "the storage host needs a rule of its own, and signed queries are foreign (PV-05)",
    "GF-07": "secrets and assertions are foreign; client ids are public names and not bound",
    "SF-06": "as SF-01 and SF-03: by pointers of the policy", "SF-07": MULTIPART,
    "SF-05": "residual (threat model)",
    "AP-05": "session ids are not bound",
    "AP-06": H2, "AP-07": "streaming is shown by RF-06",
    "RX-06": "100 MB both ways with constant memory: test_clients", "RX-11": "64-bit clocks; ids end the process before they wrap",
    "XS-02": HOST, "XS-06": "accepted (threat model)", "XS-07": "identity is the listener, not an address",
    "AU-01": "test_promises, P10: full disk", "AU-04": "test_promises, P9", "AU-07": "no interface of the sandbox reads it (AD-01)",
    "AD-05": "test_promises, P9 and P10; test_operation", "AD-02": "test_hostile; modes in the unit tests",
    "AD-04": "test_promises, P10; test_operation", "AD-08": "test_promises, P1; test_hostile",
    "AD-09": "test_operation", "XS-04": "pools, leaves and leases belong to a lane and a sandbox",
    "PH-13": "test_operation: rotation under load", "PH-14": "nothing passes uninspected (CT-01)",
}
NOTES.update({
    "CT-06": "test_exhaustion keeps tunnels open; no state says that a connection was approved",
    "RF-08": "medians of classes, interleaved; see the test's own words",
    "WC-06": "not built: policies have no regular expressions, only stars for whole labels and segments, and for any run of characters in a value",
    "RX-01": "slowhttptest itself: the soak", "RX-07": "a churn of seconds; an hour of it is the soak's",
    "RX-10": "address space instead of a cgroup: every allocation fails, not the process",
    "BR-13": "`never all` of a service of that address, also for names that resolve to it",
    "BR-17": HOST, "BR-82": H2,
    "BR-42": "exeat changes no network of the machine",
    "BR-56": "the dialer connects to the addresses of its own one look-up: DN-01",
    "BR-73": "not built: see RF-11", "BR-72": "PH-04; refresh: see RF-11",
    "BR-77": "RX-05", "BR-74": "test_promises, P9 and P10: a full disk, a missing or cut record",
    "BR-52": "ALPN says http/1.1 only; deadlines: RX-03; nothing listens before all is loaded: AD-04",
    "BR-23": "with PH-12",
})
for number in range(1, 13):
    NOTES.setdefault("H2-%02d" % number, H2)
NOTES["H2-11"] = "shown for HTTP/1: WS-03, CT-15"


def collect():
    found = {}
    for path in sorted(glob.glob(FOLDER + "/*.case")):
        where = "cases/" + os.path.basename(path)
        for case in parse(path):
            for number in re.match(r"(?:[A-Z][A-Z0-9]-\d\d )+", case.name).group(0).split():
                tests = found.setdefault(number, {})
                tests[where] = tests.get(where, 0) + len(expand(case))
    sources = glob.glob(ROOT + "/tests/unit/*.c") + glob.glob(ROOT + "/tests/system/test_*.py")
    for path in sorted(sources):
        with open(path, encoding="utf-8") as f:
            names = re.findall(r"(?:static void|def) ((?:[a-z][a-z0-9]_\d\d_)+\w+)\(", f.read())
        for name in names:
            for theme, number in re.findall(r"(?:^|_)([a-z][a-z0-9])_(\d\d)(?=_)", name):
                where = os.path.relpath(path, ROOT + "/tests")
                tests = found.setdefault("%s-%s" % (theme.upper(), number), {})
                tests[where] = tests.get(where, 0) + 1
    return found


def main():
    found = collect()
    print("""# The attack catalogue and its tests

Written by `tests/system/list_cases.py`. Files are those of `tests/`; the number is how many inputs (of `cases/*.case`) or
test functions name the case. Each input of a case is sent whole, byte by byte, and cut in two; what is
checked of each is told at the head of `tests/system/cases.py`. Ids above the catalogue's are siblings of our own.
""")
    for theme, title, count in THEMES:
        print("## %s: %s\n\n| case | tests | note |\n|---|---|---|" % (theme, title))
        ids = sorted({"%s-%02d" % (theme, i) for i in range(1, count + 1)} |
                     {i for i in found if i.startswith(theme + "-")})
        for number in ids:
            tests = ", ".join("%s (%d)" % (where, n) for where, n in sorted(found.get(number, {}).items()))
            note = NOTES.get(number, "" if tests else "open")
            print("| %s | %s | %s |" % (number, tests, note))
        print()


if __name__ == "__main__":
    main()
