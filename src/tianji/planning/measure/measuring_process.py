"""The one entry point of every process of a profile: does what it is told, answers, waits.

    python -m tianji.planning.measure.measuring_process FD NAME

Started like the workers of a run, with its thread budget in the environment. A sampler builds an
actor, a trainer the learner's side; each command is a line on a pipe, and ends with one record.
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
from tianji.config.plan import RunPlan
from tianji.engines.spec import RunSpec
from tianji.engines.worker import give_way, main, read_run
from tianji.planning.measure.family import Family
from tianji.planning.measure.readings import SAMPLER, Built, Command
from tianji.records import AnswerReport


def work(head: dict[str, Any], run: bytes, reports: ReportPipe) -> None:
    from tianji.engines.arithmetic import flush_tiny_numbers, use_threads

    flush_tiny_numbers()
    use_threads(head["threads"])
    spec, _ = read_run(run)
    is_sampler = head["worker"].startswith(SAMPLER)
    if is_sampler:
        give_way()
    gc.freeze()
    commands = _commands(head["fds"]["commands"])
    # By this name an inherited descriptor is opened like any other file.
    unroll = Path(f"/proc/self/fd/{head['fds']['unroll']}")
    answers = (_sample if is_sampler else _train)(spec, commands, unroll)
    for answer in answers:
        reports(AnswerReport(kind="answer", record=answer))
        reports.flush()  # whoever asked waits for all of it


def _commands(fd: int) -> Iterator[Command]:
    with os.fdopen(fd) as lines:
        for line in lines:
            yield Command.model_validate_json(line)


def _with_plan(spec: RunSpec, command: Command) -> RunSpec:
    return replace(spec, plan=RunPlan.model_validate(command.plan))


def _sample(spec: RunSpec, commands: Iterator[Command], unroll: Path) -> Iterator[dict[str, Any]]:
    from tianji.planning.measure.sampler import Sampler

    sampler: Sampler | None = None
    for command in commands:
        if command.do == "build":
            if sampler is not None:
                sampler.close()
                sampler = None
            before_bytes, began_s = Family().memory_bytes(), time.monotonic()
            sampler = Sampler(_with_plan(spec, command))
            after_bytes = sampler.memory_bytes()
            yield Built(
                build_s=time.monotonic() - began_s,
                memory_bytes=after_bytes,
                grown_bytes=after_bytes - before_bytes,
            ).model_dump()
            continue
        assert sampler is not None, "nothing is built"
        if command.do == "record":
            sampler.record(unroll)
            yield {}
        else:
            assert command.span is not None, "work needs a span"
            yield sampler.work(command.span).model_dump()
    if sampler is not None:
        sampler.close()


def _train(spec: RunSpec, commands: Iterator[Command], unroll: Path) -> Iterator[dict[str, Any]]:
    from tianji.planning.measure.trainer import Trainer

    trainer: Trainer | None = None
    for command in commands:
        if command.do == "build":
            began_s = time.monotonic()
            trainer = Trainer(_with_plan(spec, command), unroll)
            answer = Built(
                build_s=time.monotonic() - began_s,
                memory_bytes=trainer.memory_bytes(),
                policy_bytes=trainer.policy_bytes,
            )
            yield answer.model_dump()
            continue
        assert trainer is not None, "nothing is built"
        assert command.span is not None, "work needs a span"
        yield trainer.work(command.span, command.threads).model_dump()


if __name__ == "__main__":
    main(work)
