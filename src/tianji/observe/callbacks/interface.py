"""Callback: code of your own that a run calls while it trains, in the process that supervises it.

    class StopEarly(tianji.Callback):
        def on_version(self, run, record):
            if (record["mean_return_100"] or 0) > 200:
                run.stop("good enough")

    tianji.train("cartpole-ppo", callbacks=[StopEarly()])

Roles never call callbacks, so a slow one delays the display and not the actors or the learner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # `import tianji` has this module, and must be quick
    from collections.abc import Callable
    from pathlib import Path

    from tianji.config.run import RunConfig
    from tianji.records import Metrics, Summary
    from tianji.reports import CheckpointRecord
    from tianji.types import Episode


class RunHandle:
    """The run that a callback is called for."""

    def __init__(self, config: RunConfig, run_dir: Path) -> None:
        self.config = config
        """All settings of the run."""
        self.run_dir = run_dir
        self.stop_reason: str | None = None
        """Why a callback has stopped the run; None if none has."""
        self.ask_to_stop: Callable[[], None] = lambda: None
        """Set by the run once it can be stopped."""

    def stop(self, reason: str) -> None:
        """End the run as one Ctrl-C does: it finishes the version in work and saves. The first
        reason is written to the summary."""
        if self.stop_reason is None:
            self.stop_reason = reason
            self.ask_to_stop()


class RunCallback(Protocol):
    """What a run calls. Exceptions are reported, and the run goes on."""

    def on_version(self, run: RunHandle, record: Metrics) -> None:
        """Take the newest record of metrics. It is called once every observe.period_s and at the
        end of training, not for each version: there may be hundreds of versions a second."""
        ...

    def on_episode(self, run: RunHandle, episode: Episode) -> None:
        """Take a finished episode. Every one is passed on, in groups, some times a second."""
        ...

    def on_checkpoint(self, run: RunHandle, record: CheckpointRecord) -> None:
        """Take a checkpoint that is on disk. Each learner of a run writes its own."""
        ...

    def on_end(self, run: RunHandle, summary: Summary) -> None:
        """Take the summary, once it is on disk; that of interrupted and failed runs too."""
        ...


class Callback:
    """A callback that does nothing: override the methods that you need (see RunCallback)."""

    def on_version(self, run: RunHandle, record: Metrics) -> None: ...
    def on_episode(self, run: RunHandle, episode: Episode) -> None: ...
    def on_checkpoint(self, run: RunHandle, record: CheckpointRecord) -> None: ...
    def on_end(self, run: RunHandle, summary: Summary) -> None: ...


METHODS = ("on_version", "on_episode", "on_checkpoint", "on_end")
