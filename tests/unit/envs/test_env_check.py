"""Each thing that can be wrong with an environment is found, and said."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv, VectorWrapper

from tianji.envs import build, check
from tianji.envs.check import check_environment
from tianji.envs.timing import summarise
from tianji.envs.worlds import Continuous, Counting, DictWorld, Flaky, NaNRewards


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(check, "MAX_ROWS", 60)


@pytest.fixture
def even_steps(monkeypatch):
    """Step times as on a machine with nothing else to do."""
    even = summarise([1e-4], 1, cpu_s=None)
    monkeypatch.setattr(build, "look_at_steps", lambda *_: even)


def troubles(env, kwargs=None):
    found = check_environment(env, kwargs or {})
    return [finding for finding in found if finding.level != "ok"]


def good_words(env):
    return " ".join(finding.what for finding in check_environment(env, {}))


@pytest.mark.usefixtures("even_steps")
@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1", DictWorld])
def test_nothing_is_wrong_with_a_good_environment(env):
    assert troubles(env) == []


def test_what_is_good_is_said_too():
    words = good_words("CartPole-v1")
    for part in ("float32", "own vector environment", "steps/s", "same seed", "500", "state"):
        assert part in words


@pytest.mark.usefixtures("even_steps")
def test_a_large_image_is_pointed_out():
    (found,) = troubles(DictWorld, {"zoom": 70})
    assert found.what == "Observation 'image' has 176,400 numbers in every step."
    assert "ResizeObservation" in found.advice


class Endless(Counting):
    def __init__(self):
        super().__init__(length=10**9)


class Unseeded(Continuous):
    def begin(self, seeded):
        self.target = np.random.default_rng().uniform(-1, 1, 1).astype(np.float32)


class Stubborn(Continuous):
    def begin(self, seeded):
        self.target = np.full(1, 0.5, np.float32)


class Outside(Continuous):
    def observe(self):
        return self.target + 5


class Infinite(Continuous):
    def observe(self):
        return self.target * np.inf


class Forgetful(Counting):
    def get_state(self):
        return {**super().get_state(), "total": 0}


class Unbounded(Continuous):
    def __init__(self):
        super().__init__()
        self.action_space = Box(-np.inf, np.inf, (1,), np.float32)


class Amnesiac(Counting):
    """Shows the same at the end of an episode as at its beginning."""

    def observe(self):
        return super().observe() * 0 + self.steps % self.length


class Generous(VectorWrapper):
    """Says that it resets in the next step, but rewards that step."""

    def step(self, actions):
        obs, reward, *rest = self.env.step(actions)
        return obs, reward + 1, *rest


def make_generous(num_envs):
    return Generous(SyncVectorEnv([Counting] * num_envs))


@pytest.mark.parametrize(
    ("env", "level", "words"),
    [
        (Endless, "warn", "No episode ended"),
        (Unseeded, "warn", "same seed and actions give different"),
        (Stubborn, "warn", "Different seeds give the same"),
        (Outside, "warn", "leaves its space"),
        (Infinite, "error", "NaN or infinite values"),
        (NaNRewards, "error", "Rewards are NaN"),
        (Forgetful, "error", "does not continue exactly"),
        (Unbounded, "warn", "no finite bounds"),
        (Amnesiac, "warn", "final observation of every episode equals"),
        (make_generous, "error", "gives a reward in the step that only resets"),
        (Flaky, "error", "this world fails in step 20"),
        ("CartPol-v1", "error", "Did you mean 'CartPole-v1'"),
    ],
)
def test_what_is_wrong_is_found_and_comes_with_advice(env, level, words):
    found = [finding for finding in troubles(env) if words in finding.what]
    assert [finding.level for finding in found] == [level]
    assert found[0].advice


def test_a_vector_environment_that_differs_from_the_single_one_is_pointed_out():
    gym.register(
        "Twofold-v0",
        entry_point="tianji.envs.worlds:Pixels",
        vector_entry_point="gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv",
    )
    try:
        assert "gymnasium.make() gives" in " ".join(f.what for f in troubles("Twofold-v0"))
    finally:
        del gym.registry["Twofold-v0"]


def test_rare_long_steps_are_told_in_words():
    times = summarise([1e-5] * 49 + [0.2], 1, cpu_s=1e-5)
    (finding,) = check._check_times(times)
    assert finding.level == "warn"
    assert "2.0 % of the steps take up to 200 ms, a typical one takes 0.01 ms" in finding.what
    assert "actor of its own" in finding.advice
    (even,) = check._check_times(summarise([1e-3] * 50, 1, cpu_s=1e-3))
    assert (even.level, even.what) == ("ok", "Step times are even: 1 ms a step.")
    assert list(check._check_times(None)) == []


class Drives(Counting):
    def act(self, action):
        if self.total == 5:
            raise KeyError("speed")
        return super().act(action)


def test_the_line_of_a_step_that_fails_is_named():
    *_, last = troubles(Drives)
    assert "KeyError: 'speed' (in act() of test_env_check.py, line " in last.what
