"""An upstream that does what a case says before HTTP begins: any certificate, any TLS, or no TLS at all.

Words of a case:

    certificate WORD REST       one line for each thing that differs from a good certificate:
        names "DNS:a,IP:1.2.3.4" | names "DER:30..." | names none     (default: the host of the case)
        subject "/CN=..."       days FROM TO        key ec | rsa1024 | ec-explicit | ...     digest sha1
        from ISSUER             root, itself, or one of certificates.ISSUERS
        extension "LINE"        as in openssl's x509v3_config; added to those of a server's leaf
        extensions "LINE"       instead of them
    server WORD REST            one line for each thing that differs from a good server:
        versions 1.0 1.1        ciphers "LIST"      dh FILE (of openssl's parameters, made by bits)
        chain 1                 how many certificates are sent; chain +N: and the last one N times more
        alpn "BYTES"            chosen whatever was offered;  no-alpn
        staple good | revoked   an OCSP answer
        asks | demands          a client certificate
        first "BYTES"           in clear, at once
        instead "BYTES"         in clear, when the hello is there, and nothing else
        greets "BYTES"          inside TLS, at once
        hello "BYTES"           what follows the header of a TLS 1.2 ServerHello; its certificates come behind it
        resets | closes         when the hello is there
        resets-once             the first connection only
        renegotiates            when a request is there, before it is answered
        closes-well             ends with close_notify, which `hangup` alone does not
    hello has NUMBER | without NUMBER | sni "NAME" | alpn "LIST" | versions "LIST" | compressions "LIST"
                                what the daemon offered, in its ClientHello; numbers of extensions
    connections N               how many connections the upstream saw
"""
import ctypes
import re
import socket
import ssl
import struct
import subprocess

from certificates import LEAF, Certificates
from place import openssl

VERSIONS = {"1.0": ssl.TLSVersion.TLSv1, "1.1": ssl.TLSVersion.TLSv1_1, "1.2": ssl.TLSVersion.TLSv1_2,
            "1.3": ssl.TLSVersion.TLSv1_3}


# ---- what Python's ssl cannot do ----

def library(name):
    """The very library that Python's ssl uses."""
    with open("/proc/self/maps") as f:
        return ctypes.CDLL(next(line.split()[-1] for line in f if "/%s.so" % name in line))


class Native:
    """OpenSSL's own settings of a context, behind Python's object: its first member is the SSL_CTX."""

    ALPN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                            ctypes.POINTER(ctypes.c_ubyte), ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p)
    STATUS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    SET_STATUS_CALLBACK, SET_STATUS = 63, 71

    def __init__(self):
        self.ssl, self.crypto = library("libssl"), library("libcrypto")
        self.crypto.CRYPTO_memdup.restype = ctypes.c_void_p
        self.kept = []

    @staticmethod
    def _context(context):
        return ctypes.c_void_p.from_address(id(context) + object.__basicsize__)

    def choose(self, context, protocol):
        data = ctypes.create_string_buffer(protocol, len(protocol))

        def chosen(_, out, size, *ignored):
            out[0], size[0] = ctypes.addressof(data), len(protocol)
            return 0

        self.kept += [data, self.ALPN(chosen)]
        self.ssl.SSL_CTX_set_alpn_select_cb(self._context(context), self.kept[-1], None)

    def staple(self, context, der):
        def status(connection, _):
            copy = self.crypto.CRYPTO_memdup(der, ctypes.c_size_t(len(der)), b"case_server.py", 0)
            self.ssl.SSL_ctrl(ctypes.c_void_p(connection), self.SET_STATUS, ctypes.c_long(len(der)), ctypes.c_void_p(copy))
            return 0

        self.kept.append(self.STATUS(status))
        self.ssl.SSL_CTX_callback_ctrl(self._context(context), self.SET_STATUS_CALLBACK, self.kept[-1])

    def renegotiate(self, stream):
        """A HelloRequest, sent; the connection is that of stream._sslobj, whose second member it is."""
        connection = ctypes.c_void_p.from_address(id(stream._sslobj) + object.__basicsize__ + 8)
        self.ssl.SSL_renegotiate(connection)
        self.ssl.SSL_do_handshake(connection)


# ---- ClientHello and ServerHello ----

def read_hello(raw):
    """The first record that the client sends, left in the socket."""
    raw.settimeout(10)
    size = 5
    while True:
        data = raw.recv(size, socket.MSG_PEEK | socket.MSG_WAITALL)
        if len(data) < size:
            return data
        if size > 5:
            return data
        size = 5 + struct.unpack(">H", data[3:5])[0]


def hello_parts(record):
    """(bytes behind the random and the session id, {extension: body})."""
    at = 5 + 4 + 2 + 32
    at += 1 + record[at]
    start = at
    at += 2 + struct.unpack_from(">H", record, at)[0]
    at += 1 + record[at]
    found, end = {}, at + 2 + struct.unpack_from(">H", record, at)[0]
    middle, at = record[start:at], at + 2
    while at < end:
        kind, size = struct.unpack_from(">HH", record, at)
        found[kind], at = record[at + 4:at + 4 + size], at + 4 + size
    return middle, found


