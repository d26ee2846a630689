"""What the network between two hosts can do: bytes a second and the time of a short message.

    target = Target(address, secret)          # on one host; it answers whoever has the secret
    speed = measure(addresses, target.port, secret)  # on the other one

Plain bytes over one TCP connection, for a second: links of a run have to share what is found here.
"""

from __future__ import annotations

import contextlib
import hmac
import socket
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from tianji.engines.agents.addresses import first_that_answers

SECRET_BYTES = 32
BLOCK_BYTES = 1 << 20
NUM_PINGS = 50
SEND_S = 1.0
SILENT_S = 10.0
PING, END = b"?", b"."


class NetworkSpeed(NamedTuple):
    """NetworkSpeed(gbit_per_s=9.4, way_ms=0.05)"""

    gbit_per_s: float
    way_ms: float
    """Time of a short message, one way."""


class Target:
    """Listens on a thread of its own until a host with the secret has measured, or nobody comes."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._secret = secret
        self._socket = socket.create_server((address, 0))
        self._socket.settimeout(SILENT_S)
        self.port: int = self._socket.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        is_measured = False
        with self._socket, contextlib.suppress(OSError):  # nobody came
            while not is_measured:
                visitor, _ = self._socket.accept()
                with visitor, contextlib.suppress(OSError):
                    visitor.settimeout(SILENT_S)
                    if hmac.compare_digest(_read(visitor, SECRET_BYTES), self._secret):
                        self._answer(visitor)
                        is_measured = True

    def _answer(self, visitor: socket.socket) -> None:
        """Answer each ping; then take whatever comes, and confirm it at the end."""
        for _ in range(NUM_PINGS):
            visitor.sendall(_read(visitor, len(PING)))
        memory = bytearray(BLOCK_BYTES)
        last = b""
        while last != END:
            count = visitor.recv_into(memory)
            if not count:
                return
            last = bytes(memory[count - 1 : count])
        visitor.sendall(END)


def measure(addresses: Sequence[str], port: int, secret: bytes) -> NetworkSpeed:
    """Measure the way to a Target."""
    with socket.create_connection(first_that_answers(addresses, port), SILENT_S) as target:
        target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target.sendall(secret)
        ways_s = sorted(_ping_s(target) for _ in range(NUM_PINGS))
        block, sent, begun_s = bytes(BLOCK_BYTES), 0, time.monotonic()
        while time.monotonic() < begun_s + SEND_S:
            target.sendall(block)
            sent += BLOCK_BYTES
        target.sendall(END)
        _read(target, len(END))
        seconds = time.monotonic() - begun_s
    return NetworkSpeed(8e-9 * sent / seconds, 1e3 * ways_s[NUM_PINGS // 2] / 2)


def _ping_s(target: socket.socket) -> float:
    begun_s = time.monotonic()
    target.sendall(PING)
    _read(target, len(PING))
    return time.monotonic() - begun_s


def _read(sock: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = sock.recv(count - len(found))
        if not part:
            raise ConnectionError("the other host has hung up")
        found += part
    return found
