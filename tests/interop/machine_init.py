#!/usr/bin/python3
"""The first process of a machine (machine.py): makes it one, runs EXEAT_PROGRAM, says how that ended, and turns the machine off."""
import ctypes
import fcntl
import glob
import os
import socket
import struct
import subprocess
import sys

POWER_OFF = 0x4321FEDC
INIT_MODULE = 175  # x86_64
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

libc = ctypes.CDLL(None, use_errno=True)


def must(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def mount(kind, where):
    must(libc.mount(kind, where, kind, 0, None), where.decode())


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    must(libc.syscall(INIT_MODULE, data, ctypes.c_ulong(len(data)), b""), path)


def make_machine():
    os.makedirs("/run/lock", exist_ok=True)
    for kind, where in ((b"proc", b"/proc"), (b"sysfs", b"/sys"), (b"devtmpfs", b"/dev"), (b"tmpfs", b"/tmp")):
        mount(kind, where)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    for path in sorted(glob.glob("/modules/*.ko")):
        load(path)


def main():
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    make_machine()
    status = subprocess.run([sys.executable, "/exeat/" + os.environ["EXEAT_PROGRAM"]], cwd="/exeat", stderr=subprocess.STDOUT).returncode
    print("the program ended with %d" % status, flush=True)


try:
    main()
except Exception as failure:
    print("the machine cannot be made: %s" % failure, flush=True)
os.sync()
libc.reboot(POWER_OFF)
