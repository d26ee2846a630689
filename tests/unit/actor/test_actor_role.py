"""The actor: what it waits for, what it sends, and what its stamps and gauges say."""

import pytest

from tests.fakes.scripted import ScriptedWorld
from tests.unit.actor.rig import Rig
from tianji.channels.gauges import Activity, Gauge


def test_without_a_policy_it_waits_although_it_may_start():
    rig = Rig()
    rig.grant()
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.WAITING
    assert rig.world.seeds == []


def test_without_a_grant_it_is_paced():
    rig = Rig()
    rig.publish(0)
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.PACED
    assert rig.gauges[Gauge.STARTED_VERSION] == 0
    rig.grant()
    assert rig.actor.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.ACTING


def test_a_tick_is_one_step_and_the_last_one_sends():
    rig = Rig(length=4)
    rig.publish(0)
    rig.grant()
    rig.tick(3)
    assert rig.stream.take() is None
    rig.tick(1)
    assert rig.stream.take() is not None
    assert rig.world.made.tolist() == [3, 4], "the first environment was reset in the fourth row"


def test_an_unroll_holds_every_step_of_its_environments():
    rig = Rig(length=6, world=ScriptedWorld(lengths=(3, 5)))
    rig.publish(0)
    stamp, arrays = rig.unroll()
    assert arrays["obs"][:, 0, 1:].tolist() == [
        [0, 0],
        [1, 1],
        [2, 2],
        [3, 3],
        [3, 0],
        [4, 1],
        [5, 2],
    ]
    assert arrays["reward"][:, 0].tolist() == [1, 2, 3, 0, 4, 5]
    assert arrays["valid"][:, 0].tolist() == [True, True, True, False, True, True]
    assert arrays["valid"][:, 1].tolist() == [True, True, True, True, True, False]
    assert arrays["terminated"][:, 1].tolist() == [False, False, False, False, True, False]
    assert stamp.env_steps == 10, "rows of a reset count as no step"


def test_the_stamp_says_which_versions_acted_when_the_policy_changes_on_the_way():
    rig = Rig(length=4)
    rig.publish(3)
    rig.grant(7)
    rig.tick(2)
    rig.publish(5)
    rig.tick(1)
    rig.publish(6)
    stamp, arrays = rig.finish_unroll()
    assert (stamp.actor, stamp.round) == (0, 7)
    assert (stamp.oldest_version, stamp.newest_version) == (3, 6)
    assert arrays["action"][:, 0].tolist() == [3, 3, 5, 6]
    stamp, _ = rig.unroll(8)
    assert (stamp.oldest_version, stamp.newest_version) == (6, 6)
    assert rig.gauges[Gauge.VERSION] == 6


def test_steps_before_follow_from_the_round_that_was_granted():
    rig = Rig(length=4, num_actors=3, lookahead=2)
    rig.publish(0)
    for number in (0, 5, 2):
        rig.unroll(number)
    per_round = 3 * 4 * 2
    assert [(first, steps) for first, steps, _ in rig.acting.begun] == [
        (1, 0), (1, 5 * per_round), (1, 2 * per_round)
    ]  # fmt: skip


def test_the_acting_side_finishes_every_unroll_once_and_only_its_new_rows():
    rig = Rig(length=2, lookahead=2)
    rig.publish(0)
    rig.unroll(0)
    _, arrays = rig.unroll(1)
    assert arrays["finished"][:, 0].tolist() == [1, 2, 2]
    assert rig.acting.finished == 2


def test_its_gauges_count_what_it_made():
    rig = Rig(length=4, world=ScriptedWorld((3, 9)))
    rig.publish(0)
    rig.unroll(0)
    began_ns = rig.gauges[Gauge.FIRST_STEP_NS]
    rig.unroll(1)
    assert rig.gauges[Gauge.ITEMS] == 2
    assert rig.gauges[Gauge.STEPS] == 6 + 8
    assert rig.gauges[Gauge.FIRST_STEP_NS] == began_ns > 0
    assert rig.gauges[Gauge.HEARTBEAT_NS] > began_ns


