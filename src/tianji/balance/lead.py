"""The lead: unrolls that actors store ahead in a replay store while production is uneven. Counts
only; no clock, no I/O.

What makes up for a time of slow production is what was stored before it. In a queue that costs lag,
one version for each version stored. In a replay store it does not: the lag of an unroll ends when
it enters the store. So while production is uneven, unrolls enter a replay store when they arrive,
and actors may start N unrolls more than the set-point allows:

    started < W + B (v + 1 + lag_target) + N         N = 2 x ERROR_SHARE x (W + B)

The price is that up to N unrolls are in the store before their share of the samples is due. That is
as much as the window of Acme's limiter lets the ratio vary.

Production is uneven if the learner has run dry twice within PATIENCE versions: all that the
set-point allows had arrived, and later the learner had to wait. Steady production does not do that,
whether it is faster or slower than the learner.
"""

from __future__ import annotations

from dataclasses import dataclass

from tianji.balance.samples_per_insert import ERROR_SHARE
from tianji.balance.set_point import SetPoint

PATIENCE = 128
"""A lead of a few versions gains little if the learner runs dry less often than this."""


def lead_unrolls(point: SetPoint, max_lag: int) -> int:
    """Return N. It is 0 in serial training, and with max_lag 1: an unroll in work may then see one
    new version at most, so that the learner could not use up what is stored any faster."""
    return int(2 * ERROR_SHARE * point.due(0)) if point.lag_target and max_lag > 1 else 0


@dataclass(frozen=True, slots=True)
class Evenness:
    """Evenness(is_uneven=True, was_ahead=False, calm=0)

    was_ahead: since the learner last ran dry, all that the set-point allows had arrived.
    calm: versions since the learner last ran dry, at most PATIENCE.
    """

    is_uneven: bool = False
    was_ahead: bool = False
    calm: int = PATIENCE


def after_version(state: Evenness, has_waited: bool, is_ahead: bool) -> Evenness:
    """Return the state after a version. has_waited: the learner had to wait for its unrolls.
    is_ahead: all that the set-point allowed before it had arrived."""
    if has_waited and state.was_ahead:
        return Evenness(is_uneven=state.calm < PATIENCE, was_ahead=is_ahead, calm=0)
    calm = min(state.calm + 1, PATIENCE)
    return Evenness(
        is_uneven=state.is_uneven and calm < PATIENCE,
        was_ahead=state.was_ahead or is_ahead,
        calm=calm,
    )


class Lead:
    """Watches how even production is.

    num_unrolls: unrolls that may be stored ahead now; 0 while production is even.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._evenness = Evenness()
        self._has_waited = False
        self.num_unrolls = 0

    def learner_waits(self) -> None:
        """Note that the learner waits for the unrolls of the next version."""
        self._has_waited = True

    def version_made(self, is_ahead: bool) -> None:
        """is_ahead: all that the set-point allowed before it had arrived."""
        self._evenness = after_version(self._evenness, self._has_waited, is_ahead)
        self._has_waited = False
        self.num_unrolls = self._most if self._evenness.is_uneven else 0
