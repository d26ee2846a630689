"""Gateways that a test turns by hand, ports that count, and a cable that can be cut."""

import socket
import struct
import time

from tianji.gateways.gateway import Gateway
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.links.state import LinkLimits

NUMBER = struct.Struct("!q")
CLEAR = LinkKeys.make(is_encrypted=False)
STEP_NS = 1_000_000
LONG_S = 60.0  # never waited for in a test that passes


class FakeClock:
    """Goes on by a fixed step with every turn of the test."""

    def __init__(self):
        self.ns = 1_000_000_000

    def __call__(self):
        return self.ns


class CountingPort:
    """Sends messages 0, 1, 2, ... whose bodies repeat their number, and keeps what arrives."""

    def __init__(self, total=0, body_bytes=0, max_body_bytes=1 << 20):
        self.total = total
        self.wiring = "numbers"
        self.max_body_bytes = max_body_bytes
        self._body_bytes = body_bytes
        self._next = 0
        self.received = []
        self.settled = []
        self.num_resets = self.num_interrupted = 0
        self.most_kept = 0

    def open(self, outlet):
        self.outlet = outlet

    def pump(self):
        has_moved = False
        while self._next < self.total and self.outlet.has_room(self._body_bytes + NUMBER.size):
            number = self._next
            body = bytes([number % 251]) * self._body_bytes
            self.outlet.send(NUMBER.pack(number), body, self.settled.append)
            self._next += 1
            has_moved = True
        self.most_kept = max(self.most_kept, self._next - len(self.settled))
        return has_moved

    def place(self, note, nbytes):
        return memoryview(bytearray(nbytes))

    def receive(self, note, body):
        (number,) = NUMBER.unpack(note)
        assert bytes(body) == bytes([number % 251]) * len(body)
        self.received.append(number)

    def interrupted(self):
        self.num_interrupted += 1

    def reset(self):
        self.num_resets += 1


class Cable:
    """Carries bytes between a dialer and a listener, as many as the test allows."""

    def __init__(self, to):
        self._to = to
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setblocking(False)
        self.address = self._server.getsockname()
        self._pairs = []
        self.left = None
        """Bytes until the cable is cut; None: no limit."""
        self.recorded = bytearray()
        """What the dialer's end sent."""

    def carry(self):
        try:
            near, _ = self._server.accept()
        except BlockingIOError:
            pass
        else:
            far = socket.create_connection(self._to)
            for end in (near, far):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pairs.append((near, far))
        for near, far in list(self._pairs):
            if not (self._move(near, far, record=True) and self._move(far, near)):
                self._pairs.remove((near, far))
                near.close()
                far.close()

    def _move(self, source, target, record=False):
        try:
            data = source.recv(1 << 16 if self.left is None else min(self.left, 1 << 16))
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        if record:
            self.recorded += data
        target.setblocking(True)
        try:
            target.sendall(data)
        except OSError:
            return False
        target.setblocking(False)
        if self.left is not None:
            self.left -= len(data)
            if self.left <= 0:
                self.left = None  # once
                return False
        return True

    def cut(self):
        """Break all connections with a reset."""
        for pair in self._pairs:
            for end in pair:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.close()
        self._pairs.clear()

    def close(self):
        self.cut()
        self._server.close()


class TwoEnds:
    """A host that listens and one that connects, with a cable between them."""

    def __init__(self, listening, connecting, keys=CLEAR, limits=None, stranger_keys=None):
        self.clock = FakeClock()
        self.keys, self.limits = keys, limits or LinkLimits()
        self.b = Gateway("b", keys, now_ns=self.clock)
        self.to = self.b.listen()
        self.at_b = self.b.link("a", [listening], limits=self.limits)
        self.cable = Cable(self.to)
        self.a, self.at_a = None, None
        self.start_a(connecting, stranger_keys)

    def start_a(self, port, keys=None):
        """Start the connecting host, again if need be."""
        if self.a is not None:
            self.a.close()
        self.a = Gateway("a", keys or self.keys, now_ns=self.clock)
        self.at_a = self.a.link("b", [port], self.cable.address, self.limits)

    def turn(self, count=1):
        for _ in range(count):
            self.clock.ns += STEP_NS
            self.a.turn(0.0)
            self.cable.carry()
            self.b.turn(0.0)
            self.cable.carry()

    def turn_until(self, is_done, most=100_000):
        deadline_s = time.monotonic() + LONG_S
        for _ in range(most):
            if is_done():
                return
            self.turn()
            if time.monotonic() > deadline_s:
                break
        raise AssertionError("it never came to that")

    def close(self):
        self.a.close()
        self.b.close()
        self.cable.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
