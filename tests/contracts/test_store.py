"""What every store does for the buffer in front of it, whatever it keeps and takes."""

import numpy as np
import pytest

from tests.fakes.replay import make_replay, with_place
from tests.fakes.scripted import scripted_layout
from tianji.algorithms.interface import Gather
from tianji.balance.set_point import SetPoint
from tianji.buffer.gather.adding import AtLearner
from tianji.buffer.gather.gate import GatherGate, GatherPlan
from tianji.buffer.gather.rules import build_rule
from tianji.buffer.role import Buffer
from tianji.buffer.stores.pool import Pool
from tianji.buffer.stores.queue import Queue
from tianji.buffer.stores.replay import Replay
from tianji.buffer.stores.sums import Sums
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.contributions import (
    Contribution,
    ContributionReader,
    ContributionWriter,
    contribution_bytes,
)
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.orders import BufferRows, Order
from tianji.config.run import RunConfig
from tianji.learner.progress import Progress
from tianji.types import PLACE, Field, Stamp

ROWS, ENVS, ACTORS, SLOTS, PER_VERSION, P = 4, 2, 2, 24, 4, 3
STEPS = ROWS * ENVS
MEMORY = Field("memory", "float32", (2,), "unroll")
LAYOUT = with_place(scripted_layout(ROWS, ENVS, more=(MEMORY,)))
CAPACITY = 2 * PER_VERSION


def _sums(rig):
    rule = build_rule(Gather("first", PER_VERSION, PER_VERSION), ACTORS)
    boards = [InprocBoard(contribution_bytes(P)) for _ in range(ACTORS)]
    rig.writers = [ContributionWriter(board, board) for board in boards]
    adding = AtLearner(rule, ContributionReader(boards), P)
    gate = GatherGate(GatherPlan(P), rule, adding, rig.stream, rig.rows)
    return gate, Sums(gate)


def _window(make_store):
    def build(rig):
        plan = WindowPlan(SetPoint(PER_VERSION, 0, 1), max_lag=9)
        window = RatioWindow(plan, rig.stream, rig.rows)
        return window, make_store(rig.stream)

    return build


