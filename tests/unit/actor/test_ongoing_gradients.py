"""Gradients whose environments go on where the gradient before ended."""

import numpy as np

from tests.fakes.scripted import ScriptedWorld, scripted_layout
from tests.unit.actor import test_gradient_actor
from tests.unit.actor.test_gradient_actor import ROWS, make
from tianji.actor.episodes import OngoingEpisodes, OngoingPlan
from tianji.actor.gradients import GradientPlan
from tianji.channels.gauges import Gauge
from tianji.channels.inproc import InprocStream
from tianji.channels.layout import GRADIENTS_FIELD, PLACE_FIELD
from tianji.types import GRADIENTS, PLACE


class Rig(test_gradient_actor.Rig):
    """As for fresh gradients, but episodes go on."""

    def __init__(self, **settings):
        super().__init__(**settings)
        layout = scripted_layout(ROWS, 2, more=(PLACE_FIELD, GRADIENTS_FIELD))
        self.stream = InprocStream(layout, num_slots=4, num_lanes=1)
        plan = OngoingPlan(0, 2 * ROWS, 0, layout.row_names(), layout.observed())
        self.episodes = OngoingEpisodes(plan)
        self.actor = self.make_actor(GradientPlan(ROWS))

    def arrived(self):
        slot = self.stream.take()
        return {name: array[slot].copy() for name, array in self.stream.arrays.items()}


def two_gradients(rig):
    rig.publish(0)
    rig.grant(2)
    make(rig)
    rig.publish(1)
    make(rig)
    return rig.arrived(), rig.arrived()


def test_environments_are_reset_once_and_go_on():
    rig = Rig()
    one, other = two_gradients(rig)
    assert len(rig.world.seeds) == 1
    np.testing.assert_array_equal(other["obs"][0], one["obs"][-1])
    assert rig.world.made.tolist() == [6, 7], "8 rows, in which 2 and 1 were resets"


def test_an_episode_that_lasts_for_two_gradients_is_shown_whole():
    rig = Rig(world=ScriptedWorld(lengths=(6, 9)))
    one, other = two_gradients(rig)
    assert not one["episode_length"].any()
    assert other["episode_length"][:, 0].tolist() == [0, 6, 0, 0]


def test_the_policy_is_read_at_the_start_of_each_gradient_and_not_within():
    rig = Rig()
    rig.publish(0)
    rig.grant(2)
    rig.tick(2)
    rig.publish(1)
    rig.tick(2)
    make(rig)
    stamps = [rig.stream.stamp(rig.stream.take()) for _ in range(2)]
    assert [(s.oldest_version, s.newest_version) for s in stamps] == [(0, 0), (1, 1)]


def test_each_gradient_says_where_its_rows_belong_and_that_it_was_added():
    one, other = two_gradients(Rig())
    assert one[PLACE][0].tolist() == [0, 0, ROWS]
    assert other[PLACE][0].tolist() == [0, ROWS, ROWS]
    assert one[GRADIENTS].tolist() == other[GRADIENTS].tolist() == [1, 1]


def test_a_token_says_that_nothing_was_added():
    rig = Rig()
    rig.estimator.add = lambda unroll, num_rows: None
    rig.publish(0)
    rig.grant()
    make(rig)
    assert rig.arrived()[GRADIENTS].tolist() == [0, 0]
    assert rig.posted()[0] == (0, 0)


def test_after_a_gradient_that_was_given_up_episodes_go_on_from_where_they_are():
    rig = Rig()
    rig.publish(0)
    rig.grant()
    rig.tick(2)
    rig.actor._drop()
    make(rig)
    assert rig.gauges[Gauge.DISCARDED] == 1
    assert len(rig.world.seeds) == 1
    assert rig.arrived()[PLACE][0].tolist() == [0, 2, ROWS]


def test_whoever_takes_over_begins_other_episodes():
    dead, heir = Rig(), Rig(sums=None)
    for rig, number in ((dead, 0), (heir, 1)):
        rig.publish(0)
        assert rig.stream.grant(0, number, 1) == 1
        make(rig)
    assert dead.world.seeds[0] != heir.world.seeds[0]


def test_a_saved_state_continues_the_same_episodes():
    rig, other = Rig(), Rig()
    rig.publish(0)
    rig.grant()
    assert rig.actor.state() is None, "nothing is known before the first gradient"
    make(rig)
    other.actor.load_state(rig.actor.state())
    rig.stream.take()
    for each in (rig, other):
        each.publish(1)
        assert each.stream.grant(0, 1, 1) == 1
        make(each)
    one, same = rig.arrived(), other.arrived()
    assert not other.world.seeds, "they were not reset"
    for name in ("obs", "reward", "episode_length", PLACE):
        np.testing.assert_array_equal(one[name], same[name])
