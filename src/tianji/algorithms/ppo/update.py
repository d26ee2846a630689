"""PPO's learner.

One batch: count it in the running statistics, evaluate all rows once under the present policy and
values, estimate advantages, then make epochs x minibatches updates of the loss in loss.py. The
metrics are computed once, from what the updates leave behind.

T: time, N: environments, R: valid rows of the batch, K: numbers of an action, B: rows of a
minibatch, M: rows of all minibatches so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import build_ppo
from tianji.algorithms.actor_critic.experience import (
    Experience,
    Preprocessor,
    approximate_kl,
)
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.loss import (
    AnyColumns,
    Diagnostics,
    EvaluatedBatch,
    LossTerms,
    part_sizes,
)
from tianji.algorithms.ppo.recorded import RecordedPasses
from tianji.algorithms.ppo.summary import batch_metrics, make_columns
from tianji.config.run import RunConfig
from tianji.devices.waits import Figures
from tianji.envs.interface import Spaces
from tianji.models.optimizers import Adam, build_optimizer, linear
from tianji.models.statistics import Statistics
from tianji.models.tensors import Tensors, add_prefix, flatten, with_prefix
from tianji.types import Batch

ADAM_EPSILON = 1e-5


class BatchLog:
    """Collects the diagnostics of every update; grows with the updates that are made."""

    def __init__(
        self,
        batch: EvaluatedBatch[AnyColumns],
        terms: LossTerms,
        at_start: Tensors,
        flags: Callable[[], Tensors],
    ) -> None:
        """at_start: metrics that are known before the first update. flags: those of the
        optimiser, after the last."""
        self._batch = batch
        self._terms = terms
        self._at_start = at_start
        self._flags = flags
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
        self._log_ratios.append(diagnostics.log_ratio_B)
        self._value_errors.append(diagnostics.value_error)

    def suspects(self) -> Tensors:
        """Return what the gradients so far were computed from, first causes first."""
        return {
            "observations": next(iter(self._batch.inputs.values())),
            "rewards, in the targets of the values": self._batch.columns.target_B,
            "policy outputs": torch.cat(self._log_ratios),
            "values": torch.cat(self._value_errors, -1),
        }

    def kl_of_epoch(self) -> float:
        """Return how far the policy has moved, on average over this epoch so far."""
        log_ratio_M = torch.cat(self._log_ratios[self._num_before_epoch :])
        return float(approximate_kl(log_ratio_M))

    def close(self) -> None:
        """Compute means over all updates; explained variance from before the first."""
        log_ratio_M = torch.cat(self._log_ratios)
        order_M = torch.cat(self._orders)[: len(log_ratio_M)]
        value_error_M = torch.cat(self._value_errors, -1).reshape(-1)
        values = batch_metrics(
            self._batch.columns, log_ratio_M, value_error_M, order_M, None, self._terms.clip
        )
        norm: float | Tensor = sum(self.norms) / len(self.norms)
        values["grad_norm"] = torch.as_tensor(norm)
        self._figures = Figures()
        self._figures.start(values | self._at_start | self._flags())

    def metrics(self) -> dict[str, float]:
        """Return the means, of the updates so far where not all were made."""
        if not self.norms:
            return {}
        if self._figures is None:
            self.close()
        assert self._figures is not None
        return self._figures.read()


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
        self._model = model
        self._passes: dict[tuple[int, ...], RecordedPasses] = {}
        """Memory and graphs for each shape of batches, on a GPU."""
        self._log: BatchLog | RecordedPasses | None = None
        self._learning_rate = 0.0

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._num_parts(batch)

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._log = None
        if not batch.arrays["valid"].any():
            return
        num_parts = self._num_parts(batch)
        num_valid = int(np.count_nonzero(batch.arrays["valid"]))
        terms = LossTerms(
            linear(config.clip, config.clip_final, progress),
            config.value_clip,
            config.value_loss,
            config.entropy,
            num_valid / num_parts,
        )
        self._learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        experience = self._preprocessor.process(batch)
        if experience.is_padded:
            yield from self._recorded_minibatches(experience, terms, num_parts)
        else:
            yield from self._plain_minibatches(experience, terms, num_parts)

    def _plain_minibatches(
        self, experience: Experience, terms: LossTerms, num_parts: int
    ) -> Iterator[Minibatch]:
        config = self._config
        evaluated, at_start = self._evaluate(experience)
        num_rows = evaluated.num_rows
        self._log = log = BatchLog(evaluated, terms, at_start, self._optimizer.flags)
        prepared = self._gradient.prepare(evaluated, terms)
        sizes = part_sizes(num_rows, num_parts)
        for epoch in range(config.epochs):
            order_R = self._order(num_rows, len(sizes))
            log.begin_epoch(order_R)
            shuffled = prepared if len(sizes) == 1 else prepared.select(order_R)
            for minibatch in shuffled.split(sizes):
                yield Minibatch(
                    partial(self._differentiate, minibatch, terms, log),
                    partial(self._step, self._learning_rate, log),
                )
            if epoch + 1 < config.epochs and self._has_gone_too_far(log.kl_of_epoch):
                break
        log.close()

    def _recorded_minibatches(
        self, experience: Experience, terms: LossTerms, num_parts: int
    ) -> Iterator[Minibatch]:
        config, passes = self._config, self._passes_for(experience, num_parts)
        num_rows, num_sizes = experience.valid_TN.size, len(passes.sizes)
        draw = partial(self._order, num_rows, num_sizes)
        # An early stop leaves orders out, so that they are drawn one by one where there may be one.
        num_known = 1 if config.target_kl is not None else config.epochs
        passes.begin(experience, terms, [draw() for _ in range(num_known)])
        self._log = passes
        step = partial(passes.step, self._learning_rate)
        for epoch in range(config.epochs):
            if epoch >= num_known:
                passes.set_orders(epoch, [draw()])
            for size in passes.sizes:
                yield Minibatch(partial(passes.gradient, size), step)
            is_last = epoch + 1 == config.epochs
            if not is_last and self._has_gone_too_far(partial(passes.kl_of_epoch, epoch)):
                break
        passes.close()

    def _passes_for(self, experience: Experience, num_parts: int) -> RecordedPasses:
        shape = experience.valid_TN.shape
        passes = self._passes.get(shape)
        if passes is None:
            passes = self._passes[shape] = RecordedPasses(
                self._model, self._config, self._optimizer, experience, num_parts
            )
        return passes

    def metrics(self) -> Mapping[str, float]:
        log = self._log
        found = {} if log is None else log.metrics()
        if log is None or not found:
            return {}
        checked = self._optimizer.check(found, log.suspects)
        return checked | {"learning_rate": self._learning_rate}

    def _has_gone_too_far(self, kl_of_epoch: Callable[[], float]) -> bool:
        target_kl = self._config.target_kl
        return target_kl is not None and kl_of_epoch() > target_kl

    def _num_parts(self, batch: Batch) -> int:
        """Count all rows, valid or not: every batch makes the same number of updates."""
        num_rows = int(batch.arrays["valid"].size)
        return math.ceil(num_rows / self._config.minibatch_size)

    def _evaluate(self, experience: Experience) -> tuple[EvaluatedBatch[AnyColumns], Tensors]:
        """Evaluate the batch once; return its rows and the metrics known by now."""
        config, evaluator = self._config, self._evaluator
        order = experience.row_order()
        inputs = evaluator.inputs(experience.obs_rows(order))
        action_KR = evaluator.actions(experience.action_rows())
        found = evaluator.evaluate(inputs, action_KR)
        final_value_C = experience.final_value(evaluator)
        advantage_R = experience.gae(
            order, found.value_R, final_value_C, config.gamma, config.gae_lambda
        )
        behaviour_R = experience.valid_rows(experience.log_prob_TN)
        columns, at_start = make_columns(config, found, advantage_R, behaviour_R, None)
        valid_inputs = {name: x[: order.num_valid] for name, x in inputs.items()}
        return EvaluatedBatch(valid_inputs, action_KR, columns), at_start

    def _order(self, num_rows: int, num_parts: int) -> Tensor:
        """Return a new order for every epoch, where there is more than one minibatch."""
        if num_parts == 1:
            return torch.arange(num_rows)
        return torch.randperm(num_rows, generator=self._generator)

    def _differentiate(
        self, minibatch: EvaluatedBatch[Any], terms: LossTerms, log: BatchLog
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

    def statistics(self) -> list[Statistics]:
        return self._preprocessor.statistics()
