"""
A guest with a vsock device, without a guest: this process has the device's other half, vhost_vsock, and plays the driver itself, so that it
can say what a kernel in a guest never would. Rings and memory are those of VIRTIO 1.2 (2.7 split virtqueues, 5.10 socket device).
"""
import collections
import ctypes
import fcntl
import mmap
import os
import selectors
import socket
import struct
import threading

HOST = socket.VMADDR_CID_HOST
REQUEST, RESPONSE, RST, SHUTDOWN, RW, CREDIT_UPDATE, CREDIT_REQUEST = range(1, 8)
NO_MORE_RECEIVED, NO_MORE_SENT = 1, 2
STREAM = 1

SET_FEATURES, SET_OWNER, SET_MEMORY = 0x4008AF00, 0xAF01, 0x4008AF03
SET_SIZE, SET_ADDRESSES, SET_BASE, SET_KICK, SET_CALL = 0x4008AF10, 0x4028AF11, 0x4008AF12, 0x4008AF20, 0x4008AF21
SET_GUEST_CID, SET_RUNNING = 0x4008AF60, 0x4004AF61
VERSION_1 = 1 << 32

SLOTS, DATA = 64, 4096
HEADER = struct.Struct("<QQIIIHHIII")
DESCRIPTOR = struct.Struct("<QIHH")
WRITABLE = 2
ROOM = 256 * 1024  # what a connection says that it can take
Packet = collections.namedtuple("Packet", "source target source_port target_port size kind operation flags room taken")


class Ring:
    """A queue of SLOTS buffers, each with a descriptor of its own, from `start` of the device's memory on."""

    SIZE = 4096 + SLOTS * (HEADER.size + DATA)
    AVAILABLE, USED, BUFFERS = 1024, 2048, 4096

    def __init__(self, device, memory, address, number, writable):
        self.memory, self.start = memory, number * self.SIZE
        self.kick, self.call = os.eventfd(0), os.eventfd(0)
        self.given = self.taken = 0
        for slot in range(SLOTS):
            DESCRIPTOR.pack_into(memory, self.start + slot * DESCRIPTOR.size, self.buffer(slot), HEADER.size + DATA, WRITABLE * writable, 0)
        for request, value in ((SET_SIZE, SLOTS), (SET_BASE, 0)):
            fcntl.ioctl(device, request, struct.pack("=II", number, value))
        at = address + self.start
        fcntl.ioctl(device, SET_ADDRESSES, struct.pack("=IIQQQQ", number, 0, at, at + self.USED, at + self.AVAILABLE, 0))
        for request, fd in ((SET_KICK, self.kick), (SET_CALL, self.call)):
            fcntl.ioctl(device, request, struct.pack("=Ii", number, fd))

    def buffer(self, slot):
        return self.start + self.BUFFERS + slot * (HEADER.size + DATA)

    def give(self, size):
        """The next slot is the device's, which may read or write that many bytes of it."""
        slot = self.given % SLOTS
        struct.pack_into("<I", self.memory, self.start + slot * DESCRIPTOR.size + 8, size)
        struct.pack_into("<H", self.memory, self.start + self.AVAILABLE + 4 + 2 * slot, slot)
        self.given += 1
        struct.pack_into("<H", self.memory, self.start + self.AVAILABLE + 2, self.given & 0xffff)
        os.eventfd_write(self.kick, 1)

    def is_back(self):
        """Whether the device is done with one more."""
        return struct.unpack_from("<H", self.memory, self.start + self.USED + 2)[0] != self.taken & 0xffff

    def take(self):
        """The slot that came back; its descriptor's number."""
        slot, _ = struct.unpack_from("<II", self.memory, self.start + self.USED + 4 + 8 * (self.taken % SLOTS))
        self.taken += 1
        return slot

    def is_full(self):
        while self.is_back():
            self.take()
        return self.given - self.taken == SLOTS

    def close(self):
        os.close(self.kick)
        os.close(self.call)


class Connection:
    """Its inner end is the device's, its outer end the client's."""

    def __init__(self):
        self.inner, self.outer = socket.socketpair()
        self.answered, self.open, self.ended = threading.Event(), False, False
        self.sent = self.room = self.received = 0


