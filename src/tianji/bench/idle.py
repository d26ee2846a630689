"""What a receiver costs that has nothing to receive."""

from __future__ import annotations

import time

from tianji.bench.message import make_layout
from tianji.bench.point import Point
from tianji.bench.receiving import VirtualBuffer
from tianji.bench.wiring import Wiring
from tianji.channels.shm import ShmReceiver, StreamMemory
from tianji.engines.loop import run_loop

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
