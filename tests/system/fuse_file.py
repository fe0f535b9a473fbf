"""A file of a file system of the test's own (FUSE): whoever closes it waits for the test."""
import ctypes
import os
import struct
import threading

CLONE_NEWNS, CLONE_NEWUSER, PR_SET_DUMPABLE = 0x20000, 0x10000000, 4
LOOKUP, GETATTR, OPEN, FLUSH, INIT = 1, 3, 14, 25, 26
FOLDER, FILE, PLACE = 0o40777, 0o100666, "/mnt"


def call(name, *words):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*words) != 0:
        raise OSError(ctypes.get_errno(), name)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def attributes(node):
    return struct.pack("<6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, FOLDER if node == 1 else FILE, 1, os.getuid(), os.getgid(), 0, 4096, 0)


class FuseFile:
    """To be made by a process of an ordinary user, which gets namespaces of its own. Closing is answered as long as `answers`."""

    def __init__(self):
        uid, gid, self.answers = os.getuid(), os.getgid(), True
        call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)  # who has become another user may not write to /proc/self
        call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", "%d %d 1" % (uid, uid))
        write("/proc/self/gid_map", "%d %d 1" % (gid, gid))
        self.device = os.open("/dev/fuse", os.O_RDWR)
        call("mount", b"none", PLACE.encode(), b"fuse", 0, b"fd=%d,rootmode=40000,user_id=%d,group_id=%d" % (self.device, uid, gid))
        threading.Thread(target=self.serve, daemon=True).start()
        self.fd = os.open(PLACE + "/file", os.O_RDWR)

    def fileno(self):
        return self.fd

    def answer_to(self, kind, node):
        if kind == INIT:
            return struct.pack("<IIIIHHII", 7, 31, 65536, 0, 12, 10, 65536, 1) + bytes(36)
        if kind == LOOKUP:
            return struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
        if kind == GETATTR:
            return struct.pack("<QII", 3600, 0, 0) + attributes(node)
        return bytes(16) if kind == OPEN else b"" if kind == FLUSH and self.answers else None

    def serve(self):
        while True:
            _, kind, number, node = struct.unpack_from("<IIQQ", os.read(self.device, 1 << 17))
            answer = self.answer_to(kind, node)
            if answer is not None:
                os.write(self.device, struct.pack("<IiQ", 16 + len(answer), 0, number) + answer)

    def close(self):
        """This process' own; from then on nobody else's is answered."""
        os.close(self.fd)
        self.answers = False
