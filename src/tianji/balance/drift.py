"""Find out whether a run has been too slow for a while, and which side limits it.

`Drift` is fed with what was seen of the run; it has no clock and no I/O. Rates are means over the
last LASTS_S seconds, and over at least MIN_VERSIONS versions, so that a checkpoint or a pause of
the machine is no imbalance. There are two kinds of imbalance:

    the rate is below SLOW of the predicted rate or, without a prediction, of the best rate that
    this run has held for as long
    there is no prediction, and the learner waits most of the time while at least one core is idle
    (in serial training one side always waits)

The side that limits the run is the one that the other waits for: the learner if actors are paced,
the actors if the learner waits, and the processors if neither waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

from tianji.wording import to_percent

LASTS_S = 15.0
MIN_VERSIONS = 4
SLOW = 0.8
FINE = 0.9  # an imbalance is over when the last seconds reach this share of the expected rate
PARTS = 3  # all parts of the time must show the same: a pause is not slowness
WAITS = 0.5
NO_WAIT = 0.1  # waiting for less than this share of the time is normal

Limit: TypeAlias = Literal["actors", "learner", "processors"]


class Seen(NamedTuple):
    """What the run did over the last seconds.

    rate: environment steps received per second.
    busy_cores: cores that all roles together kept busy.
    learner_waits, actors_wait: shares of their time; the mean over all actors.
    """

    at_s: float
    version: int
    rate: float
    busy_cores: float
    learner_waits: float
    actors_wait: float


class Speeds(NamedTuple):
    """The speeds of a run that is out of balance: what another plan is computed from.

    produced, received: environment steps per second.
    acting, learning: seconds of work per second, of all actors, and of buffer and learner.
    acting_cpu, learning_cpu: processor time of that work.
    """

    produced: float
    received: float
    acting: float
    learning: float
    acting_cpu: float
    learning_cpu: float


@dataclass(frozen=True, slots=True)
class Finding:
    """An imbalance that has lasted, or that is over. Rates are steps per second."""

    is_over: bool
    role: Limit
    measured: float
    expected: float
    text: str


class Drift:
    """`observe` returns a finding when an imbalance has lasted, and when it is over."""

    def __init__(self, expected: float | None, num_cores: int, is_serial: bool = False) -> None:
        """expected: the predicted rate in steps per second; None: there is no prediction."""
        self._predicted = expected
        self._best = 0.0
        self._num_cores = num_cores
        self._may_idle = is_serial or expected is not None
        self._window: deque[Seen] = deque()
        self.lasting: Finding | None = None

    def observe(self, seen: Seen) -> Finding | None:
        if seen.version < 1:
            return None  # warm-up and the first batch have another speed
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
        expected = self._best if self._predicted is None else self._predicted
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
        """Return whether the learner waits although there is a core for more actors."""
        waits = fmean(seen.learner_waits for seen in window)
        idle_cores = self._num_cores - fmean(seen.busy_cores for seen in window)
        return not self._may_idle and waits > WAITS and idle_cores >= 1.0

    def _describe(self, measured: float, expected: float, is_slow: bool) -> Finding:
        learner = fmean(seen.learner_waits for seen in self._window)
        actors = fmean(seen.actors_wait for seen in self._window)
        role: Limit
        if max(learner, actors) < NO_WAIT:
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
            idle = self._num_cores - fmean(seen.busy_cores for seen in self._window)
            fact = f"{measured:,.0f} steps/s while {idle:.1f} of {self._num_cores} cores are idle"
        return Finding(False, role, measured, expected, f"{slow} the run down: {fact}; {why}.")


def _spans_enough(first: Seen, last: Seen) -> bool:
    return last.at_s - first.at_s >= LASTS_S and last.version - first.version >= MIN_VERSIONS
