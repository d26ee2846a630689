"""Prioritised sampling: frequencies, weights, and what is given up."""

import numpy as np
import pytest

from tests.fakes.replay import make_replay, with_place, write_place
from tests.fakes.scripted import scripted_layout
from tianji.algorithms.interface import Proportional
from tianji.buffer.stores.proportional import ProportionalSampler
from tianji.channels.inproc import InprocStream
from tianji.types import PRIORITY, Field, Stamp

ROWS, ENVS, LANES = 4, 2, 2
SETTINGS = Proportional(alpha=0.5, beta=1.0, epsilon=0.0)


class Rig:
    """Two lanes; the action of each step is its number: 100 lane + 2 row + env."""

    def __init__(self, capacity=12, lookahead=2, more=(), settings=SETTINGS, minibatch=10):
        self.lookahead = lookahead
        layout = with_place(scripted_layout(ROWS + lookahead - 1, ENVS, more=more))
        self.layout = layout
        self.stream = InprocStream(layout, 2, LANES)
        self.arrays = self.stream.arrays
        self.store = make_replay(
            self.stream, layout, capacity, lookahead, minibatch=minibatch,
            make_sampler=lambda rings: ProportionalSampler(rings, settings),
        )  # fmt: skip
        self.tree = self.store._sampler._tree
        self.unrolls = [0] * LANES

    def put(self, lane=0, priority=None, invalid=()):
        slot, number = self.stream._free.pop(), self.unrolls[lane]
        first = self.lookahead - 1
        row = number * ROWS - first + np.arange(ROWS + first)
        self.arrays["valid"][slot] = row[:, None] >= 0
        for place in invalid:
            self.arrays["valid"][slot][place] = False
        self.arrays["action"][slot] = 100 * lane + 2 * row[:, None] + np.arange(ENVS)
        if priority is not None:
            self.arrays[PRIORITY][slot] = priority
        write_place(self.arrays, slot, 0, number * ROWS, ROWS)
        self.store.put(slot, Stamp(lane, number, 0, 0, ROWS * ENVS, 0, 0))
        self.unrolls[lane] += 1

    def take(self, count):
        self.store._owed = count
        batch = self.store.take(0)
        return batch, batch.arrays["action"].ravel()

    def priorities(self):
        """Of the items that can be drawn, by action."""
        sampler = self.store._sampler
        found = {}
        for place in np.flatnonzero(sampler._tree.get(np.arange(sampler._tree.capacity))):
            action = self.store._rings.arrays["action"].reshape(-1)[place]
            found[int(action)] = float(sampler._tree.get(np.array([place]))[0])
        return found


def test_new_items_have_the_highest_priority_so_far_and_reset_rows_have_none():
    rig = Rig()
    rig.put(invalid=[(2, 1)])
    steps = [0, 1, 2, 4, 5]  # the fourth row looks at a step that is not made yet
    assert rig.priorities() == dict.fromkeys(steps, 1.0)
    batch, actions = rig.take(10)
    rig.store.finish(batch, np.where(actions == 4, 16.0, 0.25))
    rig.put()
    assert rig.priorities()[4] == 4.0, "to the power of alpha"
    assert rig.priorities()[6] == rig.priorities()[13] == 4.0
    assert set(rig.priorities().values()) <= {0.5, 1.0, 4.0}


def test_frequencies_are_those_of_the_priorities():
    rig = Rig(minibatch=20_000)
    for lane in (0, 0, 1):
        rig.put(lane)
    known = rig.priorities()
    batch, actions = rig.take(20_000)
    rig.store.finish(batch, (actions % 7 + 1.0) ** 2)
    expected = {action: action % 7 + 1.0 for action in known}
    assert rig.priorities() == pytest.approx(expected)
    total = sum(expected.values())
    _, again = rig.take(20_000)
    found, counts = np.unique(again, return_counts=True)
    wanted = np.array([20_000 * expected[int(action)] / total for action in found])
    assert set(found.tolist()) == set(expected)
    assert ((counts - wanted) ** 2 / wanted).sum() < 50, "strata vary less than free draws"


def test_weights_make_up_for_the_frequencies():
    rig = Rig(minibatch=400)
    rig.put()
    batch, actions = rig.take(400)
    rig.store.finish(batch, (actions + 1.0) ** 2)
    batch, actions = rig.take(400)
    weights = batch.arrays["weight"].ravel()
    assert weights.dtype == np.float32 and weights.max() == 1.0
    products = weights * (actions + 1.0)
    np.testing.assert_allclose(products, products[0], rtol=1e-6)


def test_weights_of_two_stores_are_in_one_scale_once_multiplied_by_their_largest():
    """Each is drawn from its own total: the weight of an item is the inverse of its probability."""
    for factor in (1.0, 5.0):
        rig = Rig(minibatch=400)
        rig.put()
        batch, actions = rig.take(400)
        rig.store.finish(batch, (factor * (actions + 1.0)) ** 2)
        total = sum(rig.priorities().values())
        batch, actions = rig.take(1200)
        assert batch.arrays["largest_weight"].shape == (3,)
        weights = batch.arrays["weight"] * batch.arrays["largest_weight"][:, None]
        expected = total / (factor * (actions + 1.0))
        np.testing.assert_allclose(weights.ravel(), expected, rtol=1e-5)


def test_items_that_bring_their_priority_have_it():
    rig = Rig(more=(Field(PRIORITY, "float32"),))
    rig.put(priority=9.0)
    rig.put(priority=np.arange(5)[:, None])
    found = rig.priorities()
    assert found[0] == 3.0
    assert [found.get(action) for action in (6, 8, 10, 12)] == pytest.approx(
        [None, 1.0, 2.0**0.5, 3.0**0.5]
    ), "row 0 of an unroll is the last step of the one before: 0 is never drawn"


def test_what_is_overwritten_is_never_drawn_and_late_priorities_reach_nothing():
    rig = Rig(capacity=6, lookahead=2)
    rig.put()
    batch, _ = rig.take(10)
    for _ in range(3):
        rig.put()
    before = rig.priorities()
    rig.store.finish(batch, np.full(10, 99.0))
    assert rig.priorities() == before
    _, actions = rig.take(200)
    assert set(actions.tolist()) == set(before)
    assert len(before) == 6 * ENVS and min(before) >= 16


def test_a_store_that_takes_over_and_one_that_is_restored_draw_what_is_there():
    rig = Rig()
    for lane in (0, 1, 0):
        rig.put(lane)
    batch, actions = rig.take(40)
    rig.store.finish(batch, actions + 1.0)
    rings = rig.store._rings
    assert ProportionalSampler(rings, SETTINGS)._tree.total == len(rig.priorities())
    other = Rig()
    other.store.load_state(rig.store.state())
    assert other.priorities() == rig.priorities()
    one, two = rig.take(30)[0].arrays, other.take(30)[0].arrays
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
