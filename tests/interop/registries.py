"""Package registries of one package each: what their clients ask for, as files by path."""
import base64
import gzip
import hashlib
import io
import json
import tarfile
import zipfile

NAME, VERSION = "exeat-demo", "1.0.0"


class Registry:
    """Serves files, some with a type of their own; asked: the paths that were asked for."""

    def __init__(self, files):
        self.files, self.asked = files, []

    def __call__(self, request):
        request.body(lambda piece: None)
        self.asked.append(request.path)
        content = self.files.get(request.path)
        if content is None:
            request.answer("404 Not Found")
        else:
            kind, content = content if isinstance(content, tuple) else (guessed(content), content)
            request.answer(body=content, fields=[("Content-Type", kind)])


def guessed(content):
    return "application/json" if content[:1] == b"{" else "text/html" if content[:1] == b"<" else "application/octet-stream"


def tarred(files, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.USTAR_FORMAT) as tar:
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
    tarball = tarred({"package/package.json": json.dumps({"name": NAME, "version": VERSION}).encode(),
                      "package/index.js": b"module.exports = 'installed';\n"})
    path = "/%s/-/%s-%s.tgz" % (NAME, NAME, VERSION)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    version = {"name": NAME, "version": VERSION, "dist": {"tarball": url + path, "integrity": integrity}}
    return {"/" + NAME: json.dumps({"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version},
                                     "time": {VERSION: "2026-01-01T00:00:00.000Z"}}).encode(),
            path: tarball}


def pip(url):
    name = NAME.replace("-", "_")
    info = "%s-%s.dist-info/" % (name, VERSION)
    wheel = zipped({name + ".py": b"INSTALLED = True\n",
                    info + "METADATA": ("Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION)).encode(),
                    info + "WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                    info + "entry_points.txt": ("[console_scripts]\n%s = %s:run\n" % (NAME, name)).encode(),
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
    crate = tarred({folder + "Cargo.toml": ('[package]\nname = "%s"\nversion = "%s"\n' % (NAME, VERSION)).encode(),
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
    deb = ar({"debian-binary": b"2.0\n", "control.tar.gz": tarred({"./control": control.encode()}), "data.tar.gz": tarred({})})
    file = "%s_%s_all.deb" % (NAME, VERSION)
    packages = (control + "Filename: ./%s\nSize: %d\nSHA256: %s\n\n" % (file, len(deb), hashlib.sha256(deb).hexdigest())).encode()
    release = "Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %s %d Packages\n" % (hashlib.sha256(packages).hexdigest(), len(packages))
    return {"/Release": release.encode(), "/Packages": packages, "/" + file: deb}


GEM = """--- !ruby/object:Gem::Specification
name: %s
version: !ruby/object:Gem::Version
  version: %s
platform: ruby
authors: [t]
date: 2026-01-01 00:00:00.000000000 Z
dependencies: []
summary: demo
files: [lib/demo.rb]
require_paths: [lib]
required_ruby_version: !ruby/object:Gem::Requirement
  requirements:
  - - ">="
    - !ruby/object:Gem::Version
      version: '0'
required_rubygems_version: !ruby/object:Gem::Requirement
  requirements:
  - - ">="
    - !ruby/object:Gem::Version
      version: '0'
specification_version: 4
""" % (NAME, VERSION)


def gems(url):
    """The compact index."""
    gem = tarred({"metadata.gz": gzip.compress(GEM.encode()), "data.tar.gz": tarred({"lib/demo.rb": b"INSTALLED = true\n"})}, "w:")
    info = ("---\n%s |checksum:%s\n" % (VERSION, hashlib.sha256(gem).hexdigest())).encode()
    versions = "created_at: 2026-01-01T00:00:00Z\n---\n%s %s %s\n" % (NAME, VERSION, hashlib.md5(info).hexdigest())
    return {"/versions": versions.encode(), "/info/" + NAME: info, "/gems/%s-%s.gem" % (NAME, VERSION): gem}


def composer(url):
    file, name = "/dist/demo.zip", "exeat/demo"
    package = {"name": name, "version": VERSION, "dist": {"type": "zip", "url": url + file, "reference": "1"}}
    return {"/packages.json": json.dumps({"packages": {name: {VERSION: package}}}).encode(),
            file: zipped({"demo/composer.json": json.dumps({"name": name}), "demo/demo.php": "<?php\n"})}


def dnf(url):
    file = "%s-%s-1.noarch.rpm" % (NAME, VERSION)
    rpm = b"no more than bytes: whoever only downloads it looks at its digest"
    primary = gzip.compress(("""<?xml version="1.0"?><metadata xmlns="http://linux.duke.edu/metadata/common"
 xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="1"><package type="rpm"><name>%s</name><arch>noarch</arch>
<version epoch="0" ver="%s" rel="1"/><checksum type="sha256" pkgid="YES">%s</checksum><summary>demo</summary><description/><packager/><url/>
<time file="1" build="1"/><size package="%d" installed="1" archive="1"/><location href="%s"/><format><rpm:license>x</rpm:license>
<rpm:provides><rpm:entry name="%s" flags="EQ" epoch="0" ver="%s" rel="1"/></rpm:provides></format></package></metadata>""" % (
        NAME, VERSION, hashlib.sha256(rpm).hexdigest(), len(rpm), file, NAME, VERSION)).encode())
    index = """<?xml version="1.0"?><repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision><data type="primary">
<checksum type="sha256">%s</checksum><location href="repodata/primary.xml.gz"/><timestamp>1</timestamp><size>%d</size></data></repomd>""" % (
        hashlib.sha256(primary).hexdigest(), len(primary))
    return {"/repodata/repomd.xml": index.encode(), "/repodata/primary.xml.gz": primary, "/" + file: rpm}


def images(url):
    """An image of one layer, in a registry of containers."""
    layer, unpacked = (tarred({"file": b"installed"}, mode) for mode in ("w:gz", "w:"))
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(unpacked).hexdigest()]}}).encode()
    kind = "application/vnd.docker.%s"

    def blob(what, content):
        return {"mediaType": kind % what, "size": len(content), "digest": "sha256:" + hashlib.sha256(content).hexdigest()}
    described = [blob("container.image.v1+json", config), blob("image.rootfs.diff.tar.gzip", layer)]
    manifest = json.dumps({"schemaVersion": 2, "mediaType": kind % "distribution.manifest.v2+json", "config": described[0],
                           "layers": described[1:]}).encode()
    typed, path = (kind % "distribution.manifest.v2+json", manifest), "/v2/%s/" % NAME
    return {"/v2/": b"{}", path + "manifests/latest": typed, path + "manifests/sha256:" + hashlib.sha256(manifest).hexdigest(): typed,
            **{path + "blobs/" + it["digest"]: content for it, content in zip(described, (config, layer))}}


REGISTRIES = {"npm": npm, "pip": pip, "go": go, "cargo": cargo, "maven": maven, "apt": apt, "gems": gems, "composer": composer, "dnf": dnf,
              "images": images}