class Guest:
    """The guest with this CID, until it is closed."""

    def __init__(self, cid):
        self.cid, self.next_port = cid, 1024
        self.connections, self.lock = {}, threading.RLock()
        self.memory = mmap.mmap(-1, 2 * Ring.SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pin = ctypes.c_char.from_buffer(self.memory)
        address = ctypes.addressof(pin)
        self.device = os.open("/dev/vhost-vsock", os.O_RDWR)
        fcntl.ioctl(self.device, SET_OWNER)
        fcntl.ioctl(self.device, SET_FEATURES, struct.pack("=Q", VERSION_1))
        fcntl.ioctl(self.device, SET_MEMORY, struct.pack("=IIQQQQ", 1, 0, 0, 2 * Ring.SIZE, address, 0))
        self.incoming = Ring(self.device, self.memory, address, 0, True)
        self.outgoing = Ring(self.device, self.memory, address, 1, False)
        fcntl.ioctl(self.device, SET_GUEST_CID, struct.pack("=Q", cid))
        fcntl.ioctl(self.device, SET_RUNNING, struct.pack("=i", 1))
        for _ in range(SLOTS):
            self.incoming.give(HEADER.size + DATA)
        self.waiting = collections.deque()
        self.wake = os.eventfd(0)
        self.running = True
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def close(self):
        """The machine is off, whatever was open."""
        self.running = False
        os.eventfd_write(self.wake, 1)
        self.thread.join()
        os.close(self.device)
        for c in self.connections.values():
            c.inner.close()
        for one in (self.incoming, self.outgoing):
            one.close()
        os.close(self.wake)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    # ---- packets ----

    def send(self, operation, port, host_port, data=b"", flags=0, source=None, c=None):
        """source: a CID that is not its own."""
        with self.lock:
            while self.outgoing.is_full():
                self._gather()
            at = self.outgoing.buffer(self.outgoing.given % SLOTS)
            HEADER.pack_into(self.memory, at, self.cid if source is None else source, HOST, port, host_port, len(data), STREAM, operation, flags,
                             ROOM, c.received & 0xffffffff if c else 0)
            self.memory[at + HEADER.size:at + HEADER.size + len(data)] = data
            self.outgoing.give(HEADER.size + len(data))

    def _gather(self):
        """What has come in waits until the thread deals with it."""
        while self.incoming.is_back():
            at = self.incoming.buffer(self.incoming.take())
            packet = Packet(*HEADER.unpack_from(self.memory, at))
            self.waiting.append((packet, self.memory[at + HEADER.size:at + HEADER.size + packet.size]))
            self.incoming.give(HEADER.size + DATA)

    # ---- connections ----

    def start(self, host_port, source=None):
        """Asks for a connection, perhaps in the name of another guest; what it becomes."""
        c = Connection()
        with self.lock:
            self.next_port += 1
            c.port, c.host_port = self.next_port, host_port
            self.connections[c.port] = c
            self.send(REQUEST, c.port, host_port, source=source, c=c)
        return c

    def connect(self, host_port):
        """The client's end of a connection with the host."""
        c = self.start(host_port)
        assert c.answered.wait(20), "guest %d: no answer from port %d" % (self.cid, host_port)
        if not c.open:
            raise ConnectionRefusedError("guest %d: port %d" % (self.cid, host_port))
        c.outer.settimeout(30)
        return c.outer

    def _deal_with(self, packet, data):
        c = self.connections.get(packet.target_port)
        if not c or packet.source_port != c.host_port:
            if packet.operation != RST:
                self.send(RST, packet.target_port, packet.source_port)
            return
        c.room = packet.room - (c.sent - packet.taken & 0xffffffff)
        if packet.operation == RESPONSE:
            c.open = True
            c.answered.set()
        elif packet.operation == RW:
            self._hand_over(c, data)
        elif packet.operation == CREDIT_REQUEST:
            self.send(CREDIT_UPDATE, c.port, c.host_port, c=c)
        elif packet.operation == SHUTDOWN and packet.flags & NO_MORE_SENT:
            c.inner.shutdown(socket.SHUT_WR)
            if packet.flags & NO_MORE_RECEIVED:
                self._drop(c)
        elif packet.operation == RST:
            self._forget(c)

    def _hand_over(self, c, data):
        try:
            c.inner.sendall(data)
        except OSError:
            self._drop(c)
            return
        c.received += len(data)
        self.send(CREDIT_UPDATE, c.port, c.host_port, c=c)

    def _drop(self, c):
        self.send(RST, c.port, c.host_port)
        self._forget(c)

    def _forget(self, c):
        del self.connections[c.port]
        c.inner.close()
        c.answered.set()

    def _take_over(self, c):
        """What the client says, as far as the host has room."""
        try:
            data = c.inner.recv(min(DATA, c.room))
        except OSError:
            data = b""
        if data:
            c.sent += len(data)
            c.room -= len(data)
            self.send(RW, c.port, c.host_port, data, c=c)
        else:
            c.ended = True
            self.send(SHUTDOWN, c.port, c.host_port, flags=NO_MORE_SENT, c=c)

    def _serve(self):
        while self.running:
            with selectors.DefaultSelector() as ready:
                ready.register(self.incoming.call, selectors.EVENT_READ)
                ready.register(self.wake, selectors.EVENT_READ)
                with self.lock:
                    for c in self.connections.values():
                        if c.open and not c.ended and c.room > 0:
                            ready.register(c.inner, selectors.EVENT_READ, c)
                found = [key for key, _ in ready.select()]
            with self.lock:
                for key in found:
                    if key.data is None:
                        os.eventfd_read(key.fd)
                    else:
                        self._take_over(key.data)
                self._gather()
                while self.waiting:
                    self._deal_with(*self.waiting.popleft())
