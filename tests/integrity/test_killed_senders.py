"""Senders are killed at random instants, again and again: what they sent arrives whole, once and in
order, what they held comes back, and the others go on."""

import gc
import os
import random
import signal
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.unit.channels.ends import in_child, make_bells
from tianji.channels.confirmed import ConfirmedSender, ConfirmingReceiver
from tianji.channels.layout import Layout
from tianji.channels.memory import Segment
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.engines.loop import IDLE_HEARTBEAT_S
from tianji.types import Field, Stamp

NUM_WORDS = 1024  # written in about the time that the rest of a hand-over takes
LAYOUT = Layout((Field("message", "int64", (NUM_WORDS,), "unroll"),), num_rows=1, num_envs=1)
RAMP = np.arange(NUM_WORDS, dtype=np.int64) * 0x9E3779B97F4A7C1
SLOTS_PER_LANE = 4
NUM_KEPT = 2  # received, and looked at once more before they are given back
MAX_LIFE_S = 0.004
MAX_DYING_S = 0.2
STALL_S = 20.0


def number_of(lane, generation, number):
    return (lane << 56) + (generation << 32) + number


def serve(stream, lane, generation):
    """What a sender does until it is killed: its own count follows each send that has returned."""
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    bell = stream.bells[1 + lane]
    sender = stream.kind.sender(stream.memory, lane, stream.bells[0])
    number = 0
    while True:
        if stream.doom_us[lane]:
            signal.setitimer(signal.ITIMER_VIRTUAL, stream.doom_us[lane] / 1e6)
            stream.doom_us[lane] = 0
        bell.arm()
        grant = None
        # As an actor: before the reset, what the lane holds was granted to one that is dead.
        if stream.resets[lane] == generation:
            if sender.is_stale():
                sender.attach()
            grant = sender.reserve()
        if grant is None:
            bell.wait(IDLE_HEARTBEAT_S)
            continue
        message = sender.arrays["message"][grant.slot][0]
        np.add(RAMP, number_of(lane, generation, number), out=message)
        sender.send(grant.slot, Stamp(lane, number, generation, 0, 1, 0, 0))
        number += 1
        stream.counts[lane] = number


class Kind(NamedTuple):
    sender: type
    receiver: type


KINDS = {
    "going on": Kind(ShmSender, ShmReceiver),
    "confirmed": Kind(ConfirmedSender, ConfirmingReceiver),
}


