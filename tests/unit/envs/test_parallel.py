"""Parallel environments: agents are columns, which leave and join while others go on."""

import re
import sys
import types

import numpy as np
import pytest
from gymnasium import spaces

from tests.fakes.specs import MACHINE
from tianji.config.run import RunConfig
from tianji.envs.build import build_world, make_rows, probe
from tianji.envs.check import check_environment
from tianji.envs.exits import Exits
from tianji.envs.parallel import MOST_ABSENT_STEPS, MOST_EMPTY_RESETS, ParallelWorld
from tianji.errors import EnvironmentFailed, UsageError
from tianji.planning.resolve.resolve import resolve

EXITS = "pettingzoo:tianji.envs.exits"
HERE = "pettingzoo:tests.unit.envs.test_parallel"


class Relay:
    """Three agents: `a` leaves in step 2, `b` in step 3; `c` joins in step 1 and stays until 4.

    Observations are the steps since the reset, actions are written down.
    """

    possible_agents = ["a", "b", "c"]
    ends = {"a": 2, "b": 3, "c": 4}

    def __init__(self, has_masks=False):
        self.agents, self.taken, self.steps, self.has_masks = [], [], 0, has_masks

    def observation_space(self, agent):
        return spaces.Box(0, 9, (1,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(5)

    def info(self):
        mask = np.eye(5, dtype=np.int8)[self.steps]
        return {"action_mask": mask} if self.has_masks else {}

    def reset(self, seed=None, options=None):
        self.agents, self.steps = ["a", "b"], 0
        return {x: np.zeros(1, np.float32) for x in "ab"}, {x: self.info() for x in "ab"}

    def step(self, actions):
        assert sorted(actions) == sorted(self.agents)
        self.taken.append(dict(actions))
        self.steps += 1
        seen = [*self.agents, *(["c"] if self.steps == 1 else [])]
        terminated = {x: self.ends[x] == self.steps and x != "c" for x in self.agents}
        truncated = {x: self.ends[x] == self.steps and x == "c" for x in self.agents}
        rewards = {x: float(ord(x)) for x in self.agents}
        self.agents = [x for x in seen if self.ends[x] != self.steps]
        observations = {x: np.full(1, self.steps, np.float32) for x in seen}
        return observations, rewards, terminated, truncated, {x: self.info() for x in seen}

    def close(self):
        self.agents = None


class Unequal(Relay):
    def action_space(self, agent):
        return spaces.Discrete(3 if agent == "b" else 5)


def parallel_env():
    return Relay()


def relay_rows(num_rows=7, **kwargs):
    env = Relay(**kwargs)
    world = ParallelWorld([env], "relay", "info" if kwargs else "none")
    rows = make_rows(world, num_rows)
    world.reset(0, rows)
    for t in range(num_rows):
        world.step(np.arange(3) + 1, rows, t)
    return env, rows


def test_a_column_is_valid_while_its_agent_is_there():
    _, rows = relay_rows()
    # Four steps, the reset, and two steps of the next episode. `c` joins in the first step.
    expected = {
        "a": [1, 1, 0, 0, 0, 1, 1],
        "b": [1, 1, 1, 0, 0, 1, 1],
        "c": [0, 1, 1, 1, 0, 0, 1],
    }
    assert rows["valid"].T.astype(int).tolist() == list(expected.values())


def test_ends_rewards_and_observations_are_those_of_each_agent():
    _, rows = relay_rows()
    assert rows["terminated"].T.astype(int).tolist() == [
        [0, 1, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]
    assert rows["truncated"].T.astype(int)[2].tolist() == [0, 0, 0, 1, 0, 0, 0]
    assert not rows["truncated"][:, :2].any()
    assert (rows["reward"] == np.where(rows["valid"], [97.0, 98.0, 99.0], 0.0)).all()
    assert rows["obs"][..., 0].T.tolist() == [
        [0, 1, 2, 2, 2, 0, 1, 2],
        [0, 1, 2, 3, 3, 0, 1, 2],
        [0, 1, 2, 3, 4, 0, 1, 2],
    ]


class Dying(Relay):
    """`a` is terminated without a last observation; of `b` nothing more is heard; `c` has neither a
    last observation nor a termination, only a reward."""

    def step(self, actions):
        observations, *others = super().step(actions)
        for agent in [x for x in observations if x not in self.agents]:
            del observations[agent]
            if agent != "a":
                del others[1][agent], others[2][agent]
            if agent == "b":
                del others[0][agent]
        return observations, *others


def rows_of(env, num_rows=5):
    world = ParallelWorld([env], "made up")
    rows = make_rows(world, num_rows)
    world.reset(0, rows)
    for t in range(num_rows):
        world.step(np.zeros(world.num_envs, np.int64), rows, t)
    return rows


def test_an_agent_that_ends_without_a_last_observation_keeps_its_last_step_and_reward():
    """`b` acted in its last step, so that step counts too. If it did not, the episode of `b` would
    have no end: it would be joined to the next one, and an evaluation would wait for it forever."""
    rows = rows_of(Dying())
    assert rows["valid"].T.astype(int).tolist() == [
        [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0],
    ]  # fmt: skip
    assert rows["terminated"].T.astype(int).tolist() == [[0, 1, 0, 0, 0], [0] * 5, [0] * 5]
    assert rows["truncated"].T.astype(int).tolist() == [[0] * 5, [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    rewards = np.where(rows["valid"], [97.0, 98.0, 99.0], 0.0)
    rewards[2, 1] = 0.0  # nothing was said of it
    assert (rows["reward"] == rewards).all()
    assert rows["obs"][:3, 0, 0].tolist() == [0, 1, 1], "the last observation is kept"
    assert rows["obs"][:4, 1, 0].tolist() == [0, 1, 2, 2]


class OnlyTruncated(Relay):
    """Of `a` there is nothing in its last step but that it is truncated."""

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = super().step(actions)
        if self.steps == 2:
            for entries in (observations, rewards, terminated):
                del entries["a"]
            truncated["a"] = True
        return observations, rewards, terminated, truncated, infos


def test_an_agent_that_is_only_truncated_keeps_its_last_step():
    rows = rows_of(OnlyTruncated())
    assert rows["valid"][:, 0].astype(int).tolist() == [1, 1, 0, 0, 0]
    assert rows["truncated"][:, 0].astype(int).tolist() == [0, 1, 0, 0, 0]


class Empty(Relay):
    """No agent is there after a reset; or one that has no column."""

    def __init__(self, agents=()):
        super().__init__()
        self.after_reset = list(agents)

    def reset(self, seed=None, options=None):
        self.agents = list(self.after_reset)
        return {}, {}

    def step(self, actions):
        return {}, {}, {}, {}, {}


def test_an_environment_without_agents_is_not_reset_forever():
    told = "Environment 'made up' has no agents: reset.. left `agents` empty 11 times in a row"
    with pytest.raises(EnvironmentFailed, match=told):
        rows_of(Empty(), num_rows=20)
    with pytest.raises(EnvironmentFailed, match="left `agents` empty"):
        probe(f"{HERE}:Empty", {}, timed=True)


class SometimesEmpty(Empty):
    """Two of three resets bring no agent, and episodes have one step."""

    num_resets = 0

    def reset(self, seed=None, options=None):
        returned = Relay.reset(self)
        self.num_resets += 1
        if self.num_resets % 3:
            self.agents = []
        return returned

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = Relay.step(self, actions)
        self.agents = []
        return observations, rewards, dict.fromkeys(terminated, True), truncated, infos


def test_resets_that_bring_no_agent_count_only_in_a_row():
    env = SometimesEmpty()
    rows = rows_of(env, num_rows=60)
    assert env.num_resets > 3 * MOST_EMPTY_RESETS
    assert rows["terminated"][:, 0].sum() > 10


def test_the_doctor_tells_that_there_is_nothing_to_train_on():
    for kwargs, told in (
        ({}, ["left `agents` empty"]),
        # How many steps the doctor makes depends on the machine.
        ({"agents": ["nobody"]}, ["No valid step came out", "goes on without agents"]),
    ):
        findings = check_environment(f"{HERE}:Empty", kwargs)
        errors = [one.what for one in findings if one.level == "error"]
        assert any(words in error for words in told for error in errors)


class Sticky(Relay):
    """Agents whose episodes have ended stay in `agents`."""

    def step(self, actions):
        self.taken.append(dict(actions))
        self.steps = min(self.steps + 1, 9)
        observations = {x: np.full(1, self.steps, np.float32) for x in self.agents}
        ended = {x: self.ends[x] <= self.steps for x in self.agents}
        return observations, dict.fromkeys(actions, 1.0), ended, {}, {}


def test_an_environment_whose_agents_never_leave_the_list_is_told_so():
    told = r"goes on without agents: `agents` lists \['a', 'b'\], but for 501 steps nobody was"
    with pytest.raises(EnvironmentFailed, match=told):
        rows_of(Sticky(), num_rows=MOST_ABSENT_STEPS + 20)
    rows = rows_of(Sticky(), num_rows=MOST_ABSENT_STEPS)  # a pause of this length is allowed
    assert rows["valid"].sum() == 5


class Wrong(Relay):
    """What it returns for agent `a`, or as a whole, is replaced."""

    def __init__(self, part=None, value=None, whole=None, resets=None):
        super().__init__()
        self.part, self.value, self.whole, self.resets = part, value, whole, resets

    def reset(self, seed=None, options=None):
        returned = super().reset()
        return returned if self.resets is None else self.resets(*returned)

    def step(self, actions):
        returned = super().step(actions)
        if self.whole is not None:
            return self.whole(*returned)
        returned[self.part]["a"] = self.value
        return returned


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"part": 1, "value": None}, r"step.. returned None .* as the reward of agent 'a', but it"),
        ({"part": 1, "value": np.ones(2)}, r"array of shape .2,., .* as the reward of agent 'a'"),
        ({"part": 2, "value": np.ones(2)}, "as `terminated` of agent 'a', but it must be True or"),
        ({"part": 3, "value": 7}, "returned 7 .int. as `truncated` of agent 'a'"),
        ({"part": 0, "value": np.ones(2)}, "observation that step.. for agent 'a' returned is an"),
        ({"whole": lambda o, r, d, t, i: (o, r, d, i)}, "4 values .* old Gym: split its `done`"),
        (
            {"whole": lambda o, r, d, t, i: (o, [1.0], d, t, i)},
            "as the rewards, but it must be a d",
        ),
        ({"resets": lambda o, i: o}, "reset.. returned .* must return 2 dictionaries"),
        (
            {"resets": lambda o, i: ({"b": o["b"]}, i)},
            "reset.. returned no observation for agent 'a",
        ),
    ],
)
def test_wrong_returns_are_told_in_words(wrong, told):
    with pytest.raises(UsageError, match=f"Environment 'made up': .*{told}"):
        rows_of(Wrong(**wrong))


def test_a_mask_that_an_agent_gets_in_its_first_step_only_is_not_ignored():
    with pytest.raises(UsageError, match="no mask of legal actions in reset"):
        probe(f"{HERE}:LateMasks", {})


class LateMasks(Relay):
    def info(self):
        return {"action_mask": np.ones(5, np.int8)} if self.steps else {}


class Unpaid(Relay):
    """Its rewards have other names than its agents."""

    def step(self, actions):
        observations, rewards, *others = super().step(actions)
        return observations, {f"agent {x}": reward for x, reward in rewards.items()}, *others


def test_a_missing_reward_of_an_agent_that_is_there_is_an_error():
    world = ParallelWorld([Unpaid()], "unpaid")
    rows = make_rows(world, 5)
    world.reset(0, rows)
    told = "'unpaid': step() returned no reward for agent 'a', but it must have one for each agent"
    with pytest.raises(UsageError, match=re.escape(told)):
        world.step(np.arange(3) + 1, rows, 0)


def test_only_agents_that_are_there_act():
    env, _ = relay_rows()
    assert [sorted(actions) for actions in env.taken[:5]] == [
        ["a", "b"], ["a", "b", "c"], ["b", "c"], ["c"], ["a", "b"],
    ]  # fmt: skip
    assert env.taken[1] == {"a": 1, "b": 2, "c": 3}


def test_each_agent_has_masks_of_its_own():
    _, rows = relay_rows(has_masks=True)
    masks = rows["obs.action_mask"]
    for t, column in np.argwhere(rows["valid"]):
        assert masks[t, column].argmax() == rows["obs"][t, column, 0]
        assert masks[t, column].sum() == 1


def test_every_agent_counts_and_environments_are_made_whole():
    found = probe(EXITS, {}, timed=True)
    assert found.num_agents == 4 and found.offers_state
    assert found.step_s == found.times.mean_s / 4
    for asked, made in ((1, 4), (4, 4), (5, 8)):
        world = build_world(EXITS, {}, asked)
        assert (world.num_envs, len(world.envs)) == (made, made // 4)
    assert build_world(HERE, {}, 3).num_envs == 3
    assert build_world(f"{HERE}:Relay", {}, 3).num_envs == 3


def test_actors_get_whole_environments():
    found = probe(EXITS, {})
    config = RunConfig(env=EXITS, algorithm="ppo", num_envs=12)
    assert resolve(config, MACHINE, found).envs_per_actor % 4 == 0
    for values in ({"num_envs": 6}, {"num_envs": 8, "num_actors": 4}):
        with pytest.raises(UsageError, match=r"4 agents.*such as num_envs = (8|16)"):
            resolve(RunConfig(env=EXITS, algorithm="ppo", **values), MACHINE, found)


@pytest.mark.parametrize(
    ("env", "told"),
    [
        (f"{HERE}:Unequal", "All agents .*same spaces.*action space of 'a' is Discrete.5., that"),
        ("pettingzoo:gymnasium.envs.classic_control:CartPoleEnv", "no possible_agents"),
        ("pettingzoo:tianji.envs.worlds", "has a function or class of that name"),
        ("pettingzoo:nowhere", "No module named 'nowhere'$"),
    ],
)
def test_what_is_no_parallel_environment_for_one_policy_is_refused(env, told):
    with pytest.raises(UsageError, match=told):
        probe(env, {})


@pytest.mark.parametrize(
    ("env", "written"),
    [
        ("tests.unit.envs.test_parallel:Relay", "pettingzoo:tests.unit.envs.test_parallel:Relay"),
        (Relay, "pettingzoo:MODULE:Relay"),
    ],
)
def test_a_parallel_environment_without_its_prefix_is_told_how_to_write_it(env, written):
    with pytest.raises(UsageError, match=rf"makes a Relay, not a gymnasium.Env\. .* {written}\."):
        probe(env, {})


def test_what_only_resembles_a_parallel_environment_gets_no_advice():
    with pytest.raises(UsageError, match=r"makes a dict, not a gymnasium.Env\.$"):
        probe(lambda: {}, {})


@pytest.mark.parametrize("maker", ["env", "raw_env"])
def test_an_environment_whose_agents_take_turns_is_told_so(maker, monkeypatch):
    module = types.ModuleType("turns")
    setattr(module, maker, Relay)
    monkeypatch.setitem(sys.modules, "turns", module)
    with pytest.raises(UsageError, match=rf"'{maker}' and no 'parallel_env', .*turns \(AEC\)"):
        probe("pettingzoo:turns", {})
    module.parallel_env = Relay
    assert probe("pettingzoo:turns", {}).num_agents == 3


def play(world, seed, num_rows=60):
    rows, rng = make_rows(world, num_rows), np.random.default_rng(seed)
    world.reset(seed, rows)
    for t in range(num_rows):
        world.step(rng.integers(3, size=world.num_envs), rows, t)
    return rows


def test_the_same_seed_gives_the_same_episodes_and_environments_differ():
    one, other = (play(build_world(EXITS, {}, 8), 3) for _ in range(2))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    assert (one["obs"][:, :4] != one["obs"][:, 4:]).any()


def test_the_doctor_finds_nothing_wrong():
    findings = check_environment(EXITS, {})
    assert not [finding for finding in findings if finding.level == "error"]
    assert any("continues exactly" in finding.what for finding in findings)


def test_our_small_environment_is_one_of_pettingzoo():
    package = pytest.importorskip("pettingzoo", reason="needs the extra `pettingzoo`")
    from pettingzoo.test import parallel_api_test

    class Derived(Exits, package.ParallelEnv):
        """What it lacks, such as `unwrapped`, is PettingZoo's."""

    parallel_api_test(Derived(), num_cycles=200)


def test_a_wrapper_of_pettingzoo_changes_nothing():
    package = pytest.importorskip("pettingzoo.utils", reason="needs the extra `pettingzoo`")
    worlds = [
        ParallelWorld([make()], "exits")
        for make in (Exits, lambda: package.BaseParallelWrapper(Exits()))
    ]
    one, other = (play(world, 5) for world in worlds)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
