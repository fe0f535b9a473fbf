"""The scratch directory: throw-away certificates of origin and proxies, and a hosts file for peers that resolve."""
import os
import subprocess

TLS_PORT, PLAIN_PORT, PROXY_PORT = 8443, 8080, 9000
HOSTS = ["warm.bench.test", "plain.bench.test"] + ["h%d.bench.test" % i for i in range(1000)]


class Scratch:
    def __init__(self, path):
        self.dir = path
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o755)  # squid and exeat's roles run as users of their own
        if not os.path.exists(self.file("done")):
            self.make()

    def file(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.file(name), "w") as f:
            f.write(text)
        return self.file(name)

    def openssl(self, *args):
        subprocess.run(["openssl", *args], check=True, cwd=self.dir, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def key(self, name, rsa=False):
        opts = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if rsa else [
            "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        self.openssl("genpkey", *opts, "-out", name)

    def authority(self, name, rsa=False):
        self.key(name + ".key", rsa)
        self.openssl("req", "-x509", "-new", "-key", name + ".key", "-sha256", "-days", "30", "-subj", "/CN=" + name,
                     "-out", name + ".pem", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def leaf(self, name, ca):
        self.key(name + ".key")
        self.write("leaf.ext", "subjectAltName=DNS:*.bench.test\nextendedKeyUsage=serverAuth\n")
        self.openssl("req", "-new", "-key", name + ".key", "-subj", "/CN=h.bench.test", "-out", name + ".csr")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key",
                     "-CAcreateserial", "-days", "30", "-sha256", "-extfile", "leaf.ext", "-out", name + ".pem")

    def bundle(self, name):
        parts = [open(self.file(name + end)).read() for end in (".key", ".pem")]
        self.write(name + ".bundle", "".join(parts))

    def make(self):
        self.authority("origin-ca")
        self.leaf("origin", "origin-ca")
        self.authority("proxy-ca")
        self.authority("proxy-rsa", rsa=True)  # for proxies that can only use an RSA CA
        self.leaf("wild", "proxy-ca")  # for those that cannot mint
        for name in ("wild", "proxy-ca", "proxy-rsa"):
            self.bundle(name)
        self.write("hosts", "127.0.0.1 localhost\n" + "".join("127.0.0.1 %s\n" % h for h in HOSTS))
        self.write("done", "")
