"""The actor's side of SAC: actions drawn from the policy, or uniformly during the warm-up.

R: rows of an unroll, N: environments, K: numbers of an action.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tianji.algorithms.accelerators.inference import Network, RowActing
from tianji.algorithms.actor_critic.model import POLICY
from tianji.algorithms.actor_critic.policy import SquashedSampler
from tianji.algorithms.sac.config import SACConfig
from tianji.algorithms.sac.model import SACPolicy
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.ops.held import held
from tianji.types import Array, Unroll


class SACActing(RowActing):
    """Stores actions in the scale of the environment; see algorithms/interface.py."""

    def __init__(self, model: SACPolicy, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, SACConfig)
        model.eval()
        self._layout = model.head.layout
        self._warmup_steps = config.algorithm.warmup_steps
        self._warmup_hold = config.algorithm.warmup_hold
        super().__init__(Network(model.net, POLICY, self._layout.num_outputs), spaces.observation)
        self._sampler = SquashedSampler(self._layout)
        self._drawn_NK = np.empty((0, 0), np.float32)
        self._uniform: Array | None = None
        """Actions of the whole unroll, in the warm-up."""

    def begin(
        self, rng: np.random.Generator, unroll: Unroll, first_row: int, steps_before: int
    ) -> None:
        shape = unroll["action"].shape
        if len(self._drawn_NK) != shape[1]:
            self._drawn_NK = np.empty((shape[1], self._layout.num_numbers), np.float32)
        self._uniform = None
        if steps_before < self._warmup_steps:
            self._uniform = self._draw_uniform(rng, *shape[:2]).reshape(shape)
        self._sampler.begin(rng, shape[0], shape[1])
        self.rows.begin(unroll)

    def _draw_uniform(self, rng: np.random.Generator, num_rows: int, num_envs: int) -> Array:
        """Return actions [R, N, K] in the scale of the environment, each held for some rows."""
        size = (num_envs, self._layout.num_numbers)
        share_RNK = held(
            lambda count: rng.uniform(-1.0, 1.0, (count, *size)), num_rows, self._warmup_hold
        )
        drawn: Array = self._layout.middle + self._layout.half * share_RNK.astype(np.float32)
        return drawn

    def submit(self, unroll: Unroll, t: int) -> None:
        self.rows.submit(unroll, t)

    def collect(self, unroll: Unroll, t: int) -> Array:
        self.rows.collect(self._sampler.outputs_RNA[t])
        action: Array = unroll["action"][t]
        if self._uniform is not None:
            action[:] = self._uniform[t]
        else:
            action[:] = self._sampler.sample(t, self._drawn_NK)
        return action

    def act(self, unroll: Unroll, t: int) -> Array:
        self.submit(unroll, t)
        return self.collect(unroll, t)

    def finish(self, unroll: Unroll, first_row: int) -> None:
        """Do nothing: actions are all that the learner needs."""

    def greedy(self, obs: Mapping[str, Array]) -> Array:
        return self._sampler.mode(self.evaluate(obs))
