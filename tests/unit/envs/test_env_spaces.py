"""Observations become named arrays, actions become what environments accept."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Text,
    Tuple,
)
from gymnasium.vector.utils import batch_space, create_empty_array
from hypothesis import given, settings
from hypothesis import strategies as st

from tianji.envs.spaces import (
    ObservationWriter,
    make_action_cast,
    observation_fields,
    observation_leaves,
)
from tianji.errors import UsageError
from tianji.types import Field


@pytest.mark.parametrize(
    ("space", "dtype", "shape"),
    [
        (Box(0.0, 1.0, (3,), np.float32), "float32", (3,)),
        (Box(0.0, 1.0, (3,), np.float64), "float32", (3,)),
        (Box(0, 255, (8, 8, 3), np.uint8), "uint8", (8, 8, 3)),
        (Box(0, 9, (2,), np.int16), "int16", (2,)),
        (Discrete(5, start=2), "int64", ()),
        (MultiDiscrete([3, 4]), "int64", (2,)),
        (MultiBinary((2, 3)), "int8", (2, 3)),
    ],
)
def test_a_plain_space_is_one_leaf_without_a_name(space, dtype, shape):
    assert observation_leaves(space) == [("", space, dtype, shape)]
    assert observation_fields(space, keeps_final=False) == (Field("obs", dtype, shape, "obs"),)


def test_dictionaries_and_tuples_join_their_keys_with_dots():
    space = Dict({"arm": Dict({"angle": Discrete(3)}), "eyes": Tuple([Discrete(2), Discrete(4)])})
    assert [leaf.key for leaf in observation_leaves(space)] == ["arm.angle", "eyes.0", "eyes.1"]


def test_final_observations_have_one_row_for_each_step():
    fields = observation_fields(Dict({"a": Discrete(3)}), keeps_final=True)
    assert fields == (
        Field("obs.a", "int64", (), "obs"),
        Field("final_obs.a", "int64", (), "step"),
    )


@pytest.mark.parametrize(
    "space",
    [
        Text(5),
        Sequence(Discrete(2)),
        Graph(Discrete(2), Discrete(2)),
        OneOf([Discrete(2), Discrete(3)]),
    ],
)
def test_spaces_without_a_shape_are_refused_with_a_way_out(space):
    with pytest.raises(UsageError, match=rf"{type(space).__name__}.*'word'.*ObservationWrapper"):
        observation_leaves(Dict({"word": space}))


@pytest.mark.parametrize(
    ("space", "told"),
    [
        (Box(0, 1, (0,), np.float32), r"Box.* has no values: its shape is \(0,\)"),
        (Dict(a=Discrete(2), b=Box(0, 1, (3, 0))), r"\(entry 'b'\) has no values"),
        (Dict({}), "has no entries"),
    ],
)
def test_spaces_without_values_are_refused(space, told):
    with pytest.raises(UsageError, match=told):
        observation_leaves(space)


def test_two_leaves_of_one_name_are_refused():
    space = Dict({"a.b": Discrete(2), "a": Dict({"b": Discrete(2)})})
    with pytest.raises(UsageError, match=r"both called 'a\.b'"):
        observation_leaves(space)


LEAF_SPACES = st.sampled_from(
    [
        Box(-1.0, 1.0, (3,), np.float32),
        Box(-1.0, 1.0, (2, 2), np.float64),
        Box(0, 255, (4, 4, 1), np.uint8),
        Discrete(4, start=-1),
        MultiDiscrete([3, 4]),
        MultiBinary(3),
    ]
)
SPACES = st.recursive(
    LEAF_SPACES,
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(Dict)
        | st.lists(inner, min_size=1, max_size=3).map(Tuple)
    ),
    max_leaves=6,
)


def entry(observation, key):
    for part in key.split(".") if key else []:
        observation = observation[int(part) if isinstance(observation, tuple) else part]
    return observation


@settings(max_examples=40, deadline=None)
@given(space=SPACES, seed=st.integers(0, 1000))
def test_whatever_is_written_can_be_read_back(space, seed):
    num_envs = 3
    batched = batch_space(space, num_envs)
    batched.seed(seed)
    batch = batched.sample()
    ones = list(gym.vector.utils.iterate(batched, batch))
    together, apart, masked = (
        {
            field.name: np.zeros((2, num_envs, *field.shape), field.dtype)
            for field in observation_fields(space, keeps_final=False)
        }
        for _ in range(3)
    )
    writer = ObservationWriter(space)
    writer.write(batch, together, 1)
    for i, one in enumerate(ones):
        writer.write(one, apart, (1, i))
    writer.write_where(batch, masked, 1, np.array([True, False, True]))
    for leaf in observation_leaves(space):
        name = f"obs.{leaf.key}" if leaf.key else "obs"
        for i, one in enumerate(ones):
            expected = np.asarray(entry(one, leaf.key), leaf.dtype)
            np.testing.assert_array_equal(together[name][1, i], expected)
        np.testing.assert_array_equal(apart[name], together[name])
        np.testing.assert_array_equal(masked[name][1, ::2], together[name][1, ::2])
        assert not masked[name][1, 1].any() and not together[name][0].any()


@pytest.mark.parametrize(
    ("space", "actions", "expected"),
    [
        (Discrete(3, start=5), np.array([0, 2]), [5, 7]),
        (MultiDiscrete([2, 3], start=[1, -1]), np.array([[0, 0], [1, 2]]), [[1, -1], [2, 1]]),
        (Box(-1.0, 1.0, (1,), np.float64), np.array([[0.5], [1.0]], np.float32), [[0.5], [1.0]]),
        (MultiBinary(2), np.array([[0, 1], [1, 1]]), [[0, 1], [1, 1]]),
    ],
)
def test_actions_are_shifted_and_cast_to_what_the_space_accepts(space, actions, expected):
    cast = make_action_cast(space)(actions)
    np.testing.assert_array_equal(cast, expected)
    batched = batch_space(space, len(actions))
    assert cast.dtype == create_empty_array(batched, 1).dtype
    assert batched.contains(cast)


@pytest.mark.parametrize("space", [Discrete(3), Box(-1.0, 1.0, (3,), np.float32)])
def test_actions_are_always_copied(space):
    actions = np.zeros(3, space.dtype)
    assert not np.shares_memory(actions, make_action_cast(space)(actions))


def test_action_spaces_with_parts_are_refused_with_a_way_out():
    with pytest.raises(UsageError, match=r"Dict.*not supported.*ActionWrapper"):
        make_action_cast(Dict({"a": Discrete(2)}))
