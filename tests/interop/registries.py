"""Package registries of one package each: what their clients ask for, as files by path."""
import base64
import hashlib
import io
import json
import tarfile
import zipfile

NAME, VERSION = "exeat-demo", "1.0.0"


class Registry:
    """Serves files; asked: the paths that were asked for."""

    def __init__(self, files):
        self.files, self.asked = files, []

    def __call__(self, request):
        request.body(lambda piece: None)
        self.asked.append(request.path)
        content = self.files.get(request.path)
        if content is None:
            request.answer("404 Not Found")
        else:
            kind = "application/json" if content[:1] == b"{" else "text/html" if content[:1] == b"<" else "application/octet-stream"
            request.answer(body=content, fields=[("Content-Type", kind)])


def tar_gz(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o644
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in files.items():
            z.writestr(name, content)
    return out.getvalue()


def npm(url):
    tarball = tar_gz({"package/package.json": json.dumps({"name": NAME, "version": VERSION}).encode(),
                      "package/index.js": b"module.exports = 'installed';\n"})
    path = "/%s/-/%s-%s.tgz" % (NAME, NAME, VERSION)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    version = {"name": NAME, "version": VERSION, "dist": {"tarball": url + path, "integrity": integrity}}
    return {"/" + NAME: json.dumps({"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}).encode(),
            path: tarball}


def pip(url):
    name = NAME.replace("-", "_")
    info = "%s-%s.dist-info/" % (name, VERSION)
    wheel = zipped({name + ".py": b"INSTALLED = True\n",
                    info + "METADATA": ("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION)).encode(),
                    info + "WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                    info + "RECORD": b""})
    file = "/files/%s-%s-py3-none-any.whl" % (name, VERSION)
    index = '<!doctype html><a href="%s#sha256=%s">%s</a>' % (url + file, hashlib.sha256(wheel).hexdigest(), file.split("/")[-1])
    return {"/simple/%s/" % NAME: index.encode(), file: wheel}


def go(url):
    module, folder = "example.test/demo", "example.test/demo@v1.0.0/"
    mod = b"module example.test/demo\n\ngo 1.18\n"
    return {"/%s/@v/list" % module: b"v1.0.0\n",
            "/%s/@v/v1.0.0.info" % module: b'{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}',
            "/%s/@v/v1.0.0.mod" % module: mod,
            "/%s/@v/v1.0.0.zip" % module: zipped({folder + "go.mod": mod, folder + "demo.go": b"package demo\n"})}


def cargo(url):
    folder = "%s-%s/" % (NAME, VERSION)
    crate = tar_gz({folder + "Cargo.toml": ('[package]\nname = "%s"\nversion = "%s"\n' % (NAME, VERSION)).encode(),
                    folder + "src/lib.rs": b"pub fn demo() {}\n"})
    entry = {"name": NAME, "vers": VERSION, "deps": [], "cksum": hashlib.sha256(crate).hexdigest(), "features": {}, "yanked": False}
    return {"/config.json": json.dumps({"dl": url + "/dl"}).encode(),
            "/ex/ea/" + NAME: json.dumps(entry).encode() + b"\n",
            "/dl/%s/%s/download" % (NAME, VERSION): crate}


def maven(url):
    """A parent, which Maven reads before anything else, and an extension, whose jar it then loads with a library of its own."""
    jar = zipped({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n"})
    files = {"/org/codehaus/plexus/plexus-utils/1.1/plexus-utils-1.1.jar": jar}
    for artifact, packaging in (("parent", "pom"), ("extension", "jar")):
        path = "/org/example/%s/%s/%s-%s." % (artifact, VERSION, artifact, VERSION)
        files[path + "pom"] = (
            "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>%s</artifactId>"
            "<version>%s</version><packaging>%s</packaging></project>" % (artifact, VERSION, packaging)).encode()
        if packaging == "jar":
            files[path + "jar"] = jar
    files.update({path + ".sha1": hashlib.sha1(content).hexdigest().encode() for path, content in list(files.items())})
    return files


def ar(files):
    out = b"!<arch>\n"
    for name, content in files.items():
        out += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name.encode(), 0, 0, 0, b"100644", len(content))
        out += content + b"\n" * (len(content) % 2)
    return out


def apt(url):
    control = "Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: t <t@example.com>\nDescription: demo\n" % (NAME, VERSION)
    deb = ar({"debian-binary": b"2.0\n", "control.tar.gz": tar_gz({"./control": control.encode()}), "data.tar.gz": tar_gz({})})
    file = "%s_%s_all.deb" % (NAME, VERSION)
    packages = (control + "Filename: ./%s\nSize: %d\nSHA256: %s\n\n" % (file, len(deb), hashlib.sha256(deb).hexdigest())).encode()
    release = "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %s %d Packages\n" % (hashlib.sha256(packages).hexdigest(), len(packages))
    return {"/Release": release.encode(), "/Packages": packages, "/" + file: deb}


REGISTRIES = {"npm": npm, "pip": pip, "go": go, "cargo": cargo, "maven": maven, "apt": apt}
