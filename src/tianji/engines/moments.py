"""The loop of the engines under the virtual clock: one moment after the other, until it is over."""

from __future__ import annotations

from tianji.engines.control import Stop
from tianji.engines.interface import Observer
from tianji.engines.learner_side import LearnerSide
from tianji.engines.signals import StopRequest
from tianji.virtual.clock import VirtualClock


def run_moments(
    clock: VirtualClock, side: LearnerSide, observer: Observer, stop: StopRequest
) -> str:
    """Returns why it ended."""
    while True:
        if side.learner.is_between_versions:
            if stop.level > Stop.NO:
                return "interrupted"
            if (because := side.stop_reason()) is not None:
                return because
        if stop.level == Stop.NOW:
            return "interrupted"
        observer.tick()
        if not clock.step():
            raise AssertionError("no role has anything to do: the balance is wrong")
