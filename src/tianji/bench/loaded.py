"""What a message takes when the machine is full."""

from __future__ import annotations

import multiprocessing
import statistics
from multiprocessing.connection import Connection
from typing import Any

from tianji.bench.experiment import cpu_figures, run
from tianji.bench.point import Point
from tianji.bench.wiring import Wiring

PATIENCE_S = 60.0
"""For the other runs to get ready; one that failed breaks all of them off."""


def measure_loaded(point: Point, num_runs: int) -> dict[str, float]:
    """The processor time of a message at either side, as `measure` reports it, while the same point
    runs several times at once: cores, caches and memory are shared as they are by many actors."""
    fork: Any = multiprocessing.get_context("fork")
    barrier = fork.Barrier(num_runs)
    workers, ends = [], []
    for _ in range(num_runs):
        receiver, sender = fork.Pipe(duplex=False)
        worker = fork.Process(target=_run_one, args=(point, barrier, sender))
        worker.start()
        sender.close()  # so that a worker that died is noticed
        workers.append(worker)
        ends.append(receiver)
    found: list[dict[str, float]] = [receiver.recv() for receiver in ends]
    for worker in workers:
        worker.join()
    return {key: statistics.mean(figures[key] for figures in found) for key in found[0]}


def _run_one(point: Point, barrier: Any, answer: Connection) -> None:
    wiring = Wiring.create(point.num_actors)
    received = run(point, wiring, when_ready=lambda: barrier.wait(PATIENCE_S))
    answer.send(cpu_figures(point, wiring, received))
