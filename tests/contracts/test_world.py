"""What every World promises, asked of each kind of them."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from tianji.envs.build import build_world, make_rows
from tianji.envs.worlds import Counting

N = 5
LENGTH = 3
NUM_ROWS = 40


class DictCounting(Counting):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        rest = Dict({"all": self.observation_space})
        self.observation_space = Dict({"count": Discrete(10_000), "rest": rest})

    def observe(self):
        return {"count": self.total, "rest": {"all": super().observe()}}


class DiscreteCounting(Counting):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.observation_space = Discrete(10_000)

    def observe(self):
        return self.total


def vector(num_envs, world, mode, **kwargs):
    return SyncVectorEnv([lambda: world(**kwargs)] * num_envs, autoreset_mode=mode)


@dataclass(frozen=True)
class Kind:
    make: Callable[..., object]
    kwargs: dict[str, object]
    count: str = ""
    """Suffix of the leaf that holds the count, in its first entry if it has several."""
    everything: str | None = ""
    """Suffix of the leaf that holds all of Counting's observation, if one does."""

    def build(self, **kwargs):
        return build_world(self.make, {**self.kwargs, **kwargs}, N)


def vector_kind(world, mode, *leaves):
    return Kind(vector, {"world": world, "mode": mode}, *leaves)


