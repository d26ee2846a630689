"""A sender process of the experiment: `python -m tianji.bench.sender START`, START being JSON."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from tianji.bench.message import PAYLOAD, Payload, make_layout
from tianji.bench.point import Point
from tianji.bench.receiving import Row, Wiring
from tianji.channels.interface import Sender
from tianji.channels.memory import Segment
from tianji.channels.shm import ShmSender, StreamMemory
from tianji.engines.loop import run_loop
from tianji.engines.worker import die_with_parent, give_way
from tianji.types import Stamp


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
        self._payload = payload = Payload(point.size_bytes, index)
        messages = sender.arrays[PAYLOAD][:, 0]
        payload.check_fits(messages)
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


def main() -> None:
    start = json.loads(sys.argv[1])
    die_with_parent(start["parent"])
    give_way()
    point, index = Point(**start["point"]), start["index"]
    slots, lanes, shared = map(Segment.attach, start["fds"])
    layout = make_layout(point.size_bytes)
    memory = StreamMemory(slots, lanes, layout, start["num_slots"], point.num_actors)
    wiring = Wiring(shared, point.num_actors)
    np.frombuffer(slots.memory, np.uint8)[::4096].max()  # pages are mapped before the clock runs
    actor = VirtualActor(point, index, ShmSender(memory, index, wiring.receiver_bell))
    cpu_before_ns = time.process_time_ns()
    run_loop(actor.tick, [], wiring.sender_bells[index], wiring.is_stopping)
    wiring.rows[index][Row.SAMPLED_NS] = actor.sampled_ns
    wiring.rows[index][Row.CPU_NS] = time.process_time_ns() - cpu_before_ns


if __name__ == "__main__":
    main()
