"""The entry point of every process that measures: it obeys commands and answers each with a record.

    python -m tianji.planning.measure.measuring_process FD NAME

It is started like a worker of a run, with its thread budget in the environment. A command is a line
on a pipe.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tianji.channels.reports import ReportPipe
from tianji.config.schema import Strict
from tianji.engines.spec import RunSpec
from tianji.engines.worker import give_way, main, read_run
from tianji.planning.measure.crew import Build, Built, Command, Measure, Nothing
from tianji.planning.measure.durations import ProcessFamily
from tianji.records import AnswerReport


def work(head: dict[str, Any], run: bytes, reports: ReportPipe) -> None:
    from tianji.engines.arithmetic import flush_tiny_numbers, use_threads

    flush_tiny_numbers()
    use_threads(head["threads"])
    spec, _ = read_run(run)
    gc.freeze()
    # An inherited descriptor can be opened by this name like any other file.
    unroll = Path(f"/proc/self/fd/{head['fds']['unroll']}")
    with os.fdopen(head["fds"]["commands"]) as commands:
        for answer in _answers(spec, commands, unroll):
            reports(AnswerReport(kind="answer", record=answer.model_dump()))
            reports.flush()


def _answers(spec: RunSpec, commands: Iterator[str], unroll: Path) -> Iterator[Strict]:
    from tianji.planning.measure.actor_bench import ActorBench
    from tianji.planning.measure.learner_bench import LearnerBench

    bench: ActorBench | LearnerBench | None = None
    for line in commands:
        command = Command.model_validate_json(line).command
        if isinstance(command, Build):
            if bench is not None:
                bench.close()
                bench = None
            before_bytes, began_s = ProcessFamily().memory_bytes(), time.monotonic()
            planned = replace(spec, plan=command.plan)
            if command.what == "actor":
                give_way()
                bench = ActorBench(planned)
            else:
                bench = LearnerBench(planned, unroll)
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
            bench.record(unroll)
            yield Nothing()
    if bench is not None:
        bench.close()


if __name__ == "__main__":
    main(work)
