"""PPO's learner.

One batch: count it in the running statistics, evaluate all rows once under the present policy and
values, estimate advantages, then make epochs x minibatches updates of the loss in loss.py. The
metrics are computed once, from what the updates leave behind.

T: time, N: environments, R: valid rows of the batch, K: numbers of an action, B: rows of a
minibatch, M: rows of all minibatches so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import build_ppo
from tianji.algorithms.actor_critic.experience import Preprocessor, approximate_kl
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.loss import (
    AnyColumns,
    AnyTerms,
    Columns,
    Diagnostics,
    EvaluatedBatch,
    LossTerms,
    PaddedColumns,
    clipped_surrogate,
    part_sizes,
)
from tianji.config.run import RunConfig
from tianji.devices.waits import Figures
from tianji.envs.interface import Spaces
from tianji.models.optimizers import Adam, build_optimizer, linear
from tianji.models.tensors import Tensors, add_prefix, flatten, kept, with_prefix
from tianji.ops.means import deviation, mean, variance
from tianji.types import Batch

ADAM_EPSILON = 1e-5


class BatchLog:
    """Collects the diagnostics of every update; grows with the updates that are made."""

    def __init__(
        self, batch: EvaluatedBatch[AnyColumns], terms: LossTerms, at_start: Tensors
    ) -> None:
        """at_start: metrics that are known before the first update."""
        self._batch = batch
        self._terms = terms
        self._at_start = at_start
        self._figures: Figures | None = None
        self._orders: list[Tensor] = []
        self._num_before_epoch = 0
        self._log_ratios: list[Tensor] = []
        self._value_errors: list[Tensor] = []
        self.norms: list[float | Tensor] = []
        """Norms of the gradients, one per update."""

    def begin_epoch(self, order_R: Tensor) -> None:
        self._orders.append(order_R)
        self._num_before_epoch = len(self._log_ratios)

    def add(self, diagnostics: Diagnostics) -> None:
        self._log_ratios.append(kept(diagnostics.log_ratio_B))
        self._value_errors.append(kept(diagnostics.value_error))

    def suspects(self) -> Tensors:
        """Return what the gradients so far were computed from, first causes first."""
        return {
            "observations": next(iter(self._batch.inputs.values())),
            "rewards, in the targets of the values": self._batch.columns.target_B,
            "policy outputs": torch.cat(self._log_ratios),
            "values": torch.cat(self._value_errors, -1),
        }

    def kl_of_epoch(self) -> float:
        """Return how far the policy has moved, on average over this epoch so far. On a GPU this
        waits for the epoch."""
        log_ratio_M = torch.cat(self._log_ratios[self._num_before_epoch :])
        weight_M = self._weights(self._orders[-1][: len(log_ratio_M)])
        figures = Figures()
        figures.start({"kl": approximate_kl(log_ratio_M, weight_M)})
        return figures.read()["kl"]

    def close(self, flags: Tensors) -> None:
        """Compute means over all updates; explained variance from before the first."""
        columns = self._batch.columns
        log_ratio_M = torch.cat(self._log_ratios)
        order_M = torch.cat(self._orders)[: len(log_ratio_M)]
        ratio_M, weight_M = log_ratio_M.exp(), self._weights(order_M)
        surrogate_M = clipped_surrogate(
            ratio_M, columns.weighted_advantage_B[order_M], self._terms.clip
        )
        value_error_M = torch.cat(self._value_errors, -1).reshape(-1)
        is_clipped_M = (ratio_M - 1.0).abs() > self._terms.clip
        norm: float | Tensor = sum(self.norms) / len(self.norms)
        values = {
            "loss/policy": -mean(surrogate_M, weight_M),
            "loss/value": mean(value_error_M.square(), weight_M),
            "approx_kl": approximate_kl(log_ratio_M, weight_M),
            "clip_fraction": mean(is_clipped_M.float(), weight_M),
            "explained_variance": self._explained_variance(),
            "grad_norm": torch.as_tensor(norm, device=log_ratio_M.device),
        }
        self._figures = Figures()
        self._figures.start(values | self._at_start | flags)

    def metrics(self, flags: Tensors) -> dict[str, float]:
        """Return the means, of the updates so far where not all were made."""
        if not self.norms:
            return {}
        if self._figures is None:
            self.close(flags)
        assert self._figures is not None
        return self._figures.read()

    def _explained_variance(self) -> Tensor:
        """Return 1 for perfect values, 0 for values no better than a constant."""
        columns = self._batch.columns
        unexplained = variance(columns.target_B - columns.value_B, columns.weights)
        return 1.0 - unexplained / variance(columns.target_B, columns.weights).clamp(1e-12)

    def _weights(self, order_M: Tensor) -> Tensor | None:
        weight_R = self._batch.columns.weights
        return None if weight_R is None else weight_R[order_M]


class PPOUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, PPOConfig)
        self._config = config.algorithm
        self._flat = flat = flatten(model)
        self._evaluator, self._gradient = build_ppo(model)
        self._preprocessor = Preprocessor(model, spaces, config)
        adam = Adam(flat, ADAM_EPSILON)
        self._optimizer = build_optimizer(flat, adam, config.algorithm.max_grad_norm)
        self._generator = torch.Generator().manual_seed(config.seed)
        self._log: BatchLog | None = None
        self._learning_rate = 0.0

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._num_parts(batch)

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._log = None
        if not batch.arrays["valid"].any():
            return
        learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        evaluated, at_start = self._evaluate(batch)
        num_rows, num_parts = evaluated.num_rows, self._num_parts(batch)
        num_valid = int(np.count_nonzero(batch.arrays["valid"]))
        terms = LossTerms(
            linear(config.clip, config.clip_final, progress),
            config.value_clip,
            config.value_loss,
            config.entropy,
            num_valid / num_parts,
        )
        self._learning_rate = learning_rate
        self._log = log = BatchLog(evaluated, terms, at_start)
        device = self._flat.vector_P.device
        used = terms if device.type == "cpu" else terms.on(device)
        prepared = self._gradient.prepare(evaluated, used)
        sizes = part_sizes(num_rows, num_parts)
        for epoch in range(config.epochs):
            order_R = self._order(num_rows, len(sizes))
            log.begin_epoch(order_R)
            shuffled = prepared if len(sizes) == 1 else prepared.select(order_R)
            for minibatch in shuffled.split(sizes):
                yield Minibatch(
                    partial(self._differentiate, minibatch, used, log),
                    partial(self._step, learning_rate, log),
                )
            if epoch + 1 < config.epochs and self._has_gone_too_far(log):
                break
        log.close(self._optimizer.flags())

    def metrics(self) -> Mapping[str, float]:
        log = self._log
        found = {} if log is None else log.metrics(self._optimizer.flags())
        if log is None or not found:
            return {}
        checked = self._optimizer.check(found, log.suspects)
        return checked | {"learning_rate": self._learning_rate}

    def _has_gone_too_far(self, log: BatchLog) -> bool:
        target_kl = self._config.target_kl
        return target_kl is not None and log.kl_of_epoch() > target_kl

    def _num_parts(self, batch: Batch) -> int:
        """Count all rows, valid or not: every batch makes the same number of updates."""
        num_rows = int(batch.arrays["valid"].size)
        return math.ceil(num_rows / self._config.minibatch_size)

    def _evaluate(self, batch: Batch) -> tuple[EvaluatedBatch[AnyColumns], Tensors]:
        """Evaluate the batch once; return its rows and the metrics known by now."""
        config, evaluator = self._config, self._evaluator
        experience = self._preprocessor.process(batch)
        order = experience.row_order()
        inputs = evaluator.inputs(experience.obs_rows(order))
        action_KR = evaluator.actions(experience.action_rows())
        found = evaluator.evaluate(inputs, action_KR)

        final_value_C = experience.final_value(evaluator)
        advantage_R = experience.gae(
            order, found.value_R, final_value_C, config.gamma, config.gae_lambda
        )
        value_R = found.value_R[: order.num_valid]
        behaviour_R = experience.valid_rows(experience.log_prob_TN)
        counts_R = experience.weight_rows()
        weight_R = (found.log_prob_B - behaviour_R).exp().clamp(max=config.max_behaviour_weight)
        normalized_R = self._normalize(advantage_R, counts_R)
        columns: Columns | PaddedColumns = Columns(
            log_prob_B=found.log_prob_B if config.decoupled else behaviour_R,
            weighted_advantage_B=normalized_R * weight_R if config.decoupled else normalized_R,
            target_B=value_R + advantage_R,
            value_B=value_R,
        )
        if counts_R is not None:
            columns = PaddedColumns(**columns._asdict(), weight_B=counts_R)
        valid_inputs = {name: x[: order.num_valid] for name, x in inputs.items()}
        at_start = {
            "entropy": mean(found.entropy_B, counts_R),
            "behaviour_weight": mean(weight_R, counts_R),
        }
        return EvaluatedBatch(valid_inputs, action_KR, columns), at_start

    def _normalize(self, advantage_R: Tensor, weight_R: Tensor | None) -> Tensor:
        """Normalise over the whole batch: a row counts the same in whichever minibatch it is."""
        if not self._config.normalize_advantage:
            return advantage_R
        spread = deviation(advantage_R, weight_R) + 1e-8
        return (advantage_R - mean(advantage_R, weight_R)) / spread

    def _order(self, num_rows: int, num_parts: int) -> Tensor:
        """Return a new order for every epoch, where there is more than one minibatch."""
        if num_parts == 1:
            order_R = torch.arange(num_rows)
        else:
            order_R = torch.randperm(num_rows, generator=self._generator)
        return order_R.to(self._flat.vector_P.device, non_blocking=True)

    def _differentiate(
        self, minibatch: EvaluatedBatch[Any], terms: AnyTerms, log: BatchLog
    ) -> Tensor:
        log.add(self._gradient.gradient(minibatch, terms))
        return self._flat.gradient_P

    def _step(self, learning_rate: float, log: BatchLog) -> None:
        log.norms.append(self._optimizer.step(learning_rate, log.suspects))

    def state(self) -> dict[str, Tensor]:
        return {
            "generator": self._generator.get_state(),
            **add_prefix("optimizer", self._optimizer.state()),
            **self._preprocessor.state(),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._generator.set_state(state["generator"])
        self._optimizer.load_state(with_prefix("optimizer", state))
        self._preprocessor.load_state(state)
