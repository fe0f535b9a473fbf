"""
A virtual machine of a Debian kernel (`make kernel`) and of programs of this one, by QEMU without KVM, which takes neither root nor a right.
It has no disk: an initramfs holds Debian's Python, exeat, its tests and the libraries of all. The first process is machine_init.py.
"""
import glob
import lzma
import os
import platform
import re
import shutil
import stat
import subprocess

from place import BUILD, ROOT, Skip

EMULATOR = "qemu-system-x86_64"
PYTHON = "/usr/bin/python3"
KERNEL = os.path.join(ROOT, "build", "kernel")
LEFT_OUT = re.compile(r"test|idlelib|lib2to3|ensurepip|tkinter|turtledemo|pydoc_data|config-.*")  # of Python's library
SECONDS = 480


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


class Archive:
    """A cpio archive ("newc") for the kernel, in the making."""

    def __init__(self):
        self.pieces, self.made = [], set()

    def _entry(self, name, mode, data=b""):
        encoded = name.encode() + b"\0"
        fields = (len(self.pieces) + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        self.pieces.append(header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4))

    def folder(self, path):
        if path.strip("/") and path not in self.made:
            self.made.add(path)
            self.folder(os.path.dirname(path))
            self._entry(path.lstrip("/"), stat.S_IFDIR | 0o755)

    def put(self, path, data, mode=0o644):
        if path not in self.made:
            self.made.add(path)
            self.folder(os.path.dirname(path))
            self._entry(path.lstrip("/"), stat.S_IFREG | mode, data)

    def copy(self, source, path=None):
        """A file, under the same path if no other is said; links are followed."""
        with open(source, "rb") as f:
            self.put(path or source, f.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def copy_tree(self, source, target):
        for folder, inner, names in os.walk(source):
            inner[:] = [name for name in inner if not LEFT_OUT.fullmatch(name)]
            for path in filter(os.path.isfile, (os.path.join(folder, name) for name in names)):
                self.copy(path, target + path[len(source):])

    def bytes(self):
        self._entry("TRAILER!!!", 0)
        return b"".join(self.pieces)


class Machine:
    """
    program: of this source, in Python. modules: names of those that are loaded before it, in this order; what is part of the kernel itself may
    be among them.
    """

    def __init__(self, directory, modules, program):
        self.directory, self.modules, self.program = directory, modules, program
        if platform.machine() != "x86_64":
            raise Skip("the machine's kernel is for x86_64")
        if not shutil.which(EMULATOR):
            raise Skip("there is no %s here (dependencies.sh interop)" % EMULATOR)
        kernels = glob.glob(KERNEL + "/boot/vmlinuz-*")
        if not kernels:
            raise Skip("there is no kernel for a machine in build/kernel (make kernel)")
        self.kernel = kernels[0]

    def _add_modules(self, archive):
        for n, name in enumerate(self.modules):
            for found in glob.glob("%s/**/%s.ko*" % (KERNEL, name), recursive=True):
                with (lzma.open if found.endswith(".xz") else open)(found, "rb") as f:
                    archive.put("/modules/%02d-%s.ko" % (n, name), f.read())

    def _add_programs(self, archive):
        library = output_of(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").strip()
        openssl = shutil.which("openssl")
        settings = re.search('"(.*)"', output_of(openssl, "version", "-d"))[1] + "/openssl.cnf"
        programs = [PYTHON, openssl, BUILD + "/exeat", BUILD + "/exeatd"]
        for path in programs[:2] + [settings]:
            archive.copy(path)
        for path in programs[2:]:
            archive.copy(path, "/exeat/build/" + os.path.basename(path))
        archive.copy_tree(library, library)
        extensions = glob.glob(library + "/lib-dynload/*.so")
        for path in set(re.findall(r"(/\S+) \(0x", output_of("ldd", *programs, *extensions))):
            archive.copy(path)

    def _archive(self):
        archive = Archive()
        for folder in ("/proc", "/sys", "/dev", "/tmp", "/run"):
            archive.folder(folder)
        archive.put("/etc/passwd", b"root:x:0:0::/:\n")
        archive.put("/etc/hosts", b"127.0.0.1 localhost\n")
        self._add_programs(archive)
        self._add_modules(archive)
        for name in ("system", "interop"):
            archive.copy_tree(os.path.join(ROOT, "tests", name), "/exeat/tests/" + name)
        archive.copy(os.path.join(ROOT, "tests", "interop", "machine_init.py"), "/init")
        path = os.path.join(self.directory, "initramfs")
        with open(path, "wb") as f:
            f.write(archive.bytes())
        return path

    def run(self):
        """Until it is off; the lines of its console."""
        settings = "EXEAT_PROGRAM=%s EXEAT_CASE=%s" % (self.program, os.environ.get("EXEAT_CASE", ""))
        command = [EMULATOR, "-accel", "tcg", "-cpu", "max", "-m", "768", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                   "-serial", "stdio", "-kernel", self.kernel, "-initrd", self._archive(), "-append",
                   "console=ttyS0 quiet panic=-1 mitigations=off " + settings]
        emulator = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = emulator.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            emulator.kill()
            said, _ = emulator.communicate()
        return said.decode(errors="replace").replace("\r", "").splitlines()
