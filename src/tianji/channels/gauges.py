"""Gauges: telemetry of every role, a row of counters that its hot loop adds to and others read.

They live in shared memory, one 64-bit word each. Reading them costs the role nothing, and there are
no logging calls in hot loops. Each word has one writer, the role itself; while no process runs the
role, the engine that starts it writes HEARTBEAT_NS and ACTIVITY, and on a cluster the agent of its
host writes CORE_NS and NO_CORE_NS. Nothing that must be right may depend on a gauge: a stale row
may only delay a decision.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from tianji.types import Clock, RoleKind

GAUGE_WORDS = 40


class Gauge(IntEnum):
    """The words of a row. Times are nanoseconds of CLOCK_MONOTONIC."""

    HEARTBEAT_NS = 0
    ACTIVITY = 1
    BUSY_NS = 2
    WAIT_NS = 3
    STEPS = 4
    """Actor: environment steps produced. Learner: steps trained, every epoch counted."""
    ITEMS = 5
    """Actor: unrolls sent. Buffer: unrolls received. Evaluator: evaluations finished.
    Inference: rows evaluated."""
    UNIQUE_STEPS = 6
    """Learner: distinct environment steps that reached a gradient."""
    UPDATES = 7
    """Learner: optimiser steps. Actor: those it has taken itself, in an all-reduce."""
    VERSION = 8
    FIRST_STEP_NS = 9
    RECEIVED_STEPS = 10
    """Buffer: environment steps received."""
    DISCARDED = 11
    STARTED_VERSION = 12
    """Actor: version under which the unroll in work was begun, plus 1; 0 when none is."""
    ENV_NS = 13
    """Actor: time inside the environments, a part of BUSY_NS."""
    PUBLISH_NS = 14
    """Learner: time to publish versions, a part of BUSY_NS."""
    SAVE_NS = 15
    """Learner: time that checkpoints kept it from learning."""
    LATE_NS = 16
    """Buffer: time a version that was due waited for unrolls that were about to be too old."""
    ACTIVE = 17
    """Buffer: how many actors may work at once; the others are parked."""
    CLOSED = 18
    """Buffer: gradients at versions before this one are no longer wanted."""
    DISCARDED_STEPS = 19
    """Actor: environment steps of gradients that were dropped before they were done. Buffer: of
    those that came too late or were left out."""
    REDUCE_READY = 20
    """Actor: it can take part in an all-reduce, as the successor of so many others, plus 1."""
    OVERDUE = 21
    """Actor: gradients that took longer than the time that was given for them."""
    CARRIED_UPDATES = 22
    """Learner: how much of UPDATES a checkpoint has set, and nobody counted; below 0 where it went
    back. The next two: the same of STEPS and UNIQUE_STEPS."""
    CARRIED_STEPS = 23
    CARRIED_UNIQUE_STEPS = 24
    ENV_FAILURES = 25
    """Actor: environments that failed and were replaced."""
    WALL_BEFORE_NS = 26
    """Learner: duration of the training before this session, for the learner that replaces it."""
    GPU_WAITS = 27
    """Learner: times that it waited for the GPU."""
    UPLOADED_BYTES = 28
    """Actor, learner, inference: bytes copied to the GPU."""
    THREAD_ID = 29
    """The system's number of the thread that runs the role."""
    ANSWER_NS = 30
    """Actor: time asleep while a server evaluated its observations, or another role had to reply to
    it, a part of WAIT_NS."""
    ENV_STEPS = 31
    """Learner of one group of several: environment steps that it counts, those of earlier sessions
    included."""
    COMBINE_NS = 32
    """Learner: time in reductions with the learners of other groups, a part of BUSY_NS that is no
    work (worked_ns). The group that the others wait for has the least."""
    REDUCED_BYTES = 33
    """Learner: bytes that it has given to those reductions."""
    BLOCKED = 34
    """Buffer: inserts that had to wait, with a rate limiter."""
    BLOCKED_NS = 35
    """Buffer: time in which actors had such an insert, added up over the actors."""
    CORE_NS = 36
    """Processor time of the role, where its agent measures it for a head on another host; else 0.
    The next one: the time in which its thread was ready to run and had no core."""
    NO_CORE_NS = 37
    PEER_NS = 38
    """Learner: time in which it took no batch because the state of another group was too old, a
    part of WAIT_NS."""


CARRIED = {
    Gauge.UPDATES: Gauge.CARRIED_UPDATES,
    Gauge.STEPS: Gauge.CARRIED_STEPS,
    Gauge.UNIQUE_STEPS: Gauge.CARRIED_UNIQUE_STEPS,
}
"""The gauge that holds how much of a learner's count was carried over, by that count."""


class Activity(IntEnum):
    """The present work of a role; when heartbeats stop, it shows where."""

    STARTING = 0
    ACTING = 1
    PACED = 2
    WAITING = 3
    RECEIVING = 4
    UPDATING = 5
    PUBLISHING = 6
    SAVING = 7
    EVALUATING = 8
    STOPPED = 9
    INFERRING = 10
    """The server evaluates the policy for actors."""
    ASKING = 11
    """An actor waits for the server's answer, or for the reply of another role."""
    COMBINING = 12
    """The learner adds up gradients with those of other groups, or waits for them."""


def rows_by_name(
    names: Sequence[str], width: int, words: memoryview[int] | None
) -> dict[str, memoryview[int]]:
    """Divide words into a row for each name; without words, into memory of this process."""
    if words is None:
        words = memoryview(bytearray(8 * width * len(names))).cast("q")
    return {name: words[i * width : (i + 1) * width] for i, name in enumerate(names)}


class Gauges:
    """Rows by role name, in the same order in every process."""

    def __init__(self, kinds: Mapping[str, RoleKind], words: memoryview | None = None) -> None:
        """kinds: the kind of every role, by its name.
        words: the memory of all rows, private to this process if none is given."""
        self.kinds = kinds
        self.rows = rows_by_name(tuple(kinds), GAUGE_WORDS, words)

    def of_kind(self, kind: RoleKind) -> dict[str, memoryview[int]]:
        """Return the rows of all roles of one kind, by name."""
        return {name: row for name, row in self.rows.items() if self.kinds[name] == kind}

    def the(self, kind: RoleKind) -> memoryview[int]:
        """Return the row of the only role of this kind."""
        (row,) = self.of_kind(kind).values()
        return row


def worked_ns(row: Sequence[int]) -> int:
    """Return the time of a role at work: without that in which a learner waited for others."""
    return max(0, row[Gauge.BUSY_NS] - row[Gauge.COMBINE_NS])


class Ticks(Protocol):
    """A role: anything with a tick that says whether it did some work."""

    def tick(self) -> bool: ...


def timed_tick(role: Ticks, gauges: memoryview[int], now_ns: Clock = time.monotonic_ns) -> bool:
    """Let a role do one tick, and write its time and a sign of life into its gauges."""
    before_ns = now_ns()
    worked = role.tick()
    gauges[Gauge.HEARTBEAT_NS] = after_ns = now_ns()
    gauges[Gauge.BUSY_NS] += after_ns - before_ns
    return worked
