"""Gauges: a row of counters per role that its hot loop adds to and everybody else reads.

They live in shared memory, one 64-bit word each, written by one role only: reading them costs the
role nothing, and there are no logging calls in hot loops.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tianji.channels.memory import BELL_BYTES, Segment

GAUGE_WORDS = 32
CONTROL_WORDS = 8
"""Words of the control segment that belong to the whole run."""


def control_bytes(num_roles: int, num_workers: int) -> int:
    """Return the size of the control segment: its words, a row per role, a bell per worker."""
    return 8 * (CONTROL_WORDS + GAUGE_WORDS * num_roles) + BELL_BYTES * num_workers


class Gauge(IntEnum):
    """The words of a row. Times are nanoseconds of CLOCK_MONOTONIC."""

    HEARTBEAT_NS = 0
    ACTIVITY = 1
    BUSY_NS = 2
    WAIT_NS = 3
    STEPS = 4
    """Actor: environment steps produced. Learner: steps trained, every epoch counted."""
    ITEMS = 5
    """Actor: unrolls sent. Buffer: unrolls received. Evaluator: evaluations finished."""
    UNIQUE_STEPS = 6
    """Learner: distinct environment steps that reached a gradient."""
    UPDATES = 7
    """Learner: optimiser steps. Actor: those it has taken itself, in an all-reduce."""
    VERSION = 8
    FIRST_STEP_NS = 9
    RECEIVED_STEPS = 10
    """Buffer: environment steps received."""
    DISCARDED = 11
    LANE_RESETS = 12
    """Supervisor: how often the sender of this actor's lane was replaced. Buffer's row: of all
    lanes together, so that it need not look at each."""
    LANE_RESETS_DONE = 13
    """Buffer: how many of those it has carried out."""
    STARTED_VERSION = 14
    """Actor: version under which the unroll in work was begun, plus 1; 0 when none is."""
    HURRY = 15
    """Buffer: unrolls before this round are to be handed over now, short as they are."""
    ENV_NS = 16
    """Actor: time inside the environments, a part of BUSY_NS."""
    PUBLISH_NS = 17
    """Learner: time to publish versions, a part of BUSY_NS."""
    SAVE_NS = 18
    """Learner: time that checkpoints kept it from learning."""
    LATE_NS = 19
    """Buffer: time a version that was due waited for unrolls that were about to be too old."""
    ACTIVE = 20
    """Buffer: how many actors may work at once; the others are parked."""
    CLOSED = 21
    """Buffer, in an actor's row and in its own: gradients at versions before this one are no longer
    wanted."""
    DISCARDED_STEPS = 22
    """Actor: environment steps of gradients that were dropped before they were done. Buffer: of
    those that came too late or were left out."""
    REDUCE_CALL = 23
    """Learner's side, in an actor's row: who gives its sum to an all-reduce now, and of which
    version (see channels/reduce.py, Call). One word, so that nobody sees half of it."""
    REDUCE_READY = 24
    """Actor: it can take part, as the successor of LANE_RESETS others; that number plus 1."""
    OPENED_NS = 25
    """Buffer, in an actor's row: since when gradients at the newest version are wanted."""
    OVERDUE = 26
    """Actor: gradients that took longer than the time that was given for them."""
    CARRIED_UPDATES = 27
    """Learner: how much of UPDATES a checkpoint has set, and nobody counted; below 0 where it went
    back. The next two: the same of STEPS and UNIQUE_STEPS."""
    CARRIED_STEPS = 28
    CARRIED_UNIQUE_STEPS = 29
    ENV_FAILURES = 30
    """Actor: environments that failed and were replaced."""


CARRIED = {
    Gauge.UPDATES: Gauge.CARRIED_UPDATES,
    Gauge.STEPS: Gauge.CARRIED_STEPS,
    Gauge.UNIQUE_STEPS: Gauge.CARRIED_UNIQUE_STEPS,
}
"""Of the learner's counts, where it is told how much of each was carried over."""


class Activity(IntEnum):
    """What a role is doing now; a heartbeat that stops says in which of these."""

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


class Gauges:
    """Rows by role name, the same order in every process."""

    def __init__(self, roles: tuple[str, ...], memory: memoryview | None = None) -> None:
        words = memory if memory is not None else _private_words(len(roles))
        self.rows: dict[str, memoryview[int]] = {
            role: words[i * GAUGE_WORDS : (i + 1) * GAUGE_WORDS] for i, role in enumerate(roles)
        }

    @staticmethod
    def in_segment(roles: tuple[str, ...], segment: Segment, offset: int) -> Gauges:
        return Gauges(roles, segment.words(offset, GAUGE_WORDS * len(roles)))

    def read(self, role: str) -> dict[str, int]:
        row = self.rows[role]
        return {gauge.name.lower(): row[gauge] for gauge in Gauge}


def _private_words(num_roles: int) -> memoryview[Any]:
    return memoryview(bytearray(8 * GAUGE_WORDS * num_roles)).cast("q")
