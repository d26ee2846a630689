"""Phrases about the state of a run, the same on every screen: plain lines, closing words, seeds.

How far it is and how long it will take, how it ended, and what it waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tianji.records import Metrics, StoppedBecause, Summary
from tianji.wording import listed, on_clock, to_count, to_duration, to_percent, to_return

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
        f"return {to_return(record['mean_return_100'])}{aim}",
        f"{to_count(record['rates_per_s']['received'])} steps/s",
    ]


def short_env_name(env: str) -> str:
    """Return the name of an environment without its module."""
    return env.rpartition(":")[2]


class Outlook:
    """Takes every record of a run, or its first return and its newest record."""

    def __init__(self, config: RunConfig, first_return: float | None = None) -> None:
        self._config = config
        self._newest: Metrics | None = None
        self._is_going_on = False
        """Two records have come: a single one may be the last of a run that is over."""
        self._first_return = first_return
        self._return: float | None = None
        self.best_return: float | None = None

    def update(self, record: Metrics) -> None:
        self._is_going_on = self._newest is not None
        self._newest = record
        self._return = record["mean_return_100"]
        if self._return is None:
            return
        if self._first_return is None:
            self._first_return = self._return
        known = (self.best_return, record["best_mean_return_100"], self._return)
        self.best_return = max(value for value in known if value is not None)

    def left_s(self) -> float | None:
        """Return the seconds to the nearest limit, at the rate of the newest record; None with one
        record."""
        record, config = self._newest, self._config
        if record is None or not self._is_going_on:
            return None
        limits = [] if config.max_wall_s is None else [config.max_wall_s - record["wall_s"]]
        if rate := record["rates_per_s"]["received"]:
            limits.append((config.max_env_steps - record["env_steps"]) / rate)
        return max(0.0, min(limits)) if limits else None

    def return_share(self) -> float | None:
        """Return the share of the way from the first return to the target that is done."""
        now, first, target = self._return, self._first_return, self._config.target_return
        if now is None or first is None or target is None:
            return None
        return 1.0 if now >= target else max(0.0, (now - first) / (target - first))


SILENT_S = 5.0
"""A role that shows no sign of life for this long is named."""
_MOST_NAMED = 3
_WHAT = {
    "starting": "it has been starting",
    "acting": "its environment has not answered",
    "updating": "it has been in one update",
    "saving": "it has been saving",
}
"""What a silent role is doing, by its activity; the time follows."""


def silent_roles(record: Metrics, limit_s: float) -> str:
    """Name the roles that have been silent for a while, and what they are doing; else nothing.

    limit_s: the silence after which a role is restarted (supervise.heartbeat_timeout_s).
    """
    activities = record["activity"]
    silent = {role: s for role, s in record.get("silent_s", {}).items() if s >= SILENT_S}
    if not silent:
        return ""
    first = max(silent, key=lambda role: silent[role])
    activity = activities.get(first, "")
    alike = [role for role in silent if activities.get(role, "") == activity]
    what = _WHAT.get(activity, f"no sign of life while {activity}")
    told = f"{listed(alike, _MOST_NAMED)}: {what} for {silent[first]:.0f} s"
    if activity != "acting":
        return told
    return f"{told}; restart after {limit_s:g} s (supervise.heartbeat_timeout_s)"


def next_version(record: Metrics) -> str:
    """Name the version that all roles work on, and what each is doing."""
    doing = [f"{role} {activity}" for role, activity in record["activity"].items()]
    which = f"version {record['version'] + 1}"
    return f"{which}: {listed(doing, _MOST_NAMED)}" if doing else which