NAMES = (".count", ".rest.all")
KINDS = {
    "single": Kind(Counting, {}),
    "next step": vector_kind(Counting, AutoresetMode.NEXT_STEP),
    "same step": vector_kind(Counting, AutoresetMode.SAME_STEP),
    "disabled": vector_kind(Counting, AutoresetMode.DISABLED),
    "single dict": Kind(DictCounting, {}, *NAMES),
    "next step dict": vector_kind(DictCounting, AutoresetMode.NEXT_STEP, *NAMES),
    "same step dict": vector_kind(DictCounting, AutoresetMode.SAME_STEP, *NAMES),
    "disabled dict": vector_kind(DictCounting, AutoresetMode.DISABLED, *NAMES),
    "single discrete": Kind(DiscreteCounting, {}, "", None),
    "same step discrete": vector_kind(DiscreteCounting, AutoresetMode.SAME_STEP, "", None),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(params=[name for name in KINDS if KINDS[name].everything is not None])
def telling_kind(request):
    """A kind of which all that Counting observes can be read."""
    return KINDS[request.param]


def run(world, seed=1, num_rows=NUM_ROWS):
    rows = make_rows(world, num_rows)
    rows["action"] = np.random.default_rng(0).integers(4, size=(num_rows, N))
    world.reset(seed, rows)
    for t in range(num_rows):
        world.step(rows["action"][t], rows, t)
    return rows


def run_two_halves(build, num_rows=NUM_ROWS):
    """Step two worlds in turns: while the caller handles one, the other has been sent actions."""
    worlds = build(), build()
    halves = [make_rows(world, num_rows) for world in worlds]
    actions = np.random.default_rng(0).integers(4, size=(num_rows, N))
    for seed, (world, rows) in enumerate(zip(worlds, halves, strict=True), start=1):
        rows["action"] = actions
        world.reset(seed, rows)
        world.send(actions[0])
    for t in range(num_rows):
        for world, rows in zip(worlds, halves, strict=True):
            world.recv(rows, t)
            if t + 1 < num_rows:
                world.send(actions[t + 1])
    for world in worlds:
        world.close()
    return halves


def counts(kind, rows, prefix="obs"):
    array = rows[prefix + kind.count]
    return array if array.ndim == 2 else array[..., 0]


def led_to(world, rows, name):
    """What step t led to, at the end of an episode too."""
    following = rows["obs" + name][1:].copy()
    if world.keeps_final:
        ended = rows["terminated"] | rows["truncated"]
        following[ended] = rows["final_obs" + name][ended]
    return following


def test_every_valid_step_counts_one_up_and_is_rewarded_with_the_count(kind):
    world = kind.build(length=LENGTH, spread=2)
    rows = run(world)
    before = counts(kind, rows)[:-1]
    after = led_to(world, rows, kind.count)
    after = after if after.ndim == 2 else after[..., 0]
    valid = rows["valid"]
    assert valid.sum() > NUM_ROWS * N / 2
    np.testing.assert_array_equal(after[valid], before[valid] + 1)
    np.testing.assert_array_equal(rows["reward"][valid], after[valid])
    np.testing.assert_array_equal(before[0], 0)
    np.testing.assert_array_equal(np.sort(rows["reward"][valid[:, 0], 0]), after[valid[:, 0], 0])


def check_both_ways(build):
    for seed, half in enumerate(run_two_halves(build), start=1):
        stepped = run(build(), seed=seed)
        for name in stepped:
            np.testing.assert_array_equal(half[name], stepped[name])


def test_two_phases_of_two_worlds_in_turns_give_the_rows_of_step(kind):
    check_both_ways(lambda: kind.build(length=LENGTH, spread=2))


def async_vector(num_envs, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return AsyncVectorEnv([lambda: Counting(**kwargs)] * num_envs, autoreset_mode=mode)


def test_environments_in_processes_work_between_the_two_phases():
    check_both_ways(lambda: build_world(async_vector, {"length": LENGTH}, N))
    world = build_world(async_vector, {}, 2)
    rows = make_rows(world, 1)
    world.reset(1, rows)
    world.send(np.zeros(2, np.int64))
    assert world.env._state.value == "step"
    world.recv(rows, 0)
    assert world.env._state.value == "default"
    world.close()


def test_emulator_threads_work_between_the_two_phases(monkeypatch):
    pytest.importorskip("ale_py")
    world = build_world("ALE/Pong-v5", {}, 2)
    rows, calls = make_rows(world, 2), []
    world.reset(1, rows)
    emulators = world.env.ale
    monkeypatch.setattr(
        world.env,
        "ale",
        type(
            "Watched",
            (),
            {
                "send": lambda self, *sent: (calls.append("send"), emulators.send(*sent)),
                "recv": lambda self: (calls.append("recv"), emulators.recv())[1],
            },
        )(),
    )
    world.send(np.zeros(2, np.int64))
    assert calls == ["send"]
    world.recv(rows, 0)
    assert calls == ["send", "recv"]
    world.close()


def test_receiving_without_sending_is_an_error(kind):
    world = kind.build()
    rows = make_rows(world, 1)
    world.reset(1, rows)
    with pytest.raises((AssertionError, IndexError)):
        world.recv(rows, 0)


def test_an_observation_is_what_the_action_of_its_row_led_to(telling_kind):
    world = telling_kind.build(length=LENGTH, spread=2)
    rows = run(world)
    after = led_to(world, rows, telling_kind.everything)
    np.testing.assert_array_equal(after[rows["valid"], 3], rows["action"][rows["valid"]])


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_episodes_have_their_exact_length_and_their_own_kind_of_end(kind, end):
    rows = run(kind.build(length=LENGTH, end=end))
    other = {"terminated": "truncated", "truncated": "terminated"}[end]
    assert not rows[other].any()
    for i in range(N):
        ends = rows[end][rows["valid"][:, i], i]
        assert ends.sum() >= NUM_ROWS // (LENGTH + 1)
        np.testing.assert_array_equal(np.flatnonzero(ends) % LENGTH, LENGTH - 1)


def test_nothing_happens_in_a_reset_row(kind):
    world = kind.build(length=LENGTH, spread=2)
    rows = run(world)
    reset = ~rows["valid"]
    for name in ("reward", "terminated", "truncated"):
        assert not rows[name][reset].any()
    ended = rows["terminated"] | rows["truncated"]
    if world.keeps_final:
        assert not reset.any()
    else:
        assert not reset[0].any()
        np.testing.assert_array_equal(reset[1:], ended[:-1])


def test_a_new_episode_begins_after_each_end(telling_kind):
    world = telling_kind.build(length=LENGTH, spread=2)
    rows = run(world)
    t, i = np.nonzero((rows["terminated"] | rows["truncated"])[:-1])
    assert len(t) > N
    first = rows["obs" + telling_kind.everything][t + (1 if world.keeps_final else 2), i]
    final = led_to(world, rows, telling_kind.everything)[t, i]
    np.testing.assert_array_equal(first[:, 1], 0)
    np.testing.assert_array_equal(first[:, 0], final[:, 0])
    assert (final[:, 1] >= LENGTH).all()


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(kind):
    first, again, other = (
        run(kind.build(length=LENGTH, spread=4), seed=seed) for seed in (7, 7, 8)
    )
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first["truncated"], other["truncated"])


def test_a_reset_forgets_all_that_was_before(kind):
    world = kind.build(length=LENGTH)
    run(world, num_rows=LENGTH)
    again, fresh = run(world, seed=2), run(kind.build(length=LENGTH), seed=2)
    for name in again:
        np.testing.assert_array_equal(again[name], fresh[name])


def test_every_environment_has_its_own_seed(telling_kind):
    tags = run(telling_kind.build(), num_rows=1)["obs" + telling_kind.everything][0, :, 2]
    assert len(set(tags)) == N


@pytest.mark.parametrize("steps_before", [0, 2, LENGTH, 9])
def test_a_restored_world_goes_on_bit_for_bit(kind, steps_before):
    check_state_round_trip(lambda: kind.build(length=LENGTH, spread=1), steps_before, num_actions=4)


@pytest.mark.parametrize("steps_before", [0, 4, 6])
def test_vector_cartpole_goes_on_bit_for_bit_also_at_the_end_of_an_episode(steps_before):
    build = lambda: build_world("CartPole-v1", {"max_episode_steps": 6}, N)  # noqa: E731
    check_state_round_trip(build, steps_before, num_actions=2)


def check_state_round_trip(build, steps_before, num_actions):
    """Run, save, run on; the same in the same world restored, and in one that is new."""
    world, actions = build(), np.random.default_rng(0).integers(num_actions, size=(NUM_ROWS, N))
    rows = make_rows(world, NUM_ROWS)
    world.reset(3, rows)
    for t in range(steps_before):
        world.step(actions[t], rows, t)
    state, begun = world.get_state(), copy.deepcopy(rows)
    kept = copy.deepcopy(state)
    for t in range(steps_before, NUM_ROWS):
        world.step(actions[t], rows, t)
    for restored in (world, build()):
        again = copy.deepcopy(begun)
        restored.set_state(kept)
        for t in range(steps_before, NUM_ROWS):
            restored.step(actions[t], again, t)
        for name in rows:
            np.testing.assert_array_equal(rows[name], again[name])
    np.testing.assert_equal(state, kept)


def test_the_actions_given_are_not_changed_or_kept(kind):
    world = kind.build()
    rows = make_rows(world, 1)
    world.reset(1, rows)
    actions = np.array([0, 1, 2, 3, 0])
    world.step(actions, rows, 0)
    np.testing.assert_array_equal(actions, [0, 1, 2, 3, 0])


@pytest.mark.parametrize("name", ["single", "next step"])
def test_closing_twice_is_closing_once(name, monkeypatch):
    world, closed = KINDS[name].build(), []
    for env in world.envs if name == "single" else [world.env]:
        monkeypatch.setattr(env, "close", lambda: closed.append(1))
    world.close()
    world.close()
    assert len(closed) == (N if name == "single" else 1)


def test_single_and_vector_environments_give_the_same_rows():
    single, vector = (
        run(KINDS[name].build(length=LENGTH, spread=2)) for name in ("single", "next step")
    )
    for name in single:
        np.testing.assert_array_equal(single[name], vector[name])


def test_vector_cartpole_gives_what_gymnasium_gives():
    world = build_world("CartPole-v1", {"max_episode_steps": 12}, N)
    bare = gym.make_vec("CartPole-v1", N, max_episode_steps=12)
    rows = make_rows(world, NUM_ROWS)
    actions = np.random.default_rng(0).integers(2, size=(NUM_ROWS, N))
    world.reset(1, rows)
    bare.reset(seed=1)
    bare.np_random.bit_generator.state = world.env.np_random.bit_generator.state
    bare.state = world.env.state.copy()
    ended = np.zeros(N, bool)
    for t in range(NUM_ROWS):
        world.step(actions[t], rows, t)
        obs, reward, terminated, truncated, _ = bare.step(actions[t])
        for name, value in (("reward", reward), ("terminated", terminated)):
            np.testing.assert_array_equal(rows[name][t], value)
        np.testing.assert_array_equal(rows["truncated"][t], truncated)
        np.testing.assert_array_equal(rows["obs"][t + 1], obs)
        np.testing.assert_array_equal(rows["valid"][t], ~ended)
        ended = terminated | truncated
    assert rows["truncated"].any() and rows["terminated"].any()
