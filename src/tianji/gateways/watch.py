"""What the gateway's thread sleeps on: its sockets, and wake-ups by threads and processes."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Callable

from tianji.channels.memory import Bell

Ready = Callable[[int], None]
"""Called with the events that a socket is ready for."""
_SIGN_OF_LIFE_S = 0.25


class Watch:
    """Sockets with what to call when they are ready."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wake_fd, selectors.EVENT_READ, self._clear)

    def set(self, sock: socket.socket, events: int, ready: Ready) -> None:
        """Watch a socket for these events, in place of what it was watched for before."""
        try:
            key = self._selector.get_key(sock)
        except KeyError:
            self._selector.register(sock, events, ready)
            return
        if key.events != events or key.data != ready:
            self._selector.modify(sock, events, ready)

    def remove(self, sock: socket.socket) -> None:
        """Stop watching a socket, before it is closed."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(sock)

    def wake(self) -> None:
        """End the wait, from any thread."""
        os.eventfd_write(self._wake_fd, 1)

    def _clear(self, _: int) -> None:
        os.eventfd_read(self._wake_fd)

    def wait(self, timeout_s: float) -> None:
        """Sleep until something is ready, and call what it is watched with."""
        for key, events in self._selector.select(timeout_s):
            if self._selector.get_map().get(key.fd) is key:  # an earlier call may have removed it
                key.data(events)

    def close(self) -> None:
        self._selector.close()
        os.close(self._wake_fd)


class BellRelay:
    """Sleeps on a bell in a thread of its own, and wakes the watch when it rings: a selector cannot
    wait for a semaphore. The gateway's thread arms the bell before it sleeps."""

    def __init__(self, bell: Bell, watch: Watch) -> None:
        self._bell = bell
        self._watch = watch
        self._is_over = False
        self._thread = threading.Thread(target=self._relay, name="gateway-bell", daemon=True)
        self._thread.start()

    def _relay(self) -> None:
        while not self._is_over:
            if self._bell.wait(_SIGN_OF_LIFE_S):
                self._watch.wake()

    def close(self) -> None:
        """End the thread; the gateway's thread has ended before."""
        self._is_over = True
        self._bell.arm()
        self._bell.wake()
        self._thread.join()
