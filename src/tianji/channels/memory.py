"""Shared memory that cannot be left behind, and semaphores that live in it.

Segments are memfds: they have no name in any file system, are inherited by file descriptor, and
are gone with the last process that holds one, even when all are killed at once.

Semaphores are POSIX process-shared semaphores inside a segment. They count, wake sleepers through
a futex, cost no system call when nobody sleeps, are not owned by anyone (a killed process cannot
leave one locked), and order memory: everything written before post() is seen after the wait that
took that post. That ordering, not the processor's, is what the channels rely on.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import time
from typing import Any

from tianji.errors import ChannelError

SEMAPHORE_BYTES = 64  # sizeof(sem_t) is 32; a cache line each, so that two never share one


def to_pages(nbytes: int) -> int:
    """What memory of this size really takes."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


class Segment:
    """A piece of shared memory, by file descriptor."""

    def __init__(self, fd: int, nbytes: int) -> None:
        self.fd = fd
        self.nbytes = nbytes
        self.memory = mmap.mmap(fd, nbytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    @staticmethod
    def create(label: str, nbytes: int) -> Segment:
        """New zeroed memory. All of it is set aside now, so that it cannot run out later."""
        fd = os.memfd_create(f"tianji-{label}")
        try:
            os.posix_fallocate(fd, 0, nbytes)
        except OSError as error:
            os.close(fd)
            if error.errno not in (errno.ENOMEM, errno.ENOSPC):
                raise
            raise ChannelError(
                f"No memory for {label}: {nbytes / 2**20:.1f} MiB of shared memory were refused. "
                "Use fewer environments, shorter unrolls or a smaller replay, or free memory."
            ) from error
        return Segment(fd, nbytes)

    @staticmethod
    def attach(fd: int) -> Segment:
        """The memory behind an inherited file descriptor."""
        return Segment(fd, os.fstat(fd).st_size)

    def close(self) -> None:
        """Let the file descriptor go; the memory itself goes with the last view of it."""
        os.close(self.fd)

    def words(self, offset: int, count: int) -> memoryview:
        """`count` 64-bit words from `offset` on, as plain integers."""
        return memoryview(self.memory)[offset : offset + 8 * count].cast("q")


_waiting: Any = ctypes.CDLL(None, use_errno=True)  # releases the interpreter while it sleeps
_instant: Any = ctypes.PyDLL(None)  # does not: 160 instead of 210 ns a call
for _library, _name, _types in (
    (_instant, "sem_init", [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]),
    (_instant, "sem_post", [ctypes.c_void_p]),
    (_instant, "sem_trywait", [ctypes.c_void_p]),
    (_waiting, "sem_clockwait", [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]),
):
    getattr(_library, _name).argtypes = _types


class _Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class Semaphore:
    """A counting semaphore at an address of a segment."""

    def __init__(self, segment: Segment, offset: int) -> None:
        self._segment = segment  # keeps the memory mapped
        self._address = segment.address + offset
        self._post = _instant.sem_post
        self._trywait = _instant.sem_trywait

    def initialise(self) -> None:
        """Once, by the process that created the segment."""
        if _instant.sem_init(self._address, 1, 0) != 0:
            raise ChannelError("This system has no process-shared semaphores.")

    def post(self) -> None:
        self._post(self._address)

    def try_wait(self) -> bool:
        """Take one count if there is one."""
        return self._trywait(self._address) == 0  # type: ignore[no-any-return] # ctypes

    def wait(self, timeout_s: float) -> bool:
        """Sleep until there is a count or the time is over."""
        deadline_ns = time.monotonic_ns() + int(timeout_s * 1e9)
        deadline = _Timespec(deadline_ns // 10**9, deadline_ns % 10**9)
        while True:
            if (
                _waiting.sem_clockwait(self._address, time.CLOCK_MONOTONIC, ctypes.byref(deadline))
                == 0
            ):
                return True
            if ctypes.get_errno() != errno.EINTR:
                return False

    def drain(self) -> int:
        """Take all counts; returns how many there were."""
        count = 0
        while self.try_wait():
            count += 1
        return count


def _anonymous() -> Segment:
    return Segment(-1, mmap.PAGESIZE)


class Bell:
    """What a worker sleeps on when none of its roles has anything to do; anybody may ring it."""

    def __init__(self, semaphore: Semaphore) -> None:
        self._semaphore = semaphore

    def ring(self) -> None:
        self._semaphore.post()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until rung. All rings so far count as one, because the worker then looks at
        everything it has."""
        rung = self._semaphore.wait(timeout_s)
        self._semaphore.drain()
        return rung


_FENCE = Semaphore(_anonymous(), 0)
_FENCE.initialise()


def fence() -> None:
    """Order all memory accesses before this call ahead of all after it, on any processor: a
    release (post) followed by the acquire (wait) that takes it."""
    _FENCE.post()
    _FENCE.try_wait()
