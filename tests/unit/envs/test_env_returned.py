"""What environments return otherwise than their spaces say: refused or converted, in words."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from tianji.envs.build import make_rows, probe
from tianji.envs.check import check_environment
from tianji.envs.returned import ReturnCheck
from tianji.envs.single import SingleWorld
from tianji.envs.vector import adapt_vector
from tianji.errors import UsageError

FLOATS = Box(-9.0, 9.0, (3,), np.float32)
FRAME = Box(0, 255, (2, 2), np.uint8)
FINE = np.zeros(3, np.float32)


class Scripted(gym.Env):
    """Returns what it was given: `steps` in turn, the last one again and again."""

    action_space = Discrete(2)

    def __init__(self, *steps, space=FLOATS, first=(FINE, {})):
        self.observation_space, self.first, self.steps = space, first, list(steps)

    def reset(self, *, seed=None, options=None):
        return self.first

    def step(self, action):
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]


def step_of(observation=FINE, reward=0.0, terminated=False, truncated=False):
    return observation, reward, terminated, truncated, {}


def run(env, num_steps=1):
    world = SingleWorld([env])
    rows = make_rows(world, num_steps)
    world.reset(0, rows)
    for t in range(num_steps):
        world.step(np.zeros(1, np.int64), rows, t)
    return world, rows


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ((FINE, 0.0, False, {}), r"step\(\) returned 4 values.*5 values: observation, .*old Gym"),
        ((FINE, 0.0), r"returned 2 values.*5 values: observation, reward, terminated, truncated"),
        (None, r"returned None \(NoneType\).*5 values"),
        (step_of(reward="1.0"), r"'1.0' \(str\) as the reward.*a single number"),
        (step_of(reward=None), r"None \(NoneType\) as the reward"),
        (step_of(reward=np.zeros(1)), r"shape \(1,\).*as the reward.*float\(reward\)"),
        (step_of(terminated="no"), r"'no' \(str\) as `terminated`.*True or False"),
        (step_of(truncated={}), r"\{\} \(dict\) as `truncated`"),
        (step_of(observation=np.zeros(1)), r"shape \(1,\).*space says shape \(3,\), dtype float32"),
        (step_of(observation=None), r"None \(NoneType\).*np\.array\(\.\.\., np\.float32\)"),
        (step_of(observation=[0.0, [1.0], 2.0]), r"the observation that step\(\) returned is \["),
        (step_of(observation=np.array(["a", "b", "c"])), r"Return a NumPy array of numbers"),
    ],
)
def test_a_step_that_cannot_be_used_is_refused_in_words(returned, words):
    with pytest.raises(UsageError, match=rf"(?s)Environment 'Scripted': .*{words}"):
        run(Scripted(returned))


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (FINE, r"reset\(\) returned an array of shape \(3,\), dtype float32.*return observation"),
        ((np.zeros(1), {}), r"the observation that reset\(\) returned is .* shape \(1,\)"),
    ],
)
def test_a_reset_that_cannot_be_used_is_refused_in_words(first, words):
    with pytest.raises(UsageError, match=words):
        run(Scripted(step_of(), first=first))


@pytest.mark.parametrize(
    ("space", "observation", "words"),
    [
        (FRAME, np.zeros((2, 2)), r"float64, but .* dtype uint8\. .*cut off fractions"),
        (FRAME, np.full((2, 2), 300), r"int64, but .* dtype uint8\. Its values do not fit"),
        (Discrete(3), 0.5, r"0\.5 \(float\).*dtype int64"),
        (Dict({"a": FLOATS}), {"b": FINE}, r"no entry 'a' of the observation \(KeyError"),
        (Dict({"a": FLOATS}), {"a": np.zeros(4)}, r"entry 'a' of the observation .* \(4,\)"),
        (Dict({"a": FLOATS}), FINE, r"no entry 'a'"),
    ],
)
def test_an_observation_that_would_lose_something_is_refused(space, observation, words):
    with pytest.raises(UsageError, match=words):
        ReturnCheck("X", space).reset((observation, {}))


@pytest.mark.parametrize(
    ("space", "observation", "found"),
    [
        (FLOATS, np.zeros(3, np.float64), "is dtype float64"),
        (FLOATS, np.zeros(3, np.int64), "is dtype int64"),
        (FLOATS, [0.0, 1.0, 2.0], "is a list"),
        (FLOATS, torch.zeros(3), "is a Tensor"),
        (FRAME, np.full((2, 2), 255), "is dtype int64"),
        (MultiBinary(3), np.zeros(3, np.bool_), "is dtype bool"),
    ],
)
def test_a_conversion_is_said_once(space, observation, found):
    check = ReturnCheck("X", space)
    for _ in range(3):
        check.reset((observation, {}))
        check.step(step_of(observation))
    (remark,) = check.remarks
    assert found in remark and f"the space says dtype {space.dtype}" in remark
    assert f"return np.array(..., np.{space.dtype})" in remark


@pytest.mark.parametrize(
    ("space", "observation"),
    [
        (FLOATS, FINE),
        (FLOATS, np.zeros(3, np.float16)),
        (Box(0.0, 1.0, (3,), np.float64), FINE),
        (Box(0.0, 1.0, (), np.float32), 0.5),
        (Discrete(3), 2),
        (Discrete(3), np.int32(2)),
    ],
)
def test_what_loses_nothing_needs_no_words(space, observation):
    check = ReturnCheck("X", space)
    check.reset((observation, {}))
    check.step(step_of(observation, reward=np.float64(1), terminated=np.bool_(True), truncated=0))
    assert check.remarks == ()


def test_a_shape_that_changes_in_the_middle_of_a_run_names_the_observation():
    space = Dict({"arm": FLOATS})
    fine, long = step_of({"arm": FINE}), step_of({"arm": np.zeros(5, np.float32)})
    with pytest.raises(UsageError, match=r"entry 'arm' .*step\(\).*\(5,\).*says shape \(3,\)"):
        run(Scripted(fine, fine, long, space=space, first=({"arm": FINE}, {})), num_steps=3)


def test_a_bad_reset_or_reward_in_the_middle_of_a_run_is_named():
    over = step_of(terminated=True)
    env = Scripted(over)
    with pytest.raises(UsageError, match=r"reset\(\) returned an array of shape \(3,\)"):
        world, rows = run(env)
        env.first = FINE
        world.step(np.zeros(1, np.int64), rows, 0)
    with pytest.raises(UsageError, match=r"'much' \(str\) as the reward"):
        run(Scripted(step_of(), step_of(reward="much")), num_steps=2)


def test_an_error_of_the_environment_itself_stays_its_own():
    class Failing(Scripted):
        def step(self, action):
            raise ValueError("out of fuel")

    with pytest.raises(ValueError, match="out of fuel"):
        run(Failing())


class Vector(VectorEnv):
    num_envs, metadata = 2, {}
    single_observation_space, single_action_space = FLOATS, Discrete(2)
    observation_space, action_space = batch_space(FLOATS, 2), batch_space(Discrete(2), 2)

    def __init__(self, *steps):
        self.steps = list(steps)

    def reset(self, *, seed=None, options=None):
        return np.zeros((2, 3), np.float64), {}

    def step(self, actions):
        return self.steps.pop(0)


def vector_step(observation=None, reward=(0.0, 0.0), ended=(False, False)):
    observation = np.zeros((2, 3), np.float32) if observation is None else observation
    return observation, np.array(reward), np.array(ended), np.array(ended), {}


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (vector_step()[:4], "returned 4 values"),
        (vector_step(np.zeros((1, 3), np.float32)), r"shape \(1, 3\).*says shape \(2, 3\)"),
        (vector_step(reward=("1", "2")), "as the reward.*2 numbers, one for each environment"),
        (vector_step(ended=(False,)), "as `terminated`.*2 booleans"),
    ],
)
def test_a_vector_environment_is_checked_as_a_whole(returned, words):
    world = adapt_vector(Vector(returned))
    rows = make_rows(world, 1)
    world.reset(0, rows)
    assert "'Vector': the observation is dtype float64" in world.remarks[0]
    with pytest.raises(UsageError, match=words):
        world.step(np.zeros(2, np.int64), rows, 0)


def test_a_vector_environment_that_changes_its_shape_is_named():
    world = adapt_vector(Vector(vector_step(), vector_step(np.zeros((2, 4), np.float32))))
    rows = make_rows(world, 1)
    world.reset(0, rows)
    world.step(np.zeros(2, np.int64), rows, 0)
    with pytest.raises(UsageError, match=r"step\(\) returned is an array of shape \(2, 4\)"):
        world.step(np.zeros(2, np.int64), rows, 0)


def test_a_wrong_step_is_found_before_any_process_starts():
    with pytest.raises(UsageError, match="returned 4 values"):
        probe(lambda: Scripted((FINE, 0.0, False, {})), {})


def test_doctor_tells_of_conversions():
    doubles = np.zeros(3)
    found = probe(lambda: Scripted(step_of(doubles)), {})
    assert "is dtype float64" in found.remarks[0]
    findings = check_environment(lambda: Scripted(step_of(doubles)), {})
    assert next(f.what for f in findings if f.level == "warn") == found.remarks[0]
