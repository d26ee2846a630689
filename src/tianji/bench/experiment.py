"""The virtual communication experiment: actors without environments send messages to a buffer
without a learner, over the same Stream that training uses.

    measure(Point(size_bytes=524_288, num_actors=2, sample_time_s=0.001))

Every actor takes `sample_time_s` for a message of a fixed size and sends it; the clock stops when
`num_messages` have been received and kept. Kept means that the slot passes to the receiver's store,
where the oldest gives way; nothing is copied a second time unless the point says so.

What a receiver costs that has nothing to receive.

What a message takes when the machine is full.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from tianji.bench.message import copy_speeds, make_layout
from tianji.bench.point import Point
from tianji.bench.receiving import Received, Row, VirtualBuffer, Wiring, receive
from tianji.channels.shm import ShmReceiver, StreamMemory
from tianji.engines.loop import run_loop
from tianji.engines.supervise.process import ONE_HEAP, THREAD_VARIABLES
from tianji.errors import ChannelError


def measure(point: Point) -> dict[str, Any]:
    """Run one point; what is reported, by the names that scripts rely on."""
    point.check()
    before = copy_speeds(point.size_bytes)
    wiring = Wiring.create(point.num_actors)
    received = run(point, wiring, when_ready=lambda: None)
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
        **cpu_figures(point, wiring, received),
    }


def cpu_figures(point: Point, wiring: Wiring, received: Received) -> dict[str, float]:
    """What a message took of the processors, and how long sampling it took."""
    cpu_ns, sampled_ns = (sum(row[word] for row in wiring.rows) for word in Row)
    num_sent = received.num_messages + point.num_warmup
    return {
        "sender_cpu_us": cpu_ns / num_sent / 1e3,
        "receiver_cpu_us": received.cpu_s / received.num_messages * 1e6,
        "measured_sample_s": sampled_ns / num_sent / 1e9,
    }


def run(point: Point, wiring: Wiring, when_ready: Callable[[], object]) -> Received:
    """Start the senders, receive, and see all of them end. `when_ready` is called before the clock
    starts."""
    layout = make_layout(point.size_bytes)
    stream = StreamMemory.create(layout, point.num_slots, point.num_actors)
    receiver = ShmReceiver(stream, wiring.sender_bells)
    with _senders(point, stream, wiring) as processes:

        def find_lost() -> str | None:
            for index, process in enumerate(processes):
                if process.poll() is not None:
                    return _ending(index, process)
            return None

        return receive(point, receiver, wiring.receiver_bell, find_lost, when_ready)


def _ending(index: int, process: subprocess.Popen[bytes]) -> str:
    return f"sender {index} ended with exit code {process.returncode}."


@contextmanager
def _senders(
    point: Point, stream: StreamMemory, wiring: Wiring
) -> Iterator[list[subprocess.Popen[bytes]]]:
    fds = stream.slots.fd, stream.lanes.fd, wiring.segment.fd
    variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), **ONE_HEAP}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for index in range(point.num_actors):
            start = {"point": asdict(point), "index": index, "num_slots": stream.num_slots,
                     "fds": fds, "parent": os.getpid()}  # fmt: skip
            command = [sys.executable, "-m", "tianji.bench.sender", json.dumps(start)]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=fds, env=variables,
                start_new_session=True,  # a terminal's Ctrl-C reaches the receiver alone
            )  # fmt: skip
            processes.append(process)
        yield processes
        wiring.stop()
        for index, process in enumerate(processes):
            if process.wait() != 0:  # what it would have told is missing
                raise ChannelError(f"The measurement is incomplete: {_ending(index, process)}")
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for fd in fds:
            os.close(fd)


IDLE_S = 2.0


def idle_share(num_actors: int = 4, duration_s: float = IDLE_S) -> float:
    """The share of a core that the receiver's loop takes while nobody sends."""
    point = Point(4096, num_actors)
    wiring = Wiring.create(num_actors)
    stream = StreamMemory.create(make_layout(point.size_bytes), point.num_slots, num_actors)
    buffer = VirtualBuffer(point, ShmReceiver(stream, wiring.sender_bells))
    started_s, cpu_before_s = time.monotonic(), time.process_time()
    end_s = started_s + duration_s
    run_loop(buffer.tick, [], wiring.receiver_bell, lambda: time.monotonic() >= end_s)
    share = (time.process_time() - cpu_before_s) / (time.monotonic() - started_s)
    for segment in (stream.slots, stream.lanes, wiring.segment):
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
    wiring = Wiring.create(point.num_actors)
    received = run(point, wiring, when_ready=lambda: barrier.wait(PATIENCE_S))
    answer.send(cpu_figures(point, wiring, received))
