"""One connection: a socket that never waits, in clear or with TLS, and its queue of writes."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from itertools import islice
from selectors import EVENT_READ, EVENT_WRITE

SMALL_BYTES = 4096  # pieces up to this size are joined, so that many leave in one call
_JOIN_BYTES = 16 << 10  # a TLS record
_MAX_PIECES = 64


class Connection:
    """Reads into memory that it is given, writes pieces of memory in order."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self._pieces: deque[memoryview] = deque()
        self._small: list[bytes] = []
        self._small_bytes = 0
        self.waiting_bytes = 0
        """Bytes that are queued and not yet written."""
        self.bytes_sent = self.bytes_received = 0

    def shake_hands(self) -> int:
        """Go on with the handshake of TLS; return the events it waits for, 0 when it is done."""
        if not isinstance(self.socket, ssl.SSLSocket):
            return 0
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            return EVENT_READ
        except ssl.SSLWantWriteError:
            return EVENT_WRITE
        return 0

    def peek(self) -> bytes | None:
        """Return the next byte of the socket, b"" at the end, None if there is none yet."""
        plain = socket.socket.recv  # that of an SSLSocket takes no flags
        try:
            return plain(self.socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return None

    def receive_into(self, view: memoryview) -> int:
        """Return how many bytes were received: 0 at the end, -1 if there are none yet."""
        try:
            count = self.socket.recv_into(view)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return -1
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0
        self.bytes_received += count
        return count

    def queue(self, piece: bytes | memoryview) -> None:
        """Put a piece behind what is queued. Its memory must not change until it is written."""
        self.waiting_bytes += len(piece)
        if len(piece) <= SMALL_BYTES:
            self._small.append(bytes(piece))
            self._small_bytes += len(piece)
            if self._small_bytes >= _JOIN_BYTES:
                self._join()
        else:
            self._join()
            self._pieces.append(memoryview(piece).cast("B"))

    def _join(self) -> None:
        if self._small:
            self._pieces.append(memoryview(b"".join(self._small)))
            self._small.clear()
            self._small_bytes = 0

    def write(self) -> bool:
        """Write until nothing is left (True) or the system takes no more (False)."""
        self._join()
        while self._pieces:
            try:
                count = self._write_some()
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return False
            self.waiting_bytes -= count
            self.bytes_sent += count
            while self._pieces and count >= len(self._pieces[0]):
                count -= len(self._pieces.popleft())
            if count:
                self._pieces[0] = self._pieces[0][count:]
        return True

    def _write_some(self) -> int:
        if isinstance(self.socket, ssl.SSLSocket):
            return self.socket.send(self._pieces[0])
        return self.socket.sendmsg(islice(self._pieces, _MAX_PIECES))

    def close(self) -> None:
        self._pieces.clear()  # they may be views of slots, which others use again
        self.socket.close()
