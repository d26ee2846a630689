"""An actor whose policy has a memory: states go on from unroll to unroll, and end with episodes."""

import numpy as np
import pytest

from tests.fakes.scripted import ScriptedWorld, scripted_layout
from tests.unit.actor.rig import Rig
from tianji.algorithms.memory import forget_ended
from tianji.types import MEMORY, NEXT_MEMORY, Field

FIELDS = tuple(Field(name, "float32", (1,), "unroll") for name in (MEMORY, NEXT_MEMORY))


class Counter:
    """A memory that counts the rows of an episode, in the unroll as real ones do."""

    def __init__(self, acting):
        self.begin_unroll, self.act_row = acting.begin, acting.act

    def begin(self, rng, unroll, first_row, steps_before):
        self.begin_unroll(rng, unroll, first_row, steps_before)
        unroll[NEXT_MEMORY][:] = unroll[MEMORY]

    def act(self, unroll, t):
        if t:
            forget_ended(unroll, t - 1, unroll[NEXT_MEMORY])
        unroll[NEXT_MEMORY] += 1.0
        return self.act_row(unroll, t)


def make_rig(length, **more):
    world = ScriptedWorld(lengths=(3, 5))
    rig = Rig(length, world=world, layout=scripted_layout(length, 2, more=FIELDS), **more)
    counter = Counter(rig.acting)
    rig.actor._inference.begin, rig.actor._inference.act = counter.begin, counter.act
    rig.publish(0)
    return rig


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7])
def test_an_unroll_starts_with_the_states_after_the_one_before(length):
    """Episodes have 3 and 5 steps, and a row that only resets follows each: cut anywhere, unrolls
    hold the states of a long one. The state before a row counts the rows of its episode."""
    rig = make_rig(length)
    found = [rig.unroll(number)[1][MEMORY][:, 0].tolist() for number in range(21 // length)]
    first, second = [0, 1, 2, 0] * 6, [0, 1, 2, 3, 4, 0] * 4
    expected = [[float(first[t]), float(second[t])] for t in range(0, 21, length)]
    assert found == expected[: len(found)]


def test_a_dropped_unroll_leaves_its_states_to_the_next():
    rig = make_rig(4)
    rig.grant(0)
    rig.tick(2)
    rig.actor._drop()
    rig.actor._begin()
    assert rig.actor._unroll[MEMORY][:, 0].tolist() == [2.0, 2.0]


def test_states_are_part_of_what_a_checkpoint_keeps():
    rig, again = make_rig(2), make_rig(2)
    rig.unroll(0)
    state = rig.actor._assembler.state()
    again.actor._assembler.load_state(state)
    again.grant(1)
    assert again.actor.begin()
    np.testing.assert_array_equal(again.actor._unroll[MEMORY], [[2.0], [2.0]])
