"""Atari games: each frame is stored once, and the stacks are ALE's own, bit for bit."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from tianji.envs.build import build_world, make_rows, probe
from tianji.envs.find import full_id
from tianji.envs.frames import ObservationReader
from tianji.envs.ids import registered, stacked_game
from tianji.envs.single import env_seeds
from tianji.errors import UsageError
from tianji.ops.frames import stack_frames

vector_env = pytest.importorskip("ale_py.vector_env", reason="needs the extra `atari`")

NUM_ENVS, NUM_STEPS, SEED = 3, 250, 5
KWARGS = {"repeat_action_probability": 0.0}


@pytest.fixture(scope="module")
def played():
    """Breakout with random actions: rows of ours, and what ALE's own stack of 4 gives."""
    world = build_world("ALE/Breakout-v5", {**KWARGS, "episodic_life": True}, NUM_ENVS)
    env = vector_env.AtariVectorEnv(
        "breakout", NUM_ENVS, stack_num=4, num_threads=1, reward_clipping=False
    )
    rows = make_rows(world, NUM_STEPS)
    world.reset(SEED, rows)
    stacks, lives = [env.reset(seed=env_seeds(SEED, 1)[0])[0]], []
    for t, actions in enumerate(np.random.default_rng(0).integers(4, size=(NUM_STEPS, NUM_ENVS))):
        world.step(actions, rows, t)
        stack, *_, infos = env.step(actions)
        stacks.append(stack)
        lives.append(infos["lives"])
    world.close()
    return world, rows, np.stack(stacks), np.stack(lives)


def test_stacks_of_every_row_are_those_of_the_emulator(played):
    world, rows, stacks, _ = played
    assert (~rows["valid"]).any(), "no game ended: the test shows nothing about resets"
    reader = ObservationReader(world.spaces.observation)
    for t in range(NUM_STEPS + 1):
        np.testing.assert_array_equal(reader.row(rows, t)[""], stacks[t])


def test_stacks_by_index_are_those_of_the_emulator(played):
    _, rows, stacks, _ = played
    t_B, n_B = np.divmod(np.random.default_rng(1).permutation(stacks.shape[0] * NUM_ENVS), NUM_ENVS)
    frames, ages, t, n = (torch.from_numpy(a) for a in (rows["obs"], rows["age"], t_B, n_B))
    np.testing.assert_array_equal(stack_frames(frames, ages, t, n).numpy(), stacks[t_B, n_B])


def test_a_lost_life_is_marked_and_the_game_goes_on(played):
    _, rows, _, lives = played
    before, after = lives[:-1], lives[1:]
    is_lost = (after < before) & rows["valid"][1:]
    assert is_lost.any()
    np.testing.assert_array_equal(rows["life_lost"][1:], is_lost)
    np.testing.assert_array_equal(rows["terminated"][1:], (after == 0) & rows["valid"][1:])


def test_whole_stacks_are_the_same_observations_in_four_times_the_bytes(played):
    _, rows, stacks, _ = played
    kwargs = {**KWARGS, "episodic_life": True, "whole_stacks": True}
    world = build_world("ALE/Breakout-v5", kwargs, NUM_ENVS)
    whole = make_rows(world, NUM_STEPS)
    world.reset(SEED, whole)
    for t, actions in enumerate(np.random.default_rng(0).integers(4, size=(NUM_STEPS, NUM_ENVS))):
        world.step(actions, whole, t)
    world.close()
    np.testing.assert_array_equal(whole["obs"], stacks)
    for name in ("reward", "terminated", "truncated", "valid", "life_lost"):
        np.testing.assert_array_equal(whole[name], rows[name])
    assert whole["obs"][1:].nbytes == 4 * rows["obs"][4:].nbytes


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"reward_clipping": True}, "normalize.clip_rewards"),
        ({"num_threads": 3}, "emulator_threads"),
        ({"stack_num": 0}, "at least 1"),
        ({"stack_num": "four"}, "at least 1"),
    ],
)
def test_arguments_that_are_decided_elsewhere_are_refused(kwargs, words):
    with pytest.raises(UsageError, match=words):
        build_world("ALE/Pong-v5", kwargs, 1)


def test_rewards_are_the_games_own_points():
    world = build_world("ALE/SpaceInvaders-v5", {}, 4)
    rows = make_rows(world, 150)
    world.reset(0, rows)
    for t, actions in enumerate(np.random.default_rng(0).integers(6, size=(150, 4))):
        world.step(actions, rows, t)
    world.close()
    assert rows["reward"].max() >= 5.0


def test_a_game_without_its_version_is_the_one_with_stacked_frames():
    assert full_id("Pong") == full_id("ALE/Pong") == "ALE/Pong-v5"
    assert full_id("Pong-v4") == "Pong-v4"


def test_an_environment_of_other_code_in_a_namespace_is_not_a_newer_version():
    gym.register("other/Pong-v9", entry_point="tianji.envs.worlds:Counting")
    try:
        assert full_id("Pong") == "ALE/Pong-v5"
    finally:
        del gym.registry["other/Pong-v9"]


@pytest.mark.parametrize("env_id", ["Pong-v4", "PongNoFrameskip-v4"])
def test_an_older_id_of_a_game_names_the_one_with_stacked_frames(env_id):
    (remark,) = probe(env_id, {}).remarks
    assert remark.startswith(f"'{env_id}' is an older id of 'ALE/Pong-v5'")
    assert probe(env_id, {"obs_type": "ram"}).remarks == (), "its frames are not wanted"


def test_only_older_ids_of_games_have_a_better_one():
    assert stacked_game(registered("ALE/Pong-v5")) is None
    assert stacked_game(registered("CartPole-v1")) is None
