"""Shared memory that cannot be left behind, and how two processes agree on what lies in it.

Segments are memfds: they have no name in any file system, are inherited by file descriptor, and
are gone with the last process that holds one, even when all are killed at once. Large ones lie on
huge pages where the kernel can do it, because copying into 4-KiB pages takes twice as long.

A fence orders memory: everything before it is seen by others before anything after it. The channels
rely on it, and on the processor's own order only where IS_ORDERED says that there is one.

A Bell wakes a sleeper. It costs no system call while its owner is awake, and nobody owns a lock: a
killed process cannot leave one behind.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from tianji.errors import ChannelError

HUGE_PAGE = 2 << 20
MAX_HUGE_BYTES = 512 << 20  # laying out huge pages takes 1.6 ms for each MiB: 0.8 s for this much
MADV_COLLAPSE = 25  # Linux 6.1; needs no setting of the system, unlike MADV_HUGEPAGE on a memfd
MAP_FIXED = 0x10

BELL_BYTES = 64  # a semaphore and a word; a cache line each, so that two bells never share one
_ARMED_OFFSET = 48  # behind sem_t, which takes 32 bytes


def to_pages(nbytes: int) -> int:
    """What memory of this size really takes."""
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


_waiting: Any = ctypes.CDLL(None, use_errno=True)  # releases the interpreter while it sleeps
_instant: Any = ctypes.PyDLL(None)  # does not: 160 instead of 210 ns a call
for _library, _name, _types in (
    (_instant, "sem_init", [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]),
    (_instant, "sem_post", [ctypes.c_void_p]),
    (_instant, "sem_trywait", [ctypes.c_void_p]),
    (_waiting, "sem_clockwait", [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]),
    (_waiting, "madvise", [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]),
    (
        _waiting,
        "mmap",
        [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long],
    ),
):
    getattr(_library, _name).argtypes = _types
_waiting.mmap.restype = ctypes.c_void_p


class Segment:
    """A piece of shared memory, by file descriptor."""

    def __init__(self, fd: int, nbytes: int) -> None:
        self.fd = fd
        self.nbytes = nbytes
        self.memory = _map_shared(fd, nbytes)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    @staticmethod
    def create(label: str, nbytes: int) -> Segment:
        """New zeroed memory. All of it is set aside now, so that it cannot run out later."""
        fd = os.memfd_create(f"tianji-{label}")
        try:
            return Segment.allocate(fd, label, nbytes)
        except (ChannelError, OSError):
            os.close(fd)
            raise

    @staticmethod
    def allocate(fd: int, label: str, nbytes: int) -> Segment:
        """Give an empty memfd its memory."""
        try:
            os.posix_fallocate(fd, 0, nbytes)
        except OSError as error:
            if error.errno not in (errno.ENOMEM, errno.ENOSPC):
                raise
            raise ChannelError(
                f"No memory for {label}: {nbytes / 2**20:.1f} MiB of shared memory were refused. "
                "Use fewer environments, shorter unrolls or a smaller replay, or free memory."
            ) from error
        segment = Segment(fd, nbytes)
        if HUGE_PAGE <= nbytes <= MAX_HUGE_BYTES:
            # Best effort: where the kernel cannot, the pages stay as they are.
            _waiting.madvise(segment.address, nbytes // HUGE_PAGE * HUGE_PAGE, MADV_COLLAPSE)
        return segment

    @staticmethod
    def attach(fd: int) -> Segment:
        """The memory behind an inherited file descriptor."""
        return Segment(fd, os.fstat(fd).st_size)

    def close(self) -> None:
        """Let the file descriptor go; the memory itself goes with the last view of it."""
        os.close(self.fd)

    def words(self, offset: int, count: int) -> memoryview:
        """`count` 64-bit words from `offset` on, as plain integers."""
        return self.memory[offset : offset + 8 * count].cast("q")


def _map_shared(fd: int, nbytes: int) -> memoryview:
    """Map a memfd. One that may lie on huge pages begins at a multiple of their size, or the
    processor could not use them: the file is laid over a larger stretch of reserved addresses,
    which goes, file and all, when the last view of it does."""
    if nbytes < HUGE_PAGE:
        return memoryview(mmap.mmap(fd, nbytes))
    reserved = mmap.mmap(-1, nbytes + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(reserved))
    skip = -start % HUGE_PAGE
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED
    if _waiting.mmap(start + skip, nbytes, protection, flags, fd, 0) != start + skip:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return memoryview(reserved)[skip : skip + nbytes]


class Seat:
    """The right to be the only one at an end of a channel. It is given up with this object, or with
    the process, however that ends: it is a lock on one byte of the segment's file, through an open
    file of its own."""

    _fd = -1

    def __init__(self, segment: Segment, number: int, who: str) -> None:
        self._fd = os.open(f"/proc/self/fd/{segment.fd}", os.O_RDWR)
        _seats.add(self)
        byte = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, byte)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise ChannelError(
                f"There is {who} already, and only one is allowed. End that one first."
            ) from error

    def leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.leave()


_seats: weakref.WeakSet[Seat] = weakref.WeakSet()


def _leave_all() -> None:
    for seat in list(_seats):
        seat.leave()


# A child that an environment forks is not at this end, and may live longer than we do.
os.register_at_fork(after_in_child=_leave_all)


IS_ORDERED = platform.machine() in ("x86_64", "AMD64")
"""This processor keeps stores in order among themselves, and loads: where only that is needed, it
needs no fence. (Streaming stores are the exception; copying functions that use them end with a
fence of their own.)"""


def new_fence() -> Callable[[], None]:
    """A function that orders all memory accesses before its call ahead of all after it, on any
    processor: a release (of a lock nobody else knows) followed by the acquire that takes it back.
    One per thread."""
    lock = threading.Lock()
    acquire, release = lock.acquire, lock.release
    acquire()

    def fence() -> None:
        try:
            release()
        except RuntimeError:  # a signal handler broke off the last fence between its two moves
            acquire()
            release()
        acquire()

    return fence


class _Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class Bell:
    """What a worker sleeps on when none of its roles has anything to do; anybody may ring it.

        while not is_over():
            if not tick():          # nothing to do:
                bell.arm()          # from here on a ring is kept ...
                if not tick():      # ... so what came before must be looked for once more
                    bell.wait(0.25)

    A ring while the bell is not armed is one look at a word. The ringer's write comes before its
    look, the sleeper's arming before its own, with a fence in between on either side: at least one
    of them sees the other. A ringer that dies between its two moves takes that ring with it: the
    sleeper then wakes at the end of its wait.
    """

    def __init__(self, segment: Segment, offset: int) -> None:
        self._address = segment.address + offset
        self._armed = segment.words(offset + _ARMED_OFFSET, 1)
        self._fence = new_fence()

    def initialise(self) -> None:
        """Once, by the process that created the segment."""
        if _instant.sem_init(self._address, 1, 0) != 0:
            raise ChannelError("This system has no process-shared semaphores.")

    def ring(self) -> None:
        """Wake the owner if it sleeps, or is about to. What was written before is seen by it."""
        self._fence()
        self.wake()

    def wake(self) -> None:
        """The same, for one who has put a fence behind what was written."""
        if self._armed[0]:
            self._armed[0] = 0  # before the post: the owner may arm it again right after
            _instant.sem_post(self._address)

    def arm(self) -> None:
        """From here on a ring ends the next wait."""
        self._armed[0] = 1
        self._fence()

    def wait(self, timeout_s: float) -> bool:
        """Sleep until rung. All rings so far count as one, because the worker then looks at
        everything it has."""
        rung = self._sleep(timeout_s)
        while _instant.sem_trywait(self._address) == 0:
            pass
        return rung

    def _sleep(self, timeout_s: float) -> bool:
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
