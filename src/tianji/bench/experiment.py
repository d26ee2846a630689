"""The virtual communication experiment: actors without environments send messages to a buffer
without a learner, over the same Stream that training uses.

    measure(Point(size_bytes=524_288, num_actors=2, sample_time_s=0.001))

Every actor takes `sample_time_s` for a message of a fixed size and sends it; the clock stops when
`num_messages` have been received and kept. Kept means that the slot passes to the receiver's store,
where the oldest gives way; nothing is copied a second time unless the point says so.

`measure_loaded` measures the same while several experiments fill the machine, `idle_share` what a
receiver costs that has nothing to receive.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from tianji.bench.message import copy_speeds, make_layout
from tianji.bench.point import Point
from tianji.bench.receiving import Received, VirtualBuffer, receive
from tianji.bench.sender import SEGMENTS, role_names
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Control, Stop
from tianji.channels.shm import ShmReceiver, StreamMemory
from tianji.engines.loop import run_loop
from tianji.engines.supervise.process import StartMessage, WorkerProcess
from tianji.errors import ChannelError


def measure(point: Point) -> dict[str, Any]:
    """Run one point; return what is reported, by the names that scripts rely on."""
    point.check()
    before = copy_speeds(point.size_bytes)
    received, cpu = run(point, when_ready=lambda: None)
    memcpy = statistics.median(before + copy_speeds(point.size_bytes))
    rate = received.num_messages / received.collection_s
    return {
        "transport": "tianji",
        "size_bytes": point.size_bytes,
        "actors": point.num_actors,
        "sample_time_s": point.sample_time_s,
        "copying": point.is_copying,
        "messages": point.num_messages,
        "received": received.num_messages,
        "collection_s": received.collection_s,
        "collection_s_per_10k": 10_000 / rate,
        "messages_per_s": rate,
        "mb_per_s": rate * point.size_bytes / 1e6,
        "memcpy_mb_per_s": memcpy / 1e6,
        "share_of_memcpy": rate * point.size_bytes / memcpy,
        **cpu,
    }


def cpu_figures(point: Point, control: Control, received: Received) -> dict[str, float]:
    """Return what a message took of the processors, and how long sampling it took."""
    rows = control.gauges.of_kind("actor").values()
    cpu_ns, sampled_ns = (
        sum(row[gauge] for row in rows) for gauge in (Gauge.BUSY_NS, Gauge.ENV_NS)
    )
    num_sent = received.num_messages + point.num_warmup
    return {
        "sender_cpu_us": cpu_ns / num_sent / 1e3,
        "receiver_cpu_us": received.cpu_s / received.num_messages * 1e6,
        "measured_sample_s": sampled_ns / num_sent / 1e9,
    }


def make_channels(point: Point) -> tuple[Control, StreamMemory, ShmReceiver]:
    kinds = role_names(point.num_actors)
    control = Control.create(kinds, tuple(kinds))
    stream = StreamMemory.create(make_layout(point.size_bytes), point.num_slots, point.num_actors)
    bells = [control.bell(name) for name in control.gauges.of_kind("actor")]
    return control, stream, ShmReceiver(stream, bells)


def run(point: Point, when_ready: Callable[[], object]) -> tuple[Received, dict[str, float]]:
    """Start the senders, receive, and see all of them end; return what was received, and the
    processor time. when_ready: called before the clock starts."""
    control, stream, receiver = make_channels(point)
    with _senders(point, stream, control) as processes:

        def find_lost() -> str | None:
            return next((_ending(n, p) for n, p in processes.items() if p.has_ended()), None)

        received = receive(point, receiver, control.bell("buffer"), find_lost, when_ready)
    return received, cpu_figures(point, control, received)


def _ending(name: str, process: WorkerProcess) -> str:
    return f"{name} is gone ({process.how_it_ended()})."


@contextmanager
def _senders(
    point: Point, stream: StreamMemory, control: Control
) -> Iterator[dict[str, WorkerProcess]]:
    segments = stream.slots, stream.lanes, control.segment
    fds = {name: segment.fd for name, segment in zip(SEGMENTS, segments, strict=True)}
    run, processes = json.dumps(asdict(point)).encode(), {}
    try:
        for name in control.gauges.of_kind("actor"):
            message = StartMessage(name, run, threads=1, fds=fds)
            processes[name] = WorkerProcess.start(message, "tianji.bench.sender")
        yield processes
        control.stop(Stop.NOW)
        for name, process in processes.items():
            if process.wait() != 0:  # what it would have told is missing
                raise ChannelError(f"The measurement is incomplete: {_ending(name, process)}")
    finally:
        for process in processes.values():
            process.kill()
            process.close()
        for segment in segments:
            segment.close()


IDLE_S = 2.0


def idle_share(num_actors: int = 4, duration_s: float = IDLE_S) -> float:
    """The share of a core that the receiver's loop takes while nobody sends."""
    point = Point(4096, num_actors)
    control, stream, receiver = make_channels(point)
    buffer, bell = VirtualBuffer(point, receiver), control.bell("buffer")
    started_s, cpu_before_s = time.monotonic(), time.process_time()
    end_s = started_s + duration_s
    run_loop(buffer.tick, [], bell, lambda: time.monotonic() >= end_s)
    share = (time.process_time() - cpu_before_s) / (time.monotonic() - started_s)
    for segment in (stream.slots, stream.lanes, control.segment):
        segment.close()
    return share


PATIENCE_S = 60.0  # for the other runs to get ready; one that failed breaks all of them off


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
    _, cpu = run(point, when_ready=lambda: barrier.wait(PATIENCE_S))
    answer.send(cpu)
