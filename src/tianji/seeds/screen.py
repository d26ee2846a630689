"""What a person sees while several seeds train, on standard error.

CartPole-v1 · ppo · local · 5 seeds, 2 at a time                  cartpole-v1-ppo-5-seeds · 0:42
seed 1    target reached    return 480.2   41.0k steps in 0:03
seed 2    41 %              return 212.3   410k of 1.00M steps   33.1k steps/s   0:18
seed 3    waiting for cores
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tianji.display.display import Mode, what_can_be_shown
from tianji.display.stream import standard_error
from tianji.seeds.one import SeedRun
from tianji.wording import to_count, to_duration, to_percent, to_value

if TYPE_CHECKING:
    from tianji.display.live import LiveLines
    from tianji.seeds.train import Screen, Shares

REFRESH_S, PLAIN_PERIOD_S = 0.5, 10.0
MOST_LINES = 16
"""Seeds that the live screen lists at most: a terminal may have no more than 24 lines."""
ENDINGS = {
    "target_reached": "target reached",
    "max_env_steps": "all steps done",
    "max_wall": "time is up",
    "interrupted": "interrupted",
    "failed": "failed",
}


def make_screen(mode: Mode) -> Screen:
    shown = what_can_be_shown(mode)
    return _Live() if shown == "live" else _Plain(is_silent=shown == "off")


class _Seeds:
    """The seeds in words."""

    def __init__(self) -> None:
        self._runs: Sequence[SeedRun] = ()
        self._endings: dict[int, dict[str, Any]] = {}
        self._folder, self._at_once = Path(), 0
        self._began_s = self._drawn_at = time.monotonic()
        self._is_over = False

    def begin(self, runs: Sequence[SeedRun], shares: Shares, folder: Path) -> None:
        self._runs, self._at_once, self._folder = runs, len(shares), folder

    def is_due(self, period_s: float) -> bool:
        if time.monotonic() - self._drawn_at < period_s:
            return False
        self._drawn_at = time.monotonic()
        return True

    def title(self) -> tuple[str, str]:
        """What is trained, and where and for how long."""
        config, num_seeds = self._runs[0].config, len(self._runs)
        at_once = "" if self._at_once == num_seeds else f", {self._at_once} at a time"
        facts = (config.env_name, config.algorithm.name, config.engine)
        passed_s = time.monotonic() - self._began_s
        what = " · ".join((*facts, f"{num_seeds} seeds{at_once}"))
        return what, f"{self._folder.name} · {to_duration(passed_s)}"

    def newly_ended(self) -> list[SeedRun]:
        runs = (run for run in self._runs if run.is_started and not run.is_running)
        found = [run for run in runs if run.config.seed not in self._endings]
        self._endings |= {run.config.seed: run.summary() for run in found}
        return found

    def going(self) -> list[SeedRun]:
        return [run for run in self._runs if run.is_running]

    def listed(self) -> list[SeedRun]:
        """All seeds, in order; if they are too many, those that run and the last that ended."""
        chosen = list(self._runs)
        if len(chosen) > MOST_LINES:
            ended = [run for run in self._runs if run.config.seed in self._endings]
            first = (self.going() + ended[::-1])[:MOST_LINES]
            chosen = [run for run in self._runs if run in first]
        return chosen

    def state(self, run: SeedRun) -> tuple[str, str, str]:
        """A word, its style, and the rest."""
        if run.config.seed in self._endings:
            return ended_in_words(self._endings[run.config.seed])
        if not run.is_started:
            return ("not started" if self._is_over else "waiting for cores"), "dim", ""
        record = run.record()
        if not record:
            return "starting", "dim", run.last_line()  # a plan may be measured first
        steps, limit = record.get("env_steps") or 0, run.config.max_env_steps
        rate = (record.get("rates_per_s") or {}).get("received")
        rest = (
            f"return {to_value(record.get('mean_return_100'), 4):<7} "
            f"{to_count(steps)} of {to_count(limit)} steps   {to_count(rate)} steps/s   "
            f"{to_duration(record.get('wall_s') or 0.0)}"
        )
        return to_percent(min(1.0, steps / limit)), "cyan", rest


def ended_in_words(summary: Mapping[str, Any]) -> tuple[str, str, str]:
    """How a seed ended: a word, its style, and the rest."""
    because = summary["stopped_because"]
    style = {"target_reached": "green", "failed": "bold red"}.get(because, "yellow")
    if because == "failed":
        return ENDINGS[because], style, str(summary.get("first_cause", ""))
    rest = (
        f"return {to_value(summary['mean_return_100'], 4):<7} "
        f"{to_count(summary['env_steps'])} steps in {to_duration(summary['wall_s'])}"
    )
    return ENDINGS[because], style, rest


class _Live(_Seeds):
    """One line for each seed, redrawn in place."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: LiveLines | None = None

    def start(self, runs: Sequence[SeedRun], shares: Shares, folder: Path) -> None:
        from tianji.display.live import LiveLines

        self.begin(runs, shares, folder)
        self._lines = LiveLines()
        self._lines.start()
        self._draw()

    def update(self) -> None:
        if self.is_due(REFRESH_S):
            self._draw()

    def event(self, text: str) -> None:
        if self._lines is not None:
            self._lines.print(text, "yellow")

    def stop(self) -> None:
        self._is_over = True
        if self._lines is not None:
            self._draw()
            self._lines.stop()

    def _draw(self) -> None:
        assert self._lines is not None
        self.newly_ended()
        self._lines.draw(self._seed_lines)

    def _seed_lines(self, width: int) -> Iterator[Text]:
        left, right = self.title()
        gap = " " * max(1, width - len(left) - len(right) - 1)
        yield Text.assemble((left, "bold"), gap, (right, "dim"))
        listed = self.listed()
        for run in listed:
            word, style, rest = self.state(run)
            name = f"seed {run.config.seed}"
            yield Text.assemble((f"{name:<10}", "dim"), (f"{word:<18}", style), rest)
        if len(listed) < len(self._runs):
            running, ended = len(self.going()), len(self._endings)
            other = len(self._runs) - running - ended
            yield Text(f"all seeds {ended} ended, {running} running, {other} not started", "dim")


class _Plain(_Seeds):
    """A line when a seed ends, and now and then one for each seed that runs."""

    def __init__(self, is_silent: bool) -> None:
        super().__init__()
        self._is_silent = is_silent

    def start(self, runs: Sequence[SeedRun], shares: Shares, folder: Path) -> None:
        self.begin(runs, shares, folder)
        self._say(f"{self.title()[0]}, in {folder}/")

    def update(self) -> None:
        self._say_ended()
        if self.is_due(PLAIN_PERIOD_S):
            for run in self.going():
                word, _, rest = self.state(run)
                self._say(f"seed {run.config.seed}: {word} {rest}")

    def event(self, text: str) -> None:
        self._say(text)

    def stop(self) -> None:
        self._say_ended()

    def _say_ended(self) -> None:
        for run in self.newly_ended():
            word, _, rest = self.state(run)
            self._say(f"seed {run.config.seed}: {word}: {rest}")

    def _say(self, text: str) -> None:
        if not self._is_silent:
            stream = standard_error()
            stream.write(f"{' '.join(text.split())}\n")
            stream.flush()