def records(message):
    """A handshake message in records of TLS 1.2."""
    parts = [message[i:i + 16000] for i in range(0, len(message), 16000)]
    return b"".join(b"\x16\x03\x03" + struct.pack(">H", len(part)) + part for part in parts)


def handshake(kind, body):
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def server_flight(behind, certificates):
    """ServerHello, Certificate, ServerHelloDone of TLS 1.2."""
    chain = b"".join(len(der).to_bytes(3, "big") + der for der in certificates)
    return (records(handshake(2, b"\x03\x03" + b"\x22" * 32 + b"\0" + behind)) +
            records(handshake(11, len(chain).to_bytes(3, "big") + chain)) + records(handshake(14, b"")))


# ---- the server of a case ----

class Server:
    """Prepares itself for a case, then opens each connection of place.Upstream as the case says."""

    def __init__(self, place):
        self.place, self.native = place, Native()
        self.certificates = Certificates(place.directory)
        self.normal = place.upstream.context
        self.made = {}
        self.prepare({}, {}, None)

    # ---- preparing ----

    def prepare(self, certificate, server, host):
        """Both: what differs, by its word; host: of a certificate that is not told its names."""
        self.server, self.hellos, self.dialled = server, [], []
        self.context, self.greeting = self.normal, None
        if host and (certificate or server):
            self.context = self._context(certificate, host)

    def _issue(self, told, host):
        key = (host, tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in told.items())))
        if key not in self.made:
            names = told.get("names", "DNS:" + host)
            extensions = told.get("extensions", [LEAF])
            self.made[key] = self.certificates.issue(
                told.get("from", "root"), told.get("subject", "/CN=upstream"), "" if names == "none" else names,
                [float(d) for d in told.get("days", "-2 30").split()], told.get("key", "ec"), told.get("digest", "sha256"),
                "\n".join(extensions + told.get("extension", [])) + "\n")
        return self.made[key]

    def _context(self, certificate, host):
        told = self.server
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(told.get("ciphers", "ALL:COMPLEMENTOFALL") + ":@SECLEVEL=0")
        versions = [VERSIONS[v] for v in told.get("versions", "1.2 1.3").split()]
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        stem, stems = self._issue(certificate, host)
        count = told.get("chain", str(len(stems)))
        stems = stems + stems[-1:] * int(count[1:]) if count[0] == "+" else stems[:int(count)]
        self.chain, key = self.certificates.chain_file(stems)
        context.load_cert_chain(self.chain, key)
        if "dh" in told:
            context.load_dh_params(self._parameters(told["dh"]))
        if "no-alpn" not in told:
            context.set_alpn_protocols(["http/1.1"])
        if "alpn" in told:
            self.native.choose(context, told["alpn"])
        if "staple" in told:
            status = "R" if told["staple"] == "revoked" else "V"
            self.native.staple(context, self.certificates.staple(stem, certificate.get("from", "root"), status))
        if "asks" in told or "demands" in told:
            context.verify_mode = ssl.CERT_REQUIRED if "demands" in told else ssl.CERT_OPTIONAL
            context.load_verify_locations(self.place.ca.pem)
        return context

    def _parameters(self, bits):
        path = self.place.path("dh-%s.pem" % bits)
        if bits not in self.made:
            openssl(self.place.directory, "dhparam", "-dsaparam", "-out", path, bits)
            self.made[bits] = path
        return path

    # ---- serving ----

    def _reset(self, raw):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        raise OSError("reset, as the case says")

    def _der(self):
        with open(self.chain) as f:
            return [ssl.PEM_cert_to_DER_cert(p) for p in re.findall("-----BEGIN.*?-----END[^\n]*\n", f.read(), re.S)]

    def _say(self, raw, data):
        """In place of TLS; the end of what the client says is waited for, so that nothing is lost by a reset."""
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass
        raise OSError("no TLS, as the case says")

    def _wrap(self, raw):
        """An alert of ours is not lost by a reset: what the daemon still sends is waited for."""
        stream = self.context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        try:
            stream.do_handshake()
        except ssl.SSLError:
            self._say(socket.socket(fileno=stream.detach()), b"")
        return stream

    def open(self, raw):
        """For place.Upstream: the stream on which requests are read."""
        told = self.server
        self.dialled.append(raw.getsockname()[0].replace("::ffff:", ""))
        if "first" in told:
            raw.sendall(told["first"])
        if not self.context:
            return raw
        self.hellos.append(read_hello(raw))
        if "resets" in told or ("resets-once" in told and len(self.dialled) == 1):
            self._reset(raw)
        if "closes" in told:
            self._say(raw, b"")
        if "instead" in told:
            self._say(raw, told["instead"])
        if "hello" in told:
            self._say(raw, server_flight(told["hello"], self._der()))
        stream = self._wrap(raw)
        if "greets" in told:
            stream.sendall(told["greets"])
        return stream

    def script(self, answer):
        """What place.Upstream is to do with a request, around what it would do without the case's words."""
        def script(request, stream):
            if "renegotiates" in self.server:
                self.native.renegotiate(stream)
            said = answer(request, stream)
            if "closes-well" in self.server and said is None:
                stream.unwrap()
            return said
        return script
