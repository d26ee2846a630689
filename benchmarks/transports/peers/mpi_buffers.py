"""mpi4py with buffers: up to eight `Isend` of arrays in flight, `Iprobe` and `Recv` straight into
the receiver's storage. Keeping and copying are therefore the same thing here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.transports.experiment import (
    HEAD_START_S,
    Keeper,
    ReceiverMarks,
    SenderMarks,
    cpu_s,
    figures,
    make_payload,
    send_all,
    wait_until,
)
from benchmarks.transports.points import Point

MAX_IN_FLIGHT = 8
STOP_WAIT_S = 5.0


def run(name: str, point: Point) -> dict[str, Any]:
    """Start one rank for the receiver and one for every sender; rank 0 prints the figures."""
    launcher = Path(sys.executable).with_name("mpiexec")
    # `-m mpi4py` ends all ranks when one fails.
    ranks = [str(launcher), "-n", str(point.actors + 1), sys.executable, "-m", "mpi4py"]
    there_before = _segments()
    process = subprocess.Popen(
        [*ranks, "-m", __name__, name, point.to_json()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate()
    finally:
        if process.poll() is None:
            process.terminate()  # ends the ranks, too
            process.wait(STOP_WAIT_S)
        for left in _segments() - there_before:
            left.unlink(missing_ok=True)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        raise RuntimeError(f"mpiexec ended with {process.returncode}:\n{errors[-2000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _segments() -> set[Path]:
    return set(Path("/dev/shm").glob("mpich_shm_*"))


class MpiSender:
    """A payload may be written again when its request is complete."""

    def __init__(self, point: Point, comm: Any) -> None:
        self._comm = comm
        self._pool = deque(make_payload(point.size_bytes) for _ in range(MAX_IN_FLIGHT))
        self._requests: deque[Any] = deque([None] * MAX_IN_FLIGHT)
        self.payload = self._pool[0]

    def send(self, payload: memoryview) -> memoryview:
        self._requests.append(self._comm.Isend(payload, dest=0))
        self._requests.popleft()
        self._pool.rotate(-1)
        if self._requests[0] is not None:
            self._requests[0].Wait()
        return self._pool[0]

    def flush(self) -> None:
        for request in self._requests:
            if request is not None:
                request.Wait()

    def close(self) -> None:
        pass


def receive_all(count: int, keeper: Keeper, comm: Any) -> None:
    from mpi4py import MPI  # type: ignore[import-not-found]  # it is in .peers

    status = MPI.Status()
    for _ in range(count):
        while not comm.Iprobe(status=status):
            os.sched_yield()
        slot = keeper.slot()
        comm.Recv(slot, source=status.source)
        keeper.check(slot)


def run_rank(name: str, point: Point) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    marks = run_receiver(point, comm) if rank == 0 else run_sender(point, rank - 1, comm)
    gathered = comm.gather(marks)
    if rank == 0:
        receiver, *senders = gathered
        print(json.dumps(figures(name, point, senders, receiver)), flush=True)


def run_sender(point: Point, actor: int, comm: Any) -> SenderMarks:
    sender = MpiSender(point, comm)
    send_all(point.warm_up, actor, sender)
    wait_until(_agree_on_start(comm))
    used_before = cpu_s()
    sample_s = send_all(point, actor, sender)
    return SenderMarks(cpu_s() - used_before, sample_s)


def run_receiver(point: Point, comm: Any) -> ReceiverMarks:
    keeper = Keeper(point)
    keeper.make_region()
    receive_all(point.warm_up.messages, keeper, comm)
    keeper.start_over()
    started = _agree_on_start(comm)
    wait_until(started)
    used_before = cpu_s()
    receive_all(point.messages, keeper, comm)
    return ReceiverMarks(cpu_s() - used_before, time.monotonic() - started, keeper.received)


def _agree_on_start(comm: Any) -> float:
    """One instant for all, soon after all have come here."""
    comm.Barrier()
    start_at = np.array([time.monotonic() + HEAD_START_S])
    comm.Bcast(start_at, root=0)
    return float(start_at[0])


if __name__ == "__main__":
    run_rank(sys.argv[1], Point.from_json(sys.argv[2]))
