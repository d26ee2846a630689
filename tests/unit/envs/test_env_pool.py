"""EnvPool's tasks: the rules of every world, and frames that are stored once."""

import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from tianji.envs.build import build_world, make_rows, probe
from tianji.envs.frames import ObservationReader, is_before_reset
from tianji.envs.pool import without_false_bounds
from tianji.envs.single import env_seeds
from tianji.envs.timing import random_actions
from tianji.envs.vector import NextStepWorld
from tianji.errors import UsageError

N = 3


def run(world, num_rows, seed=1):
    rows = make_rows(world, num_rows)
    world.reset(seed, rows)
    for t, actions in enumerate(random_actions(world, num_rows)):
        world.step(actions, rows, t)
    return rows


def assert_same(rows, others):
    for name in rows:
        np.testing.assert_array_equal(rows[name], others[name], name)


# Without EnvPool: a stand-in for its module, in which all of its surprises can happen.


class StandIn:
    """A pool whose episodes have 3 steps. Its reset rows repeat the reward, as some of EnvPool's
    do, and each observation begins with the seed of its environment."""

    def __init__(self, seed, num_envs, **kwargs):
        self.seeds, self.kwargs = np.array(seed), kwargs
        self.steps = np.zeros(num_envs, np.int64)
        self.sent = None

    def observe(self):
        return np.stack([self.seeds, self.steps], axis=1).astype(np.float32)

    def reset(self):
        return self.observe(), {}

    def send(self, actions):
        assert self.sent is None
        self.sent = actions

    def recv(self):
        actions, self.sent = self.sent, None
        assert len(actions) == len(self.steps)
        self.steps = (self.steps + 1) % 4
        ended = self.steps == 3
        reward = np.where(self.steps == 0, 7.0, 1.0 + self.steps).astype(np.float32)
        return self.observe(), reward, np.zeros_like(ended), ended, {}


@pytest.fixture
def stand_in(monkeypatch):
    module, atari = ModuleType("envpool"), ModuleType("envpool.atari")
    made = []
    config = SimpleNamespace(max_episode_steps=3)
    spaces = (Box(-np.inf, np.inf, (2,), np.float32), Discrete(2))

    def make(task, **kwargs):
        made.append(StandIn(**kwargs))
        return made[-1]

    module.list_all_envs = lambda: ["Count-v1", "Pong-v5"]
    module.make_gymnasium = make
    module.make_spec = lambda task, **kwargs: SimpleNamespace(
        config=config, gymnasium_observation_space=spaces[0], gymnasium_action_space=spaces[1]
    )
    atari.AtariEnvSpec = StandIn
    monkeypatch.setitem(sys.modules, "envpool", module)
    monkeypatch.setitem(sys.modules, "envpool.atari", atari)
    return made


def test_a_reset_makes_environments_with_seeds_of_their_own(stand_in):
    world = build_world("envpool:Count-v1", {"size": 4}, N, num_threads=2)
    first, again, other = run(world, 9), run(world, 9), run(world, 9, seed=2)
    assert_same(first, again)
    assert len(set(first["obs"][0, :, 0])) == N
    assert not (first["obs"][0, :, 0] == other["obs"][0, :, 0]).any()
    assert len(stand_in) == 3
    assert all(pool.kwargs == {"size": 4, "num_threads": 2} for pool in stand_in)


def test_nothing_happens_in_a_reset_row(stand_in):
    rows = run(build_world("envpool:Count-v1", {}, N), 9)
    reset = ~rows["valid"]
    np.testing.assert_array_equal(np.flatnonzero(reset[:, 0]), [3, 7])
    np.testing.assert_array_equal(rows["reward"][:4, 0], [2, 3, 4, 0])
    assert not rows["truncated"][reset].any()
    np.testing.assert_array_equal(rows["truncated"][:-1], reset[1:])


def test_a_closed_world_gives_its_threads_back(stand_in):
    world = build_world("envpool:Count-v1", {}, N)
    run(world, 1)
    world.close()
    assert world.env._pool is None


def test_what_a_pool_is_said_to_be(stand_in):
    found = probe("envpool:Count-v1", {})
    assert found.has_threads and found.max_episode_steps == 3 and not found.offers_state
    assert found.vectorised == "all at once, on threads of EnvPool; autoreset: next step"


def test_an_unknown_task_is_refused_with_those_that_are_near(stand_in):
    with pytest.raises(UsageError, match=r"no task 'Ponk-v5'. Did you mean 'Pong-v5'"):
        build_world("envpool:Ponk-v5", {}, 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reward_clip", "normalize.clip_rewards"),
        ("num_threads", "emulator_threads"),
        ("batch_size", "step together"),
        ("seed", "use seed"),
        ("env_seed", "use seed"),
        ("zero_discount_on_life_loss", "episodic_life"),
        ("num_envs", "num_envs"),
    ],
)
def test_arguments_that_are_decided_elsewhere_are_refused(name, words, stand_in):
    with pytest.raises(UsageError, match=words):
        build_world("envpool:Pong-v5", {name: 3}, 1)


def test_a_python_without_envpool_is_told_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(UsageError) as raised:
        build_world("envpool:Pong-v5", {}, 1)
    assert "pip install 'tianji[envpool]'" in str(raised.value)
    assert f"this is Python {mine}" in str(raised.value)


