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

import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import build_ppo
from tianji.algorithms.actor_critic.experience import Preprocessor, approximate_kl
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.loss import (
    Columns,
    Diagnostics,
    EvaluatedBatch,
    LossTerms,
    clipped_surrogate,
    part_sizes,
)
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.optimizers import Adam, Optimizer, linear
from tianji.models.tensors import add_prefix, flatten, with_prefix
from tianji.ops.returns import gae
from tianji.types import Batch

ADAM_EPSILON = 1e-5


class BatchLog:
    """Collects the diagnostics of every update; grows with the updates that are made."""

    def __init__(
        self, batch: EvaluatedBatch[Columns], terms: LossTerms, at_start: dict[str, float]
    ) -> None:
        """at_start: metrics that are known before the first update."""
        self._batch = batch
        self._terms = terms
        self._at_start = at_start
        self._orders: list[Tensor] = []
        self._num_before_epoch = 0
        self.found: list[Diagnostics] = []
        self.norms: list[float] = []
        """Norms of the gradients, one per update."""

    def begin_epoch(self, order_R: Tensor) -> None:
        self._orders.append(order_R)
        self._num_before_epoch = len(self.found)

    def kl_of_epoch(self) -> float:
        """Return how far the policy has moved, on average over this epoch so far."""
        found = self.found[self._num_before_epoch :]
        return float(approximate_kl(torch.cat([one.log_ratio_B for one in found])))

    def metrics(self) -> dict[str, float]:
        """Return means over all updates; explained variance from before the first."""
        if not self.norms:
            return {}
        log_ratios, value_errors = zip(*self.found, strict=True)
        log_ratio_M = torch.cat(log_ratios)
        order_M = torch.cat(self._orders)[: len(log_ratio_M)]
        ratio_M = log_ratio_M.exp()
        weighted_advantage_M = self._batch.columns.weighted_advantage_B[order_M]
        clip = self._terms.clip
        values = {
            "loss/policy": -clipped_surrogate(ratio_M, weighted_advantage_M, clip).mean(),
            "loss/value": torch.cat(value_errors, -1).square().mean(),
            "approx_kl": approximate_kl(log_ratio_M),
            "clip_fraction": ((ratio_M - 1.0).abs() > clip).float().mean(),
            "explained_variance": self._explained_variance(),
        }
        norms = {"grad_norm": sum(self.norms) / len(self.norms)}
        return {name: float(value) for name, value in values.items()} | norms | self._at_start

    def _explained_variance(self) -> Tensor:
        """Return 1 for perfect values, 0 for values no better than a constant."""
        target_R, value_R = self._batch.columns.target_B, self._batch.columns.value_B
        unexplained = (target_R - value_R).var(correction=0)
        return 1.0 - unexplained / target_R.var(correction=0).clamp(1e-12)


class PPOUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, PPOConfig)
        self._config = config.algorithm
        self._flat = flat = flatten(model)
        self._evaluator, self._gradient = build_ppo(model)
        self._preprocessor = Preprocessor(model, spaces, config)
        self._optimizer = Optimizer(flat, Adam(flat, ADAM_EPSILON), config.algorithm.max_grad_norm)
        self._generator = torch.Generator().manual_seed(config.seed)
        self._log: BatchLog | None = None

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
        terms = LossTerms(
            linear(config.clip, config.clip_final, progress),
            config.value_clip,
            config.value_loss,
            config.entropy,
            num_rows / num_parts,
        )
        self._log = log = BatchLog(evaluated, terms, at_start | {"learning_rate": learning_rate})
        prepared = self._gradient.prepare(evaluated, terms)
        sizes = part_sizes(num_rows, num_parts)
        for _ in range(config.epochs):
            order_R = self._order(num_rows, len(sizes))
            log.begin_epoch(order_R)
            shuffled = prepared if len(sizes) == 1 else prepared.select(order_R)
            for minibatch in shuffled.split(sizes):
                yield Minibatch(
                    partial(self._differentiate, minibatch, terms, log),
                    partial(self._step, minibatch, learning_rate, log),
                )
            if config.target_kl is not None and log.kl_of_epoch() > config.target_kl:
                break

    def metrics(self) -> Mapping[str, float]:
        return self._log.metrics() if self._log is not None else {}

    def _num_parts(self, batch: Batch) -> int:
        """Count all rows, valid or not: every batch makes the same number of updates."""
        return math.ceil(batch.arrays["valid"].size / self._config.minibatch_size)

    def _evaluate(self, batch: Batch) -> tuple[EvaluatedBatch[Columns], dict[str, float]]:
        """Evaluate the batch once; return its valid rows and the metrics known by now."""
        config, evaluator = self._config, self._evaluator
        experience = self._preprocessor.process(batch)
        order = experience.row_order()
        inputs = evaluator.inputs(experience.obs_rows(order))
        action_KR = evaluator.actions(experience.action_rows())
        found = evaluator.evaluate(inputs, action_KR)

        value_T1N = experience.to_grid(order, found.value_R)
        advantage_TN = gae(
            experience.reward_TN,
            value_T1N[:-1],
            experience.next_value(value_T1N, experience.final_value(evaluator)),
            experience.terminated_TN,
            experience.truncated_TN,
            experience.valid_TN,
            config.gamma,
            config.gae_lambda,
        )
        advantage_R = experience.valid_rows(advantage_TN)
        value_R = found.value_R[: order.num_valid]
        behaviour_R = experience.valid_rows(experience.log_prob_TN)
        weight_R = (found.log_prob_B - behaviour_R).exp().clamp(max=config.max_behaviour_weight)
        normalized_R = self._normalize(advantage_R)
        columns = Columns(
            log_prob_B=found.log_prob_B if config.decoupled else behaviour_R,
            weighted_advantage_B=normalized_R * weight_R if config.decoupled else normalized_R,
            target_B=value_R + advantage_R,
            value_B=value_R,
        )
        valid_inputs = {name: x[: order.num_valid] for name, x in inputs.items()}
        means = {"entropy": found.entropy_B.mean(), "behaviour_weight": weight_R.mean()}
        at_start = {name: float(mean) for name, mean in means.items()}
        return EvaluatedBatch(valid_inputs, action_KR, columns), at_start

    def _normalize(self, advantage_R: Tensor) -> Tensor:
        """Normalise over the whole batch: a row counts the same in whichever minibatch it is."""
        if not self._config.normalize_advantage:
            return advantage_R
        return (advantage_R - advantage_R.mean()) / (advantage_R.std(correction=0) + 1e-8)

    def _order(self, num_rows: int, num_parts: int) -> Tensor:
        """Return a new order for every epoch, where there is more than one minibatch."""
        if num_parts == 1:
            order_R = torch.arange(num_rows)
        else:
            order_R = torch.randperm(num_rows, generator=self._generator)
        return order_R.to(self._flat.vector_P.device)

    def _differentiate(
        self, minibatch: EvaluatedBatch[Any], terms: LossTerms, log: BatchLog
    ) -> Tensor:
        log.found.append(self._gradient.gradient(minibatch, terms))
        return self._flat.gradient_P

    def _step(self, minibatch: EvaluatedBatch[Any], learning_rate: float, log: BatchLog) -> None:
        norm = self._optimizer.step(
            learning_rate,
            lambda: {
                "observations": next(iter(minibatch.inputs.values())),
                "rewards, in the targets of the values": minibatch.columns.target_B,
                "policy outputs": log.found[-1].log_ratio_B,
                "values": log.found[-1].value_error,
            },
        )
        log.norms.append(norm)

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