def test_the_version_an_unroll_began_under_is_shown_while_it_is_in_work():
    rig = Rig(length=2)
    rig.publish(4)
    rig.grant()
    rig.tick(1)
    rig.publish(5)
    assert rig.gauges[Gauge.STARTED_VERSION] == 4 + 1
    rig.tick(1)
    assert rig.gauges[Gauge.STARTED_VERSION] == 0


def test_rows_carry_the_time_at_which_they_were_finished():
    clock = iter(range(100, 200))
    rig = Rig(length=3, now_ns=lambda: next(clock))
    rig.publish(0)
    stamp, arrays = rig.unroll()
    assert arrays["row_ns"].tolist() == [102, 104, 106]
    assert (stamp.started_ns, stamp.finished_ns) == (100, 106)


def test_rows_carry_the_version_that_acted_in_them():
    rig = Rig(length=4)
    rig.publish(4)
    rig.grant()
    rig.tick(1)
    rig.publish(7)
    stamp, arrays = rig.finish_unroll()
    assert arrays["row_version"].tolist() == [4, 7, 7, 7]
    assert (stamp.oldest_version, stamp.newest_version) == (4, 7)


def test_actors_with_the_same_seed_do_the_same_and_others_do_not():
    seeds = []
    for seed in (1, 1, 2):
        rig = Rig(seed=seed)
        rig.publish(0)
        rig.unroll()
        seeds.append((rig.world.seeds, rig.acting.begun))
    assert seeds[0] == seeds[1]
    assert seeds[0][0] != seeds[2][0]
    assert seeds[0][1] != seeds[2][1]


@pytest.mark.parametrize("lookahead", [1, 3])
def test_a_restored_actor_makes_the_same_next_unroll(lookahead):
    one, other = (Rig(length=3, lookahead=lookahead, world=ScriptedWorld((4, 5))) for _ in "ab")
    one.publish(1)
    for number in range(3):
        one.unroll(number)
    other.publish(1)
    other.actor.load_state(one.actor.state())
    one.publish(2)
    other.publish(2)
    for number in (3, 4):
        (stamp, arrays), (other_stamp, other_arrays) = one.unroll(number), other.unroll(number)
        assert stamp[:5] == other_stamp[:5]
        for name in arrays.keys() - {"row_ns", "finished"}:
            assert arrays[name].tobytes() == other_arrays[name].tobytes(), name
    assert one.acting.begun[-2:] == other.acting.begun
    assert other.world.seeds == []


def test_a_saved_state_does_not_change_when_the_actor_goes_on():
    rig = Rig(length=3, lookahead=2)
    rig.publish(0)
    rig.unroll(0)
    state = rig.actor.state()
    kept = {name: rows.copy() for name, rows in state["carry"].items()}
    rig.unroll(1)
    assert all((state["carry"][name] == rows).all() for name, rows in kept.items())


class _StatelessBeforeReset(ScriptedWorld):
    """Like Pendulum-v1, which has no attribute `state` before its first reset."""

    def get_state(self):
        assert self.seeds, "asked for a state before the first reset"
        return super().get_state()


def test_there_is_no_state_before_the_first_unroll_nor_where_the_world_has_none():
    rig = Rig(world=_StatelessBeforeReset())
    assert rig.actor.state() is None
    rig = Rig(world=ScriptedWorld(offers_state=False))
    rig.publish(0)
    rig.unroll()
    assert rig.actor.state() is None


def test_closing_the_actor_closes_its_world():
    rig = Rig()
    rig.actor.close()
    assert rig.world.is_closed


def test_an_actor_that_takes_over_does_not_live_through_the_same_episodes_again():
    seeds = []
    for number in (0, 3):
        rig = Rig(seed=1)
        rig.publish(0)
        rig.unroll(number)
        seeds.append((rig.world.seeds, rig.acting.begun[0][2]))
    assert seeds[0] != seeds[1]
