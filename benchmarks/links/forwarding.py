"""Our link as it is used: an actor and a buffer in shared memory on their hosts, gateways between.

Each role is a process of its own, as in a run. The actor does nothing but number its items; the
buffer grants, takes and releases.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable

from benchmarks.links.transports import PORT, RING_BYTES, Received
from tianji.channels.layout import Layout
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.orders import ORDER_WORDS
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.engines.worker import die_with_parent, give_way
from tianji.gateways.gateway import Gateway
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.ports.actors_elsewhere import ActorsElsewhere
from tianji.gateways.ports.buffer_elsewhere import BufferElsewhere
from tianji.types import Field, Stamp

NUMBER = struct.Struct("@q")
LAST = -1  # steps of the item after which nothing comes
WAIT_S = 0.25
LONG_S = 60.0


def make_memory(size: int) -> StreamMemory:
    layout = Layout((Field("bytes", "uint8", (size,), "unroll"),), num_rows=1, num_envs=1)
    return StreamMemory.create(layout, min(1024, max(16, RING_BYTES // 2 // size)), num_lanes=1)


def make_bells() -> tuple[Bell, Bell]:
    """The gateway's bell and the role's."""
    segment = Segment.create("bells", 2 * BELL_BYTES)
    gateway, role = Bell(segment, 0), Bell(segment, BELL_BYTES)
    gateway.initialise()
    role.initialise()
    return gateway, role


def wait_for(bell: Bell, look: Callable[[], int | None]) -> int:
    """Sleep on a bell until there is something."""
    while (found := look()) is None:
        bell.arm()
        if (found := look()) is not None:
            break
        bell.wait(WAIT_S)
    return found


def in_child(work: Callable[[], None]) -> int:
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        give_way()  # as every worker does
        code = 1
        try:
            work()
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def turn_while_alive(gateway: Gateway, child: int) -> None:
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        gateway.turn(WAIT_S)


def turn_until(gateway: Gateway, is_done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + LONG_S
    while not is_done() and time.monotonic() < deadline_s:
        gateway.turn(0.05)


def act(memory: StreamMemory, bells: tuple[Bell, Bell], seconds: float) -> None:
    sender, number, end_s = ShmSender(memory, 0, bells[0]), 0, 0.0
    size, slots = memory.layout.slot_bytes, memory.slots.memory

    def look() -> int | None:
        if sender.is_stale():
            sender.attach()
        grant = sender.reserve()
        return None if grant is None else grant.slot

    is_last = False
    while not is_last:
        slot = wait_for(bells[1], look)
        end_s = end_s or time.perf_counter() + seconds
        is_last = time.perf_counter() >= end_s
        NUMBER.pack_into(slots, slot * size, number)
        NUMBER.pack_into(slots, (slot + 1) * size - NUMBER.size, number)
        steps = LAST if is_last else 1
        sender.send(slot, Stamp(0, number, 0, 0, steps, time.monotonic_ns(), time.monotonic_ns()))
        number += 1


def link_sender(address: str, size: int, seconds: float, keys: LinkKeys) -> None:
    memory, bells = make_memory(size), make_bells()
    child = in_child(lambda: act(memory, bells, seconds))
    receiver = ShmReceiver(memory, [bells[1]])
    rows = [memoryview(bytearray(8 * ORDER_WORDS)).cast("q")]
    port = BufferElsewhere("items", memory, receiver, [0], rows)
    gateway = Gateway("actors", keys, bells[0])
    link = gateway.link("buffer", [port], (address, PORT))
    turn_while_alive(gateway, child)
    acked = -1

    def has_all_arrived() -> bool:
        nonlocal acked
        before, acked = acked, link.session.acked
        return before == acked and not link.session.kept()

    turn_until(gateway, has_all_arrived)
    gateway.close()


def receive(
    memory: StreamMemory, bells: tuple[Bell, Bell], tell: Callable[[Received], None]
) -> None:
    receiver, size = ShmReceiver(memory, [bells[0]]), memory.layout.slot_bytes
    received, rounds, slots = Received(size), 0, memory.slots.memory

    def look() -> int | None:
        nonlocal rounds
        rounds += receiver.grant(0, rounds, memory.num_slots)
        return receiver.take()

    while True:
        slot = wait_for(bells[1], look)
        stamp = receiver.stamp(slot)
        for at in (slot * size, (slot + 1) * size - NUMBER.size):
            (number,) = NUMBER.unpack_from(slots, at)
            assert number == stamp.round, f"item {stamp.round} holds the bytes of {number}"
        received.note(stamp.round)
        receiver.release(slot)
        if stamp.env_steps == LAST:
            break
    tell(received)


def link_receiver(address: str, size: int, keys: LinkKeys) -> Received:
    memory, bells = make_memory(size), make_bells()
    read_end, write_end = os.pipe()

    def tell(received: Received) -> None:
        os.write(write_end, struct.pack("@qd", received.count, received.seconds))

    child = in_child(lambda: receive(memory, bells, tell))
    port = ActorsElsewhere("items", memory, [0], bells[1], lambda *_: None)
    gateway = Gateway("buffer", keys, bells[0])
    gateway.listen(address, PORT)
    link = gateway.link("actors", [port])
    turn_while_alive(gateway, child)
    turn_until(gateway, lambda: link.connection is None)
    gateway.close()
    received = Received(size)
    received.count, received.seconds = struct.unpack("@qd", os.read(read_end, 16))
    return received
