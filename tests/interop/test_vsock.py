#!/usr/bin/env python3
"""
Guests of vsock, whose identity is their CID. A kernel with vhost_vsock and the right to load it are what few machines of tests have, so all
of it, exeatd and its guests, happens in a machine of its own: vsock_in_machine.py, whose results are its console.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

from machine import Machine  # noqa: E402
from place import Report, Skip  # noqa: E402

MODULES = ("vsock", "vmw_vsock_virtio_transport_common", "vsock_loopback", "vhost_iotlb", "vhost", "vhost_vsock")
END = "the program ended with "


def main():
    report = Report()
    with tempfile.TemporaryDirectory(prefix="exeat-machine-") as directory:
        try:
            said = Machine(directory, MODULES, "tests/interop/vsock_in_machine.py").run()
        except Skip as why:
            report.skip("vsock in a machine", why)
            report.end()
    for line in said:
        print(line, flush=True)
    if END + "0" not in said and not any(line.startswith("not ok ") for line in said):
        report.bad("the machine comes to its end", " | ".join(said[-8:]))
    sys.exit(0 if END + "0" in said else 1)


if __name__ == "__main__":
    main()
