"""The process tree of the transports that work between forked processes.

The transport's `Ends` are made first, then N senders and one receiver are forked; sockets, nodes
and threads are made after the fork, in the process that uses them.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from benchmarks.transports.experiment import (
    HEAD_START_S,
    Keeper,
    Receiver,
    ReceiverMarks,
    Sender,
    SenderMarks,
    cpu_s,
    figures,
    send_all,
    wait_until,
)
from benchmarks.transports.points import Point

FORK = multiprocessing.get_context("fork")


class Ends(Protocol):
    """What both sides of a transport need to know of each other."""

    def sender(self, actor: int) -> Sender: ...

    def receiver(self) -> Receiver: ...


class Gate:
    """All wait here until all are there; then the clock starts at one instant for all."""

    def __init__(self, parties: int) -> None:
        self._start_at = FORK.RawValue("d", 0.0)
        self._ready = FORK.Barrier(parties, self._choose_start)
        self._done = FORK.Barrier(parties)

    def _choose_start(self) -> None:
        self._start_at.value = time.monotonic() + HEAD_START_S

    def wait_for_start(self) -> float:
        self._ready.wait()
        wait_until(self._start_at.value)
        return float(self._start_at.value)

    def wait_for_all_received(self) -> None:
        self._done.wait()


def run_forked(name: str, point: Point, ends: Ends) -> dict[str, Any]:
    gate = Gate(point.actors + 1)
    workers: list[tuple[BaseProcess, Connection]] = [
        _start(_run_receiver, point, ends, gate),
        *(_start(_run_sender, point, ends, gate, actor) for actor in range(point.actors)),
    ]
    try:
        receiver, *senders = _answers(workers)
    finally:
        for process, _ in workers:
            process.kill()
            process.join()
    return figures(name, point, senders, receiver)


def _start(work: Callable[..., Any], *arguments: Any) -> tuple[BaseProcess, Connection]:
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_report, args=(theirs, work, *arguments), daemon=True)
    process.start()
    return process, ours


def _report(answer: Connection, work: Callable[..., Any], *arguments: Any) -> None:
    try:
        answer.send(work(*arguments))
    except Exception:  # noqa: BLE001 - it goes to the parent, which raises it
        answer.send(traceback.format_exc())
    # The parent ends this process: a transport's last threads may be in no hurry.
    time.sleep(3600)


def _answers(workers: list[tuple[BaseProcess, Connection]]) -> list[Any]:
    """What every worker reported, in order; whoever fails first ends it."""
    answers: dict[int, Any] = {}
    while len(answers) < len(workers):
        pending = [index for index in range(len(workers)) if index not in answers]
        wait([end for index in pending for end in (workers[index][1], workers[index][0].sentinel)])
        for index in pending:
            process, answer = workers[index]
            if answer.poll():
                answers[index] = answer.recv()
                if isinstance(answers[index], str):
                    raise RuntimeError(answers[index])
            elif process.exitcode is not None:
                raise RuntimeError(f"{process.name} ended with {process.exitcode}")
    return [answers[index] for index in range(len(workers))]


def _run_sender(point: Point, ends: Ends, gate: Gate, actor: int) -> SenderMarks:
    sender = ends.sender(actor)
    send_all(point.warm_up, actor, sender)
    gate.wait_for_start()
    used_before = cpu_s()
    sample_s = send_all(point, actor, sender)
    gate.wait_for_all_received()  # threads behind the sender work until then
    marks = SenderMarks(cpu_s() - used_before, sample_s)
    sender.close()
    return marks


def _run_receiver(point: Point, ends: Ends, gate: Gate) -> ReceiverMarks:
    receiver = ends.receiver()
    keeper = Keeper(point, receiver.max_kept)
    if point.is_copying:
        keeper.make_region()
    receive, keep = receiver.receive, keeper.keep
    for _ in range(point.warm_up.messages):
        keep(receive())
    keeper.start_over()
    started = gate.wait_for_start()
    used_before = cpu_s()
    for _ in range(point.messages):
        keep(receive())
    collection_s = time.monotonic() - started
    marks = ReceiverMarks(cpu_s() - used_before, collection_s, keeper.received)
    gate.wait_for_all_received()
    keeper.finish()
    receiver.close()
    return marks
