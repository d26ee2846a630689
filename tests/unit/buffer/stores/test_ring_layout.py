"""The bytes of a replay store."""

import math

import pytest

from tianji.buffer.stores.ring_layout import RingLayout
from tianji.channels.layout import PLACE_FIELD, STANDARD_FIELDS, Layout
from tianji.envs.spaces import Frames, observation_fields
from tianji.types import Field

TRANSITIONS = 1_000_000
FRAME_BYTES = 84 * 84


def pong(length, lookahead, num_envs=8, num_lanes=2, more=()):
    fields = (
        *observation_fields(Frames(4, (84, 84)), keeps_final=False),
        Field("action", "int64"),
        *STANDARD_FIELDS,
        PLACE_FIELD,
        *more,
    )
    unroll = Layout(fields, length + lookahead - 1, num_envs)
    return RingLayout(unroll, num_lanes, TRANSITIONS // (num_lanes * num_envs), lookahead)


@pytest.mark.parametrize("lookahead", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("length", [1, 4, 20, 128])
def test_a_million_transitions_take_little_more_than_a_million_frames(length, lookahead):
    layout = pong(length, lookahead)
    assert layout.capacity * layout.num_lanes * layout.unroll.num_envs == TRANSITIONS
    assert TRANSITIONS * FRAME_BYTES < layout.nbytes <= 1.05 * TRANSITIONS * FRAME_BYTES


def test_many_environments_take_little_more_too():
    assert pong(4, 5, num_envs=64, num_lanes=15).nbytes < 1.05 * TRANSITIONS * FRAME_BYTES


def test_every_array_lies_in_the_memory_and_none_in_another():
    layout = RingLayout(pong(2, 3).unroll, num_lanes=2, capacity=5, lookahead=3)
    arrays = layout.arrays(bytearray(layout.nbytes))
    for number, array in enumerate(arrays.values()):
        array[...] = number % 2
    assert all((array == number % 2).all() for number, array in enumerate(arrays.values()))
    rest = layout.nbytes - sum(array.nbytes for array in arrays.values())
    assert 0 <= rest < 64 * len(arrays)


def test_final_observations_do_not_double_the_memory():
    one = Field("final_obs", "float32", (1000,))
    fields = (Field("obs", "float32", (1000,), "obs"), *pong(4, 1).unroll.fields[2:])
    plain = RingLayout(Layout(fields, 4, 8), 2, 62_500, 1)
    keeping = RingLayout(Layout((*fields, one), 4, 8), 2, 62_500, 1)
    assert keeping.nbytes < 1.15 * plain.nbytes
    small = RingLayout(Layout((*fields, Field("final_obs", "float32", (4,))), 4, 8), 2, 9, 1)
    assert small.num_finals == small.num_rows * 8, "small ones are kept for every step"


def test_a_batch_holds_two_stacks_for_each_transition():
    assert pong(4, 1).item_bytes == pytest.approx(2 * 4 * math.prod((84, 84)), rel=0.01)
