"""What an engine is: something that runs a program to its end.

Whatever happens inside is told as reports: lines of plain data, the same whether the teller lives
in this process or in another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypedDict

from tianji.channels.gauges import Gauges
from tianji.engines.signals import StopRequest
from tianji.types import Clock


class Report(TypedDict, total=False):
    """One line from a role. `kind` is one of
    built               the learner has built the network (record: bytes of its boards)
    metrics             a record for the log and the display
    evaluation          the result of an evaluation (record)
    note                something a person should know (text)
    checkpoint_written  (text), checkpoint_failed (text)
    error               an exception: text is its last line, traceback the rest
    restart             a role was started again (text)
    restored            the learner continues from a checkpoint (text, record: the version and
                        env_steps that it was saved at)
    env_failure         an environment failed and was replaced (text; traceback of the first)
    imbalance           the run is slower than it should be, or no longer (text, record: is_over)
    done                the learner's side is finished (because, record)
    """

    kind: str
    role: str
    text: str
    traceback: str
    because: str
    record: dict[str, Any]


Reports = Callable[[Report], None]
"""Where reports go. Never waits."""


class Observer(Protocol):
    """Whoever looks at a run: logs, display. Lives in the engine's process."""

    def report(self, report: Report) -> None: ...

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        """Gauges to read rates and shares from, the processes behind the workers, and the clock
        that the gauges' times are of. settle: to be called before they are read, where their times
        are written only when something ends."""
        ...

    def tick(self) -> None:
        """Called often; refreshes what is due."""
        ...


class Outcome(TypedDict):
    """How a run ended: the learner's last record, and what only the engine knows."""

    because: str
    record: dict[str, Any]
    restarts: int
    first_cause: str | None


class Engine(Protocol):
    """Built with a spec, a program and an observer; runs once."""

    def run(self, stop: StopRequest, resume: bool) -> Outcome: ...
