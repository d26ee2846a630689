"""The entry point of every process that measures: it obeys commands and answers each with a record.

    python -m tianji.planning.measure.measuring_process FD NAME

It is started like a worker of a run, with its thread budget in the environment. Commands
and answers are records on a pipe.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from tianji.channels.reports import ReportPipe
from tianji.costs.profile import LearnerCost
from tianji.engines.spec import RunSpec
from tianji.engines.worker import give_way, main, read_run
from tianji.planning.measure.crew import Build, Built, Measure, RecordUnroll, Sampled
from tianji.planning.measure.durations import ProcessFamily
from tianji.types import Unroll


def work(head: dict[str, Any], run: bytes, reports: ReportPipe) -> None:
    gc.disable()  # as in a worker
    from tianji.engines.arithmetic import flush_tiny_numbers, use_threads

    flush_tiny_numbers()
    use_threads(head["threads"])
    spec, _ = read_run(run)
    gc.freeze()
    gc.enable()
    with Connection(head["fds"]["commands"]) as parent:
        for answer in _answers(spec, _commands(parent)):
            parent.send(answer)


def _commands(parent: Connection) -> Iterator[Build | Measure | RecordUnroll]:
    with contextlib.suppress(EOFError):  # the parent has what it wants
        while True:
            yield parent.recv()


def _answers(
    spec: RunSpec, commands: Iterator[Build | Measure | RecordUnroll]
) -> Iterator[Built | Sampled | LearnerCost | Unroll]:
    from tianji.planning.measure.actor_bench import ActorBench
    from tianji.planning.measure.learner_bench import LearnerBench

    bench: ActorBench | LearnerBench | None = None
    for command in commands:
        if isinstance(command, Build):
            if bench is not None:
                bench.close()
                bench = None
            before_bytes, began_s = ProcessFamily().memory_bytes(), time.monotonic()
            planned = replace(spec, plan=command.plan)
            if command.unroll is None:
                give_way()
                bench = ActorBench(planned)
            else:
                bench = LearnerBench(planned, command.unroll)
            yield Built(
                build_s=time.monotonic() - began_s,
                memory_bytes=bench.memory_bytes(),
                grown_bytes=bench.memory_bytes() - before_bytes,
                policy_bytes=bench.policy_bytes,
            )
        elif isinstance(command, Measure):
            assert bench is not None, "nothing is built"
            yield bench.work(command.span, command.threads)
        else:
            assert isinstance(bench, ActorBench), "no actor is built"
            yield bench.record()


if __name__ == "__main__":
    main(work)
