"""Exact resume of environments that are not ours."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import (
    FlattenObservation,
    FrameStackObservation,
    RescaleAction,
    TimeLimit,
    TransformObservation,
)

from tianji.envs.build import build_world, make_rows
from tianji.envs.single import SingleWorld
from tianji.envs.worlds import Continuous, Counting

NUM_ROWS, HALF = 24, 11


def check_goes_on_exactly(build):
    """Save in the middle of a run and go on in a new world: every row is the same."""
    world = build()
    rows = make_rows(world, NUM_ROWS)
    world.spaces.action.seed(0)
    actions = np.array([[world.spaces.action.sample()] * world.num_envs for _ in range(NUM_ROWS)])
    world.reset(5, rows)
    for t in range(HALF):
        world.step(actions[t], rows, t)
    state, again = world.get_state(), copy.deepcopy(rows)
    check_can_be_stored(state)
    for t in range(HALF, NUM_ROWS):
        world.step(actions[t], rows, t)
    restored = build()
    restored.set_state(state)
    for t in range(HALF, NUM_ROWS):
        restored.step(actions[t], again, t)
    for name in rows:
        np.testing.assert_array_equal(rows[name], again[name])
    return rows


def check_can_be_stored(state):
    """Dictionaries and lists of numpy arrays and of what JSON knows."""
    if isinstance(state, dict):
        for key, value in state.items():
            assert isinstance(key, str)
            check_can_be_stored(value)
    elif isinstance(state, list):
        for value in state:
            check_can_be_stored(value)
    elif not isinstance(state, np.ndarray):
        assert type(json.loads(json.dumps(state))) is type(state)


@pytest.mark.parametrize(
    "env_id",
    ["Acrobot-v1", "Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0"],
)
def test_classic_control_goes_on_exactly(env_id):
    rows = check_goes_on_exactly(lambda: build_world(env_id, {"max_episode_steps": 8}, 2))
    assert rows["truncated"].any()


def test_cartpole_one_by_one_goes_on_exactly():
    check_goes_on_exactly(lambda: SingleWorld([gym.make("CartPole-v1") for _ in range(2)]))


# Ant and Humanoid read quantities of the step before, Pusher draws its goal at a reset.
@pytest.mark.parametrize("env_id", ["Hopper-v5", "Ant-v5", "Humanoid-v5", "Pusher-v5"])
def test_mujoco_goes_on_exactly(env_id, tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its log
    check_goes_on_exactly(lambda: build_world(env_id, {"max_episode_steps": 9}, 1))


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("ALE/Breakout-v5", {"obs_type": "ram", "repeat_action_probability": 0.25}),
        ("Breakout-v4", {"obs_type": "ram"}),  # frame skips are drawn from np_random
    ],
)
def test_ale_goes_on_exactly(env_id, kwargs):
    pytest.importorskip("ale_py")
    check_goes_on_exactly(lambda: build_world(env_id, kwargs, 2))


def test_box2d_offers_no_state():
    pytest.importorskip("Box2D")
    assert build_world("LunarLander-v3", {}, 1).get_state() is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_time_limits_and_wrappers_without_memory_are_part_of_it():
    def build():
        env = TimeLimit(RescaleAction(Continuous(length=100), -2.0, 2.0), 7)
        return SingleWorld([FlattenObservation(env)])

    rows = check_goes_on_exactly(build)
    assert np.flatnonzero(rows["truncated"]).tolist() == [6, 14, 22]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: FrameStackObservation(env, 2),
        lambda env: TransformObservation(env, lambda obs: obs, env.observation_space),
    ],
)
def test_a_wrapper_that_may_remember_something_makes_it_offer_nothing(wrap):
    assert SingleWorld([Counting()]).get_state() is not None
    assert SingleWorld([wrap(Counting())]).get_state() is None


class Physics(Counting):
    """Has methods of the right names that mean something else, as MuJoCo environments do."""

    def set_state(self, qpos, qvel):
        raise AssertionError


def test_set_state_with_other_parameters_is_another_method():
    assert SingleWorld([Physics()]).get_state() is None


class Echo(gym.Wrapper):
    """Adds its own count, and answers for itself and what is below."""

    def __init__(self, env):
        super().__init__(env)
        self.calls = 0

    def step(self, action):
        self.calls += 1
        obs, reward, *rest = self.env.step(action)
        return obs, reward + 1000 * self.calls, *rest

    def get_state(self):
        return {"calls": self.calls, "below": self.env.unwrapped.get_state()}

    def set_state(self, state):
        self.calls = state["calls"]
        self.env.unwrapped.set_state(state["below"])


def test_a_wrapper_can_offer_the_state():
    world = lambda: SingleWorld([Echo(TimeLimit(Counting(spread=3), 6))])  # noqa: E731
    rows = check_goes_on_exactly(world)
    assert rows["reward"].max() > 10_000


def test_one_environment_without_state_is_none_for_all():
    envs = [Counting(), FrameStackObservation(Counting(), 1)]
    world = SingleWorld([envs[0]])
    world.envs = tuple(envs)
    assert world.get_state() is None
