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


class Source(Protocol):
    """Where runs come from, one after the other."""

    @property
    def runs(self) -> Sequence[ChildRun]:
        """All runs that are known so far, for the screen."""
        ...

    def next(self) -> ChildRun | None:
        """Return the run to start now; None if there is none left."""
        ...

    def look(self) -> None:
        """Called several times a second, also after a run has ended."""
        ...


class Listed:
    """Runs that are known from the beginning."""

    def __init__(self, runs: Sequence[ChildRun]) -> None:
        self.runs = runs
        self._waiting = list(runs)

    def next(self) -> ChildRun | None:
        return self._waiting.pop(0) if self._waiting else None

    def look(self) -> None:
        """Do nothing."""


def run_all(
    runs: Sequence[ChildRun], shares: Shares, screen: Screen, title: str, folder: Path
) -> None:
    """Start the runs in this order, as many at a time as there are shares, until all have ended or
    the person has stopped them. No process is left behind."""
    run_from(Listed(runs), shares, screen, title, folder)


def run_from(source: Source, shares: Shares, screen: Screen, title: str, folder: Path) -> None:
    """Do the same with runs that are made one after the other."""
    screen.start(source.runs, title, folder)
    try:
        with catch_signals() as stop:
            _until_all_ended(source, shares, stop, screen)
    finally:
        for run in source.runs:
            run.kill()
        screen.stop()


def _until_all_ended(source: Source, shares: Shares, stop: StopRequest, screen: Screen) -> None:
    """A run that has ended leaves its cores to the next."""
    free = list(shares)
    going: dict[ChildRun, tuple[int, ...]] = {}
    told, is_empty = Stop.NO, False
    while True:
        while free and not is_empty and stop.level == Stop.NO:
            run = source.next()
            if run is None:
                is_empty = True
            else:
                run.start(cores := free.pop(0))
                going[run] = cores
        if not going:
            return
        select.select([stop.fd], [], [], LOOK_S)
        if stop.level > told:
            told = _pass_on(stop, going, screen)
        for run in [run for run in going if not run.is_running]:
            free.append(going.pop(run))
        source.look()
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
