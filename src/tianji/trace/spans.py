"""The spans of one role: a ring of fixed records in a mapped file.

    spans = open_spans(run_dir, "actor-0")              # in the role's process
    act = spans.timed(acting.act, Kind.INFER)           # each call is a record from now on
    found = read_spans(path)                            # in any process, also after a SIGKILL

A record is four 64-bit words: start, duration, subject and tag; the tag is written last and holds
the record's number and its kind. The file keeps what a killed process had written. When the ring
is full, new records replace the oldest; the numbers tell how many were lost.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

SPANS_FOLDER = "trace"
SUFFIX = ".spans"
CAPACITY = 1 << 18
"""Records kept per role: 8 MiB, a minute or more of the fastest actor."""

RECORD = np.dtype([("start_ns", "<i8"), ("duration_ns", "<i8"), ("subject", "<i8"), ("tag", "<i8")])
_pack_into = struct.Struct("<4q").pack_into
_KIND_BITS = 8
_ONE = 1 << _KIND_BITS
_TAG_TO_OFFSET = 3  # a number lies 8 bits up in the tag and stands for 32 bytes: 5 bits up
_ROUND_BITS = 32

NOTHING = -1
"""The subject of a record without one."""

P = ParamSpec("P")
R = TypeVar("R")


class Kind(IntEnum):
    """The kinds of records. The subject is an item (`item_id`) or a policy version."""

    INFER = 1
    STEP = 2
    BEGIN = 3
    """Prepare an unroll: take the slot, copy the rows that the previous one leaves."""
    SEND = 4
    """Finish an unroll and hand it over."""
    PICK_UP = 5
    """Read a new policy; the subject is its version."""
    PACED = 6
    RECEIVE = 7
    TAKE = 8
    """Store arrivals and make a batch."""
    UPDATE = 9
    """One optimiser step; the subject is the version that it leads to."""
    PUBLISH = 10
    SAVE = 11
    WAIT = 12
    STORED = 13
    """A mark without a duration: the item entered the store."""
    USED = 14
    """A mark without a duration: the item is in the batch of the update that begins here."""


IDLE = (Kind.PACED, Kind.WAIT)
MARKS = (Kind.STORED, Kind.USED)


def item_id(actor: int, round_number: int) -> int:
    """Return actor and round of an unroll as one number, small enough for every JSON reader."""
    return actor << _ROUND_BITS | round_number


def item_name(item: int) -> str:
    """Return `2:15` for round 15 of actor 2."""
    return f"{item >> _ROUND_BITS}:{item & (1 << _ROUND_BITS) - 1}"


class Spans:
    """The ring of one role; one thread writes it. Adding a record takes less than a microsecond."""

    def __init__(self, memory: mmap.mmap, capacity: int) -> None:
        """capacity: a power of two."""
        self._memory = memory
        self._mask = (capacity - 1) << _KIND_BITS
        self._tag = _ONE
        self.end_ns = 0
        """The end of the last span."""
        self.subject = NOTHING
        """The item or version in work."""
        self.idle = Kind.WAIT
        """The kind of the next sleep."""

    def add(self, kind: Kind, start_ns: int, end_ns: int, subject: int) -> None:
        tag = self._tag
        at = (tag & self._mask) >> _TAG_TO_OFFSET
        _pack_into(self._memory, at, start_ns, end_ns - start_ns, subject, tag | kind)
        self._tag = tag + _ONE
        self.end_ns = end_ns

    def add_rest(self, kind: Kind, start_ns: int, subject: int) -> None:
        """Add a span that ends now and begins after the last one: spans never overlap."""
        self.add(kind, max(start_ns, self.end_ns), time.monotonic_ns(), subject)

    def mark(self, kind: Kind, at_ns: int, subject: int) -> None:
        """Add a record without a duration; it may lie within a span."""
        end_ns = self.end_ns
        self.add(kind, at_ns, at_ns, subject)
        self.end_ns = end_ns

    def timed(self, call: Callable[P, R], kind: Kind) -> Callable[P, R]:
        """Return `call`, recorded each time as a span about the subject in work."""
        clock, add = time.monotonic_ns, self.add

        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            start_ns = clock()
            try:
                return call(*args, **kwargs)
            finally:
                add(kind, start_ns, clock(), self.subject)

        return recorded

    def closing(self, call: Callable[P, R], kind: Kind) -> Callable[P, R]:
        """Return `call`, recorded each time as a span from the end of the last one on."""

        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            result = call(*args, **kwargs)
            self.add_rest(kind, self.end_ns, self.subject)
            return result

        return recorded


def open_spans(run_dir: Path, role: str, capacity: int = CAPACITY, thread: int = 0) -> Spans:
    """Open a new ring for this role and process. Roles of a process with the same `thread` take
    turns.

    The disk space is allocated now, because writing to a mapped file on a full disk would kill the
    process. Without disk space the role uses a ring in memory that nobody reads.
    """
    size = capacity * RECORD.itemsize
    try:
        folder = run_dir / SPANS_FOLDER
        folder.mkdir(exist_ok=True)
        with (folder / f"{role}-{os.getpid()}-{thread}{SUFFIX}").open("wb+") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return Spans(mmap.mmap(file.fileno(), size), capacity)
    except OSError as error:
        logging.getLogger("tianji").warning("No timeline of %s: %s", role, error)
        return Spans(mmap.mmap(-1, size), capacity)


@dataclass(frozen=True, slots=True)
class RoleSpans:
    """The records in one role's ring, oldest first."""

    role: str
    pid: int
    thread: int
    """Roles of a process with the same number take turns on one thread."""
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    subject: NDArray[np.int64]
    kind: NDArray[np.int64]
    fell_out: int
    """Records that were overwritten."""

    def spans(self) -> NDArray[np.bool_]:
        """Return which records are spans, not marks."""
        return ~np.isin(self.kind, MARKS)


def read_spans(path: Path) -> RoleSpans:
    """Read a file that open_spans made, also that of a process that was killed."""
    role, pid, thread = path.name.removesuffix(SUFFIX).rsplit("-", 2)
    room = np.fromfile(path, RECORD)
    records = room[room["tag"] != 0]
    records = records[np.argsort(records["tag"])]
    number = records["tag"] >> _KIND_BITS
    last = int(number.max(initial=0))
    # The record after the last may be half written over: its tag is still that of the oldest.
    records = records[number >= last - len(room) + 2]
    start_ns = records["start_ns"].astype(np.int64)
    return RoleSpans(
        role=role,
        pid=int(pid),
        thread=int(thread),
        start_ns=start_ns,
        end_ns=start_ns + records["duration_ns"],
        subject=records["subject"].astype(np.int64),
        kind=(records["tag"] & (_ONE - 1)).astype(np.int64),
        fell_out=last - len(records),
    )