STORES = {
    "queue": _window(lambda stream: Queue(stream, LAYOUT.env_axes())),
    "pool": _window(lambda stream: Pool(stream, LAYOUT.env_axes(), CAPACITY, PER_VERSION, seed=0)),
    "replay": _window(lambda stream: make_replay(stream, LAYOUT, CAPACITY * ROWS // ACTORS)),
    "sums": _sums,
    "simulated": _window(lambda stream: Queue(stream, {})),
}
every_store = pytest.mark.parametrize("name", STORES)


class Rig:
    """A buffer with one of the stores, and actors that are moved by hand."""

    def __init__(self, name):
        self.stream = InprocStream(LAYOUT, SLOTS, ACTORS)
        self.stream.arrays["valid"][:] = True
        self.stream.arrays["episode_length"][:] = 0
        self.senders = [self.stream.sender(actor) for actor in range(ACTORS)]
        self.rows = BufferRows.private(ACTORS)
        self.gauges = self.rows.gauges
        self.actor_gauges = [actor.gauges for actor in self.rows.actors]
        self.progress = Progress(RunConfig(algorithm="ppo"))
        self.gate, self.store = STORES[name](self)
        self.buffer = Buffer(self.gate, self.store, self.progress)
        self.version = self.sent = 0
        self.counts = [0] * ACTORS
        self.buffer.tick()

    def send(self, actor):
        """Make one item, if the actor may; it is of the newest version."""
        grant = self.senders[actor].reserve()
        if grant is None:
            return False
        if isinstance(self.store, Sums):
            self.counts[actor] += 1
            contribution = Contribution(self.version, self.counts[actor])
            self.writers[actor].post(contribution, np.full(P, self.counts[actor], np.float32))
        self.stream.arrays[PLACE][grant.slot] = 0, grant.round * ROWS, ROWS
        stamp = Stamp(actor, grant.round, self.version, self.version, STEPS, 0, 0)
        self.senders[actor].send(grant.slot, stamp)
        self.sent += 1
        self.buffer.tick()
        return True

    def batch(self):
        """Let the actors work in turn until there is a batch."""
        for turn in range(100):
            if (batch := self.buffer.take()) is not None:
                return batch
            self.send(turn % ACTORS)
        raise AssertionError("there is never a batch")

    def finish(self, batch):
        self.version += 1
        self.counts = [0] * ACTORS
        self.buffer.finish(batch, self.version)

    def free_slots(self):
        """Slots that nobody holds."""
        return len(self.stream._free)


@every_store
def test_nothing_is_taken_before_there_is_enough_nor_twice(name):
    rig = Rig(name)
    assert rig.buffer.take() is None
    for number in range(PER_VERSION - 1):
        assert rig.send(number % ACTORS)
        assert rig.buffer.take() is None
    batch = rig.batch()
    assert rig.buffer.take() is None
    rig.finish(batch)
    assert rig.buffer.take() is None


@every_store
def test_no_slot_is_ever_lost(name):
    rig = Rig(name)
    for _ in range(12):
        rig.finish(rig.batch())
    granted = sum(map(len, rig.stream.granted))
    held = 0 if isinstance(rig.store, Replay) else rig.store.num_held()  # it has copies
    assert rig.free_slots() + granted + held == SLOTS


@every_store
def test_every_item_has_its_lag_and_its_steps_are_counted_once(name):
    rig = Rig(name)
    unique = 0
    for _ in range(6):
        batch = rig.batch()
        unique += batch.unique_steps
        rig.finish(batch)
    entered = sum(rig.buffer.lag.counts())
    assert entered == 6 * PER_VERSION
    assert rig.progress.env_steps == rig.gauges[Gauge.RECEIVED_STEPS] == rig.sent * STEPS
    assert 0 < unique <= entered * STEPS


@every_store
def test_what_is_taken_stands_in_the_ratio_to_what_is_put(name):
    rig = Rig(name)
    for _ in range(6):
        rig.finish(rig.batch())
    assert rig.buffer.items_taken / rig.buffer.items_put == (2.0 if name == "replay" else 1.0)


@every_store
def test_a_lane_that_is_reset_gives_its_slots_back_and_the_rounds_are_made_again(name):
    rig = Rig(name)
    rig.finish(rig.batch())
    reserved = rig.senders[0].reserve()
    assert reserved is not None
    actor = rig.rows.actors[0]
    actor.supervision[Order.RESETS] = rig.rows.supervision[Order.RESETS] = 1
    rig.buffer.tick()
    assert actor.orders[Order.RESETS] == 1
    rig.buffer.tick()
    again = rig.senders[0].reserve()
    assert again is not None and again.round == reserved.round


@every_store
def test_a_restored_buffer_continues_with_the_same_counts_and_rounds(name):
    rig, other = Rig(name), Rig(name)
    for _ in range(3):
        rig.finish(rig.batch())
    state = rig.buffer.state()
    fresh = STORES[name](other)
    other.gate, other.store = fresh
    other.stream = other.gate.lanes.receiver
    other.buffer = Buffer(*fresh, other.progress)
    other.buffer.load_state(state)
    other.buffer.continue_at(rig.version)
    assert other.buffer.items_put == rig.buffer.items_put
    assert other.buffer.items_taken == rig.buffer.items_taken
    assert other.buffer.lag.counts() == rig.buffer.lag.counts()
    assert other.buffer.state()["rounds"] == state["rounds"]


@every_store
def test_priorities_may_come_back_with_a_batch(name):
    rig = Rig(name)
    batch = rig.batch()
    priorities = None if batch.keys is None else np.ones(len(batch.keys))
    rig.buffer.finish(batch, 1, priorities)


@pytest.mark.parametrize("name", ["queue", "pool"])
def test_a_memory_of_each_environment_stands_beside_its_unroll(name):
    rig = Rig(name)
    rig.stream.arrays["memory"][:] = np.arange(SLOTS)[:, None, None]
    rig.stream.arrays["reward"][:] = np.arange(SLOTS)[:, None, None]
    arrays = rig.batch().arrays
    assert arrays["memory"].shape == (PER_VERSION * ENVS, 2)
    assert (arrays["memory"][:, 0] == arrays["reward"][0]).all()
