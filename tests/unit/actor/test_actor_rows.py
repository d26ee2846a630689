"""What one unroll hands on to the next: the last observation, and rows for n-step returns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.scripted import ScriptedWorld, scripted_layout
from tests.unit.actor.rig import Rig
from tianji.channels.layout import Layout
from tianji.types import Field


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

        def recv(self, unroll, t):
            super().recv({**unroll, "obs": unroll["obs.place"]}, t)
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


def test_repeated_rows_do_not_make_an_unroll_older():
    """Serial training has them too: with max_lag 0 nothing may be given up for their sake."""
    rig = Rig(length=3, lookahead=2)
    for version in (1, 2, 3):
        rig.publish(version)
        stamp, _ = rig.unroll(version)
        assert (stamp.oldest_version, stamp.newest_version) == (version, version)


def test_a_value_of_the_whole_unroll_is_not_carried_where_there_are_as_many_rows_as_environments():
    """With 2 rows and 2 environments its length is that of a field with a value per row."""
    layout = scripted_layout(2, 2)
    fields = (*layout.fields, Field("memory", "float32", (), "unroll"))
    rig = Rig(length=1, lookahead=2, layout=Layout(fields, 2, 2))
    rig.publish(0)
    rig.grant(0)
    rig.tick(1)
    rig.stream.arrays["memory"][:] = [1.0, 2.0]
    rig.finish_unroll()
    rig.stream.arrays["memory"][:] = [3.0, 4.0]
    rig.grant(1)
    rig.tick(1)
    (slot,) = rig.stream.sent[0] or rig.stream.reserved[0]
    assert rig.stream.arrays["memory"][slot].tolist() == [3.0, 4.0]
