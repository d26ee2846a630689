"""The loop of the engines under the virtual clock: one moment after the other, until it is over."""

from __future__ import annotations

from tianji.engines.interface import Observer
from tianji.engines.signals import StopRequest
from tianji.engines.together import Together
from tianji.records import StoppedBecause
from tianji.virtual.clock import VirtualClock


def run_moments(
    clock: VirtualClock, roles: Together, observer: Observer, stop: StopRequest
) -> StoppedBecause:
    """Returns why it ended."""
    while (because := roles.ended(stop)) is None:
        observer.tick()
        if not clock.step():
            raise AssertionError("no role has anything to do: the balance is wrong")
    return because
