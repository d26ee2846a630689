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
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import build_ppo
from tianji.algorithms.actor_critic.experience import Experience, approximate_kl
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.actor_critic.sequences import counted_steps
from tianji.algorithms.interface import Minibatch
from tianji.algorithms.ppo.batch import AnyColumns, Columns, EvaluatedBatch, part_sizes
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.loss import Diagnostics, LossTerms
from tianji.algorithms.ppo.recorded import RecordedPasses
from tianji.algorithms.ppo.summary import (
    ROW_MEANS,
    Spread,
    WholeBatch,
    batch_metrics,
    make_columns,
    start_moments,
    whole_batch,
)
from tianji.algorithms.ranks import means_over_ranks
from tianji.channels.peers.interface import ALONE, Peers, gathered, total
from tianji.config.run import RunConfig
from tianji.devices.waits import Figures
from tianji.envs.interface import Spaces
from tianji.models.moments import Statistics
from tianji.models.optimizers import Adam, build_optimizer, linear
from tianji.models.tensors import Tensors, add_prefix, flatten, with_prefix
from tianji.types import MEMORY, Batch

ADAM_EPSILON = 1e-5
NOTHING = torch.zeros(())
"""A metric of a rank without rows."""


class Extent(NamedTuple):
    """The rows of a batch that count, and the updates of an epoch.

    num_here: rows of this rank. num_rows: rows of all ranks. num_parts: minibatches, of which each
    rank has a part.
    """

    num_here: int
    num_rows: int
    num_parts: int


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
            "rewards or last observations, in the targets": self._batch.columns.target_B,
            "policy outputs": _joined(self._log_ratios),
            "values": _joined(self._value_errors),
        }

    @property
    def num_rows(self) -> int:
        """Number of rows of all updates so far."""
        return sum(len(log_ratio_B) for log_ratio_B in self._log_ratios)

    def kl_of_epoch(self) -> float:
        """Return how far the policy has moved, on average over this epoch so far."""
        log_ratio_M = torch.cat(self._log_ratios[self._num_before_epoch :])
        return float(approximate_kl(log_ratio_M))

    def close(self) -> None:
        """Compute means over all updates; explained variance from before the first."""
        values = self._batch_metrics() if self._log_ratios else dict.fromkeys(ROW_MEANS, NOTHING)
        norm: float | Tensor = sum(self.norms) / len(self.norms)
        values["grad_norm"] = torch.as_tensor(norm)
        self._figures = Figures()
        self._figures.start(values | self._at_start | self._flags())

    def _batch_metrics(self) -> Tensors:
        log_ratio_M = torch.cat(self._log_ratios)
        order_M = torch.cat(self._orders)[: len(log_ratio_M)]
        value_error_M = torch.cat(self._value_errors, -1).reshape(-1)
        return batch_metrics(
            self._batch.columns, log_ratio_M, value_error_M, order_M, None, self._terms.clip
        )

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
        self._preprocessor = Preprocessor(model, spaces, config, self._config.burn_in)
        adam = Adam(flat, ADAM_EPSILON)
        self._optimizer = build_optimizer(flat, adam, config.algorithm.max_grad_norm)
        self._generator = torch.Generator().manual_seed(config.seed)
        self._model = model
        self._passes: dict[tuple[int, ...], RecordedPasses] = {}
        """Memory and graphs for each shape of batches, on a GPU."""
        self._log: BatchLog | RecordedPasses | None = None
        self._learning_rate = 0.0
        self._peers: Peers = ALONE
        self._whole: WholeBatch | None = None
        """Figures of the batches of all ranks, where there are several."""

    def join(self, peers: Peers) -> None:
        """Make the updates of one learner with the batches of all ranks from now on."""
        self._peers = peers
        self._preprocessor.join(peers)

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._num_parts(batch)

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        config = self._config
        self._log = self._whole = None
        extent = self._extent(batch)
        if not extent.num_rows:
            return
        terms = LossTerms(
            linear(config.clip, config.clip_final, progress),
            config.value_clip,
            config.value_loss,
            config.entropy,
            extent.num_rows / extent.num_parts,
        )
        self._learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        experience = self._preprocessor.process(batch)
        if experience.is_padded:
            yield from self._recorded_minibatches(experience, terms, extent)
        else:
            yield from self._plain_minibatches(experience, terms, extent)

    def _extent(self, batch: Batch) -> Extent:
        """Agree with all ranks on the number of updates: that of the one with the most rows."""
        num_here = int(np.count_nonzero(counted_steps(batch.arrays, self._config.burn_in)))
        num_parts = self._num_parts(batch)
        if self._peers.num_ranks == 1:
            return Extent(num_here, num_here, num_parts)
        ranks = gathered(self._peers, [num_here, num_parts])
        num_rows, most_parts = sum(rows for rows, _ in ranks), max(parts for _, parts in ranks)
        return Extent(num_here, int(num_rows), int(most_parts))

    def _plain_minibatches(
        self, experience: Experience, terms: LossTerms, extent: Extent
    ) -> Iterator[Minibatch]:
        config = self._config
        evaluated, at_start = self._evaluate(experience) if extent.num_here else self._nothing()
        num_rows = evaluated.num_rows
        self._log = log = BatchLog(evaluated, terms, at_start, self._optimizer.flags)
        prepared = self._gradient.prepare(evaluated, terms)
        sizes = self._sizes(num_rows, extent.num_parts)
        for epoch in range(config.epochs):
            order_R = self._order(num_rows, len(sizes))
            log.begin_epoch(order_R)
            shuffled = prepared if len(sizes) == 1 else prepared.select(order_R)
            for size, minibatch in zip(sizes, shuffled.split(sizes), strict=True):
                gradient = partial(self._differentiate, minibatch, terms, log)
                yield Minibatch(
                    gradient if size else self._no_gradient,
                    partial(self._step, self._learning_rate, log),
                    size,
                )
            is_last = epoch + 1 == config.epochs
            if not is_last and self._has_gone_too_far(extent, log.kl_of_epoch):
                break
        log.close()

    def _recorded_minibatches(
        self, experience: Experience, terms: LossTerms, extent: Extent
    ) -> Iterator[Minibatch]:
        config, passes = self._config, self._passes_for(experience, extent.num_parts)
        draw = partial(self._order, experience.num_items, len(passes.sizes))
        # An early stop leaves orders out, so that they are drawn one by one where there may be one.
        num_known = 1 if config.target_kl is not None else config.epochs
        self._whole = passes.begin(experience, terms, [draw() for _ in range(num_known)])
        self._log = passes
        step = partial(passes.step, self._learning_rate)
        for epoch in range(config.epochs):
            if epoch >= num_known:
                passes.set_orders(epoch, [draw()])
            for size in passes.sizes:
                num_steps = extent.num_here // extent.num_parts
                yield Minibatch(partial(passes.gradient, size), step, num_steps)
            is_last = epoch + 1 == config.epochs
            kl_of_epoch = partial(passes.kl_of_epoch, epoch)
            if not is_last and self._has_gone_too_far(extent, kl_of_epoch):
                break
        passes.close()

    def _passes_for(self, experience: Experience, num_parts: int) -> RecordedPasses:
        key = (*experience.valid_TN.shape, num_parts)
        passes = self._passes.get(key)
        if passes is None:
            sizes = self._sizes(experience.num_items, num_parts)
            passes = self._passes[key] = RecordedPasses(
                self._model, self._config, self._optimizer, experience, sizes, self._peers
            )
        return passes

    def _sizes(self, num_items: int, num_parts: int) -> list[int]:
        """Return the items of each minibatch; all ranks make the same number of updates."""
        sizes = part_sizes if self._peers.num_ranks == 1 else padded_sizes
        return sizes(num_items, num_parts)

    def metrics(self) -> Mapping[str, float]:
        log = self._log
        found = {} if log is None else log.metrics()
        if log is None or not found:
            return {}
        checked = self._optimizer.check(found, log.suspects)
        if self._whole is not None:
            checked |= means_over_ranks(self._peers, checked, ROW_MEANS, log.num_rows)
            checked |= self._whole.metrics
        return checked | {"learning_rate": self._learning_rate}

    def _has_gone_too_far(self, extent: Extent, kl_of_epoch: Callable[[], float]) -> bool:
        target_kl = self._config.target_kl
        if target_kl is None:
            return False
        if self._peers.num_ranks == 1:
            return kl_of_epoch() > target_kl
        mine = extent.num_here * kl_of_epoch() if extent.num_here else 0.0
        return total(self._peers, [mine])[0] / extent.num_rows > target_kl

    def _num_parts(self, batch: Batch) -> int:
        """Count all rows, valid or not: every batch makes the same number of updates. With a
        memory, a minibatch has at least one whole sequence."""
        num_rows = int(batch.arrays["valid"].size)
        num_parts = math.ceil(num_rows / self._config.minibatch_size)
        if MEMORY in batch.arrays:
            num_parts = min(num_parts, len(batch.arrays[MEMORY]))
        return num_parts

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
        spread: Spread | None = None
        if self._peers.num_ranks > 1:
            moments = start_moments(config, found, advantage_R, behaviour_R, None)
            self._whole = whole_batch(self._peers, moments)
            spread = self._whole.spread
        columns, at_start = make_columns(config, found, advantage_R, behaviour_R, None, spread)
        valid_inputs = {name: x[: order.num_valid] for name, x in inputs.items()}
        return EvaluatedBatch(valid_inputs, action_KR, columns), at_start

    def _nothing(self) -> tuple[EvaluatedBatch[AnyColumns], Tensors]:
        """Return a batch without rows, where only other ranks have some: a network might not
        evaluate it."""
        self._whole = whole_batch(self._peers, torch.zeros(3, 4, dtype=torch.float64))
        none = torch.empty(0)
        columns = Columns(none, none, none, none)
        return EvaluatedBatch({"none": none}, torch.empty(1, 0), columns), {}

    def _order(self, num_items: int, num_parts: int) -> Tensor:
        """Return a new order for every epoch, where there is more than one minibatch."""
        if num_parts == 1:
            return torch.arange(num_items)
        return torch.randperm(num_items, generator=self._generator)

    def _differentiate(
        self, minibatch: EvaluatedBatch[Any], terms: LossTerms, log: BatchLog
    ) -> Tensor:
        log.add(self._gradient.gradient(minibatch, terms))
        return self._flat.gradient_P

    def _no_gradient(self) -> Tensor:
        """Return the gradient of no rows, where only other ranks have some."""
        return self._flat.gradient_P.zero_()

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


def padded_sizes(num_rows: int, num_parts: int) -> list[int]:
    """Return the sizes of nearly equal parts, largest first; some are 0 where rows are few."""
    sizes = part_sizes(num_rows, num_parts)
    return sizes + [0] * (num_parts - len(sizes))


def _joined(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts, -1) if parts else torch.empty(0)
