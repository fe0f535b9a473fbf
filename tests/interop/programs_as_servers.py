"""Servers that are programs: each at an address of its own, and started when it is first asked for."""
import os
import socket
import subprocess
import threading

from place import Skip, free_port, wait_for

PYTHON = "/usr/bin/python3"
APACHE = "/usr/sbin/apache2"
MODULES = "/usr/lib/apache2/modules"
CONFIGURATION = """
ServerRoot %(root)s
ServerName %(host)s
PidFile %(root)s/pid
ErrorLog %(root)s/errors
Mutex file:%(root)s
Listen %(address)s:%(port)d
%(modules)s
SSLEngine on
SSLCertificateFile %(cert)s
SSLCertificateKeyFile %(key)s
<Location /r>
    DAV svn
    SVNPath %(root)s/r
    Require all granted
</Location>
"""


class ProgramAsServer:
    """place: where it has its certificate and its files; set once there is one."""

    def __init__(self, address, port):
        self.address, self.port = address, port or free_port()
        self.place, self.process, self.starting = None, None, threading.Lock()

    def url(self):
        with self.starting:
            if not self.process:
                cert, key = self.place.ca.leaf(self.host, [self.host])
                self.process = subprocess.Popen(self.command(cert, key), stdout=subprocess.DEVNULL)
                assert wait_for(self._answers, 20), "%s did not start" % self.host
        return "https://" + self.host + (":%d" % self.port if self.port != 443 else "")

    def _answers(self):
        assert self.process.poll() is None, "%s ended with %d" % (self.host, self.process.returncode)
        with socket.socket() as s:
            return s.connect_ex((self.address, self.port)) == 0

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


class GrpcServer(ProgramAsServer):
    host = "grpc.allowed.test"

    def command(self, cert, key):
        if subprocess.run([PYTHON, "-c", "import grpc"], stderr=subprocess.DEVNULL).returncode != 0:
            raise Skip("there is no grpc for %s here, to serve with" % PYTHON)
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "grpc_server.py")
        return [PYTHON, program, "%s:%d" % (self.address, self.port), cert, key]


class SvnServer(ProgramAsServer):
    """Apache's, with one repository at /r."""

    host = "svn.allowed.test"

    def command(self, cert, key):
        if not os.path.exists(APACHE) or not os.path.exists(MODULES + "/mod_dav_svn.so"):
            raise Skip("there is no Apache with mod_dav_svn here")
        root = self.place.path("svn")
        os.mkdir(root)
        subprocess.run(["svnadmin", "create", os.path.join(root, "r")], check=True)
        # Apache's own user, where it is root.
        subprocess.run(["chmod", "-R", "a+rwX", root], check=True)
        modules = "\n".join("LoadModule %s_module %s/mod_%s.so" % (name, MODULES, name)
                            for name in ("mpm_event", "ssl", "socache_shmcb", "authz_core", "dav", "dav_svn"))
        with open(os.path.join(root, "conf"), "w") as f:
            f.write(CONFIGURATION % dict(root=root, host=self.host, address=self.address, port=self.port, modules=modules, cert=cert, key=key))
        return [APACHE, "-f", os.path.join(root, "conf"), "-DFOREGROUND"]
