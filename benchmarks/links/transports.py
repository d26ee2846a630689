"""What might carry items between hosts, each as a sender and a receiver of equal items.

A receiver puts each item into a ring of slots, as a gateway does. `bare` is the plainest loop over
a socket that Python can make, `tls` the same with TLS 1.3, `zmq` and `curve` ZeroMQ in clear and
encrypted. All wait in the system, none spins.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import Any

from tianji.gateways.links.keys import LinkKeys

HEAD = struct.Struct("!qq")
RING_BYTES = 64 << 20  # slots of both ends together: more than a cache holds
PORT = 7711


class Slots:
    """A ring of item-sized pieces of memory, all touched."""

    def __init__(self, size: int) -> None:
        self._memory = memoryview(bytearray(b"\1" * max(size, RING_BYTES // size * size)))
        self._size = size

    def __getitem__(self, number: int) -> memoryview:
        at = number * self._size % len(self._memory)
        return self._memory[at : at + self._size]


class Received:
    """Counts items, and the time from the first to the last."""

    def __init__(self, size: int) -> None:
        self.slots = Slots(size)
        self._size = size
        self.count = 0
        self.seconds = 0.0
        self._first_s = 0.0

    def note(self, number: int) -> None:
        assert number == self.count, f"item {number} came when {self.count} was expected"
        now_s = time.perf_counter()
        self._first_s = self._first_s or now_s
        self.seconds = now_s - self._first_s
        self.count += 1

    def figures(self) -> dict[str, float]:
        rate = (self.count - 1) * self._size / self.seconds if self.seconds else 0.0
        return {"items": self.count, "seconds": self.seconds, "mb_per_s": rate / 1e6}


def send_items(size: int, seconds: float, send: Callable[[int, memoryview], None]) -> None:
    slots, number, end_s = Slots(size), 0, time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        send(number, slots[number])
        number += 1


# ---------------------------------------------------------------------------- bare sockets


def _connect(address: str) -> socket.socket:
    deadline_s = time.monotonic() + 10
    while True:
        try:
            connection = socket.create_connection((address, PORT))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except ConnectionRefusedError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


def _accept(address: str) -> socket.socket:
    with socket.create_server((address, PORT)) as server:
        return server.accept()[0]


def _receive_all(connection: socket.socket, view: memoryview) -> bool:
    while view:
        count = connection.recv_into(view)
        if count == 0:
            return False
        view = view[count:]
    return True


def receive_bare(connection: socket.socket, size: int) -> Received:
    received, head = Received(size), bytearray(HEAD.size)
    while _receive_all(connection, memoryview(head)):
        number, _ = HEAD.unpack(head)
        if not _receive_all(connection, received.slots[number]):
            break
        received.note(number)
    return received


def bare_sender(address: str, size: int, seconds: float, keys: LinkKeys) -> None:
    with _connect(address) as connection:

        def send(number: int, item: memoryview) -> None:
            sent = connection.sendmsg([HEAD.pack(number, size), item]) - HEAD.size
            if sent < size:
                connection.sendall(item[sent:])

        send_items(size, seconds, send)


def bare_receiver(address: str, size: int, keys: LinkKeys) -> Received:
    with _accept(address) as connection:
        return receive_bare(connection, size)


def tls_sender(address: str, size: int, seconds: float, keys: LinkKeys) -> None:
    with keys.connecting().wrap_socket(_connect(address)) as connection:

        def send(number: int, item: memoryview) -> None:
            connection.sendall(HEAD.pack(number, size))
            connection.sendall(item)

        send_items(size, seconds, send)


def tls_receiver(address: str, size: int, keys: LinkKeys) -> Received:
    context = keys.listening()
    with context.wrap_socket(_accept(address), server_side=True) as connection:
        try:
            return receive_bare(connection, size)
        except ssl.SSLEOFError as error:
            raise AssertionError("the sender did not close the connection") from error


# ---------------------------------------------------------------------------- ZeroMQ

CURVE_SEED = b"a key of a benchmark, not secret"


def _curve_pair(seed: bytes) -> tuple[bytes, bytes]:
    import zmq
    from zmq.utils import z85

    secret = z85.encode(seed)
    return zmq.curve_public(secret), secret


def _zmq_socket(kind: int, is_encrypted: bool, is_server: bool) -> Any:
    import zmq

    made: Any = zmq.Context().socket(kind)
    made.set_hwm(16)
    made.linger = -1
    if is_encrypted:
        public, secret = _curve_pair(CURVE_SEED)
        made.curve_publickey, made.curve_secretkey = public, secret
        if is_server:
            made.curve_server = True
        else:
            made.curve_serverkey = public
    return made


def zmq_ends(is_encrypted: bool) -> tuple[Callable[..., None], Callable[..., Received]]:
    def sender(address: str, size: int, seconds: float, keys: LinkKeys) -> None:
        import zmq

        out = _zmq_socket(zmq.PUSH, is_encrypted, is_server=False)
        out.connect(f"tcp://{address}:{PORT}")

        def send(number: int, item: memoryview) -> None:
            out.send(HEAD.pack(number, size), zmq.SNDMORE)
            out.send(item, copy=False)

        send_items(size, seconds, send)
        out.send(b"")
        out.context.destroy()

    def receiver(address: str, size: int, keys: LinkKeys) -> Received:
        import zmq

        received = Received(size)
        into = _zmq_socket(zmq.PULL, is_encrypted, is_server=True)
        into.bind(f"tcp://{address}:{PORT}")
        while head := into.recv():
            number, _ = HEAD.unpack(head)
            received.slots[number][:] = into.recv(copy=False).buffer
            received.note(number)
        into.context.destroy(0)
        return received

    return sender, receiver


TRANSPORTS: dict[str, tuple[Callable[..., None], Callable[..., Received]]] = {
    "bare": (bare_sender, bare_receiver),
    "tls": (tls_sender, tls_receiver),
    "zmq": zmq_ends(is_encrypted=False),
    "curve": zmq_ends(is_encrypted=True),
}
