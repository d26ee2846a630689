"""The control segment of a run: gauges of every role, a bell per worker, a few words for all."""

from __future__ import annotations

import time
from enum import IntEnum

from tianji.channels.gauges import CONTROL_WORDS, Gauges, control_bytes
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.programs.program import Program
from tianji.types import Clock

PATIENCE_S = 1.0
"""How long the version in work may take after a stop before its other updates are left out."""


class Word(IntEnum):
    """Words that only the supervisor writes, unless said otherwise."""

    STOP = 0
    WALL_BEFORE_NS = 1
    """Training time before this session; written by the learner's side when it resumes."""


class Stop(IntEnum):
    """How urgently to stop."""

    NO = 0
    FINISH = 1
    """Finish the version in work, save, report, go."""
    NOW = 2


class Patience:
    """How long a version in work is waited for after a stop: `is_spent(level)` says that it has had
    its time, counted from the first call with a level above NO."""

    def __init__(self, now_ns: Clock = time.monotonic_ns) -> None:
        self._now_ns = now_ns
        self._since_ns: int | None = None

    def is_spent(self, level: int) -> bool:
        if level == Stop.NO:
            return False
        now_ns = self._now_ns()
        if self._since_ns is None:
            self._since_ns = now_ns
        return now_ns - self._since_ns > PATIENCE_S * 1e9


class Control:
    """The same view in every process, over one segment."""

    def __init__(self, program: Program, segment: Segment) -> None:
        roles = tuple(role.name for role in program.roles)
        workers = program.workers()
        self.segment = segment
        self.words = segment.words(0, CONTROL_WORDS)
        self.gauges = Gauges.in_segment(roles, segment, 8 * CONTROL_WORDS)
        base = control_bytes(len(roles), num_workers=0)
        self.bells = {
            worker: Bell(segment, base + i * BELL_BYTES) for i, worker in enumerate(workers)
        }

    @staticmethod
    def create(program: Program) -> Control:
        nbytes = control_bytes(len(program.roles), len(program.workers()))
        control = Control(program, Segment.create("control", nbytes))
        for bell in control.bells.values():
            bell.initialise()
        return control

    def is_stopping(self) -> bool:
        return self.words[Word.STOP] != Stop.NO

    def stop(self, how: Stop) -> None:
        """Tell every worker; one that sleeps wakes up."""
        self.words[Word.STOP] = max(self.words[Word.STOP], how)
        for bell in self.bells.values():
            bell.ring()
