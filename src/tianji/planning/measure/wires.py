"""The channels of a bench: shared memory with both ends in one process."""

from __future__ import annotations

import os

from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.layout import Layout
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.config.plan import RunPlan


class Wires:
    """A stream with a sender for every lane, and the policy's board."""

    def __init__(self, plan: RunPlan, num_slots: int, num_lanes: int, policy_bytes: int) -> None:
        self.layout = Layout.from_json(plan.layout)
        memory = StreamMemory.create(self.layout, num_slots, num_lanes)
        segment = Segment.create("bells", (num_lanes + 1) * BELL_BYTES)
        buffer_bell, *bells = [Bell(segment, i * BELL_BYTES) for i in range(num_lanes + 1)]
        for bell in (buffer_bell, *bells):
            bell.initialise()
        self.receiver = ShmReceiver(memory, bells)
        self.senders = [ShmSender(memory, lane, buffer_bell) for lane in range(num_lanes)]
        self._policy_fd = os.memfd_create("tianji-policy")
        self.policy = ShmBoardWriter(self._policy_fd, policy_bytes)
        self._segments = memory.slots, memory.lanes, segment

    def policy_reader(self) -> ShmBoardReader:
        return ShmBoardReader(self._policy_fd)

    def close(self) -> None:
        os.close(self._policy_fd)
        for segment in self._segments:
            segment.close()
