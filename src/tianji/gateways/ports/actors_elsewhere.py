"""The buffer's host: stands in for the actors of another host, a sender on each of their lanes.

Takes: grants of the local buffer, items from the link. Gives: grants to the link, items to the
buffer, received straight into the slots that were granted for them.
A grant leaves behind the policy that the learner published before it. An item whose lane has begun
anew since is void: it is read, counted and dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tianji.channels.gauges import Gauge
from tianji.channels.interface import Grant
from tianji.channels.memory import Bell
from tianji.channels.shm import ShmSender, StreamMemory
from tianji.gateways.interface import Outlet
from tianji.gateways.ports.boards import BoardSource
from tianji.gateways.ports.stream_notes import (
    Came,
    Granted,
    Item,
    Lost,
    Renewed,
    SlotPart,
    StreamNote,
    pack,
    unpack,
)
from tianji.gateways.refusals import Refusal, Refused

OnLost = Callable[[int, int | None], None]
"""Told that an actor is gone: its index, and how many processes have run it before; None where its
host is gone. The supervisor then has its lane reset, as for a local actor."""


@dataclass(slots=True)
class _Lane:
    """One remote actor's lane."""

    sender: ShmSender | None = None
    life: int = 0
    """The sender at the actors' host; 0: there was none yet."""
    generation: int = 0
    """How often a sender has joined the lane."""
    has_joined: bool = False
    """The sender has joined the lane since either of them was renewed."""
    reserved: deque[Grant] = field(default_factory=deque)
    """Grants that were not forwarded yet."""
    granted: deque[Grant] = field(default_factory=deque)
    """Grants that were forwarded; items come in their order."""
    is_arriving: bool = False
    """An item is being received into the first granted slot."""

    def forget_grants(self) -> None:
        self.reserved.clear()
        self.granted.clear()


class ActorsElsewhere:
    """The port at the buffer's host."""

    def __init__(
        self,
        name: str,
        memory: StreamMemory,
        actors: Sequence[int],
        receiver_bell: Bell,
        on_lost: OnLost,
        policy: BoardSource | None = None,
        gauges: Sequence[memoryview] = (),
        part: SlotPart | None = None,
    ) -> None:
        """actors: whose lanes these are, by index. on_lost: called in the gateway's thread.
        gauges: their rows on this host, which another port writes. part: what crosses of each
        slot; None: all of it."""
        self._part = part or SlotPart.all_of(memory.layout)
        self.wiring = f"stream {name} {self._part.wiring} {list(actors)}"
        self.max_body_bytes = self._part.nbytes
        self.num_void = 0
        self._memory = memory
        self._bell = receiver_bell
        self._on_lost = on_lost
        self._policy = policy
        self._lanes = {actor: _Lane() for actor in actors}
        self._gauges = dict(zip(actors, gauges, strict=True)) if gauges else {}

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet

    # -------------------------------------------------------------------- grants

    def pump(self) -> bool:
        for actor, lane in self._lanes.items():
            if lane.sender is not None:
                self._reserve(actor, lane, lane.sender)
        return self._forward_grants()

    def _reserve(self, actor: int, lane: _Lane, sender: ShmSender) -> None:
        if sender.is_stale():
            lane.has_joined = False
            if not lane.is_arriving:  # a slot of the old generation may still be written
                sender.attach()
            if sender.is_stale():
                return
        if not lane.has_joined:
            lane.has_joined = True
            lane.generation += 1
            lane.forget_grants()
            self._outlet.send(pack(Renewed(actor, lane.life, lane.generation)))
        while (grant := sender.reserve()) is not None:
            lane.reserved.append(grant)

    def _forward_grants(self) -> bool:
        waiting = [(actor, lane) for actor, lane in self._lanes.items() if lane.reserved]
        if not waiting or not self._outlet.has_room(64):
            return False
        # The grants were read first: every version published before them is seen now.
        if self._policy is not None and not self._policy.forward():
            return False
        for actor, lane in waiting:
            while lane.reserved:
                first, count = lane.reserved[0].round, 0
                while lane.reserved and lane.reserved[0].round == first + count:
                    lane.granted.append(lane.reserved.popleft())
                    count += 1
                self._outlet.send(pack(Granted(actor, lane.life, first, count)))
        return True

    # --------------------------------------------------------------------- items

    def place(self, note: bytes, nbytes: int) -> memoryview | None:
        content = unpack(note)
        if not isinstance(content, Item):
            return None
        lane = self._lane_of(content)
        if nbytes != self.max_body_bytes:
            raise Refused(Refusal.GARBAGE)
        if not (lane.has_joined and lane.generation == content.generation and lane.granted):
            return None
        lane.is_arriving = True
        return self._memory.slots.memory[self._part.of(lane.granted[0].slot)]

    def receive(self, note: bytes, body: memoryview | None) -> None:
        content = unpack(note)
        lane = self._lane_of(content)
        if isinstance(content, Item):
            if body is None:
                self.num_void += 1
            else:
                self._deliver(lane, content)
        elif isinstance(content, Came):
            lane.sender = None  # leaves its seat before the next one takes it
            lane.sender = ShmSender(self._memory, content.actor, self._bell)
            lane.life, lane.has_joined = content.life, False
        elif isinstance(content, Lost):
            self._lose(lane)
            self._on_lost(content.actor, content.resets)
        else:
            raise Refused(Refusal.GARBAGE)

    def _lane_of(self, content: StreamNote) -> _Lane:
        lane = self._lanes.get(content.actor)
        if lane is None:
            raise Refused(Refusal.GARBAGE)
        return lane

    def _deliver(self, lane: _Lane, item: Item) -> None:
        lane.is_arriving = False
        assert lane.sender is not None, "a lane without a sender has not joined"
        slot, clock = lane.granted.popleft().slot, self._outlet.clock
        times = lane.sender.arrays.get("row_ns")
        if times is not None:
            np.subtract(times[slot], clock.offset_ns, out=times[slot], where=times[slot] != 0)
        stamp = item.stamp
        if (row := self._gauges.get(item.actor)) is not None:
            # That was this item's, and nothing is known of the next one until the actor's gauges
            # come: it would be asked to hurry because of a version that it was not begun with.
            row[Gauge.STARTED_VERSION] = 0
        lane.sender.send(
            slot,
            stamp._replace(
                started_ns=clock.to_ours(stamp.started_ns),
                finished_ns=clock.to_ours(stamp.finished_ns),
            ),
        )

    def interrupted(self) -> None:
        for lane in self._lanes.values():
            lane.is_arriving = False

    def reset(self) -> None:
        for actor, lane in self._lanes.items():
            if lane.life:  # also one that has died: what it left there is gone too
                lane.life = 0
                self._lose(lane)
                self._on_lost(actor, None)

    def _lose(self, lane: _Lane) -> None:
        lane.sender = None
        lane.has_joined = lane.is_arriving = False
        lane.forget_grants()
