"""The sending end of the experiment, in a process that is started like a worker of a run."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from tianji.bench.message import PAYLOAD, Payload, make_layout
from tianji.bench.point import Point
from tianji.channels.gauges import Gauge
from tianji.channels.interface import Sender
from tianji.channels.memory import Segment
from tianji.channels.orders import Control, Order, Stop
from tianji.channels.reports import ReportPipe
from tianji.channels.shm import ShmSender, StreamMemory
from tianji.engines.loop import run_loop
from tianji.engines.worker import give_way, main
from tianji.types import RoleKind, Stamp

SEGMENTS = ("slots", "lanes", "control")


class VirtualActor:
    """An actor without environments.

    Takes      grants of slots
    Gives      messages, each after the sample time
    Waits for  a grant
    Unblocked  by the receiver, which grants a slot for every message it has kept
    Stops      between two messages
    """

    def __init__(self, point: Point, index: int, sender: Sender) -> None:
        self._index = index
        self._sender = sender
        self._sample_time_s = point.sample_time_s
        self._payload = Payload(point.size_bytes, index)
        messages = sender.arrays[PAYLOAD][:, 0]
        self._places = [message.data for message in messages]
        self._prepare = self._sample if point.sample_time_s else None
        if point.is_checking:
            self._prepare = self._vary
        self.num_sent = 0
        self.sampled_ns = 0

    def tick(self) -> bool:
        """Send as long as there are grants, each message with a stamp as an unroll has one."""
        sender, payload, places = self._sender, self._payload, self._places
        source, head, tail = payload.bytes.data, payload.head, payload.tail
        last_number = payload.last_number
        index, number, before = self._index, self.num_sent, self.num_sent
        now_ns, make_tuple = time.monotonic_ns, tuple.__new__  # a third of what calling Stamp takes
        prepare = self._prepare
        finished_ns = now_ns()
        while (grant := sender.reserve()) is not None:
            started_ns = finished_ns
            if prepare is not None:
                prepare(number)
            head[0] = tail[0] = number & last_number
            places[grant[0]][:] = source  # the one copy of the whole path
            finished_ns = now_ns()
            stamp = make_tuple(Stamp, (index, number, 0, 0, 1, started_ns, finished_ns))
            sender.send(grant[0], stamp)
            number += 1
        self.num_sent = number
        if sender.is_stale():
            sender.attach()
        return number > before

    def _vary(self, number: int) -> None:
        self._payload.vary(number)
        if self._sample_time_s:
            self._sample(number)

    def _sample(self, number: int) -> None:
        before_ns = time.monotonic_ns()
        time.sleep(self._sample_time_s)
        self.sampled_ns += time.monotonic_ns() - before_ns


def role_names(num_actors: int) -> dict[str, RoleKind]:
    """Return the names and kinds of the roles, the receiver first; each has its own bell."""
    return {"buffer": "buffer", **{f"actor-{i}": "actor" for i in range(num_actors)}}


def work(head: dict[str, Any], run: bytes, reports: ReportPipe) -> None:
    """Send until the receiver says stop. The gauges then hold the processor time of the loop
    (BUSY_NS) and the time spent sampling (ENV_NS)."""
    give_way()
    point, name = Point(**json.loads(run)), head["worker"]
    slots, lanes, shared = (Segment.attach(head["fds"][name]) for name in SEGMENTS)
    layout = make_layout(point.size_bytes)
    memory = StreamMemory(slots, lanes, layout, point.num_slots, point.num_actors)
    kinds = role_names(point.num_actors)
    index, control = tuple(kinds).index(name) - 1, Control(kinds, tuple(kinds), shared)
    np.frombuffer(slots.memory, np.uint8)[::4096].max()  # pages are mapped before the clock runs
    actor = VirtualActor(point, index, ShmSender(memory, index, control.bell("buffer")))
    gauges, orders = (board.rows[name] for board in (control.gauges, control.supervision))
    cpu_before_ns = time.process_time_ns()
    run_loop(actor.tick, [], control.bell(name), lambda: orders[Order.STOP] != Stop.NO)
    gauges[Gauge.ENV_NS] = actor.sampled_ns
    gauges[Gauge.BUSY_NS] = time.process_time_ns() - cpu_before_ns


if __name__ == "__main__":
    main(work)