@pytest.mark.parametrize("number", [np.float32, np.float64])
def test_limits_of_a_number_are_no_bounds(number):
    limits = np.finfo(number)
    box = Box(
        np.array([limits.tiny, -4.8, limits.min], number),
        np.array([limits.max, 4.8, 1.0], number),
        dtype=number,
    )
    mended = without_false_bounds(Dict({"a": box, "b": Discrete(3)}))
    assert mended["b"] == Discrete(3)
    np.testing.assert_array_equal(mended["a"].low, np.array([-np.inf, -4.8, -np.inf], number))
    np.testing.assert_array_equal(mended["a"].high, np.array([np.inf, 4.8, 1.0], number))
    assert mended["a"].dtype == number


# With EnvPool.


@pytest.fixture
def envpool():
    return pytest.importorskip("envpool", reason="needs the extra `envpool`")


TASKS = {
    "CartPole-v1": {"max_episode_steps": 20},
    "Pendulum-v1": {"max_episode_steps": 7},
    "Hopper-v5": {"max_episode_steps": 7},
    "CheetahRun-v1": {"max_episode_steps": 7},
    "FrozenLake-v1": {},
    "Pong-v5": {"max_episode_steps": 15},
}


@pytest.fixture(params=TASKS)
def build(request, envpool):
    return lambda: build_world(f"envpool:{request.param}", TASKS[request.param], N, num_threads=2)


def test_the_row_after_an_end_is_a_reset(build):
    rows = run(build(), 60)
    ended = rows["terminated"] | rows["truncated"]
    assert ended[:-1].any()
    np.testing.assert_array_equal(~rows["valid"][1:], ended[:-1])
    assert rows["valid"][0].all()
    for name in ("reward", "terminated", "truncated"):
        assert not rows[name][~rows["valid"]].any()


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(build):
    world = build()
    first, other, again, fresh = run(world, 40), run(world, 40, 2), run(world, 40), run(build(), 40)
    assert_same(first, again)
    assert_same(first, fresh)
    assert any(not np.array_equal(first[name], other[name]) for name in first)


def test_two_phases_of_two_worlds_in_turns_give_the_rows_of_step(build):
    worlds = build(), build()
    halves = [make_rows(world, 30) for world in worlds]
    actions = random_actions(worlds[0], 30)
    for seed, (world, rows) in enumerate(zip(worlds, halves, strict=True), start=1):
        world.reset(seed, rows)
        world.send(actions[0])
    for t in range(30):
        for world, rows in zip(worlds, halves, strict=True):
            world.recv(rows, t)
            if t + 1 < 30:
                world.send(actions[t + 1])
    for seed, rows in enumerate(halves, start=1):
        assert_same(rows, run(build(), 30, seed))


def test_a_world_steps_by_itself_on_its_threads(build):
    tasks = len(list(Path("/proc/self/task").iterdir()))
    python = threading.active_count()
    world = build()
    run(world, 1)
    assert world.steps_alone and isinstance(world, NextStepWorld)
    assert len(list(Path("/proc/self/task").iterdir())) >= tasks + 2
    assert threading.active_count() == python
    world.close()
    assert len(list(Path("/proc/self/task").iterdir())) <= tasks


@pytest.fixture(scope="module")
def played():
    """Breakout with random actions: rows of ours, and what EnvPool's own stack of 4 gives."""
    pool = pytest.importorskip("envpool", reason="needs the extra `envpool`")
    world = build_world("envpool:Breakout-v5", {"episodic_life": True}, N)
    seeds = env_seeds(env_seeds(5, 1)[0], N)
    own = pool.make_gymnasium("Breakout-v5", num_envs=N, seed=seeds, stack_num=4)
    rows = make_rows(world, 400)
    world.reset(5, rows)
    stacks, lives, rewards = [own.reset()[0]], [], []
    for t, actions in enumerate(random_actions(world, 400)):
        world.step(actions, rows, t)
        stack, reward, *_, infos = own.step(actions)
        stacks.append(stack)
        lives.append(infos["lives"])
        rewards.append(reward)
    world.close()
    return world, rows, np.stack(stacks), np.stack(lives), np.stack(rewards)


def test_stacks_are_those_of_envpool_with_zeros_before_the_reset(played):
    """EnvPool repeats the first frame instead."""
    world, rows, stacks, *_ = played
    assert (~rows["valid"]).any(), "no game ended: the test shows nothing about resets"
    reader = ObservationReader(world.spaces.observation)
    for t in range(len(stacks)):
        before = is_before_reset(rows["age"][t], 4)
        np.testing.assert_array_equal(
            reader.row(rows, t)[""], np.where(before[..., None, None], 0, stacks[t])
        )
    assert (rows["age"][1:][~rows["valid"]] == 0).all()
    assert rows["age"].max() > 50


def test_a_lost_life_is_marked_and_the_game_goes_on(played):
    _, rows, _, lives, rewards = played
    is_lost = (lives[1:] < lives[:-1]) & rows["valid"][1:]
    assert is_lost.any()
    np.testing.assert_array_equal(rows["life_lost"][1:], is_lost)
    assert (lives[rows["terminated"]] == 0).all()
    np.testing.assert_array_equal(rows["reward"], rewards)


def test_rewards_are_the_games_own_points(envpool):
    assert run(build_world("envpool:SpaceInvaders-v5", {}, 4), 150)["reward"].max() >= 5.0


def test_a_game_in_colour_is_stored_as_it_comes(envpool):
    world = build_world("envpool:Pong-v5", {"gray_scale": False, "stack_num": 2}, N)
    assert world.fields()[0].shape == (6, 84, 84)


@pytest.mark.parametrize("task", ["Pong-v5", "CartPole-v1"])
def test_a_step_is_drawn_for_a_video(task, envpool):
    world = build_world(f"envpool:{task}", {"render_mode": "rgb_array"}, 1)
    run(world, 2)
    picture = world.env.render()
    assert picture.ndim == 4 and picture.shape[-1] == 3 and picture.dtype == np.uint8
