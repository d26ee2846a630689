"""Gradients that each make a version: how old they may be, and tokens without one."""

import pytest

from tests.unit.buffer.gather import test_gathering
from tests.unit.buffer.gather.test_gathering import mean
from tests.unit.buffer.rig import LAYOUT, STEPS
from tianji.algorithms.interface import Gather
from tianji.buffer.stores.sums import Sums
from tianji.channels.inproc import InprocStream
from tianji.channels.layout import GRADIENTS_FIELD, Layout
from tianji.types import GRADIENTS


class Rig(test_gathering.Rig):
    def __init__(self, max_lag=None):
        super().__init__(Gather("every"), num_actors=3, max_lag=max_lag)


def make_at(rig, version, *actors):
    for actor in actors:
        rig.add(actor, version)
        rig.token(actor, version)
    rig.buffer.tick()


def takes(rig):
    """All versions that can be made of what has arrived; returns the first entry of each."""
    made = []
    while (batch := rig.buffer.take()) is not None:
        made.append(mean(batch)[0])
        rig.finish(batch)
        rig.buffer.tick()
    return made


def test_without_a_bound_every_gradient_makes_a_version_and_its_lag_is_counted():
    rig = Rig()
    make_at(rig, 0, 0, 1, 2)
    assert takes(rig) == [0, 10, 20]
    assert rig.buffer.lag.counts() == [1, 1, 1]
    assert rig.buffer.discarded == 0


def test_a_gradient_that_is_too_old_is_discarded_and_counted():
    rig = Rig(max_lag=1)
    make_at(rig, 0, 0, 1, 2)
    assert takes(rig) == [0, 10]
    assert rig.buffer.discarded == 1
    assert rig.buffer.lag.counts() == [1, 1]
    assert rig.progress.env_steps == 3 * STEPS, "its steps were made"


@pytest.mark.parametrize("max_lag", [0, 1])
def test_an_actor_whose_gradient_was_discarded_makes_another(max_lag):
    rig = Rig(max_lag)
    make_at(rig, 0, 0, 1, 2)
    takes(rig)
    make_at(rig, rig.version, 2)
    assert takes(rig) == [20]


@pytest.fixture
def with_memories(monkeypatch):
    """Tokens say whether their actor has added a gradient."""
    layout = Layout((*LAYOUT.fields, GRADIENTS_FIELD), LAYOUT.num_rows, LAYOUT.num_envs)

    class Stream(test_gathering.Stream):
        def __init__(self, num_slots, num_lanes):
            InprocStream.__init__(self, layout, num_slots, num_lanes)
            self.missing = set()

    monkeypatch.setattr(test_gathering, "Stream", Stream)


def test_a_token_without_a_gradient_makes_no_version_and_its_actor_goes_on(with_memories):
    rig = Rig()
    rig.stream.arrays[GRADIENTS][:] = 0
    rig.token(1)
    rig.buffer.tick()
    assert takes(rig) == []
    rig.stream.arrays[GRADIENTS][:] = 1
    make_at(rig, 0, 1)
    assert takes(rig) == [10]
    assert rig.buffer.discarded == 0
    assert rig.progress.env_steps == 2 * STEPS, "the steps of both count"
    assert (rig.buffer.items_put, rig.buffer.items_taken) == (1, 1), "filling a memory is no item"


def test_steps_that_were_sampled_are_those_that_are_trained_on():
    rig = Rig()
    rig.buffer._store = Sums(rig.buffer._gate, sampled_steps=32)
    make_at(rig, 0, 0)
    batch = rig.buffer.take()
    assert (batch.num_steps, batch.unique_steps) == (32, STEPS)
