"""IMPALA's learner: one pass over every batch, with the loss in loss.py.

B: valid steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import build_impala
from tianji.algorithms.actor_critic.experience import Experience, Preprocessor, approximate_kl
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.algorithms.impala.loss import PaddedPart, TracedSteps, UnrollPart, padded_part
from tianji.algorithms.interface import Minibatch
from tianji.config.run import RunConfig
from tianji.devices.waits import Figures
from tianji.envs.interface import Spaces
from tianji.models.optimizers import Adam, RMSProp, build_optimizer, linear
from tianji.models.statistics import Statistics
from tianji.models.tensors import Tensors, add_prefix, flatten, kept, with_prefix
from tianji.ops.means import mean, variance
from tianji.types import Batch

TINY = 1e-30
"""Ratios are not smaller; those of steps that do not count are 0."""
ROUNDING = 1.0 + 1e-4
"""Ratios of 1 are not exactly 1: actors and learners add in different orders."""


class ImpalaUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, ImpalaConfig)
        self._config = config.algorithm
        self._flat = flat = flatten(model)
        self._evaluator, self._gradient = build_impala(model)
        self._preprocessor = Preprocessor(model, spaces, config)
        epsilon = self._config.optimizer_epsilon
        rule = (
            Adam(flat, epsilon)
            if self._config.optimizer == "adam"
            else RMSProp(flat, epsilon, self._config.rmsprop_decay)
        )
        self._optimizer = build_optimizer(flat, rule, self._config.max_grad_norm)
        self._learning_rate = 0.0
        self._found: list[TracedSteps] = []
        self._weights: list[Tensor] = []
        self._norms: list[float | Tensor] = []
        self._figures = Figures()
        self._experience: Experience | None = None
        self._suspects: Callable[[], Tensors] = dict
        """Returns what the gradients of the last batch were computed from."""

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._config.minibatches

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        self._found, self._weights, self._norms = [], [], []
        self._figures.clear()
        self._experience = experience = self._preprocessor.process(batch)
        ends = np.linspace(0, experience.valid_TN.shape[1], config.minibatches + 1).astype(int)
        for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            some = experience.select_envs(slice(begin, end))
            if some.valid_TN.any():
                yield Minibatch(partial(self._differentiate, some), partial(self._step, some))
        if self._found:
            self._close()

    def _differentiate(self, some: Experience) -> Tensor:
        order = some.row_order()
        inputs = self._evaluator.inputs(some.obs_rows(order))
        final_value_C = some.final_value(self._evaluator)
        part: UnrollPart | PaddedPart
        if some.is_padded:
            part = padded_part(some, inputs, final_value_C)
            self._weights.append(part.weight_B)
        else:
            part = UnrollPart(some, order, inputs, some.action_rows(), final_value_C)
        found = self._gradient.gradient(part, self._config)
        self._found.append(TracedSteps(*(kept(x_B) for x_B in found)))
        return self._flat.gradient_P

    def _step(self, some: Experience) -> None:
        suspects = partial(_suspects, some, self._found[-1])
        self._norms.append(self._optimizer.step(self._learning_rate, suspects))

    def _close(self) -> None:
        """Compute means over all valid steps, before the update that they went into."""
        every = TracedSteps(*(torch.cat(parts) for parts in zip(*self._found, strict=True)))
        weight_B = torch.cat(self._weights) if self._weights else None
        error_B = every.target_B - every.value_B
        spread = variance(every.target_B, weight_B).clamp(1e-12)
        is_clipped_B = every.ratio_B > self._config.clip_rho * ROUNDING
        norm: float | Tensor = sum(self._norms) / len(self._norms)
        self._figures.start(
            {
                "loss/policy": -mean(every.advantage_B * every.log_prob_B, weight_B),
                "loss/value": 0.5 * mean(error_B.square(), weight_B),
                "approx_kl": approximate_kl(every.ratio_B.clamp_min(TINY).log(), weight_B),
                "entropy": mean(every.entropy_B, weight_B),
                "explained_variance": 1.0 - variance(error_B, weight_B) / spread,
                "rho": mean(every.ratio_B, weight_B),
                "rho_clipped": mean(is_clipped_B.float(), weight_B),
                "grad_norm": torch.as_tensor(norm),
            }
            | self._optimizer.flags()
        )
        assert self._experience is not None, "something was found in it"
        self._suspects = partial(_suspects, self._experience, every)
        self._found, self._weights = [], []

    def metrics(self) -> Mapping[str, float]:
        if self._found:
            self._close()
        found = self._figures.read()
        if found:
            found = self._optimizer.check(found, self._suspects)
            found["learning_rate"] = self._learning_rate
        self._experience, self._suspects = None, dict
        return found

    def state(self) -> dict[str, Tensor]:
        return {**add_prefix("optimizer", self._optimizer.state()), **self._preprocessor.state()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._optimizer.load_state(with_prefix("optimizer", state))
        self._preprocessor.load_state(state)

    def statistics(self) -> list[Statistics]:
        return self._preprocessor.statistics()


def _suspects(some: Experience, found: TracedSteps) -> Tensors:
    """Return what gradients were computed from, first causes first."""
    return {
        "observations": next(iter(some.obs_rows(some.row_order()).values())),
        "rewards": some.valid_rows(some.reward_TN),
        "policy outputs": found.log_prob_B,
        "values": found.value_B,
        "value targets": found.target_B,
    }
