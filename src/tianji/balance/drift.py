"""Drift: whether a run is slower than it should be for long, and who holds it up.

Fed with what was seen of the run now and then; no clock, no I/O. Rates are means over the last
LASTS_S seconds, and over at least MIN_VERSIONS versions where those are long, so that a checkpoint
or a pause of the machine is no imbalance. Two things are one:

    the rate is under SLOW of what the plan promised, or, where the plan promised nothing, of the
    best rate that this run has held for as long
    the plan promised nothing, and the learner waits for most of the time while at least one core
    has nothing to do; in serial training somebody always waits

The one that holds the run up is the one that the others wait for: the learner when actors are
paced, the actors when the learner waits, and the processors when nobody waits for anybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias

from tianji.wording import to_percent

LASTS_S = 15.0
MIN_VERSIONS = 4
SLOW = 0.8
FINE = 0.9
"""An imbalance is over when the last few seconds are this near to what is expected."""
PARTS = 3
"""All parts of that time must show the same: a pause is not slowness, and what has passed already
is not told."""
WAITS = 0.5
NOBODY = 0.1
"""Waiting for less than this share of the time is the ordinary give and take."""

Holding: TypeAlias = Literal["actors", "learner", "processors"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the run did over the last few seconds, by role: `actor-0`, `learner`, ..."""

    at_s: float
    version: int
    rate: float
    """Environment steps received per second."""
    busy: Mapping[str, float]
    """Cores in use."""
    waiting: Mapping[str, float]
    """Share of its time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that lasts, or that is over."""

    is_over: bool
    role: Holding
    measured: float
    expected: float
    text: str


class Drift:
    """`observe` answers at the moment something begins to last, and when it is over."""

    def __init__(self, expected: float | None, num_cores: int, is_serial: bool = False) -> None:
        """expected: steps per second that the plan promised; None: it promised nothing."""
        self._promised = expected
        self._best = 0.0
        self._num_cores = num_cores
        self._may_idle = is_serial or expected is not None
        """A promise that is kept is no imbalance, whoever waits."""
        self._window: deque[Seen] = deque()
        self.lasting: Finding | None = None
        """What has begun and is not over."""

    def observe(self, seen: Seen) -> Finding | None:
        if seen.version < 1:
            return None  # warm-up, and the first batch, go at another pace
        self._window.append(seen)
        while len(self._window) > 1 and _spans_enough(self._window[1], seen):
            self._window.popleft()
        first = self._window[0]
        if not _spans_enough(first, seen):
            return None
        part_s = (seen.at_s - first.at_s) / PARTS
        parts: list[list[Seen]] = [[] for _ in range(PARTS)]
        for other in self._window:
            parts[min(PARTS - 1, int((other.at_s - first.at_s) / part_s))].append(other)
        return self._judge(list(filter(None, parts)))

    def _judge(self, parts: list[list[Seen]]) -> Finding | None:
        rates = [fmean(seen.rate for seen in part) for part in parts]
        self._best = max(self._best, min(rates))
        expected = self._best if self._promised is None else self._promised
        if self.lasting is None:
            is_slow = max(rates) < SLOW * expected
            if is_slow or all(map(self._is_idle, parts)):
                self.lasting = self._describe(fmean(rates), expected, is_slow)
                return self.lasting
        elif rates[-1] >= FINE * expected and not self._is_idle(parts[-1]):
            text = f"The run is back at {rates[-1]:,.0f} steps/s ({expected:,.0f} expected)."
            over = Finding(True, self.lasting.role, rates[-1], expected, text)
            self.lasting = None
            return over
        return None

    def _is_idle(self, window: Sequence[Seen]) -> bool:
        """The learner waits although somebody could make more for it."""
        waits = fmean(seen.waiting.get("learner", 0.0) for seen in window)
        busy = fmean(sum(seen.busy.values()) for seen in window)
        return not self._may_idle and waits > WAITS and self._num_cores - busy >= 1.0

    def _describe(self, measured: float, expected: float, is_slow: bool) -> Finding:
        learner = fmean(seen.waiting.get("learner", 0.0) for seen in self._window)
        actors = fmean(_of_actors(seen.waiting) for seen in self._window)
        busy = fmean(sum(seen.busy.values()) for seen in self._window)
        role: Holding
        if max(learner, actors) < NOBODY:
            role, slow = "processors", "The processors slow"
            why = "actors and learner do not wait for each other, so there are too few cores"
        elif learner >= actors:
            role, slow = "actors", "The actors slow"
            why = f"the learner waits for them {to_percent(learner)} of its time"
        else:
            role, slow = "learner", "The learner slows"
            why = f"the actors wait for it {to_percent(actors)} of their time"
        if is_slow:
            fact = f"{measured:,.0f} steps/s instead of {expected:,.0f} for {LASTS_S:.0f} s or more"
        else:
            free = self._num_cores - busy
            fact = f"{measured:,.0f} steps/s while {free:.1f} of {self._num_cores} cores are idle"
        return Finding(False, role, measured, expected, f"{slow} the run down: {fact}; {why}.")


def _spans_enough(first: Seen, last: Seen) -> bool:
    return last.at_s - first.at_s >= LASTS_S and last.version - first.version >= MIN_VERSIONS


def _of_actors(shares: Mapping[str, float]) -> float:
    """Mean over the actors."""
    found = [share for name, share in shares.items() if name.startswith("actor-")]
    return fmean(found) if found else 0.0
