"""Phrases about the state of a run, the same on every screen: plain lines, closing words, seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tianji.records import Metrics, StoppedBecause, Summary
from tianji.wording import on_clock, to_count, to_duration, to_percent, to_value

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


class Ending(NamedTuple):
    """How a run ended, in words, and the style of these words."""

    words: str
    style: str


ENDINGS: dict[StoppedBecause, Ending] = {
    "target_reached": Ending("target reached", "green"),
    "max_env_steps": Ending("step limit reached", "yellow"),
    "max_wall": Ending("time limit reached", "yellow"),
    "interrupted": Ending("interrupted", "yellow"),
    "failed": Ending("failed", "bold red"),
}
NO_EPISODE = "no episode has finished yet"


def clock_text(record: Metrics | Summary, engine: str) -> str:
    return on_clock(f"{to_duration(record['wall_s']):>7}", engine)


def progress_phrases(record: Metrics | Summary, config: RunConfig) -> list[str]:
    """Say how far a run has come and how fast it is."""
    steps, target = record["env_steps"], config.target_return
    aim = "" if target is None else f" of {target:g}"
    return [
        f"{to_count(steps)} steps ({to_percent(min(1.0, steps / config.max_env_steps))})",
        f"return {to_value(record['mean_return_100'], 4)}{aim}",
        f"{to_count(record['rates_per_s']['received'])} steps/s",
    ]


def short_env_name(env: str) -> str:
    """Return the name of an environment without its module."""
    return env.rpartition(":")[2]
