"""The actors' host: stands in for the buffer on another host, the receiver of a local stream.

Takes: items of the local actors, grants from the link. Gives: items to the link, straight from
their slots, grants to the actors. A slot is free again when its item has arrived; until then the
link may have to send it once more. Memory is bounded by the slots of both hosts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tianji.channels.orders import Order
from tianji.channels.shm import ShmReceiver, StreamMemory
from tianji.gateways.interface import Outlet
from tianji.gateways.ports.stream_notes import (
    ITEM_NOTE_BYTES,
    Came,
    Granted,
    Item,
    Lost,
    Renewed,
    SlotPart,
    pack,
    unpack,
)
from tianji.gateways.refusals import Refusal, Refused


@dataclass(slots=True)
class _Lane:
    """One local actor's lane."""

    actor: int
    supervision: memoryview
    """Orders of this host's supervisor to the actor."""
    resets_done: int
    life: int = 0
    has_come: bool = False
    generation: int = 0
    wanted: deque[tuple[int, int]] = field(default_factory=deque)
    """Grants that have arrived and found no slot yet: round and count."""
    num_held: int = 0
    """Grants that the actor holds."""


class BufferElsewhere:
    """The port at the actors' host."""

    def __init__(
        self,
        name: str,
        memory: StreamMemory,
        receiver: ShmReceiver,
        actors: Sequence[int],
        supervision: Sequence[memoryview],
        part: SlotPart | None = None,
    ) -> None:
        """actors: whose lanes these are, by index; other lanes are not used on this host.
        supervision: their rows of orders, which say when one was replaced. part: what crosses of
        each slot; None: all of it."""
        self._part = part or SlotPart.all_of(memory.layout)
        self.wiring = f"stream {name} {self._part.wiring} {list(actors)}"
        self.max_body_bytes = self._part.nbytes
        self.num_void = 0
        self._slots = memory.slots.memory
        self._receiver = receiver
        rows = zip(actors, supervision, strict=True)
        self._lanes = {actor: _Lane(actor, row, row[Order.RESETS]) for actor, row in rows}

    def open(self, outlet: Outlet) -> None:
        self._outlet = outlet

    # --------------------------------------------------------------------- items

    def pump(self) -> bool:
        has_moved = False
        for actor, lane in self._lanes.items():
            if lane.supervision[Order.RESETS] != lane.resets_done:
                self._lose(lane)
            if not lane.has_come and self._receiver.is_attached(actor):
                lane.has_come, lane.life = True, lane.life + 1
                self._outlet.send(pack(Came(actor, lane.life)))
                has_moved = True
            if lane.wanted:
                self._grant(lane)
        while self._outlet.has_room(self.max_body_bytes + ITEM_NOTE_BYTES):
            slot = self._receiver.take()
            if slot is None:
                break
            self._forward(slot)
            has_moved = True
        return has_moved

    def _forward(self, slot: int) -> None:
        stamp = self._receiver.stamp(slot)
        lane = self._lanes[stamp.actor]
        lane.num_held -= 1

        def settled(_: bool) -> None:
            self._receiver.release(slot)

        body = self._slots[self._part.of(slot)]
        self._outlet.send(pack(Item(lane.actor, lane.generation, stamp)), body, settled)

    def _lose(self, lane: _Lane) -> None:
        """Forward what the dead actor had sent, whatever the window says: it lies in slots."""
        lane.resets_done = lane.supervision[Order.RESETS]
        for slot in self._receiver.reset_lane(lane.actor):
            self._forward(slot)
        # Also for one that died before it came: the buffer's answer is what its successor awaits.
        self._outlet.send(pack(Lost(lane.actor, lane.life, lane.resets_done)))
        self._forget(lane)

    def _forget(self, lane: _Lane) -> None:
        lane.has_come = False
        lane.num_held = 0
        lane.wanted.clear()

    # -------------------------------------------------------------------- grants

    def place(self, note: bytes, nbytes: int) -> memoryview | None:
        if nbytes:
            raise Refused(Refusal.GARBAGE)
        return None

    def receive(self, note: bytes, body: memoryview | None) -> None:
        content = unpack(note)
        lane = self._lanes.get(content.actor)
        if lane is None or not isinstance(content, Renewed | Granted):
            raise Refused(Refusal.GARBAGE)
        if content.life != lane.life or not lane.has_come:
            return  # meant for an actor that is dead
        if isinstance(content, Renewed):
            self._begin(lane)
            lane.generation = content.generation
        else:
            lane.wanted.append((content.round, content.num_rounds))
            self._grant(lane)

    def _grant(self, lane: _Lane) -> None:
        while lane.wanted:
            round_number, count = lane.wanted[0]
            given = self._receiver.grant(lane.actor, round_number, count)
            lane.num_held += given
            if given < count:
                lane.wanted[0] = (round_number + given, count - given)
                return
            lane.wanted.popleft()

    def _begin(self, lane: _Lane) -> None:
        """Void what the actor holds and what it has sent, if anything."""
        lane.wanted.clear()
        if lane.num_held:
            lane.num_held = 0
            for slot in self._receiver.reset_lane(lane.actor):
                self.num_void += 1
                self._receiver.release(slot)

    def interrupted(self) -> None:
        """What was on its way is sent again by the link."""

    def reset(self) -> None:
        for lane in self._lanes.values():
            self._begin(lane)
            self._forget(lane)
