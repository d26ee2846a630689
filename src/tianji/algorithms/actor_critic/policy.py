"""The actor's side of PPO and IMPALA: it evaluates only the policy, the learner computes values.
Algorithms without values act in the same way.

R: rows of an unroll, N: environments, A: policy outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn

from tianji.algorithms.accelerators.inference import build_inference, build_rows, evaluate
from tianji.algorithms.actor_critic.experience import reward_deviation
from tianji.algorithms.actor_critic.model import POLICY, VALUE, ActorCritic, StochasticPolicy
from tianji.algorithms.interface import ValueFunction
from tianji.config.run import RunConfig
from tianji.envs.frames import ObservationReader
from tianji.envs.interface import Spaces
from tianji.models.sampling import build_sampler
from tianji.types import Array, Unroll


class StochasticActing:
    """Draws actions from the policy, the first output of a network; see algorithms/interface.py."""

    def __init__(self, model: StochasticPolicy, spaces: Spaces) -> None:
        self._num_outputs = model.head.layout.num_outputs
        self._sampler = build_sampler(model.head)
        self._rows = build_rows(model.net, POLICY, spaces.observation)
        self._inference = build_inference(model.net, POLICY)
        self._reader = ObservationReader(spaces.observation)
        self._end_row = 0

    def begin(
        self, rng: np.random.Generator, unroll: Unroll, first_row: int, steps_before: int
    ) -> None:
        num_rows, num_envs = unroll["action"].shape[:2]
        self._sampler.begin(rng, num_rows, num_envs)
        self._rows.begin(unroll)
        self._end_row = first_row

    def submit(self, unroll: Unroll, t: int) -> None:
        self._rows.submit(unroll, t)
        self._end_row = t + 1

    def collect(self, unroll: Unroll, t: int) -> Array:
        self._rows.collect(self._sampler.outputs_RNA[t])
        return self._sampler.sample(t, unroll["action"][t])

    def act(self, unroll: Unroll, t: int) -> Array:
        self.submit(unroll, t)
        return self.collect(unroll, t)

    def finish(self, unroll: Unroll, first_row: int) -> None:
        """Fill log-probabilities, if the algorithm keeps them, up to the last row that was acted:
        an unroll may be handed over short."""
        self._rows.finish(unroll, self._end_row)
        if "log_prob" in unroll:
            rows = slice(first_row, self._end_row)
            self._sampler.log_prob(unroll["action"], unroll["log_prob"], rows)

    def greedy(self, obs: Mapping[str, Array]) -> Array:
        outputs_NA = evaluate(self._inference, self._reader, obs, self._num_outputs)
        return self._sampler.mode(outputs_NA)


def build_value(
    model: nn.Module, spaces: Spaces, config: RunConfig, state: Mapping[str, Tensor]
) -> ValueFunction:
    """Return the value network's function, in the scale of the environment's rewards."""
    assert isinstance(model, ActorCritic)
    inference, reader = build_inference(model.net, VALUE), ObservationReader(spaces.observation)
    scale = reward_deviation(config, state)
    return lambda obs: scale * evaluate(inference, reader, obs, 1)[:, 0]


def build_acting(model: nn.Module, spaces: Spaces, config: RunConfig) -> StochasticActing:
    assert isinstance(model, StochasticPolicy)
    model.eval()
    return StochasticActing(model, spaces)
