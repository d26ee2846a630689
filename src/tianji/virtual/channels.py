"""Channels whose messages take virtual time from one end to the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tianji.channels.inproc import InprocBoard, InprocSender, InprocStream
from tianji.channels.interface import Bytes, Grant
from tianji.channels.layout import Layout
from tianji.types import Stamp

if TYPE_CHECKING:
    from tianji.virtual.cluster import Cluster


class VirtualStream(InprocStream):
    """Grants and items take time on their way."""

    def __init__(self, layout: Layout, num_slots: int, num_lanes: int, cluster: Cluster) -> None:
        super().__init__(layout, num_slots, num_lanes)
        self.cluster = cluster
        self._wake_at = 1

    def sender(self, lane: int) -> VirtualSender:
        return VirtualSender(self, lane)

    def expect(self, count: int) -> None:
        """With this many items in total, at least one lane has delivered its share."""
        self._wake_at = -(-count // self.num_lanes)

    def is_worth_waking(self, lane: int) -> bool:
        return len(self.sent[lane]) >= self._wake_at or not self.granted[lane]

    def wake_senders(self) -> None:
        self.cluster.wake_actors()

    def grant(self, lane: int, round_number: int, count: int = 1) -> int:
        count = min(count, len(self._free))
        grants = [Grant(self._free.pop(), round_number + number) for number in range(count)]
        if grants:
            self.cluster.grant(lane, lambda: self.granted[lane].extend(grants))
        return count


class VirtualSender(InprocSender):
    """An actor's end of its lane."""

    def __init__(self, stream: VirtualStream, lane: int) -> None:
        super().__init__(stream, lane)
        self._virtual = stream

    def send(self, slot: int, stamp: Stamp) -> None:
        deliver = super().send
        self._virtual.cluster.item(
            self._lane,
            lambda: deliver(slot, stamp),
            lambda: self._virtual.is_worth_waking(self._lane),
        )


class VirtualBoard(InprocBoard):
    """Readers see a policy when the time to post it is over."""

    def __init__(self, payload_bytes: int, cluster: Cluster) -> None:
        super().__init__(payload_bytes)
        self._cluster = cluster

    def post(self, version: int, write: Callable[[Bytes], None]) -> None:
        made: Bytes = np.empty_like(self._payload)
        write(made)
        show = super().post
        self._cluster.policy(version, lambda: show(version, lambda at: np.copyto(at, made)))
