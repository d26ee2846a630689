"""The small worlds keep their promises."""

import multiprocessing

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tianji.envs import worlds
from tianji.envs.interface import Stateful

ALL = [
    worlds.Counting,
    worlds.Chain,
    worlds.Flaky,
    worlds.Slow,
    worlds.NaNRewards,
    worlds.Continuous,
    worlds.MultiDiscreteWorld,
    worlds.Pixels,
    worlds.DictWorld,
]


@pytest.mark.parametrize("make", ALL)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_world_is_a_proper_environment_that_offers_its_state(make):
    env = make()
    check_env(env, skip_render_check=True)
    assert isinstance(env, Stateful)


def play(env, actions):
    return [env.step(action) for action in actions]


@pytest.mark.parametrize("make", [make for make in ALL if make is not worlds.Flaky])
def test_every_world_goes_on_from_its_state(make):
    env, other = make(), make()
    env.action_space.seed(1)
    actions = [env.action_space.sample() for _ in range(4)]
    env.reset(seed=1)
    play(env, actions[:2])
    other.reset(seed=2)
    other.set_state(env.get_state())
    other.np_random.bit_generator.state = env.np_random.bit_generator.state
    for one, two in zip(play(env, actions[2:]), play(other, actions[2:]), strict=True):
        np.testing.assert_equal(one, two)


def test_counting_counts_over_episodes_and_shows_its_last_action():
    env = worlds.Counting(length=2, end="terminated")
    first, _ = env.reset(seed=1)
    (obs, reward, *_), (_, _, terminated, truncated, _) = play(env, [3, 1])
    assert (first[0], first[1], first[3]) == (0, 0, -1)
    assert (obs[0], obs[1], obs[3], reward) == (1, 1, 3, 1)
    assert terminated and not truncated
    assert env.reset()[0].tolist() == [2, 0, first[2], -1]


def test_the_values_of_the_chain_are_those_of_its_rewards():
    ending, endless = worlds.Chain(3, "terminated"), worlds.Chain(3, "truncated")
    np.testing.assert_allclose(ending.values(0.5), [1.75, 1.5, 1.0, 0.0])
    np.testing.assert_allclose(endless.values(0.9), 10.0)
    env = ending
    env.reset(seed=1)
    steps = play(env, [0, 0, 0])
    assert [reward for _, reward, *_ in steps] == [1, 1, 1]
    assert [terminated for _, _, terminated, *_ in steps] == [False, False, True]


def test_flaky_raises_in_the_step_it_was_told():
    env = worlds.Flaky("raise", at_step=3)
    env.reset(seed=1)
    play(env, [0, 0])
    with pytest.raises(RuntimeError, match="step 3"):
        env.step(0)


def test_flaky_with_a_marker_fails_once_in_all(tmp_path):
    first, second = (worlds.Flaky("raise", 1, marker=str(tmp_path / "failed")) for _ in range(2))
    for env in (first, second):
        env.reset(seed=1)
    with pytest.raises(RuntimeError):
        first.step(0)
    second.step(0)


def fail(how):
    env = worlds.Flaky(how, at_step=1)
    env.reset(seed=1)
    env.step(0)


@pytest.mark.parametrize(("how", "code"), [("exit", 3), ("kill", -9)])
def test_flaky_ends_its_process(how, code):
    process = multiprocessing.get_context("fork").Process(target=fail, args=(how,))
    process.start()
    process.join(20)
    assert process.exitcode == code


def test_flaky_hangs_for_as_long_as_it_was_told(monkeypatch):
    slept = []
    monkeypatch.setattr(worlds.time, "sleep", slept.append)
    env = worlds.Flaky("hang", at_step=1, seconds=7.0)
    env.reset(seed=1)
    env.step(0)
    assert slept == [7.0]


def test_slow_sleeps_in_every_step(monkeypatch):
    slept = []
    monkeypatch.setattr(worlds.time, "sleep", slept.append)
    env = worlds.Slow(seconds=0.2)
    env.reset(seed=1)
    play(env, [0, 0])
    assert slept == [0.2, 0.2]


def test_nan_rewards_begin_where_they_should():
    env = worlds.NaNRewards(at_step=3)
    env.reset(seed=1)
    assert np.isnan([reward for _, reward, *_ in play(env, [0] * 4)]).tolist() == [0, 0, 1, 1]


def test_continuous_is_solved_by_saying_what_is_seen():
    env = worlds.Continuous(size=2)
    obs, _ = env.reset(seed=1)
    following, reward, *_ = env.step(obs)
    assert reward == 0.0
    assert env.step(following + 0.5)[1] == pytest.approx(-0.5)


def test_multi_discrete_rewards_the_share_of_right_digits():
    env = worlds.MultiDiscreteWorld((3, 2))
    obs, _ = env.reset(seed=1)
    digits = np.array([obs[:3].argmax(), obs[3:].argmax()])
    assert env.step(digits)[1] == 1.0
    digits = env.digits
    assert env.step([digits[0], 1 - digits[1]])[1] == 0.5


@pytest.mark.parametrize(("catches", "reward"), [(True, 1.0), (False, -1.0)])
def test_catch_rewards_a_catch(catches, reward):
    env = worlds.DictWorld()
    obs, _ = env.reset(seed=1)
    assert obs["image"].shape == (36, 36, 1)
    for _ in range(5):
        way = np.sign(env.ball - env.paddle) if catches else (1 if env.ball < 3 else -1)
        obs, got, terminated, _, _ = env.step(int(way) + 1)
    assert terminated and got == reward
    assert (obs["image"] == 255).sum() == 36 * (1 if catches else 2)


def test_the_worlds_can_be_wrapped_like_any_environment():
    env = gym.wrappers.TimeLimit(worlds.Pixels(), 2)
    env.reset(seed=1)
    assert play(env, [0, 0])[1][3]
