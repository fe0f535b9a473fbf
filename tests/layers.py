#!/usr/bin/env python3
"""Checks that includes only ever point down the order of folders, and that each library has one home.

Prints every violation as file:line and exits 1; else one line that says OK.
"""

import fnmatch
import glob
import os
import re
import sys

# From the top; folders of one line stand beside each other (docs/architecture.md).
ORDER = [["daemon"], ["cli"], ["run"], ["proxy"], ["egress"], ["broker", "ca", "audit"], ["http"], ["policy"], ["base"]]
RANK = {folder: rank for rank, folders in enumerate(ORDER) for folder in folders}

# Processes: what others may know of them. Nothing else is included from outside their folder.
PROCESSES = ["daemon", "cli", "proxy", "egress", "broker", "ca", "audit"]
SHARED = ["*/*_messages.h", "audit/record.h", "audit/stream.h", "audit/chain.h", "ca/mint.h"]

# What a folder may include beyond that: `daemon` starts every role by its entry header; `cli` reads the
# configuration, and makes keys, verifies chains and reads vaults without the processes that own them.
BEYOND = {
    "daemon": ["proxy/proxy.h", "egress/egress.h", "egress/inspect.h", "egress/dialer.h", "broker/broker.h",
               "ca/ca.h", "audit/audit.h", "cli/policy_files.h"],
    "cli": ["daemon/config.h", "daemon/control_messages.h", "broker/*.h", "ca/*.h", "audit/*.h"],
}
NEVER = {"cli": ["broker/broker.h", "ca/ca.h", "audit/audit.h"]}

# Header of a library: the files that may know it.
TLS = ["http/tls*", "http/anchors.[ch]", "http/staple.[ch]"]
HOMES = [
    ("openssl/ssl.h", ["http/tls*"]),
    ("openssl/x509*.h", TLS + ["ca/mint.c", "broker/certificate.c"]),
    ("openssl/ocsp.h", TLS),
    ("openssl/ec.h", TLS + ["ca/mint.c"]),
    ("openssl/hmac.h", ["base/digest.c"]),
    ("openssl/pkcs12.h", ["cli/java_roots.c"]),
    ("openssl/*", TLS + ["ca/mint.c", "cli/java_roots.c", "base/digest.c", "base/client_key.c", "base/openssl_memory.c", "broker/seal.c", "broker/certificate.c", "audit/chain_head.c"]),
    ("sqlite3.h", ["broker/store.c"]),
    ("ares.h", ["egress/resolver.c"]),
    ("maxminddb.h", ["egress/geography.c"]),
    ("zlib.h", ["egress/inflate.c"]),
    ("libpsl.h", ["policy/suffix.c"]),
    ("idn2.h", ["policy/idna.c"]),
    ("llhttp.h", ["http/http1.c"]),
    ("seccomp.h", ["base/rights.c", "run/confine.c"]),
    ("event2/event.h", ["base/loop.h"]),
    ("event2/*", []),
    ("nghttp2/*", []),
    ("jansson.h", ["cli/openapi.c", "cli/nft_*", "policy/json_form.c"]),
]
# The one file that names every library, to print its version.
VERSIONS = "base/libraries.c"

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def ours(path, header):
    """Why `path` may not include our own `header`, or None."""
    here, there = path.split("/")[0], header.split("/")[0]
    if there not in RANK:
        return f'"{header}" is in no folder of the order'
    if not os.path.exists(header):
        return f'"{header}" does not exist'
    if here == there:
        return None
    if matches(header, NEVER.get(here, [])):
        return f"{here} must not know {header}"
    if matches(header, BEYOND.get(here, [])):
        return None
    if there in PROCESSES and not matches(header, SHARED):
        return f"{header} is {there}'s own; others may know its message headers"
    if RANK[there] < RANK[here]:
        return f"{here} stands below {there}"
    return None


def library(path, header):
    """Why `path` may not include the library's `header`, or None."""
    if path == VERSIONS:
        return None
    for pattern, homes in HOMES:
        if fnmatch.fnmatchcase(header, pattern):
            return None if matches(path, homes) else f"<{header}> is known to {', '.join(homes) or 'no file'} only"
    return None


def violations(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            why = ours(path, found[1]) if found[1] else library(path, found[2])
            if why:
                yield f"{path}:{number}: {why}"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = sorted(path for folder in RANK for path in glob.glob(f"{folder}/*.[ch]"))
    found = [line for path in files for line in violations(path)]
    for line in found:
        print(line)
    if not found:
        print(f"layers: OK, {len(files)} files")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
