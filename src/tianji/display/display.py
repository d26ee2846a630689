"""What a person sees during a run, on standard error.

On a terminal a live panel, elsewhere a line every few seconds, with `off` only errors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tianji.display.phrases import Outlook, clock_text, next_version, progress_phrases, silent_roles
from tianji.display.stream import Mode, say, what_can_be_shown
from tianji.explain.explain import explain
from tianji.explain.rounds import cost_in_words, late_actors
from tianji.records import NO_METRICS, Level, Metrics
from tianji.wording import to_duration, to_value

if TYPE_CHECKING:
    from tianji.config.plan import RunPlan
    from tianji.config.run import RunConfig
    from tianji.display.live import LiveLines
    from tianji.display.panel import Panel

REFRESH_S = 0.25
"""Shortest time between two drawings of the panel; each costs about 1.5 ms of one core."""
PLAIN_PERIOD_S = 5.0
QUIET_PERIOD_S = 10.0
"""After this long without news a plain line says what the run waits for."""
WHY_PERIOD_S = 2.0
"""An explanation stays on the screen for this long, so that people can read it."""


class Display:
    """One per run, in the process that supervises it.

    >>> display = Display(config, plan, "auto")
    >>> display.start()
    >>> display.update(record)  # the same record as metrics.jsonl
    >>> display.event("actor-1 was killed by signal 9; started again", "warning")
    >>> display.stop()
    """

    def __init__(self, config: RunConfig, plan: RunPlan, mode: Mode = "auto") -> None:
        screens: dict[str, type[_Live | _Plain | _Off]]
        screens = {"live": _Live, "plain": _Plain, "off": _Off}
        self._screen = screens[what_can_be_shown(mode)](config)
        self._engine = config.engine
        self.plan = plan
        """Explanations refer to it; a run may get another one on the way."""
        self._record: Metrics | None = None
        self._why: tuple[str, ...] = ()
        self._explained_at = float("-inf")

    def start(self) -> None:
        self._screen.start()

    def update(self, record: Metrics) -> None:
        """Show a new record; drawing more often than a person can read is skipped."""
        self._record = record
        if time.monotonic() - self._explained_at >= WHY_PERIOD_S:
            self._explain(record)
        self._screen.update(record, self._why)

    def _explain(self, record: Metrics) -> None:
        found = explain(record, self.plan, self._engine)
        if found.critical_path is not None:
            self._explained_at = time.monotonic()
            self._why = tuple(filter(None, (found.sentences[0], found.gain)))

    def event(self, text: str, level: Level = "info") -> None:
        """Show what happened once; warnings and errors stay on the screen."""
        self._screen.event(text, level)

    def stop(self, whole: Metrics | None = None) -> None:
        """Draw the last state and give the terminal back. whole: a record of the whole run, which
        is explained at its end; None: the last one is."""
        if self._record is not None:
            self._why = ()
            self._explain(whole or self._record)
            self._screen.update(self._record, self._why)
        self._screen.stop()


class _Live:
    """The panel, drawn over itself."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._screen: LiveLines | None = None
        self._panel: Panel | None = None
        self._event: list[tuple[str, str]] = []
        self._drawn_at = float("-inf")

    def start(self) -> None:
        from tianji.display.live import LiveLines
        from tianji.display.panel import Panel

        self._screen = LiveLines()
        self._panel = Panel(self._config, self._screen.marks)
        self._screen.start()
        self._draw()

    def update(self, record: Metrics, why: Sequence[str]) -> None:
        assert self._panel is not None, "start() comes first"
        self._panel.update(record, why)
        if time.monotonic() - self._drawn_at >= REFRESH_S:
            self._draw()

    def event(self, text: str, level: Level) -> None:
        style = {"info": "", "warning": "yellow", "error": "bold red"}[level]
        self._event = [(f"{time.strftime('%H:%M:%S')} ", "dim"), (text, style)]
        if self._screen is None:
            return
        if level != "info":
            self._screen.print(text, style)
        else:
            self._draw()

    def stop(self) -> None:
        if self._screen is not None:
            self._draw()
            self._screen.stop()
            self._screen = None

    def _draw(self) -> None:
        if self._screen is None or self._panel is None:
            return
        panel, self._drawn_at = self._panel, time.monotonic()
        self._screen.draw(lambda width: panel.lines(width, self._event))


class _Plain:
    """A line every few seconds: news, or after a while without any, what the run waits for."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._printed_at = float("-inf")
        self._quiet_since = time.monotonic()
        self._record = self._printed = NO_METRICS
        self._why: Sequence[str] = ()
        self._outlook = Outlook(config)

    def start(self) -> None:
        config = self._config
        facts = (config.env_name, config.algorithm.name, f"{config.engine} engine")
        say(f"{', '.join(facts)}, seed {config.seed}")

    def update(self, record: Metrics, why: Sequence[str]) -> None:
        self._outlook.update(record)
        self._record, self._why = record, why
        now = time.monotonic()
        if record["env_steps"] and now - self._printed_at >= PLAIN_PERIOD_S:
            self._print_line()
        if now - self._quiet_since >= QUIET_PERIOD_S:
            self._quiet_since = now
            limit_s = self._config.supervise.heartbeat_timeout_s
            awaited = silent_roles(record, limit_s) or next_version(record)
            say(f"{clock_text(record, self._config.engine)}  waiting for {awaited}")

    def event(self, text: str, level: Level) -> None:
        say(text if level == "info" else f"{level}: {text}")

    def stop(self) -> None:
        self._print_line()
        if self._why:
            say(" ".join(self._why))

    def _print_line(self) -> None:
        if _news(self._record) == _news(self._printed):
            return
        self._printed_at = self._quiet_since = time.monotonic()
        self._printed = self._record
        say("  ".join(self._phrases(self._record)))

    def _phrases(self, record: Metrics) -> list[str]:
        phrases = [
            clock_text(record, self._config.engine),
            *progress_phrases(record, self._config),
            *_between_the_roles(record),
        ]
        if record["restarts"]:
            phrases.append(f"restarts {record['restarts']}")
        if record["env_failures"]:
            phrases.append(f"environment failures {record['env_failures']}")
        if (left_s := self._outlook.left_s()) is not None:
            phrases.append(f"{to_duration(left_s)} left")
        return phrases


def _news(record: Metrics) -> tuple[int, ...]:
    """Return what a new plain line needs a change of."""
    return record["env_steps"], record["episodes"], record["version"], record["restarts"]


def _between_the_roles(record: Metrics) -> list[str]:
    gather, lag = record.get("gather"), record["lag_versions"]
    if gather is None:
        return [f"lag {to_value(lag['mean'])} (max {to_value(lag['max'])})"]
    told = [f"{to_value(gather['rounds_per_s'])} rounds/s", cost_in_words(gather, lag)]
    late = late_actors(gather)
    return [*told, f"waiting for {late}"] if late else told


class _Off:
    """Only errors."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config

    def start(self) -> None: ...

    def update(self, record: Metrics, why: Sequence[str]) -> None: ...

    def event(self, text: str, level: Level) -> None:
        if level == "error":
            say(f"error: {text}")

    def stop(self) -> None: ...
