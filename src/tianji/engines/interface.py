"""Engine: runs a program to its end. ENGINES has them by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NotRequired, Protocol, TypedDict

from tianji.channels.gauges import Gauges
from tianji.engines.signals import StopRequest
from tianji.records import LinkFigures, SessionMetrics, StoppedBecause
from tianji.reports import Report
from tianji.types import Clock


class Observer(Protocol):
    """Looks at a run: logs, display. Lives in the engine's process."""

    def report(self, report: Report) -> None: ...

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Start to watch these gauges.

        pids: the processes of the workers. now_ns: the clock of the gauges' times. settle: called
        before they are read, where times are written only when something ends."""
        ...

    def tick(self) -> None:
        """Called often; refreshes what is due."""
        ...


class Outcome(TypedDict):
    """The end of a run: the learner's last record, and facts that only the engine knows."""

    because: StoppedBecause | Literal["replan"]
    """`replan`: the run continues with another plan."""
    record: SessionMetrics | None
    """None where the learner could not report."""
    restarts: int
    first_cause: str | None
    links: NotRequired[dict[int, LinkFigures]]
    """What has crossed to agents that run actors of a learner elsewhere, by their numbers."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What the engine of one group has of the others."""

    boards: Mapping[str, int]
    """File descriptors of the boards between groups, by wire."""
    other_steps: Callable[[], int]
    """Returns the environment steps of the run that this group does not count."""


class Engine(Protocol):
    """Built with a spec, a program and an observer; runs once."""

    def run(self, stop: StopRequest, resume: bool) -> Outcome: ...


def _engine(module: str, name: str) -> Callable[..., Engine]:
    """Return what builds an engine and imports it only then, to keep the start short."""

    def build(*parts: Any, **more: Any) -> Engine:
        engine: Engine = getattr(import_module(f"tianji.engines.{module}"), name)(*parts, **more)
        return engine

    return build


ENGINES = {
    "inline": _engine("inline", "InlineEngine"),
    "local": _engine("local", "LocalEngine"),
    "ray": _engine("agents.remote", "RemoteEngine"),
    "mpi": _engine("agents.remote", "RemoteEngine"),
    "virtual": _engine("virtual", "VirtualEngine"),
}
"""Called with the spec, the program and the observer; `local` also takes a replan, `virtual` a
profile, `ray` and `mpi` what starts an agent."""
GROUP_ENGINES = {
    "inline": _engine("groups.inline", "InlineGroups"),
    "local": _engine("groups.local", "LocalGroups"),
    "ray": _engine("groups.local", "LocalGroups"),
    "mpi": _engine("groups.local", "LocalGroups"),
}
"""Engines for several groups, called with the spec, the plan of each group, the set of checkpoints
that the run continues from (None for a new run), and the observer; `ray` and `mpi` also with what
starts an agent."""
