"""The processes that measure, as their parent sees them, and the commands that they obey."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from multiprocessing.connection import Pipe, wait
from typing import NamedTuple, Self, TypeVar

from tianji.config.plan import RunPlan
from tianji.config.run import CheckpointConfig
from tianji.costs.profile import ActorCost
from tianji.engines.spec import RunSpec
from tianji.engines.supervise.process import StartMessage, WorkerProcess, encode_run
from tianji.engines.supervise.stacks import hangs_in_words
from tianji.errors import WorkerLost
from tianji.types import Unroll

LOOK_S = 0.1  # how often a bench checks whether its figure is stable


class Span(NamedTuple):
    """When to work (CLOCK_MONOTONIC, which all processes share); what begins in it counts.

    is_alone: a stable figure ends the work early; else all processes work to the end.
    """

    begin_ns: int
    end_ns: int
    is_alone: bool


class Build(NamedTuple):
    """Build an actor for this plan or, to train on an unroll, a buffer and a learner. The answer
    is Built."""

    plan: RunPlan
    unroll: Unroll | None = None


class RecordUnroll(NamedTuple):
    """Make a real unroll for the learner's bench, which is the answer."""


class Measure(NamedTuple):
    """Work for a span. The answer is Sampled or LearnerCost."""

    span: Span
    threads: int = 1


class Built(NamedTuple):
    """An actor or a learner is ready. grown_bytes: memory that building it has added."""

    build_s: float
    memory_bytes: int
    grown_bytes: int = 0
    policy_bytes: int = 0


class Sampled(NamedTuple):
    """The cost of an actor that was measured alone, and facts about its environment.

    step_s: one step of one environment.
    reset_factor: a step with a reset in it, divided by one without.
    send_s: the actor's work to hand over one unroll.
    disturbed_share: the share of the time in which other programs had its core.
    """

    cost: ActorCost
    step_s: float
    reset_factor: float
    send_s: float
    disturbed_share: float


Answer = TypeVar("Answer")
_MODULE = "tianji.planning.measure.measuring_process"
_LEAD_S = 0.01  # a span begins this long after it is announced, so that all processes know


class Member:
    """One process; it executes one command at a time."""

    def __init__(self, name: str, spec: RunSpec, threads: int) -> None:
        self._who = f"{name}, a process that measures this run,"
        self._timeout_s = spec.config.supervise.heartbeat_timeout_s
        self._pipe, other_end = Pipe()
        fds = {"commands": other_end.fileno()}
        message = StartMessage(worker=name, run=encode_run(spec), threads=threads, fds=fds)
        self._process = WorkerProcess.start(message, _MODULE)
        other_end.close()

    def tell(self, command: Build | Measure | RecordUnroll) -> None:
        """Send a command; `hear` returns the answer."""
        with contextlib.suppress(OSError):  # `hear` says why the process is gone
            self._pipe.send(command)

    def hear(self, kind: type[Answer]) -> Answer:
        """Wait for the answer; raise WorkerLost if none will come."""
        if not wait([self._pipe, self._process.pid_fd], self._timeout_s):
            where = hangs_in_words(self._process.ask_for_stack())
            raise WorkerLost(
                f"{self._who} did not answer for {self._timeout_s:.0f} s. {where} If its "
                "environment needs more time for a step, raise supervise.heartbeat_timeout_s."
            )
        with contextlib.suppress(EOFError, OSError):
            if self._pipe.poll():
                answer = self._pipe.recv()
                assert isinstance(answer, kind), f"{self._who} gave another answer"
                return answer
        self._process.wait()
        for report in self._process.read_reports():
            if report["kind"] == "error":
                raise WorkerLost(f"{report['text']}\n{self._who} failed:\n{report['traceback']}")
        raise WorkerLost(f"{self._who} {self._process.how_it_ended()}.")

    def ask(self, command: Build | Measure | RecordUnroll, kind: type[Answer]) -> Answer:
        self.tell(command)
        return self.hear(kind)

    def close(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.close()


class Crew:
    """All processes that measure one run; leaving the block ends them."""

    def __init__(self, spec: RunSpec) -> None:
        quiet = {"checkpoint": CheckpointConfig(replay=False)}
        self.spec = replace(spec, config=spec.config.model_copy(update=quiet))
        self._members: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def start(self, name: str, threads: int) -> Member:
        """Start a process; starting takes a while, and the first command waits for it."""
        member = Member(name, self.spec, threads)
        self._members.append(member)
        return member

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.close()


def span_of(seconds: float, warm_s: float, is_alone: bool) -> Span:
    """Return a span that begins in a moment."""
    begin_ns = time.monotonic_ns() + int((_LEAD_S + warm_s) * 1e9)
    return Span(begin_ns=begin_ns, end_ns=begin_ns + int(seconds * 1e9), is_alone=is_alone)
