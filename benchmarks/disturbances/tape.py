"""What a run did, sample by sample, and what can be read off it."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

WINDOW_S = 2.0
"""Long enough for a dozen versions when the environments are slow: the last one is 4 % of that."""
WITHIN = 0.05


@dataclass(frozen=True)
class Sample:
    """Counters at one moment, from the gauges."""

    at_s: float
    received_steps: int
    sent: int
    """Unrolls that the actors have sent, of all their lives."""
    received: int
    discarded: int
    blocked: int = 0
    """Unrolls whose insert had to wait."""
    blocked_s: float = 0.0
    """Time in which actors had such an unroll, added up over the actors."""


@dataclass(frozen=True)
class Told:
    """What the learner's side said at the end of a version."""

    at_s: float
    lags: tuple[int, ...]
    """Unrolls by lag, since the start."""
    ratio_error: float
    """Items taken per item put, over its set-point, less 1."""


@dataclass
class Tape:
    samples: list[Sample] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    def rate(self, start_s: float, end_s: float) -> float:
        """Steps received per second."""
        first, last = (self._sample(at_s) for at_s in (start_s, end_s))
        return (last.received_steps - first.received_steps) / max(1e-9, last.at_s - first.at_s)

    def _sample(self, at_s: float) -> Sample:
        at = bisect.bisect_left(self.samples, at_s, key=lambda sample: sample.at_s)
        return self.samples[min(at, len(self.samples) - 1)]

    def lag(self, start_s: float, end_s: float) -> float:
        """Mean lag of what entered the store, in versions."""
        counts = self._lags(start_s, end_s)
        return sum(lag * count for lag, count in enumerate(counts)) / max(1, sum(counts))

    def lag_p95(self, start_s: float, end_s: float) -> int | None:
        """95 % of what entered the store has this lag or less; None if nothing entered."""
        counts = self._lags(start_s, end_s)
        seen = 0
        for lag, count in enumerate(counts):
            seen += count
            if seen and seen >= 0.95 * sum(counts):
                return lag
        return None

    def highest_lag(self, start_s: float, end_s: float) -> int:
        return max((lag for lag, n in enumerate(self._lags(start_s, end_s)) if n), default=0)

    def _lags(self, start_s: float, end_s: float) -> list[int]:
        found = [told.lags for told in self.told if start_s <= told.at_s <= end_s]
        if len(found) < 2:
            return []
        first = found[0] + (0,) * (len(found[-1]) - len(found[0]))
        return [late - early for early, late in zip(first, found[-1], strict=True)]

    def ratio_error(self, start_s: float, end_s: float) -> float:
        errors = [abs(told.ratio_error) for told in self.told if start_s <= told.at_s <= end_s]
        return max(errors, default=0.0)

    def blocked(self, start_s: float, end_s: float) -> tuple[int, float]:
        """Unrolls whose insert had to wait, and the time of the actors in which one did."""
        first, last = (self._sample(at_s) for at_s in (start_s, end_s))
        return last.blocked - first.blocked, last.blocked_s - first.blocked_s

    def lost(self) -> int:
        """Unrolls sent and never received: what is always under way in the last two seconds."""
        end_s = self.samples[-1].at_s
        last = [sample for sample in self.samples if sample.at_s >= end_s - 2.0]
        return max(0, min(sample.sent - sample.received for sample in last))


@dataclass(frozen=True)
class Answer:
    """How a run answered to one disturbance."""

    rate_before: float
    rate_after: float
    """What the new speeds allow: what the run holds in the second half of the phase."""
    lag_after: float
    settled_s: float | None
    """Until rate, lag and ratio over the next WINDOW_S are within 5 % of that; None: never."""
    overshoot: float
    """The most that the rate over WINDOW_S was above it once it was there, as a share."""
    highest_lag: int
    ratio_error: float


def judge(tape: Tape, start_s: float, end_s: float) -> Answer:
    """The phase between a disturbance and the next one."""
    middle_s = (start_s + end_s) / 2
    rate, lag = tape.rate(middle_s, end_s), tape.lag(middle_s, end_s)
    starts = [s.at_s for s in tape.samples if start_s <= s.at_s <= end_s - WINDOW_S]
    settled = next((at_s for at_s in starts if _is_settled(tape, at_s, rate, lag)), None)
    after: Sequence[float] = [at_s for at_s in starts if settled is not None and at_s >= settled]
    highest = max((tape.rate(at_s, at_s + WINDOW_S) for at_s in after), default=rate)
    return Answer(
        rate_before=tape.rate(start_s - 3.0, start_s),
        rate_after=rate,
        lag_after=lag,
        settled_s=None if settled is None else settled - start_s,
        overshoot=highest / rate - 1,
        highest_lag=tape.highest_lag(start_s, end_s),
        ratio_error=tape.ratio_error(start_s, end_s),
    )


def _is_settled(tape: Tape, at_s: float, rate: float, lag: float) -> bool:
    end_s = at_s + WINDOW_S
    return (
        abs(tape.rate(at_s, end_s) / rate - 1) <= WITHIN
        and abs(tape.lag(at_s, end_s) - lag) <= WITHIN * max(1.0, lag)
        and tape.ratio_error(at_s, end_s) <= WITHIN
    )
