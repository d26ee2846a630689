"""The two tasks that are one, seen differently."""

import gymnasium as gym
import numpy as np
import pytest

from tianji.envs.build import build_world, make_rows, probe, probe_all
from tianji.envs.twins import mirrored, plain
from tianji.errors import UsageError

TWINS = ("tianji.envs.twins:plain", "tianji.envs.twins:mirrored")
CARTPOLE = {"id": "CartPole-v1"}


def test_one_sees_the_state_and_the_other_its_negative():
    state, _ = gym.make("CartPole-v1").reset(seed=3)
    seen, _ = plain("CartPole-v1").reset(seed=3)
    negated, _ = mirrored("CartPole-v1").reset(seed=3)
    assert np.array_equal(seen, [*state, 0.0])
    assert np.array_equal(negated, [*-state, 1.0])
    assert seen.dtype == negated.dtype == state.dtype


def test_both_have_one_space_that_holds_the_states_of_both():
    seen = probe_all(TWINS, CARTPOLE).spaces
    assert seen.observation.shape == (5,)
    for make in (plain, mirrored):
        env = make("CartPole-v1")
        assert env.observation_space == seen.observation
        state, _ = env.reset(seed=1)
        assert state in env.observation_space
        assert env.step(0)[0] in env.observation_space


def test_rewards_and_the_ends_of_episodes_are_those_of_the_environment():
    worlds = [build_world(twin, {**CARTPOLE, "max_episode_steps": 4}, 1) for twin in TWINS]
    ends = []
    for world in worlds:
        rows = make_rows(world, 4)
        world.reset(5, rows)
        for t in range(4):
            world.step(np.array([t % 2]), rows, t)
        ends.append((rows["reward"].sum(), rows["truncated"].ravel().tolist()))
    assert ends[0] == ends[1] == (4.0, [False, False, False, True])
    assert probe(TWINS[1], CARTPOLE).max_episode_steps == 500


def test_they_can_be_drawn():
    assert mirrored("CartPole-v1", render_mode="rgb_array").render_mode == "rgb_array"


def test_they_offer_the_state_of_their_environment():
    assert probe(TWINS[1], CARTPOLE).offers_state


@pytest.mark.parametrize("env_id", ["FrozenLake-v1", "Blackjack-v1"])
def test_what_is_no_vector_cannot_be_negated(env_id):
    with pytest.raises(UsageError, match=f"vector of floats.*{env_id}"):
        plain(env_id)


def test_an_unknown_environment_is_said_with_what_was_meant():
    with pytest.raises(UsageError, match="Did you mean 'CartPole-v1'"):
        plain("CartPol-v1")


@pytest.mark.parametrize("version", ["v4", "v5"])
def test_mujoco_has_twins(version):
    pytest.importorskip("mujoco")
    found = probe_all(TWINS, {"id": f"Hopper-{version}"})
    assert found.spaces.observation.shape == (12,)
    assert found.max_episode_steps == 1000
