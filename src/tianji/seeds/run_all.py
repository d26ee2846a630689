"""Several runs, each in a process of its own, on cores that they leave to each other.

run_all(runs, ((0, 1), (2, 3)), screen, "CartPole-v1 · ppo", folder)    # two at a time
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tianji.channels.orders import Stop
from tianji.engines.signals import StopRequest, catch_signals
from tianji.seeds.one import ChildRun

LOOK_S = 0.25
Shares = tuple[tuple[int, ...], ...]
"""The cores of each of the runs that go on at the same time."""


class Screen(Protocol):
    """Shows people how far the runs are; `update` is called several times a second."""

    def start(self, runs: Sequence[ChildRun], title: str, folder: Path) -> None: ...
    def update(self) -> None: ...
    def event(self, text: str) -> None: ...
    def stop(self) -> None: ...


def run_all(
    runs: Sequence[ChildRun], shares: Shares, screen: Screen, title: str, folder: Path
) -> None:
    """Start the runs in this order, as many at a time as there are shares, until all have ended or
    the person has stopped them. No process is left behind."""
    screen.start(runs, title, folder)
    try:
        with catch_signals() as stop:
            _until_all_ended(runs, shares, stop, screen)
    finally:
        for run in runs:
            run.kill()
        screen.stop()


def _until_all_ended(
    runs: Sequence[ChildRun], shares: Shares, stop: StopRequest, screen: Screen
) -> None:
    """A run that has ended leaves its cores to the next."""
    waiting, free = list(runs), list(shares)
    going: dict[ChildRun, tuple[int, ...]] = {}
    told = Stop.NO
    while going or (waiting and stop.level == Stop.NO):
        while waiting and free and stop.level == Stop.NO:
            run, cores = waiting.pop(0), free.pop(0)
            run.start(cores)
            going[run] = cores
        select.select([stop.fd], [], [], LOOK_S)
        if stop.level > told:
            told = _pass_on(stop, going, screen)
        for run in [run for run in going if not run.is_running]:
            free.append(going.pop(run))
        screen.update()


def _pass_on(stop: StopRequest, going: dict[ChildRun, tuple[int, ...]], screen: Screen) -> Stop:
    os.read(stop.fd, 64)
    if stop.level == Stop.FINISH:
        screen.event(
            "Every run finishes its version and saves. Press Ctrl-C again to stop at once."
        )
    for run in going:
        run.ask_to_stop()
    return stop.level
