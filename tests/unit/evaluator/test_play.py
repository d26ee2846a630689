"""Playing whole episodes, of agents that come late or never too."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from tests.fakes.scripted import ScriptedWorld
from tianji.envs.exits import Exits
from tianji.envs.parallel import ParallelWorld
from tianji.errors import EnvironmentFailed
from tianji.evaluator.play import play_episodes


def stay(obs, is_first_N):
    return np.ones(len(is_first_N), np.int64)


def test_an_agent_that_never_appears_does_not_hold_up_the_evaluation():
    world = ParallelWorld([Exits(length=3, late=5)], "exits")
    played = play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=12)
    assert played.lengths == [3] * 8, "three agents stay for three steps, one never comes"
    assert played.num_cut == 0


def test_agents_that_never_appear_cannot_be_evaluated():
    world = ParallelWorld([Exits(length=3, late=5)], "exits")

    def reset(seed=None):
        world.envs[0].agents = ["nobody"]
        return {}, {}

    world.envs[0].reset = reset
    world.envs[0].step = lambda actions: ({}, {}, {}, {}, {})
    with pytest.raises(EnvironmentFailed, match="No agent appeared in the first 12 steps"):
        play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=12)


class Unequal:
    """Agent `a` leaves after 2 steps and `b` after 20; each step is worth 1."""

    possible_agents = ("a", "b")
    leaves = {"a": 2, "b": 20}

    def observation_space(self, agent):
        return Box(0, 1, (1,), np.float32)

    def action_space(self, agent):
        return Discrete(2)

    def reset(self, seed=None, options=None):
        self.t, self.agents = 0, list(self.possible_agents)
        return self._observe(), {}

    def _observe(self):
        return {agent: np.zeros(1, np.float32) for agent in self.agents}

    def step(self, actions):
        self.t += 1
        seen, over = self._observe(), {agent: self.t == self.leaves[agent] for agent in self.agents}
        self.agents = [agent for agent in self.agents if not over[agent]]
        return seen, dict.fromkeys(seen, 1.0), over, dict.fromkeys(seen, False), {}


def test_an_agent_that_has_left_before_the_others_adds_no_empty_episode():
    world = ParallelWorld([Unequal()], "unequal")
    played = play_episodes(stay, world, num_episodes=4, seed=0, cut_after_steps=10)
    assert played.lengths == [2, 2, 10, 10] and played.returns == [2, 2, 10, 10]
    assert played.num_cut == 2, "those of b"


def test_the_row_of_a_reset_is_no_absence():
    world = ParallelWorld([Exits(length=1, late=0)], "exits")
    played = play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=1)
    assert played.lengths == [1] * 8


def test_an_agent_that_comes_late_plays_whole_episodes():
    world = ParallelWorld([Exits(length=6, late=4)], "exits")
    played = play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=12)
    assert played.lengths == [6] * 6 + [2, 2] and played.num_cut == 0


class Missing(Unequal):
    """Agent `a` never comes."""

    def reset(self, seed=None, options=None):
        super().reset()
        self.agents = ["b"]
        return self._observe(), {}


@pytest.mark.parametrize("num_episodes", [1, 2, 3])
def test_those_that_appear_play_the_episodes_of_one_that_never_does(num_episodes):
    world = ParallelWorld([Missing()], "missing")
    played = play_episodes(stay, world, num_episodes, seed=0, cut_after_steps=30)
    assert played.lengths == [20] * num_episodes


class OneOfThree(Unequal):
    """Agent `a` never comes; `b` has short episodes and `c` long ones."""

    possible_agents = ("a", "b", "c")
    leaves = {"b": 2, "c": 10}

    def reset(self, seed=None, options=None):
        super().reset()
        self.agents = ["b", "c"]
        return self._observe(), {}


def test_the_episodes_of_one_that_never_appears_are_divided_evenly():
    world = ParallelWorld([OneOfThree()], "three")
    played = play_episodes(stay, world, num_episodes=6, seed=0, cut_after_steps=30)
    assert sorted(played.lengths) == [2, 2, 2, 10, 10, 10]


class Vanishing(Unequal):
    """Agent `a` is gone after 2 steps, without a word; `b` goes on forever."""

    leaves = {"a": 2, "b": 10**9}

    def step(self, actions):
        seen, rewards, over, cut, infos = super().step(actions)
        for entries in (seen, rewards, over, cut):
            if self.t == 2:
                del entries["a"]
        return seen, rewards, over, cut, infos


def test_an_agent_that_vanishes_has_ended_its_episode_there():
    world = ParallelWorld([Vanishing()], "vanishing")
    played = play_episodes(stay, world, num_episodes=3, seed=0, cut_after_steps=10)
    assert played.lengths == [2, 2, 10] and played.returns == [1, 1, 10]
    assert played.num_cut == 1


class Stepping(ScriptedWorld):
    """Its first environment steps now and then, and never ends an episode."""

    def recv(self, unroll, t):
        super().recv(unroll, t)
        unroll["terminated"][t, 0] = False
        unroll["valid"][t, 0] = self.first_rows > 0
        self.first_rows -= 1

    def reset(self, seed, unroll):
        super().reset(seed, unroll)
        self.first_rows = 2


def test_an_environment_that_steps_but_ends_no_episode_is_given_up():
    world = Stepping(lengths=(3, 5))
    played = play_episodes(stay, world, num_episodes=4, seed=0, cut_after_steps=20)
    assert played.lengths == [5] * 4
