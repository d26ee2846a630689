"""The actor's side of DQN: the best action, or with a small probability a random one.

R: rows of an unroll, N: environments, A: actions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn

from tianji.algorithms.accelerators.inference import (
    Network,
    RowActing,
    RowNetwork,
    TorchInference,
    evaluate,
)
from tianji.algorithms.accelerators.q_values import q_network
from tianji.algorithms.dqn.exploration import Decay, Exploration, Ladder
from tianji.algorithms.dqn.model import SCORES, QNetwork
from tianji.algorithms.dqn.priorities import InitialPriorities
from tianji.algorithms.dqn.settings import QLearningConfig
from tianji.algorithms.interface import ValueFunction
from tianji.config.run import RunConfig
from tianji.envs.frames import ObservationReader
from tianji.envs.interface import Spaces
from tianji.envs.masks import nth_legal
from tianji.ops.held import held
from tianji.types import OBS, Array, Unroll, leaf_name

MANY = 2**62
"""Random numbers below it, modulo the number of legal actions, are as likely as each other."""


class EpsilonGreedyActing(RowActing):
    """Draws for a whole unroll at once which steps are random and what they do."""

    def __init__(self, model: QNetwork, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, QLearningConfig)
        model.eval()
        self._config = config.algorithm
        self._num_envs = config.num_envs
        self._num_actions = model.num_actions
        self._priorities: InitialPriorities | None = None
        network: RowNetwork = Network(model.net, SCORES, model.num_actions, model.mask)
        if config.algorithm.actors_give_priorities:
            self._priorities = InitialPriorities(spaces, config)
            network = q_network(model)
        super().__init__(network, spaces.observation)
        self.take_environments(first=0)
        self._scores_NA = np.empty((0, 0), np.float32)
        self._is_random_RN: Array = np.empty((0, 0), np.bool_)
        self._random_RN: Array = np.empty((0, 0), np.int64)
        self._mask = None if model.mask is None else leaf_name(OBS, model.mask)

    def take_environments(self, first: int) -> None:
        """Act in the environments from this number on, counted over all actors of the run."""
        self._exploration: Exploration = Decay(self._config)
        if self._config.exploration == "ladder":
            self._exploration = Ladder(self._config, self._num_envs, first)

    def begin(
        self, rng: np.random.Generator, unroll: Unroll, first_row: int, steps_before: int
    ) -> None:
        shape = unroll["action"].shape
        if len(self._scores_NA) != shape[1]:
            self._scores_NA = np.empty((shape[1], self._num_actions), np.float32)
        epsilon = self._exploration.epsilon(steps_before, shape[1])
        (num_rows, num_envs), hold = shape, self._config.epsilon_hold
        self._is_random_RN = held(
            lambda count: rng.random((count, num_envs), np.float32) < epsilon, num_rows, hold
        )
        most = self._num_actions if self._mask is None else MANY
        self._random_RN = held(
            lambda count: rng.integers(most, size=(count, num_envs)), num_rows, hold
        )
        self.rows.begin(unroll)

    def submit(self, unroll: Unroll, t: int) -> None:
        self.rows.submit(unroll, t)

    def collect(self, unroll: Unroll, t: int) -> Array:
        self.rows.collect(self._scores_NA)
        action_N: Array = unroll["action"][t]
        self._scores_NA.argmax(1, action_N)
        random_N: Array = self._random_RN[t]
        if self._mask is not None:
            random_N = nth_legal(random_N, unroll[self._mask][t])
        np.copyto(action_N, random_N, where=self._is_random_RN[t])
        if self._priorities is not None:
            self._priorities.note(unroll, t, self._scores_NA, action_N)
        return action_N

    def act(self, unroll: Unroll, t: int) -> Array:
        self.submit(unroll, t)
        return self.collect(unroll, t)

    def finish(self, unroll: Unroll, first_row: int) -> None:
        """Fill the priorities, where this actor computes them."""
        if self._priorities is not None:
            self._priorities.finish(unroll)

    def greedy(self, obs: Mapping[str, Array]) -> Array:
        best_N: Array = self.evaluate(obs).argmax(1)
        return best_N


def build_value(
    model: nn.Module, spaces: Spaces, config: RunConfig, state: Mapping[str, Tensor]
) -> ValueFunction:
    """Return the function to the largest Q value."""
    assert isinstance(model, QNetwork)
    inference = TorchInference(lambda obs: model(obs).amax(1, keepdim=True))
    reader = ObservationReader(spaces.observation)
    return lambda obs: evaluate(inference, reader, obs, 1)[:, 0]