class Stream:
    """The receiver, in this process, and one sender per lane in a process of its own."""

    def __init__(self, num_lanes, kind):
        self.kind = kind
        self.num_lanes, self.num_slots = num_lanes, num_lanes * SLOTS_PER_LANE + NUM_KEPT
        self.memory = StreamMemory.create(LAYOUT, self.num_slots, num_lanes)
        self.bells = make_bells(1 + num_lanes)
        shared = Segment.create("counts", 8 * 3 * num_lanes)
        self.counts, self.resets, self.doom_us = (
            shared.words(8 * part * num_lanes, num_lanes) for part in range(3)
        )
        self.segments = self.memory.slots, self.memory.lanes, shared
        self.receiver = kind.receiver(self.memory, self.bells[1:])
        self.generations = [0] * num_lanes
        self.delivered = [0] * num_lanes
        self.outstanding = [0] * num_lanes
        self.kept = []
        self.children = [in_child(serve, self, lane, 0) for lane in range(num_lanes)]

    def check(self, slot):
        """Every byte of it is what its stamp says."""
        lane, number, generation, *_ = self.receiver.stamp(slot)
        expected = RAMP + number_of(lane, generation, number)
        torn = np.flatnonzero(self.receiver.arrays["message"][slot][0] != expected)
        assert torn.size == 0, f"message {number} of lane {lane} is torn from word {torn[0]} on"
        return lane, number, generation

    def deliver(self, slot):
        lane, number, generation = self.check(slot)
        assert generation == self.generations[lane], "it was delivered after its sender was reset"
        assert number == self.delivered[lane], "lost, doubled or out of order"
        assert slot not in self.kept, "a slot that is kept was granted again"
        self.delivered[lane] += 1
        self.outstanding[lane] -= 1
        self.kept.append(slot)
        if len(self.kept) > NUM_KEPT:
            self.let_go()

    def let_go(self):
        slot = self.kept.pop(0)
        self.check(slot)
        self.receiver.release(slot)

    def work(self):
        """Receive what there is and grant what is free."""
        worked = False
        while (slot := self.receiver.take()) is not None:
            self.deliver(slot)
            worked = True
        for lane in range(self.num_lanes):
            while self.outstanding[lane] < SLOTS_PER_LANE and self.receiver.grant(lane, 0):
                self.outstanding[lane] += 1
                worked = True
        return worked

    def run_until(self, is_over, longest_s=STALL_S):
        """As a buffer does, sleeping while there is nothing to do."""
        end_s = time.monotonic() + longest_s
        while not is_over():
            left_s = end_s - time.monotonic()
            if left_s <= 0.0:
                return False
            if not self.work():
                self.bells[0].arm()
                if not self.work():
                    self.bells[0].wait(min(IDLE_HEARTBEAT_S, left_s))
        return True

    def run_for(self, life_s):
        self.run_until(lambda: False, life_s)

    def run_until_all_deliver(self, lanes):
        before = list(self.delivered)
        is_over = lambda: all(self.delivered[lane] > before[lane] for lane in lanes)  # noqa: E731
        assert self.run_until(is_over), f"the stream stands still: {before} {self.delivered}"

    def kill_anywhere(self, lane, life_s):
        """At an instant that has nothing to do with what the sender is doing."""
        self.run_for(life_s)
        self.children[lane].kill()
        self.children[lane].join()

    def kill_at_work(self, lane, life_s):
        """In the midst of its instructions: by the clock of its own processor time."""
        self.doom_us[lane] = 1 + int(life_s * 1e6)
        self.bells[1 + lane].ring()
        is_dead = self.run_until(lambda: not self.children[lane].is_alive(), MAX_DYING_S)
        if not is_dead:  # the clock runs by samples, which may miss a sender that mostly sleeps
            self.kill_anywhere(lane, 0.0)
            self.doom_us[lane] = 0

    def replace(self, lane, starts_before_the_reset):
        """What the supervisor and the buffer do about an actor that died."""
        counted, self.counts[lane] = self.counts[lane], 0
        generation = self.generations[lane] + 1
        if starts_before_the_reset:
            self.children[lane] = in_child(serve, self, lane, generation)
            self.run_for(MAX_LIFE_S)
        for slot in self.receiver.reset_lane(lane):
            self.deliver(slot)
        assert self.delivered[lane] - counted in (0, 1), "what was sent has not arrived"
        self.generations[lane], self.delivered[lane], self.outstanding[lane] = generation, 0, 0
        self.resets[lane] = generation
        self.bells[1 + lane].ring()
        if not starts_before_the_reset:
            self.children[lane] = in_child(serve, self, lane, generation)

    def end(self):
        """Everybody dies. Returns the slots that can be granted when the kept ones are let go."""
        for lane, child in enumerate(self.children):
            child.kill()
            child.join()
            for slot in self.receiver.reset_lane(lane):
                self.deliver(slot)
        while self.kept:
            self.let_go()
        senders = [ShmSender(self.memory, lane, self.bells[0]) for lane in range(self.num_lanes)]
        assert all(self.receiver.is_attached(lane) for lane in range(self.num_lanes))
        slots = []
        while self.receiver.grant(0, 0):
            slots.append(senders[0].reserve().slot)
        return sorted(slots)


def leftovers():
    """Our segments that this process has open or mapped, and what anybody left in /dev/shm."""
    gc.collect()
    files = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    places = [*files, *Path("/proc/self/maps").read_text().splitlines(), *os.listdir("/dev/shm")]
    return sorted(place for place in places if "tianji-" in place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("num_kills", "num_lanes"),
    [(20, 2), (20, 4), *(pytest.param(334, n, marks=pytest.mark.slow) for n in (2, 3, 4))],
)
def test_a_sender_may_be_killed_at_any_instant(num_kills, num_lanes, kind):
    before = leftovers()
    drawn = random.Random(num_kills + num_lanes)
    stream = Stream(num_lanes, KINDS[kind])
    try:
        for _ in range(num_kills):
            lane = drawn.randrange(num_lanes)
            kill = drawn.choice([stream.kill_anywhere, stream.kill_at_work])
            kill(lane, drawn.uniform(0.0, MAX_LIFE_S))
            stream.replace(lane, starts_before_the_reset=drawn.random() < 0.3)
            stream.run_until_all_deliver({*range(num_lanes)} - {lane})
        stream.run_until_all_deliver(range(num_lanes))
        assert stream.end() == list(range(stream.num_slots)), "a credit was lost or doubled"
    finally:
        for child in stream.children:
            child.kill()
            child.join()
    for segment in stream.segments:
        segment.close()
    del stream, segment, kill, child
    assert leftovers() == before
