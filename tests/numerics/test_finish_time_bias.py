"""What "the first to finish" does to an estimate, on a task where it is known in closed form.

In ShortOrLong, action 0, of probability p, ends an episode after one step with a reward of 1; all
other actions play on for nothing. n actors race for the first gradient, and a step takes everyone
equally long. If a gradient is done when its episode ends, the first one is short as soon as any of
them is: with probability 1 - (1 - p)^n instead of p, and so much too long is the gradient.
"""

import numpy as np
import pytest
import torch

from tests.system.runs import QUIET
from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.gather.rules import build_rule
from tianji.config.overrides import make_config
from tianji.envs.build import build_world, make_rows
from tianji.run import train_config

WORLD = "tests.fakes.small_envs:ShortOrLong"
NUM_ACTORS, LENGTH, P = 3, 6, 0.25
RUSHED = 1.0 - (1.0 - P) ** NUM_ACTORS
SHARES = {"steps": P, "episodes": RUSHED}
BIAS = slice(-4, None)
"""The last layer's bias: the logits themselves, in a world where there is nothing to see."""


class Racer:
    """One actor, without the channels around it."""

    def __init__(self, config):
        algorithm = load_algorithm(config.algorithm.name)
        self.world = build_world(config.env, config.env_kwargs, 1)
        spaces = self.world.spaces
        torch.manual_seed(1)
        self.model = algorithm.build_model(spaces, config)
        self.acting = algorithm.build_acting(self.model, spaces, config)
        self.estimator = algorithm.build_estimator(self.model, spaces, config)
        self.unroll = make_rows(self.world, LENGTH)
        self.unroll["action"] = np.zeros((LENGTH, 1), np.int64)

    def run(self, rng):
        """One gradient; returns the steps that it took."""
        self.estimator.begin(0)
        self.world.reset(int(rng.integers(2**31)), self.unroll)
        self.acting.begin(rng, self.unroll, 0, 0)
        for t in range(LENGTH):
            self.world.step(self.acting.act(self.unroll, t), self.unroll, t)
            if self.estimator.is_complete(self.unroll, t):
                break
        self.estimator.add(self.unroll, t + 1)
        return t + 1


def config_of(estimate, **more):
    return make_config(
        "rennala-nigt", env=WORLD, env_kwargs={"length": LENGTH}, num_envs=NUM_ACTORS,
        num_actors=NUM_ACTORS, m=1, unroll_length=LENGTH, estimate=estimate, baseline="none",
        gamma=1.0, learning_rate=1e-9, **more,
    )  # fmt: skip


@pytest.mark.parametrize("estimate", SHARES)
def test_gradients_that_end_with_their_episode_are_biased_by_the_race(estimate):
    """The mean of the winners' gradients by the logits: reward 1 times onehot(0) - p, as often as
    the winner was short."""
    racers = [Racer(config_of(estimate)) for _ in range(NUM_ACTORS)]
    rule = build_rule(Gather("first", 1, 1), NUM_ACTORS)
    rng = np.random.default_rng(5)
    winners = []
    for _ in range(300):
        steps = [racer.run(rng) for racer in racers]
        rule.begin(is_first=False)
        first = min(range(NUM_ACTORS), key=lambda i: (steps[i], i))
        assert rule.arrived(first)
        winners.append(racers[first].estimator.sum_P[BIAS].copy())
    expected = SHARES[estimate] * (np.array([1.0, 0.0, 0.0, 0.0]) - P)
    error = np.std(winners, 0) / np.sqrt(len(winners))
    np.testing.assert_array_less(abs(np.mean(winners, 0) - expected), 3.0 * error)


@pytest.mark.parametrize("estimate", SHARES)
def test_a_person_can_measure_the_bias_with_times_per_step(estimate, tmp_path, monkeypatch):
    """The mean return is the share of short episodes among the gradients that were used."""
    monkeypatch.chdir(tmp_path)
    config = config_of(
        estimate, engine="virtual", times={"law": "equal", "per": "step"}, max_env_steps=700,
        target_return=9, observe={**QUIET, "period_s": 1e9}, checkpoint={"period_s": 1e9},
    )  # fmt: skip
    share = train_config(config)["mean_return_100"]
    error = np.sqrt(P * (1.0 - P) / 100)
    assert abs(share - SHARES[estimate]) < 3.0 * error < RUSHED - P
