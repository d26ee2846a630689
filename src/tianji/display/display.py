"""What a person sees while a run goes on, all of it on standard error.

On a terminal a live panel, elsewhere a plain line now and then, with `off` errors alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tianji.checkpoint.durable import to_plain
from tianji.display.outlook import Outlook
from tianji.display.rounds import cost_in_words, waited_for
from tianji.display.stalled import waits_for, waits_for_version
from tianji.display.stream import standard_error
from tianji.wording import on_clock, to_count, to_duration, to_percent, to_value

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.display.live import LiveLines
    from tianji.display.panel import Panel

Level = Literal["info", "warning", "error"]
Mode = Literal["auto", "live", "plain", "off"]

REFRESH_S = 0.25
"""Shortest time between two drawings of the panel; each costs about 1.5 ms of one core."""
PLAIN_PERIOD_S = 5.0
QUIET_PERIOD_S = 10.0
"""After this long without news a plain line says what the run waits for."""


def what_can_be_shown(mode: Mode) -> Mode:
    """`auto` becomes `live` on a terminal, `plain` elsewhere."""
    if mode != "auto":
        return mode
    can_draw = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return "live" if can_draw else "plain"


class _Screen(Protocol):
    def start(self) -> None: ...
    def update(self, record: Mapping[str, Any]) -> None: ...
    def event(self, text: str, level: Level) -> None: ...
    def stop(self) -> None: ...


class Display:
    """One per run, in the process that supervises it.

    >>> display = Display(config, "auto")
    >>> display.start()
    >>> display.update(record)  # the same record as metrics.jsonl
    >>> display.event("actor-1 was killed by signal 9; started again", "warning")
    >>> display.stop()
    """

    def __init__(self, config: RunConfig, mode: Mode = "auto") -> None:
        screens: dict[str, type[_Live] | type[_Plain] | type[_Off]]
        screens = {"live": _Live, "plain": _Plain, "off": _Off}
        self._screen: _Screen = screens[what_can_be_shown(mode)](config)

    def start(self) -> None:
        self._screen.start()

    def update(self, record: Mapping[str, Any]) -> None:
        """Show a new record; drawing more often than a person can read is skipped."""
        self._screen.update(to_plain(record))

    def event(self, text: str, level: Level = "info") -> None:
        """Show what happened once; warnings and errors stay on the screen."""
        self._screen.event(text, level)

    def stop(self) -> None:
        """Draw the last state and give the terminal back."""
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

    def update(self, record: Mapping[str, Any]) -> None:
        assert self._panel is not None, "start() comes first"
        self._panel.update(record)
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
        assert self._screen is not None and self._panel is not None, "start() comes first"
        panel, self._drawn_at = self._panel, time.monotonic()
        self._screen.draw(lambda width: panel.lines(width, self._event))


class _Plain:
    """A line every few seconds: news, or after a while without any, what the run waits for."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._printed_at = float("-inf")
        self._quiet_since = time.monotonic()
        self._record: Mapping[str, Any] = {}
        self._printed: Mapping[str, Any] = {}
        self._outlook = Outlook(config)

    def start(self) -> None:
        config = self._config
        facts = (config.env_name, config.algorithm.name, f"{config.engine} engine")
        _print(f"{', '.join(facts)}, seed {config.seed}")

    def update(self, record: Mapping[str, Any]) -> None:
        self._outlook.update(record)
        self._record = record
        now = time.monotonic()
        if record.get("env_steps") and now - self._printed_at >= PLAIN_PERIOD_S:
            self._print_line()
        if now - self._quiet_since >= QUIET_PERIOD_S:
            self._quiet_since = now
            _print(f"{self._clock_text()}  {self._waiting_text()}")

    def event(self, text: str, level: Level) -> None:
        _print(text if level == "info" else f"{level}: {text}")

    def stop(self) -> None:
        self._print_line()
        if why := " ".join(self._record.get("why", ())):
            _print(why)

    def _print_line(self) -> None:
        record, printed = self._record, self._printed
        keys = ("env_steps", "episodes", "version", "restarts")
        if not record or all(record.get(key) == printed.get(key) for key in keys):
            return
        self._printed_at = self._quiet_since = time.monotonic()
        self._printed = record
        _print("  ".join(self._phrases(record)))

    def _clock_text(self) -> str:
        seconds = to_duration(self._record.get("wall_s") or 0.0)
        return on_clock(f"{seconds:>7}", self._config.engine)

    def _waiting_text(self) -> str:
        limit_s = self._config.supervise.heartbeat_timeout_s
        return waits_for(self._record, limit_s) or waits_for_version(self._record)

    def _phrases(self, record: Mapping[str, Any]) -> list[str]:
        config = self._config
        steps = record.get("env_steps") or 0
        target = f" of {config.target_return:g}" if config.target_return is not None else ""
        rates = record.get("rates_per_s", {})
        phrases = [
            self._clock_text(),
            f"{to_count(steps)} steps ({to_percent(min(1.0, steps / config.max_env_steps))})",
            f"return {to_value(record.get('mean_return_100'), 4)}{target}",
            f"{to_count(rates.get('trained'))} trained/s",
            *self._between_the_roles(record),
        ]
        counts = {"restarts": "restarts", "env_failures": "environment failures"}
        phrases += [f"{words} {record[key]}" for key, words in counts.items() if record.get(key)]
        left_s = self._outlook.left_s()
        return phrases if left_s is None else [*phrases, f"{to_duration(left_s)} left"]

    def _between_the_roles(self, record: Mapping[str, Any]) -> list[str]:
        gather, lag = record.get("gather"), record.get("lag_versions", {})
        if not gather:
            return [f"lag {to_value(lag.get('mean'))} (max {to_value(lag.get('max'))})"]
        told = [f"{to_value(gather.get('rounds_per_s'))} rounds/s", cost_in_words(record)]
        waited = waited_for(gather)
        return [*told, f"waits for {waited}"] if waited else told


class _Off:
    """Errors alone."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config

    def start(self) -> None: ...

    def update(self, record: Mapping[str, Any]) -> None: ...

    def event(self, text: str, level: Level) -> None:
        if level == "error":
            _print(f"error: {text}")

    def stop(self) -> None: ...


def _print(text: str) -> None:
    stream = standard_error()
    stream.write(f"{text}\n")
    stream.flush()
