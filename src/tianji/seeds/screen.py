"""What a person sees while several runs train, on standard error.

CartPole-v1 · ppo · local · 5 seeds, 2 at a time                  cartpole-v1-ppo-5-seeds · 0:42
seed 1    target reached     0:03  41.0k steps (4 %)  return 480.2 of 475  33.0k steps/s
seed 2    training           0:18  410k steps (41 %)  return 212.3 of 475  33.1k steps/s
seed 3    waiting for cores
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from tianji.display.live import LiveLines
from tianji.display.panel import title_line
from tianji.display.phrases import ENDINGS, clock_text, progress_phrases
from tianji.display.stream import Mode, say, what_can_be_shown
from tianji.records import Metrics, Summary
from tianji.seeds.one import ChildRun
from tianji.wording import to_duration

if TYPE_CHECKING:
    from tianji.seeds.run_all import Screen

REFRESH_S, PLAIN_PERIOD_S = 0.5, 10.0
LABEL_WIDTH = 10
MOST_SAID = 60
"""Characters of what a run that starts has said last; some notes are whole paragraphs."""
MOST_LINES = 16
"""Runs that the live screen lists at most: a terminal may have no more than 24 lines."""


class RunState(NamedTuple):
    """What a run is doing: a few words, their style, and more about it."""

    words: str
    style: str
    more: str = ""


def make_screen(mode: Mode) -> Screen:
    shown = what_can_be_shown(mode)
    return _Live() if shown == "live" else _Plain(is_silent=shown == "off")


class _Runs:
    """The runs in words."""

    def __init__(self) -> None:
        self._runs: Sequence[ChildRun] = ()
        self._endings: dict[str, Summary] = {}
        self._folder, self._title = Path(), ""
        self._began_s = self._drawn_at = time.monotonic()
        self._is_over = False

    def begin(self, runs: Sequence[ChildRun], title: str, folder: Path) -> None:
        self._runs, self._title, self._folder = runs, title, folder

    def is_due(self, period_s: float) -> bool:
        if time.monotonic() - self._drawn_at < period_s:
            return False
        self._drawn_at = time.monotonic()
        return True

    def newly_ended(self) -> list[ChildRun]:
        runs = (run for run in self._runs if run.is_started and not run.is_running)
        found = [run for run in runs if run.label not in self._endings]
        self._endings |= {run.label: run.summary() for run in found}
        return found

    def going(self) -> list[ChildRun]:
        return [run for run in self._runs if run.is_running]

    def state(self, run: ChildRun) -> RunState:
        summary = self._endings.get(run.label)
        if summary is not None:
            ending = ENDINGS[summary["stopped_because"]]
            is_failed = summary["stopped_because"] == "failed"
            return RunState(*ending, summary["first_cause"] if is_failed else _told(run, summary))
        if not run.is_started:
            return RunState("not started" if self._is_over else "waiting for cores", "dim")
        record = run.record()
        if record is None:
            said = shorten(run.last_line(), MOST_SAID, placeholder=" ...")
            return RunState("starting", "dim", said)  # a plan may be measured first
        return RunState("training", "cyan", _told(run, record))


def _told(run: ChildRun, record: Metrics | Summary) -> str:
    clock = clock_text(record, run.config.engine)
    return "  ".join([clock, *progress_phrases(record, run.config)])


class _Live(_Runs):
    """One line for each run, redrawn in place."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = LiveLines()

    def start(self, runs: Sequence[ChildRun], title: str, folder: Path) -> None:
        self.begin(runs, title, folder)
        self._lines.start()
        self._draw()

    def update(self) -> None:
        if self.is_due(REFRESH_S):
            self._draw()

    def event(self, text: str) -> None:
        self._lines.print(text, "yellow")

    def stop(self) -> None:
        self._is_over = True
        self._draw()
        self._lines.stop()

    def _draw(self) -> None:
        self.newly_ended()
        self._lines.draw(self._run_lines)

    def _run_lines(self, width: int) -> Iterator[Text]:
        passed = to_duration(time.monotonic() - self._began_s)
        yield title_line(self._title, f"{self._folder.name} · {passed}", width)
        listed = self._listed()
        width_of_labels = max([LABEL_WIDTH, *(len(run.label) + 1 for run in self._runs)])
        for run in listed:
            state = self.state(run)
            yield Text.assemble(
                (f"{run.label:<{width_of_labels}}", "dim"),
                (f"{state.words:<18}", state.style),
                state.more,
            )
        if len(listed) < len(self._runs):
            running, ended = len(self.going()), len(self._endings)
            other = len(self._runs) - running - ended
            yield Text(f"all runs {ended} ended, {running} running, {other} not started", "dim")

    def _listed(self) -> list[ChildRun]:
        """Return all runs in order; of too many, those that run and the last that ended."""
        if len(self._runs) <= MOST_LINES:
            return list(self._runs)
        ended = [run for run in self._runs if run.label in self._endings]
        chosen = (self.going() + ended[::-1])[:MOST_LINES]
        return [run for run in self._runs if run in chosen]


class _Plain(_Runs):
    """A line when a run ends, and now and then one for each that goes on."""

    def __init__(self, is_silent: bool) -> None:
        super().__init__()
        self._is_silent = is_silent

    def start(self, runs: Sequence[ChildRun], title: str, folder: Path) -> None:
        self.begin(runs, title, folder)
        self.event(f"{title}, in {folder}/")

    def update(self) -> None:
        self._say_states(self.newly_ended())
        if self.is_due(PLAIN_PERIOD_S):
            self._say_states(self.going())

    def event(self, text: str) -> None:
        if not self._is_silent:
            say(" ".join(text.split()))

    def stop(self) -> None:
        self._say_states(self.newly_ended())

    def _say_states(self, runs: Sequence[ChildRun]) -> None:
        for run in runs:
            state = self.state(run)
            self.event(f"{run.label}: {state.words} {state.more}")
