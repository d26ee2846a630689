"""How often DQN's actors act at random: less and less, or a fixed share for each environment.

N: environments of one actor.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tianji.algorithms.dqn.settings import QLearningConfig
from tianji.models.optimizers import linear_by_steps
from tianji.ops.returns import Floats


class Exploration(Protocol):
    """Says which share of an actor's actions is random."""

    def epsilon(self, steps_before: int, num_envs: int) -> float | Floats:
        """Return the share after so many steps of the run, for all environments or for each."""
        ...


class Decay:
    """All environments alike, from epsilon_start to epsilon_final."""

    def __init__(self, config: QLearningConfig) -> None:
        self._config = config

    def epsilon(self, steps_before: int, num_envs: int) -> float | Floats:
        config = self._config
        return linear_by_steps(
            config.epsilon_start, config.epsilon_final, steps_before, config.epsilon_decay_steps
        )


class Ladder:
    """Each environment its own share, which stays (Horgan et al. 2018, section 4.1)."""

    def __init__(self, config: QLearningConfig, num_envs: int, first_env: int) -> None:
        """num_envs: of the whole run. first_env: number of this actor's first one among them."""
        self._epsilon = ladder(config.ladder_epsilon, config.ladder_alpha, num_envs)
        self._first_env = first_env

    def epsilon(self, steps_before: int, num_envs: int) -> float | Floats:
        number_N = self._first_env + np.arange(num_envs)
        return self._epsilon.take(number_N, mode="wrap")


def ladder(epsilon: float, alpha: float, num_envs: int) -> Floats:
    """Return epsilon^(1 + alpha i / (N - 1)) for environments i = 0 ... N - 1."""
    rung_N = np.arange(num_envs) / max(1, num_envs - 1)
    return np.power(epsilon, 1.0 + alpha * rung_N).astype(np.float32)
