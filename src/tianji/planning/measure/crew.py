"""The processes of a profile, as the one that measures sees them."""

from __future__ import annotations

import contextlib
import os
import select
import time
from dataclasses import replace
from typing import Any, Self, TypeVar

from tianji.config.run import CheckpointConfig
from tianji.config.schema import Strict
from tianji.engines.spec import RunSpec
from tianji.engines.supervise.process import StartMessage, WorkerProcess, encode_run
from tianji.errors import WorkerLost
from tianji.planning.measure.readings import Command, Span

Answer = TypeVar("Answer", bound=Strict)
_MODULE = "tianji.planning.measure.measuring_process"
_LEAD_S = 0.01
"""A span begins so long after it is announced, so that all have heard of it."""


class Member:
    """One process: asked one thing at a time."""

    def __init__(self, name: str, spec: RunSpec, threads: int, unroll_fd: int) -> None:
        self.name = name
        self._timeout_s = spec.config.supervise.heartbeat_timeout_s
        read_fd, self._commands_fd = os.pipe()
        message = StartMessage(
            worker=name,
            run=encode_run(spec),
            threads=threads,
            fds={"commands": read_fd, "unroll": unroll_fd},
        )
        self._process = WorkerProcess.start(message, _MODULE)
        os.close(read_fd)

    def tell(self, command: Command) -> None:
        """Begin; the answer is fetched with `hear`."""
        with contextlib.suppress(BrokenPipeError):  # `hear` says why it is gone
            os.write(self._commands_fd, command.model_dump_json().encode() + b"\n")

    def hear(self, kind: type[Answer], extra_s: float = 0.0) -> Answer:
        """Wait for the answer. WorkerLost when there will be none."""
        deadline = time.monotonic() + self._timeout_s + extra_s
        while True:
            record = self._read()
            if record is not None:
                return kind.model_validate(record)
            self._wait(deadline)

    def ask(self, command: Command, kind: type[Answer]) -> Answer:
        self.tell(command)
        return self.hear(kind)

    def _read(self) -> dict[str, Any] | None:
        has_ended = self._process.has_ended()  # before the pipe is read: its last words come first
        for report in self._process.read_reports():
            if report["kind"] == "error":
                raise WorkerLost(
                    f"{report['text']}\nThis ended {self.name}, a process that measures this run:\n"
                    f"{report['traceback']}"
                )
            if report["kind"] == "answer":
                return report["record"]
        if has_ended:
            raise WorkerLost(
                f"{self.name}, a process that measures this run, {self._process.how_it_ended()}."
            )
        return None

    def _wait(self, deadline: float) -> None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            self._process.dump_stack()
            raise WorkerLost(
                f"{self.name}, a process that measures this run, did not answer for "
                f"{self._timeout_s:.0f} s. If its environment needs so long for a step, raise "
                "supervise.heartbeat_timeout_s."
            )
        fds = [self._process.report_fd, self._process.pid_fd]
        select.select(fds, [], [], left_s)

    def close(self) -> None:
        os.close(self._commands_fd)
        self._process.kill()
        self._process.close()


class Crew:
    """Samplers and the trainer; all start at once, and each waits until it is asked.

    However the block is left, nothing stays behind.
    """

    def __init__(self, spec: RunSpec) -> None:
        quiet = {"checkpoint": CheckpointConfig(replay=False)}
        self.spec = replace(spec, config=spec.config.model_copy(update=quiet))
        self._unroll_fd = os.memfd_create("tianji-unroll")
        self._members: list[Member] = []

    def __enter__(self) -> Self:
        return self

    def start(self, name: str, threads: int) -> Member:
        member = Member(name, self.spec, threads, self._unroll_fd)
        self._members.append(member)
        return member

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.close()
        os.close(self._unroll_fd)


def span_of(seconds: float, warm_s: float, is_alone: bool) -> Span:
    """A span that begins in a moment."""
    begin_ns = time.monotonic_ns() + int((_LEAD_S + warm_s) * 1e9)
    end_ns = begin_ns + int(seconds * 1e9)
    return Span(begin_ns=begin_ns, end_ns=end_ns, is_alone=is_alone)
