"""Actors on several hosts send messages to one buffer, as in the paper's figure 5 (c).

    spread.py receive ADDRESS SIZE MESSAGES SAMPLE_S ACTORS HOSTS          on the buffer's host
    spread.py send HOST ADDRESS SIZE SAMPLE_S ACTORS HOSTS                 on every other host

Actors are dealt evenly among the hosts. Those of the buffer's host send into its memory, the others
through the gateways of both hosts. An actor waits for the sample time, and then sends; the time
from the first to the last of so many messages counts. The keys of the run come over standard input.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from collections.abc import Sequence

from benchmarks.links.forwarding import NUMBER, in_child, turn_while_alive, wait_for
from benchmarks.links.transports import PORT
from tianji.channels.layout import Layout
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.orders import ORDER_WORDS
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.gateways.gateway import Gateway
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.ports.actors_elsewhere import ActorsElsewhere
from tianji.gateways.ports.buffer_elsewhere import BufferElsewhere
from tianji.types import Field, Stamp

SLOTS_PER_ACTOR = 4
FEWEST_SLOTS = 16


def share(host: int, num_actors: int, num_hosts: int) -> int:
    """Return the number of actors on a host."""
    return len(range(host, num_actors, num_hosts))


def make_memory(size: int, num_lanes: int) -> StreamMemory:
    layout = Layout((Field("bytes", "uint8", (size,), "unroll"),), num_rows=1, num_envs=1)
    return StreamMemory.create(layout, max(FEWEST_SLOTS, SLOTS_PER_ACTOR * num_lanes), num_lanes)


def make_bells(count: int) -> list[Bell]:
    segment = Segment.create("bells", count * BELL_BYTES)
    bells = [Bell(segment, index * BELL_BYTES) for index in range(count)]
    for bell in bells:
        bell.initialise()
    return bells


def act(memory: StreamMemory, lane: int, receiver: Bell, own: Bell, sample_s: float) -> None:
    """Send messages for ever: whoever started this process ends it."""
    sender, number = ShmSender(memory, lane, receiver), 0
    size, slots = memory.layout.slot_bytes, memory.slots.memory

    def look() -> int | None:
        if sender.is_stale():
            sender.attach()
        grant = sender.reserve()
        return None if grant is None else grant.slot

    while True:
        slot = wait_for(own, look)
        if sample_s:
            time.sleep(sample_s)
        NUMBER.pack_into(slots, slot * size, number)
        NUMBER.pack_into(slots, (slot + 1) * size - NUMBER.size, number)
        now_ns = time.monotonic_ns()
        sender.send(slot, Stamp(lane, number, 0, 0, 1, now_ns, now_ns))
        number += 1


def start_actors(memory: StreamMemory, receiver: Bell, bells: Sequence[Bell], s: float) -> None:
    for lane, bell in enumerate(bells):
        in_child(lambda lane=lane, bell=bell: act(memory, lane, receiver, bell, s))


class Inbox:
    """The receiver of one host's lanes."""

    def __init__(self, memory: StreamMemory, bells: Sequence[Bell]) -> None:
        self.receiver = ShmReceiver(memory, list(bells))
        self._memory = memory
        self._granted = [0] * memory.num_lanes
        self._next = [0] * memory.num_lanes

    def take(self) -> bool:
        """Grant what is free, take one message and check it."""
        each = max(1, self._memory.num_slots // self._memory.num_lanes)
        for lane, granted in enumerate(self._granted):
            if granted - self._next[lane] < each:
                wanted = each - granted + self._next[lane]
                self._granted[lane] += self.receiver.grant(lane, granted, wanted)
        slot = self.receiver.take()
        if slot is None:
            return False
        stamp, size = self.receiver.stamp(slot), self._memory.layout.slot_bytes
        assert stamp.round == self._next[stamp.actor], "a message was lost or doubled"
        for at in (slot * size, (slot + 1) * size - NUMBER.size):
            (number,) = NUMBER.unpack_from(self._memory.slots.memory, at)
            assert number == stamp.round, "a message was torn"
        self._next[stamp.actor] += 1
        self.receiver.release(slot)
        return True


def collect(inboxes: Sequence[Inbox], bell: Bell, num_messages: int) -> float:
    """Return the seconds from the first to the last message."""
    count, first_s, last_s = 0, 0.0, 0.0

    def look() -> int | None:
        return sum(inbox.take() for inbox in inboxes) or None

    while count < num_messages:
        count += wait_for(bell, look)
        last_s = time.perf_counter()
        first_s = first_s or last_s
    return (last_s - first_s) * num_messages / (count - 1)


def receive(
    address: str, size: int, num_messages: int, sample_s: float, actors: int, hosts: int
) -> dict[str, float]:
    keys = LinkKeys.from_text(sys.stdin.read())
    here = share(0, actors, hosts)
    gateway_bell, receiver_bell, *local = make_bells(2 + here)
    memories = [make_memory(size, share(h, actors, hosts)) for h in range(hosts) if h < actors]
    read_end, write_end = os.pipe()

    def buffer() -> None:
        rest = [Inbox(m, [gateway_bell] * m.num_lanes) for m in memories[1:]]
        took_s = collect([Inbox(memories[0], local), *rest], receiver_bell, num_messages)
        os.write(write_end, struct.pack("@d", took_s))

    child = in_child(buffer)
    start_actors(memories[0], receiver_bell, local, sample_s)
    gateway = Gateway("buffer", keys, gateway_bell)
    gateway.listen(address, PORT)
    for host, memory in enumerate(memories[1:], 1):
        lanes = range(memory.num_lanes)
        port = ActorsElsewhere(f"items{host}", memory, lanes, receiver_bell, lambda *_: None)
        gateway.link(f"actors{host}", [port])
    turn_while_alive(gateway, child)
    gateway.close()
    (took_s,) = struct.unpack("@d", os.read(read_end, 8))
    return {"messages": num_messages, "seconds": took_s}


def send(host: int, address: str, size: int, sample_s: float, actors: int, hosts: int) -> None:
    keys = LinkKeys.from_text(sys.stdin.read())
    count = share(host, actors, hosts)
    gateway_bell, *bells = make_bells(1 + count)
    memory = make_memory(size, count)
    start_actors(memory, gateway_bell, bells, sample_s)
    rows = [memoryview(bytearray(8 * ORDER_WORDS)).cast("q") for _ in bells]
    receiver = ShmReceiver(memory, bells)
    port = BufferElsewhere(f"items{host}", memory, receiver, range(count), rows)
    gateway = Gateway(f"actors{host}", keys, gateway_bell)
    gateway.link("buffer", [port], (address, PORT))
    while True:
        gateway.turn(0.25)


def main() -> None:
    side, *words = sys.argv[1:]
    if side == "receive":
        address, size, messages, sample_s, actors, hosts = words
        found = receive(address, int(size), int(messages), float(sample_s), int(actors), int(hosts))
        print(json.dumps(found), flush=True)
        os._exit(0)  # the actors of this host die with it
    host, address, size, sample_s, actors, hosts = words
    send(int(host), address, int(size), float(sample_s), int(actors), int(hosts))


if __name__ == "__main__":
    main()
