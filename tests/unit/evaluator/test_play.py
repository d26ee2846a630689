"""Playing whole episodes, of agents that come late or never too."""

import numpy as np

from tianji.envs.exits import Exits
from tianji.envs.parallel import ParallelWorld
from tianji.evaluator.play import play_episodes


def stay(obs, is_first_N):
    return np.ones(len(is_first_N), np.int64)


def test_an_agent_that_never_appears_does_not_hold_up_the_evaluation():
    world = ParallelWorld([Exits(length=3, late=5)], "exits")
    played = play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=12)
    assert len(played.returns) == 8
    assert played.lengths == [3] * 6 + [0, 0], "three agents stay for three steps, one never comes"
    assert played.num_cut == 2


def test_the_row_of_a_reset_is_no_absence():
    world = ParallelWorld([Exits(length=1, late=0)], "exits")
    played = play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=1)
    assert played.lengths == [1] * 8


def test_an_agent_that_comes_late_plays_whole_episodes():
    world = ParallelWorld([Exits(length=6, late=4)], "exits")
    played = play_episodes(stay, world, num_episodes=8, seed=0, cut_after_steps=12)
    assert played.lengths == [6] * 6 + [2, 2] and played.num_cut == 0
