"""A learner dies and another takes over: the replay store is still there."""

import gc

import numpy as np

from tests.fakes.replay import make_replay, with_place
from tests.fakes.scripted import scripted_layout
from tests.unit.channels.ends import make_bell, make_bells
from tianji.balance.set_point import SetPoint
from tianji.buffer.role import Buffer
from tianji.buffer.stores.ring_layout import RingLayout
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.memory import Segment
from tianji.channels.orders import BufferRows
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.config.run import RunConfig
from tianji.learner.progress import Progress
from tianji.types import PLACE, Stamp

CAPACITY, WARMUP, LENGTH, ENVS = 6, 4, 4, 2


class Rig:
    """One actor, and a learner's side that can be replaced."""

    def __init__(self, save_items=False):
        self.layout = with_place(scripted_layout(LENGTH, ENVS))
        self.memory = StreamMemory.create(self.layout, WARMUP + 6, 1)
        nbytes = RingLayout(self.layout, 1, CAPACITY * LENGTH, 1).nbytes
        self.replay = Segment.create("replay", nbytes)
        self.bells, self.save_items = make_bells(1), save_items
        self.rows = BufferRows.private(num_actors=1)
        self.made = 0
        self.start()
        self.sender = ShmSender(self.memory, 0, make_bell())

    def start(self):
        self.receiver = ShmReceiver(self.memory, self.bells)
        self.store = make_replay(
            self.receiver, self.layout, CAPACITY * LENGTH, warmup=WARMUP,
            saves_items=self.save_items, memory=self.replay.memory,
        )  # fmt: skip
        plan = WindowPlan(SetPoint(1, WARMUP, 1), max_lag=100)
        window = RatioWindow(plan, self.receiver, self.rows)
        self.buffer = Buffer(window, self.store, Progress(RunConfig(algorithm="ppo")))

    def replace(self):
        """The old one is gone with its process, and the new one begins with nothing."""
        self.receiver = self.store = self.buffer = None
        gc.collect()
        self.start()
        self.sender.attach()

    def version(self, number):
        while (batch := self.buffer.take()) is None:
            self.buffer.tick()
            grant = self.sender.reserve()
            if grant is not None:
                unroll = self.sender.unroll(grant.slot)
                unroll["valid"][:] = True
                unroll["reward"][:] = self.made
                unroll[PLACE][:] = 0, LENGTH * self.made, LENGTH
                self.sender.send(grant.slot, Stamp(0, grant.round, number, number, 8, 0, 0))
                self.made += 1
        self.buffer.finish(batch, number + 1)
        return batch

    def rewards(self):
        """The rewards of the unrolls that items may begin in, the oldest first."""
        rings = self.store._rings
        (begin,), (count,) = rings.begins(), rings.counts()
        rows = np.arange(begin, begin + count) % rings.num_rows
        valid, rewards = rings.arrays["valid"][0, rows, 0], rings.arrays["reward"][0, rows, 0]
        return list(dict.fromkeys(rewards[valid].tolist()))


def test_the_new_learner_holds_what_the_old_one_held_whatever_a_checkpoint_has():
    rig = Rig()
    for number in range(5):
        rig.version(number)
    held = rig.rewards()
    assert len(held) == CAPACITY
    saved = rig.buffer.state()
    assert "items" not in saved["store"], "it is too large to be saved"
    rig.version(5)
    held = rig.rewards()
    rig.replace()
    rig.buffer.load_state(saved)
    assert rig.rewards() == held, "also what came after the checkpoint"
    made = rig.made
    batch = rig.version(6)
    assert rig.made < made + WARMUP, "no second warm-up"
    assert set(np.unique(batch.arrays["reward"])) <= {*held, float(made)}
    assert rig.rewards() == [*held[1:], float(made)]


def test_without_a_checkpoint_it_is_there_too():
    rig = Rig()
    rig.version(0)
    held, made = rig.rewards(), rig.made
    rig.replace()
    assert rig.rewards() == held
    rig.version(1)
    assert rig.made < made + WARMUP, "no second warm-up"


def test_what_lies_in_memory_is_newer_than_what_a_checkpoint_has():
    rig = Rig(save_items=True)
    rig.version(0)
    saved = rig.buffer.state()
    rig.version(1)
    held = rig.rewards()
    rig.replace()
    rig.buffer.load_state(saved)
    assert rig.rewards() == held


def test_what_came_from_a_checkpoint_is_kept_as_well():
    rig = Rig(save_items=True)
    rig.version(0)
    saved, held = rig.buffer.state(), rig.rewards()
    again = Rig(save_items=True)
    again.buffer.load_state(saved)
    assert again.rewards() == held
    again.replace()
    assert again.rewards() == held
