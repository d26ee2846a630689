"""Unrolls that are cut short: the lane was reset, or the buffer asks to hurry."""

import pytest

from tests.fakes.scripted import ScriptedWorld
from tests.unit.actor.rig import Rig
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Order


def test_after_a_reset_of_its_lane_it_gives_up_the_slot_and_its_environments_go_on():
    rig = Rig(length=4, world=ScriptedWorld((3, 6)))
    rig.publish(0)
    rig.grant(0)
    rig.tick(2)
    rig.stream.reset_lane(0)
    assert not rig.actor.tick(), "a grant of before the reset is void"
    assert rig.stream.take() is None
    assert rig.gauges[Gauge.DISCARDED] == 1
    assert rig.gauges[Gauge.STARTED_VERSION] == 0
    _, arrays = rig.unroll(0)
    assert len(rig.world.seeds) == 1
    assert arrays["obs"][0, :, 1].tolist() == [2, 2]
    assert arrays["reward"][:, 1].tolist() == [3, 4, 5, 6]


def test_episodes_that_began_in_a_slot_given_up_keep_their_whole_length_and_return():
    rig = Rig(length=4, world=ScriptedWorld((3, 6)))
    rig.publish(0)
    rig.grant(0)
    rig.tick(2)
    rig.stream.reset_lane(0)
    rig.actor.tick()
    _, arrays = rig.unroll(0)
    assert arrays["episode_length"].tolist() == [[3, 0], [0, 0], [0, 0], [0, 6]]
    assert arrays["episode_return"].tolist() == [[6, 0], [0, 0], [0, 0], [0, 21]]


def test_n_step_rows_survive_a_slot_that_was_given_up():
    rig = Rig(length=4, lookahead=3, world=ScriptedWorld((9, 9)))
    rig.publish(0)
    rig.grant(0)
    rig.tick(3)
    rig.stream.reset_lane(0)
    rig.actor.tick()
    _, arrays = rig.unroll(0)
    assert arrays["reward"][:, 0].tolist() == [2, 3, 4, 5, 6, 7]
    assert arrays["obs"][:, 0, 1].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert arrays["valid"].all()


def test_a_reset_between_two_unrolls_costs_nothing():
    rig = Rig(length=3)
    rig.publish(0)
    rig.unroll(0)
    rig.stream.reset_lane(0)
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.DISCARDED] == 0
    _, arrays = rig.unroll(1)
    assert arrays["obs"][0, 1, 1] == 3


def test_a_hurried_unroll_is_handed_over_after_the_current_step():
    rig = Rig(length=5, world=ScriptedWorld((3, 9)))
    rig.publish(0)
    rig.grant(2)
    rig.tick(2)
    rig.orders[Order.HURRY] = 3
    stamp, arrays = rig.finish_unroll()
    assert (stamp.round, stamp.env_steps) == (2, 6)
    assert arrays["valid"][:, 0].tolist() == [True, True, True, False, False]
    for name in ("valid", "terminated", "truncated"):
        assert not arrays[name][3:].any(), f"{name} of the slot's last use is still there"
    assert arrays["episode_length"][:, 0].tolist() == [0, 0, 3, 0, 0]


def test_after_a_hurried_unroll_nothing_is_missing_or_doubled():
    rig = Rig(length=4, world=ScriptedWorld((9, 7)))
    rig.publish(0)
    rig.orders[Order.HURRY] = 1
    _, short = rig.unroll(0)
    _, long = rig.unroll(1)
    assert short["valid"][:, 0].tolist() == [True, False, False, False]
    assert long["reward"][:, 0].tolist() == [2, 3, 4, 5]
    _, last = rig.unroll(2)
    assert last["episode_length"][:, 1].tolist() == [0, 7, 0, 0]


@pytest.mark.parametrize("hurry", [0, 1, 2])
def test_only_rounds_before_the_hurried_one_are_hurried(hurry):
    rig = Rig(length=4)
    rig.publish(0)
    rig.orders[Order.HURRY] = hurry
    _, arrays = rig.unroll(2)
    assert arrays["valid"][:, 1].all()


def test_unrolls_with_repeated_rows_are_never_short():
    rig = Rig(length=4, lookahead=2, world=ScriptedWorld((9, 9)))
    rig.publish(0)
    rig.orders[Order.HURRY] = 9
    stamp, _ = rig.unroll(0)
    assert stamp.env_steps == 8
