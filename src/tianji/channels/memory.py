"""Shared memory that no process can leave behind, and the means to synchronise access to it.

Segments are memfds: they have no name in any file system, are inherited by file descriptor, and
are gone with the last process that holds one, even when all are killed at once. Large ones lie on
huge pages where the kernel can do it, because copying into 4-KiB pages takes twice as long.

A fence orders memory: other processes see everything before it before anything after it. The
channels rely on fences, and on the processor's own order only where IS_ORDERED is true.

A Bell wakes a sleeping worker. It makes no system call while its owner is awake. It uses no lock,
so a killed process cannot leave one locked.
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
    """Return the size rounded up to whole pages."""
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
        """Create zeroed memory. All of it is allocated now, so that it cannot run out later."""
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
        """Map the memory behind an inherited file descriptor."""
        return Segment(fd, os.fstat(fd).st_size)

    def close(self) -> None:
        """Close the file descriptor; the memory is freed with the last view of it."""
        os.close(self.fd)

    def words(self, offset: int, count: int) -> memoryview:
        """Return `count` 64-bit words from `offset` on, as plain integers."""
        return self.memory[offset : offset + 8 * count].cast("q")


def _map_shared(fd: int, nbytes: int) -> memoryview:
    """Map a memfd. One that may use huge pages must start at a multiple of their size: the file is
    mapped over a larger range of reserved addresses, which is freed, with the file, when its last
    view is gone."""
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


_LOCK = "hhqqi4x"  # struct flock


class Seat:
    """The right to be the only process at an end of a channel. It is a lock on one byte of the
    segment's file, through an open file of its own. The lock is released with this object, or when
    the process ends in any way."""

    _fd = -1

    def __init__(self, segment: Segment, number: int, who: str) -> None:
        self._fd = os.open(f"/proc/self/fd/{segment.fd}", os.O_RDWR)
        _seats.add(self)
        byte = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, byte)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise ChannelError(
                f"There is already {who}, and only one is allowed. End that one first."
            ) from error

    def leave(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.leave()


def is_seat_taken(segment: Segment, number: int) -> bool:
    """Return whether somebody sits at this end of a channel."""
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0)
    answer = fcntl.fcntl(segment.fd, fcntl.F_OFD_GETLK, asked)
    return bool(struct.unpack(_LOCK, answer)[0] != fcntl.F_UNLCK)


_seats: weakref.WeakSet[Seat] = weakref.WeakSet()


def _leave_all() -> None:
    for seat in list(_seats):
        seat.leave()


# A child process that an environment forks must not hold the seat: it may outlive this process.
os.register_at_fork(after_in_child=_leave_all)


IS_ORDERED = platform.machine() in ("x86_64", "AMD64")
"""True where the processor keeps stores in order, and loads in order: code that needs only that
needs no fence. (Streaming stores are the exception; copying functions that use them end with a
fence of their own.)"""


def new_fence() -> Callable[[], None]:
    """Return a function that orders all memory accesses before its call ahead of all after it, on
    any processor. It releases a private lock and acquires it again. Each thread needs its own."""
    lock = threading.Lock()
    acquire, release = lock.acquire, lock.release
    acquire()

    def fence() -> None:
        try:
            release()
        except RuntimeError:  # a signal handler interrupted the last fence between its two calls
            acquire()
            release()
        acquire()

    return fence


class _Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class Bell:
    """A worker sleeps on it when none of its roles has anything to do; any process may ring it.

        while not is_over():
            if not tick():          # nothing to do:
                bell.arm()          # from here on a ring is kept ...
                if not tick():      # ... so what came before must be looked for once more
                    bell.wait(0.25)

    Ringing a bell that is not armed reads one word. The ringer writes its data before it reads that
    word, and the sleeper arms the bell before it looks for data, each with a fence in between: at
    least one of them sees the other. If the ringer dies between its two steps, that ring is lost,
    and the sleeper wakes at the end of its wait.
    """

    def __init__(self, segment: Segment, offset: int) -> None:
        self._address = segment.address + offset
        self._armed = segment.words(offset + _ARMED_OFFSET, 1)
        self._fence = new_fence()

    def initialise(self) -> None:
        """Initialise the semaphore, once, in the process that created the segment."""
        if _instant.sem_init(self._address, 1, 0) != 0:
            raise ChannelError("This system has no process-shared semaphores.")

    def ring(self) -> None:
        """Wake the owner if it sleeps or is about to. The owner sees what was written before."""
        self._fence()
        self.wake()

    def wake(self) -> None:
        """Do the same as `ring` for a caller that has set a fence already."""
        if self._armed[0]:
            self._armed[0] = 0  # before the post: the owner may arm it again right after
            _instant.sem_post(self._address)

    def arm(self) -> None:
        """Make every ring from now on end the next wait."""
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
