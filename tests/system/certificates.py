"""Certificates of every bad kind, made with openssl, from the words of a case (see case_server.py)."""
import datetime
import os
import re
import subprocess

from place import openssl

CONFIG = """[ca]
default_ca = any
[any]
database = index.txt
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
preserve = yes
policy = whatever
[whatever]
commonName = optional
organizationName = optional
[req]
distinguished_name = nothing
[nothing]
"""

KEYS = {
    "ec": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "ec-explicit": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit"],
    "ec-192": ["EC", "-pkeyopt", "ec_paramgen_curve:P-192"],
    "p384": ["EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
}
CA = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n"
LEAF = "basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n"

# name: (by whom, what differs). Only `root` is trusted by the daemon.
ISSUERS = {
    "intermediate": ("root", {}),
    "expired-intermediate": ("root", {"days": (-30, -1)}),
    "future-intermediate": ("root", {"days": (1, 30)}),
    "sha1-intermediate": ("root", {"digest": "sha1"}),
    "rsa1024-intermediate": ("root", {"key": "rsa1024"}),
    "no-ca": ("root", {"extensions": LEAF}),
    "mail-ca": ("root", {"extensions": CA + "extendedKeyUsage=emailProtection\n"}),
    "other-names-ca": ("root", {"extensions": CA + "nameConstraints=critical,permitted;DNS:other.test\n"}),
    "many-names-ca": ("root", {"extensions": CA + "nameConstraints=permitted;DNS:test%s\n" % "".join(
        ",excluded;DNS:host-%d.none.test" % i for i in range(2500))}),
    "short-ca": ("root", {"extensions": "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=keyCertSign\n"}),
    "below-short-ca": ("short-ca", {}),
    "stranger": (None, {}),
    "below-stranger": ("stranger", {}),
}


class Certificates:
    """Issues into `directory`, where place.UpstreamCa has its root; what was made once is used again."""

    def __init__(self, directory):
        self.directory, self.made, self.keys = directory, {}, {}
        for name, content in (("index.txt", ""), ("ca.cnf", CONFIG)):
            with open(self._path(name), "w") as f:
                f.write(content)
        self.made["root"] = ("up-ca", [])

    def _path(self, name):
        return os.path.join(self.directory, name)

    def _read(self, name):
        with open(self._path(name)) as f:
            return "".join(re.findall(r"-----BEGIN CERT.*?-----END CERT[^\n]*\n", f.read(), re.S))

    def trust(self, name, pem, key):
        """A CA from elsewhere, under a name of its own."""
        for ending, path in ((".pem", pem), (".key", key)):
            with open(path, "rb") as source, open(self._path(name + ending), "wb") as copy:
                copy.write(source.read())
        self.made[name] = (name, [])

    def key(self, kind):
        """The one key of this kind ("rsa2048", or a kind of KEYS)."""
        if kind not in self.keys:
            how = KEYS.get(kind) or ["RSA", "-pkeyopt", "rsa_keygen_bits:" + kind[3:]]
            openssl(self.directory, "genpkey", "-algorithm", *how, "-out", kind + "-shared.key")
            self.keys[kind] = kind + "-shared.key"
        return self.keys[kind]

    def _issuer(self, name):
        """(file stem, certificates to send above what it issues)."""
        if name not in self.made:
            above, differs = ISSUERS[name]
            stem, chain = self.issue(above or "itself", subject="/CN=test " + name, **dict({"extensions": CA}, **differs))
            self.made[name] = (stem, chain)
        return self.made[name]

    def issue(self, issuer, subject="/CN=leaf", names="", days=(-2, 30), key="ec", digest="sha256", extensions=LEAF):
        """(file stem of the certificate, stems of the chain to send with it, itself first)."""
        stem, chain = "made-%d" % len(os.listdir(self.directory)), []
        with open(self._path(stem + ".ext"), "w") as f:
            f.write(extensions + (names and "subjectAltName=%s\n" % names))
            f.write("authorityKeyIdentifier=keyid\n" if issuer != "itself" else "")
        key_file = self.key(key)
        os.symlink(key_file, self._path(stem + ".key"))
        openssl(self.directory, "req", "-config", "ca.cnf", "-new", "-key", key_file, "-subj", subject, "-out", stem + ".csr")
        if issuer == "itself":
            by = ["-selfsign", "-keyfile", key_file]
        else:
            above, chain = self._issuer(issuer)
            by = ["-cert", above + ".pem", "-keyfile", above + ".key"]
        now = datetime.datetime.now(datetime.timezone.utc)
        dates = [(now + datetime.timedelta(days=d)).strftime("%Y%m%d%H%M%SZ") for d in days]
        openssl(self.directory, "ca", "-config", "ca.cnf", "-batch", "-notext", *by, "-in", stem + ".csr", "-out",
                stem + ".pem", "-md", digest, "-extfile", stem + ".ext", "-startdate", dates[0], "-enddate", dates[1])
        return stem, [stem] + chain

    def chain_file(self, stems):
        """A PEM file of these certificates, the leaf first, with its key's path."""
        path = self._path("chain-%s.pem" % "-".join(stems)[:100])
        with open(path, "w") as f:
            f.write("".join(self._read(stem + ".pem") for stem in stems))
        return path, self._path(stems[0] + ".key")

    def staple(self, stem, issuer, status):
        """An OCSP answer about a certificate, as DER; status: V or R."""
        above, _ = self._issuer(issuer)
        serial = subprocess.run(["openssl", "x509", "-in", self._path(stem + ".pem"), "-noout", "-serial"],
                                stdout=subprocess.PIPE, check=True, text=True).stdout.strip().split("=")[1]
        with open(self._path("ocsp.txt"), "w") as f:
            f.write("%s\t400101000000Z\t%s\t%s\tunknown\t/CN=leaf\n" % (status, "260101000000Z" if status == "R" else "",
                                                                        serial))
        openssl(self.directory, "ocsp", "-index", "ocsp.txt", "-CA", above + ".pem", "-rsigner", above + ".pem", "-rkey",
                above + ".key", "-issuer", above + ".pem", "-cert", stem + ".pem", "-respout", stem + ".ocsp", "-ndays", "1")
        with open(self._path(stem + ".ocsp"), "rb") as f:
            return f.read()
