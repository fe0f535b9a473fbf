"""Clients: ordinary ones that check every byte of every answer, and slow ones by the thousand."""
import errno
import http.client
import os
import random
import re
import selectors
import socket
import ssl
import threading
import time

from world import DIRECT, content, exchange, masked, read_all, read_head

TIMEOUT = 15
REFUSAL = re.compile(r"\(([a-z_]+); record")


class Refused(Exception):
    """A CONNECT that was refused; its reason."""


class Client:
    """
    One sandbox's way to its host. facts: port (the listener; None: there is no exeat between), ca, proxy_fields
    (identity), placeholder, host, upstream (port). One connection, kept as long as it lives.
    """

    def __init__(self, facts):
        self.__dict__.update(facts)
        self.context = ssl.create_default_context(cafile=self.ca)
        self.connection = None

    def open(self):
        raw = socket.create_connection(("127.0.0.1", self.port or self.upstream), timeout=TIMEOUT)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.port:
                self.tunnel(raw)
            self.connection = http.client.HTTPConnection(self.host, self.upstream, timeout=TIMEOUT)
            self.connection.auto_open = 0
            self.connection.sock = self.context.wrap_socket(raw, server_hostname=self.host)
        except BaseException:
            raw.close()
            raise

    def tunnel(self, raw):
        authority = "%s:%d" % (self.host, self.upstream)
        raw.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (authority, authority, self.proxy_fields)).encode())
        head, rest = read_head(raw)
        if head.startswith(b"HTTP/1.1 200"):
            return
        found = REFUSAL.search(head.decode("latin-1"))
        if not found:
            raise ConnectionError("no answer to CONNECT: %r" % (head + rest)[:80])
        read_all(raw)
        raise Refused(found.group(1))

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def ask(self, ident):
        """What came of it: ("ok", ""), ("refused", reason), ("broken", how) or ("wrong", what)."""
        wanted = exchange(ident)
        fields = {"Authorization": "Bearer " + self.placeholder}
        if wanted.type:
            fields["Content-Type"] = wanted.type
        try:
            if not self.connection:
                self.open()
            self.connection.request(wanted.method, wanted.path, wanted.body or None, fields)
            answer = self.connection.getresponse()
            body = answer.read()
        except Refused as refused:
            return "refused", str(refused)
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            return "broken", type(failure).__name__
        if answer.will_close:
            self.close()
        return self.judge(ident, answer, body, wanted)

    @staticmethod
    def judge(ident, answer, body, wanted):
        refusal = answer.getheader("exeat-refusal")
        if refusal:
            return "refused", REFUSAL.search(refusal).group(1)
        if answer.status != 200:
            return "wrong", "status_%d" % answer.status
        if body != masked(content(ident, wanted.body)):
            return "wrong", "body"
        return "ok", ""


def work(facts, name, ledger, stop, threads, rate):
    """
    A process of clients; each asks at most `rate` times a second. A line of the ledger for each request:
    begin (wall clock), milliseconds, name, what came of it, detail, id.
    """
    lines = open(ledger, "a", buffering=1)

    def run():
        client, due = Client(facts), time.monotonic()
        while not stop.is_set():
            ident = os.urandom(8).hex() if facts["port"] else DIRECT + os.urandom(4).hex()
            begun, at = time.time(), time.monotonic()
            what, detail = client.ask(ident)
            lines.write("%.6f %.3f %s %s %s %s\n" % (begun, (time.monotonic() - at) * 1000, name, what, detail or "-", ident))
            if ident[14] == "0":
                client.close()
            due = max(due + 1 / rate, time.monotonic() - 1)
            time.sleep(max(0.0, due - time.monotonic()) or (0.05 if what != "ok" else 0))
        client.close()

    running = [threading.Thread(target=run) for _ in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join()


# ---- slow clients ----

CONNECT = "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{identity}\r\n"
# What a slow client sends at once, and what it repeats each second.
SLOW = {
    "silent": ("", ""),
    "slow head": ("GET http://{authority}/v1/items/1 HTTP/1.1\r\nHost: {authority}\r\n", "X-A: b\r\n"),
    "endless head": ("GET http://{authority}/v1/items/1 HTTP/1.1\r\n", "X-A: %s\r\n" % ("b" * 8000)),
    "idle": ("GET http://{authority}/v1/items/1 HTTP/1.1\r\nHost: {authority}\r\n{identity}\r\n", ""),
    "slow body": ("POST http://{authority}/v1/items/1 HTTP/1.1\r\nHost: {authority}\r\n{identity}"
                  "Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n", "x"),
    "tunnel": (CONNECT, ""),
    "half a hello": (CONNECT + "\x16\x03\x01\x02\x00\x01", "\x00"),
}


class Slow:
    """One slow client; it comes back whenever it is closed."""

    def __init__(self, selector, address, texts):
        self.selector, self.address, self.texts = selector, address, texts
        self.socket = None

    def open(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        if self.socket.connect_ex(self.address) not in (0, errno.EINPROGRESS):
            self.close()
            return
        self.first = True
        self.selector.register(self.socket, selectors.EVENT_READ, self)

    def close(self):
        if self.socket.fileno() in self.selector.get_map():
            self.selector.unregister(self.socket)
        self.socket.close()
        self.socket = None

    def tick(self):
        if not self.socket:
            self.open()
            return
        try:
            self.socket.send(self.texts[0 if self.first else 1])
            self.first = False
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def read(self):
        try:
            if self.socket.recv(65536):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close()


def crawl(facts, kinds, count, stop, opened):
    """A process of `count` slow clients of these kinds; opened: how many are connected just now."""
    selector = selectors.DefaultSelector()
    values = {"authority": "%s:%d" % (facts["host"], facts["upstream"]), "identity": facts["proxy_fields"]}
    texts = [[t.format(**values).encode("latin-1") for t in SLOW[k]] for k in kinds]
    clients = [Slow(selector, ("127.0.0.1", facts["port"]), texts[i % len(texts)]) for i in range(count)]
    random.shuffle(clients)
    while not stop.is_set():
        end = time.monotonic() + 1
        for c in clients:
            c.tick()
        opened.value = len(selector.get_map())
        while time.monotonic() < end and not stop.is_set():
            for key, _ in selector.select(0.1):
                key.data.read()
