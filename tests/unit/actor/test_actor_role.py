"""The actor alone, over channels in this process, with a world and a policy of known answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.scripted import (
    PAYLOAD_BYTES,
    ScriptedActing,
    ScriptedWorld,
    gauge_row,
    scripted_layout,
    write_version,
)
from tianji.actor.role import Actor, ActorPlan
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.layout import Layout
from tianji.types import Field


class Rig:
    """One actor, its lane and the policy board, with everything a test may want to turn."""

    def __init__(self, length=4, lookahead=1, world=None, num_actors=1, seed=0, layout=None):
        self.world = world or ScriptedWorld()
        self.acting = ScriptedActing()
        self.gauges = gauge_row()
        self.board = InprocBoard(PAYLOAD_BYTES)
        num_rows = length + lookahead - 1
        num_envs = self.world.num_envs
        layout = layout or scripted_layout(num_rows, num_envs, self.world.keeps_final)
        self.stream = InprocStream(layout, num_slots=2, num_lanes=1)
        self.poison()
        plan = ActorPlan(0, num_actors, num_rows, lookahead, length * num_envs, seed)
        self.actor = Actor(
            plan, self.world, self.acting, self.acting.read_policy, self.board,
            self.stream.sender(0), self.gauges,
        )  # fmt: skip
        self.first = lookahead - 1

    def poison(self, slot=slice(None)):
        """Whatever is not written is wrong."""
        for array in self.stream.arrays.values():
            array[slot] = np.nan if array.dtype.kind == "f" else True

    def publish(self, version):
        self.board.post(version, write_version(version))

    def grant(self, number=0):
        assert self.stream.grant(0, number)

    def finish_unroll(self):
        """Tick until the unroll in work has arrived; its stamp and a copy of its arrays."""
        while (slot := self.stream.take()) is None:
            assert self.actor.tick()
        arrays = {name: array[slot].copy() for name, array in self.stream.arrays.items()}
        stamp = self.stream.stamp(slot)
        self.poison(slot)
        self.stream.release(slot)
        return stamp, arrays

    def unroll(self, number=0):
        self.grant(number)
        return self.finish_unroll()

    def tick(self, count):
        for _ in range(count):
            assert self.actor.tick()


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
    assert arrays["obs"][:, 0, 1:].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3], [3, 0], [4, 1], [5, 2]]
    assert arrays["reward"][:, 0].tolist() == [1, 2, 3, 0, 4, 5]
    assert arrays["valid"][:, 0].tolist() == [True, True, True, False, True, True]
    assert arrays["valid"][:, 1].tolist() == [True, True, True, True, True, False]
    assert arrays["terminated"][:, 1].tolist() == [False, False, False, False, True, False]
    assert stamp.env_steps == 10, "rows of a reset count as no step"


def test_the_next_unroll_begins_where_the_last_one_ended():
    rig = Rig(length=4)
    rig.publish(0)
    _, before = rig.unroll(0)
    _, after = rig.unroll(1)
    assert (after["obs"][0] == before["obs"][-1]).all()
    assert len(rig.world.seeds) == 1, "environments are reset once in their life"


def test_every_leaf_of_a_dictionary_observation_is_carried():
    class TwoLeaves(ScriptedWorld):
        def reset(self, seed, unroll):
            super().reset(seed, {"obs": unroll["obs.place"]})
            unroll["obs.count"][0] = self.made

        def step(self, actions, unroll, t):
            super().step(actions, {**unroll, "obs": unroll["obs.place"]}, t)
            unroll["obs.count"][t + 1] = self.made

    plain = scripted_layout(5, 2)
    fields = (
        Field("obs.place", "float32", (3,), "obs"), Field("obs.count", "int64", (), "obs"),
        *plain.fields[1:],
    )  # fmt: skip
    rig = Rig(length=3, lookahead=3, world=TwoLeaves(), layout=Layout(fields, 5, 2))
    rig.publish(0)
    _, before = rig.unroll(0)
    _, after = rig.unroll(1)
    for name in ("obs.place", "obs.count"):
        assert (after[name][:3] == before[name][3:]).all()


def test_n_step_rows_are_repeated_exactly_and_in_every_field():
    rig = Rig(length=3, lookahead=3)
    rig.publish(0)
    _, before = rig.unroll(0)
    for number in range(1, 6):
        _, after = rig.unroll(number)
        for name, rows in after.items():
            if name == "obs":
                assert (rows[:3] == before[name][3:]).all()
            else:
                assert (rows[:2] == before[name][3:]).all(), name
        before = after


def test_the_first_rows_of_all_are_not_valid_when_there_is_nothing_to_repeat():
    rig = Rig(length=3, lookahead=3)
    rig.publish(0)
    stamp, arrays = rig.unroll()
    for name in ("valid", "terminated", "truncated"):
        assert not arrays[name][:2].any(), name
    assert arrays["obs"][2].tolist() == [[0, 0, 0], [1, 0, 0]]
    assert stamp.env_steps == 6, "repeated rows are not counted again"


@given(
    lookahead=st.integers(1, 4),
    length=st.integers(1, 5),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    keeps_final=st.booleans(),
)
def test_the_rows_that_are_new_are_one_unbroken_history(lookahead, length, lengths, keeps_final):
    """Cut into unrolls or not, with rows repeated or not: the same steps in the same order."""
    rig = Rig(length, lookahead, ScriptedWorld(lengths, keeps_final=keeps_final))
    whole = Rig(6 * length, 1, ScriptedWorld(lengths, keeps_final=keeps_final))
    rig.publish(0)
    whole.publish(0)
    parts = [rig.unroll(number) for number in range(6)]
    in_all, expected = whole.unroll()
    names = ("reward", "valid", "terminated", "truncated", "episode_return", "episode_length")
    for name in names:
        found = np.concatenate([arrays[name][rig.first :] for _, arrays in parts])
        assert (found == expected[name]).all(), name
    for part, (_, arrays) in enumerate(parts):
        rows = slice(part * length, (part + 1) * length + 1)
        assert (arrays["obs"][rig.first :] == expected["obs"][rows]).all()
    assert sum(stamp.env_steps for stamp, _ in parts) == in_all.env_steps


def test_final_observations_are_repeated_with_the_rows_they_belong_to():
    rig = Rig(length=3, lookahead=2, world=ScriptedWorld((3, 3), keeps_final=True))
    rig.publish(0)
    rig.unroll(0)
    _, arrays = rig.unroll(1)
    assert arrays["terminated"][0].all()
    assert arrays["final_obs"][0, :, 1:].tolist() == [[3, 3], [3, 3]]
    assert arrays["obs"][1, :, 1:].tolist() == [[3, 0], [3, 0]]


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


def test_repeated_rows_make_an_unroll_as_old_as_the_one_they_come_from():
    rig = Rig(length=3, lookahead=2)
    for version, oldest in ((1, 1), (2, 1), (3, 2)):
        rig.publish(version)
        stamp, arrays = rig.unroll(version)
        assert (stamp.oldest_version, stamp.newest_version) == (oldest, version)
        assert arrays["action"][arrays["valid"]].min() == oldest


@pytest.mark.xfail(strict=True, reason="the stamp looks back one unroll, the rows may go further")
def test_rows_repeated_from_several_unrolls_before_are_in_the_stamp_too():
    rig = Rig(length=1, lookahead=4)
    for version in range(1, 6):
        rig.publish(version)
        stamp, arrays = rig.unroll(version)
    assert stamp.oldest_version == arrays["action"][arrays["valid"]].min()


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


def test_rows_carry_the_time_at_which_they_were_finished(monkeypatch):
    clock = iter(range(100, 200))
    monkeypatch.setattr("tianji.actor.role.time.monotonic_ns", lambda: next(clock))
    rig = Rig(length=3)
    rig.publish(0)
    stamp, arrays = rig.unroll()
    assert arrays["row_ns"].tolist() == [101, 102, 103]
    assert (stamp.started_ns, stamp.finished_ns) == (100, 103)


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


@pytest.mark.xfail(strict=True, reason="_abandon does not note the version of the rows it keeps")
def test_rows_kept_of_a_slot_that_was_given_up_are_as_old_as_they_are():
    rig = Rig(length=4, lookahead=3, world=ScriptedWorld((9, 9)))
    rig.publish(1)
    rig.grant(0)
    rig.tick(3)
    rig.stream.reset_lane(0)
    rig.actor.tick()
    rig.publish(5)
    stamp, arrays = rig.unroll(0)
    assert stamp.oldest_version == arrays["action"][arrays["valid"]].min() == 1


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
    rig.gauges[Gauge.HURRY] = 3
    stamp, arrays = rig.finish_unroll()
    assert (stamp.round, stamp.env_steps) == (2, 6)
    assert arrays["valid"][:, 0].tolist() == [True, True, True, False, False]
    for name in ("valid", "terminated", "truncated"):
        assert not arrays[name][3:].any(), f"{name} of the slot's last use is still there"
    assert arrays["episode_length"][:, 0].tolist() == [0, 0, 3, 0, 0]


def test_after_a_hurried_unroll_nothing_is_missing_or_doubled():
    rig = Rig(length=4, world=ScriptedWorld((9, 7)))
    rig.publish(0)
    rig.gauges[Gauge.HURRY] = 1
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
    rig.gauges[Gauge.HURRY] = hurry
    _, arrays = rig.unroll(2)
    assert arrays["valid"][:, 1].all()


def test_unrolls_with_repeated_rows_are_never_short():
    rig = Rig(length=4, lookahead=2, world=ScriptedWorld((9, 9)))
    rig.publish(0)
    rig.gauges[Gauge.HURRY] = 9
    stamp, _ = rig.unroll(0)
    assert stamp.env_steps == 8


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


def test_there_is_no_state_before_the_first_unroll_nor_where_the_world_has_none():
    assert Rig().actor.state() is None
    rig = Rig(world=ScriptedWorld(offers_state=False))
    rig.publish(0)
    rig.unroll()
    assert rig.actor.state() is None


def test_closing_the_actor_closes_its_world():
    rig = Rig()
    rig.actor.close()
    assert rig.world.is_closed
