"""PPO's updates on a GPU: a batch of a fixed shape, as a few CUDA graphs.

    passes = RecordedPasses(model, config, optimizer, experience, sizes)
    passes.begin(experience, terms, orders_R)     # one upload, one graph: evaluation, advantages
    for size in passes.sizes: ...                 # in every epoch
        passes.gradient(size)                     # one graph: it takes the next rows of the order
        passes.step(learning_rate)                # another
    passes.metrics()                              # one graph, and one copy to the host

Rows that are not valid are kept, with weight 0, so that shapes never change. Minibatches are made
of single rows, or of whole sequences where the policy has a memory. What one graph leaves
the next one reads where it lies. Launching the same kernels one by one took a slow core longer than
the GPU needed to run them.

T: time, N: environments, R: rows of the batch, B: rows of a minibatch, E: epochs, I: items of a
minibatch (rows or sequences), M: items of all minibatches, L: rows of an item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.actor_critic.experience import Experience, approximate_kl
from tianji.algorithms.actor_critic.model import ActorCritic, Evaluation, ModelEvaluator
from tianji.algorithms.gradient import Autograd
from tianji.algorithms.ppo.batch import AnyColumns, EvaluatedBatch
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.loss import AnyTerms, Diagnostics, LossTerms, TensorTerms, ppo_loss
from tianji.algorithms.ppo.summary import (
    Spread,
    WholeBatch,
    batch_metrics,
    make_columns,
    start_moments,
    whole_batch,
)
from tianji.channels.peers.interface import ALONE, Peers
from tianji.devices.graphs import recorded
from tianji.devices.joining import Joined
from tianji.devices.staging import Staging
from tianji.devices.waits import WAITS, Download, Figures
from tianji.models.networks.recurrent import RESETS, STATE
from tianji.models.optimizers import Optimizer
from tianji.models.tensors import Tensors, flatten, to_tensor
from tianji.ops.frames import stack_rows
from tianji.ops.returns import gae_tensors
from tianji.types import AGE, Array, leaf_name

ORDER, NUMBERS, HAS_FINAL, NEXT, COUNTED = "order", "numbers", "has_final", "next", "counted"
ROWS = "rows"
"""A figure beside the metrics: the rows of all updates."""


class _Rows(NamedTuple):
    """The rows of this rank, evaluated. moments_34: see start_moments(); empty with one rank."""

    inputs: Tensors
    action_KR: Tensor
    found: Evaluation
    advantage_R: Tensor
    behaviour_R: Tensor
    weight_R: Tensor
    moments_34: Tensor


class _Evaluated(NamedTuple):
    batch: EvaluatedBatch[AnyColumns]
    at_start: Tensors


class RecordedPasses:
    """The memory and the graphs for batches of one shape."""

    def __init__(
        self,
        model: ActorCritic,
        config: PPOConfig,
        optimizer: Optimizer,
        like: Experience,
        sizes: list[int],
        peers: Peers = ALONE,
    ) -> None:
        """like: experience of the shape. sizes: items of each minibatch. peers: the ranks whose
        batches make one batch."""
        self._config = config
        self._optimizer = optimizer
        self._flat = flatten(model)
        self._device = device = like.device
        self._evaluator = ModelEvaluator(model)
        self._autograd: Autograd[EvaluatedBatch[AnyColumns], AnyTerms, Diagnostics] = Autograd(
            self._flat, partial(ppo_loss, model)
        )
        self._num_rows, self._num_items = like.valid_TN.size, like.num_items
        self.sizes = sizes
        self._peers = peers
        self._obs = {key: Joined(array, device) for key, array in like.obs.items()}
        self._ages = {key: leaf_name(AGE, key) for key in like.age}
        kinds = {name: (array.shape, array.dtype.name) for name, array in _fields(like).items()}
        kinds |= {NUMBERS: ((2,), "float32"), ORDER: ((config.epochs, like.num_items), "int64")}
        self._staging = Staging(kinds, device)
        self._order_M = self._staging.device[ORDER].view(-1)
        clip, minibatch_rows = self._staging.device[NUMBERS].unbind()
        self._terms = TensorTerms(
            clip, config.value_clip, config.value_loss, config.entropy, minibatch_rows
        )
        self._final_value_TN = torch.zeros(like.valid_TN.shape, device=device)
        self._place = torch.zeros((), dtype=torch.int64, device=device)
        """How many items of the order the updates have taken."""
        self._num_updates = torch.zeros((), device=device)
        shape_ML = (len(self._order_M), self._num_rows // self._num_items)
        self._log_ratio_ML = torch.zeros(shape_ML, device=device)
        self._value_error_ML = torch.zeros(shape_ML, device=device)
        self._evaluate = recorded(device, self._evaluate_all)
        self._evaluate_apart = recorded(device, self._evaluate_here)
        self._make_columns = recorded(device, self._columns_of_ranks)
        self._spread = torch.zeros(2, device=device)
        """Mean and deviation of the advantages of all ranks."""
        self._rows: _Rows | None = None
        self.num_rows = 0.0
        """Number of rows of all updates, after metrics(), where there are several ranks."""
        self._gradients: dict[int, Callable[[], None]] = {
            size: recorded(device, partial(self._differentiate, size), self._logs)
            for size in set(self.sizes) - {0}
        }
        self._summarize = recorded(device, self._summarize_all)
        self._evaluated: _Evaluated | None = None
        self._names: list[str] = []
        self._num_made = 0
        self._figures: Figures | None = None

    def begin(
        self, experience: Experience, terms: LossTerms, orders: Sequence[Tensor]
    ) -> WholeBatch | None:
        """Upload a batch and evaluate it. orders: those of the first epochs. Return what is known
        of the batches of all ranks, where there are several; on a GPU that waits."""
        for key, joined in self._obs.items():
            joined.fill(experience.obs[key])
        staging = self._staging
        staging.settle()
        for name, array in _fields(experience).items():
            staging.host[name][...] = array
        staging.host[NUMBERS][:] = terms.clip, terms.minibatch_rows
        self.set_orders(0, orders)
        if HAS_FINAL in staging.host:
            self._fill_final_values(experience)
        self._num_made, self._figures = 0, None
        self._optimizer.begin_batch()
        if self._peers.num_ranks == 1:
            self._evaluated = self._evaluate()
            return None
        self._rows = self._evaluate_apart()
        whole = whole_batch(self._peers, Download(self._rows.moments_34).tensor())
        self._spread.copy_(torch.tensor(whole.spread))
        self._evaluated = self._make_columns()
        return whole

    def set_orders(self, epoch: int, orders: Sequence[Tensor]) -> None:
        """Upload the orders of some epochs, with what else was staged."""
        for index, order in enumerate(orders, epoch):
            self._staging.host[ORDER][index] = order.numpy()
        self._staging.upload()
        WAITS.uploaded_bytes += self._staging.nbytes

    def _fill_final_values(self, experience: Experience) -> None:
        final_value_C = experience.final_value(self._evaluator)
        if len(final_value_C):
            at_C = np.flatnonzero(self._staging.host[HAS_FINAL])
            self._final_value_TN.view(-1)[to_tensor(at_C, self._device)] = final_value_C

    def gradient(self, size: int) -> Tensor:
        """Compute the gradient of the next items; return it as one flat vector."""
        if size:
            self._gradients[size]()
        else:  # only other ranks have rows
            self._flat.gradient_P.zero_()
            self._num_updates.add_(1.0)
        return self._flat.gradient_P

    def step(self, learning_rate: float) -> None:
        """Move the parameters by the gradient."""
        self._optimizer.advance(learning_rate, self.suspects)
        self._num_made += 1

    def kl_of_epoch(self, epoch: int) -> float:
        """Return how far the policy has moved, on average over an epoch. On a GPU this waits."""
        items = slice(epoch * self._num_items, (epoch + 1) * self._num_items)
        weight_ML = self._weights(self._rows_of(self._order_M[items]))
        figures = Figures()
        figures.start({"kl": approximate_kl(self._log_ratio_ML[items], weight_ML)})
        return figures.read()["kl"]

    def close(self) -> None:
        """Start to compute the metrics of the updates that were made."""
        self._figures = Figures()
        values = self._summarize()
        self._figures.start_joined(self._names, values)

    def metrics(self) -> dict[str, float]:
        """Return the means over all updates, and the optimiser's flags; nothing without updates."""
        if not self._num_made:
            return {}
        if self._figures is None:
            self.close()
        assert self._figures is not None
        found = self._figures.read()
        self.num_rows = found.pop(ROWS, 0.0)
        return found

    def suspects(self) -> Tensors:
        """Return what the gradients so far were computed from, first causes first."""
        assert self._evaluated is not None
        batch, made = self._evaluated.batch, int(self._place)
        return {
            "observations": next(iter(batch.inputs.values())),
            "rewards or last observations, in the targets": batch.columns.target_B,
            "policy outputs": self._log_ratio_ML[:made],
            "values": self._value_error_ML[:made],
        }

    # ---------------------------------------------------------------------- inside the graphs

    def _evaluate_all(self) -> _Evaluated:
        return self._columns(self._evaluate_rows(), None)

    def _evaluate_here(self) -> _Rows:
        """Evaluate this rank's rows, up to what depends on those of others."""
        rows = self._evaluate_rows()
        moments_34 = start_moments(
            self._config, rows.found, rows.advantage_R, rows.behaviour_R, rows.weight_R
        )
        return rows._replace(moments_34=moments_34)

    def _columns_of_ranks(self) -> _Evaluated:
        assert self._rows is not None
        return self._columns(self._rows, Spread(*self._spread.unbind()))

    @torch.no_grad()
    def _columns(self, rows: _Rows, spread: Spread | None) -> _Evaluated:
        columns, at_start = make_columns(
            self._config, rows.found, rows.advantage_R, rows.behaviour_R, rows.weight_R, spread
        )
        return _Evaluated(EvaluatedBatch(rows.inputs, rows.action_KR, columns), at_start)

    @torch.no_grad()
    def _evaluate_rows(self) -> _Rows:
        config, fields = self._config, self._staging.device
        self._place.zero_()
        self._num_updates.zero_()
        valid_TN, num_rows = fields["valid"], self._num_rows
        inputs = self._evaluator.inputs({key: self._obs_rows(key) for key in self._obs})
        if STATE in fields:
            inputs |= {STATE: fields[STATE], RESETS: fields[RESETS].flatten()}
        action_KR = self._evaluator.actions(fields["action"].reshape(num_rows, -1))
        found = self._evaluator.evaluate(inputs, action_KR)
        value_T1N = found.value_R.view(len(valid_TN) + 1, -1)
        next_value_TN = value_T1N[1:]
        if HAS_FINAL in fields:
            next_value_TN = torch.where(fields[HAS_FINAL], self._final_value_TN, next_value_TN)
        advantage_TN = gae_tensors(
            fields["reward"], value_T1N[:-1], next_value_TN, fields["terminated"],
            fields["truncated"], valid_TN, config.gamma, config.gae_lambda, fields[NEXT],
        )  # fmt: skip
        inputs = {name: x[:num_rows] for name, x in inputs.items()}
        return _Rows(
            inputs, action_KR, found, advantage_TN.flatten(), fields["log_prob"].flatten(),
            fields.get(COUNTED, valid_TN).flatten().float(), torch.empty(0),
        )  # fmt: skip

    def _obs_rows(self, key: str) -> Tensor:
        tensor = self._obs[key].tensor
        if key not in self._ages:
            return tensor.flatten(0, 1)
        return stack_rows(tensor, self._staging.device[self._ages[key]], None)

    def _logs(self) -> list[Tensor]:
        """Return what an update changes beside the gradient."""
        return [self._place, self._num_updates, self._log_ratio_ML, self._value_error_ML]

    def _differentiate(self, size: int) -> None:
        assert self._evaluated is not None
        place_I = self._place + torch.arange(size, device=self._device)
        place_I = place_I % len(self._order_M)  # a recording runs more often than there are updates
        minibatch = self._evaluated.batch.select(self._order_M[place_I])
        found = self._autograd.differentiate(minibatch, self._terms)
        self._log_ratio_ML.index_copy_(0, place_I, found.log_ratio_B.view(-1, size).t())
        self._value_error_ML.index_copy_(0, place_I, found.value_error.view(-1, size).t())
        self._place.add_(size)
        self._num_updates.add_(1.0)

    @torch.no_grad()
    def _summarize_all(self) -> Tensor:
        assert self._evaluated is not None
        is_made_M = torch.arange(len(self._order_M), device=self._device) < self._place
        row_ML = self._rows_of(self._order_M)
        weight_ML = self._weights(row_ML) * is_made_M[:, None]
        values = batch_metrics(
            self._evaluated.batch.columns,
            self._log_ratio_ML,
            self._value_error_ML,
            row_ML,
            weight_ML,
            self._terms.clip,
        )
        values["grad_norm"] = torch.as_tensor(self._optimizer.norm_sum) / self._num_updates
        if self._peers.num_ranks > 1:
            values[ROWS] = weight_ML.sum()
        values |= self._evaluated.at_start | self._optimizer.flags()
        self._names = list(values)
        return torch.stack([value.float() for value in values.values()])

    def _rows_of(self, order_M: Tensor) -> Tensor:
        """Return the rows of items, [M, L]."""
        assert self._evaluated is not None
        return self._evaluated.batch.rows_of(order_M).view(-1, len(order_M)).t()

    def _weights(self, row_ML: Tensor) -> Tensor:
        assert self._evaluated is not None
        weight_R = self._evaluated.batch.columns.weights
        assert weight_R is not None, "the rows of a padded batch have weights"
        return weight_R[row_ML]


def _fields(experience: Experience) -> dict[str, Array]:
    """Return the arrays of one number or action for each step, and of one for each column, by
    name."""
    fields: dict[str, Array] = {
        "action": experience.action,
        "log_prob": experience.log_prob_TN,
        "reward": experience.reward_TN,
        "terminated": experience.terminated_TN,
        "truncated": experience.truncated_TN,
        "valid": experience.valid_TN,
        NEXT: experience.next_N,
        **{leaf_name(AGE, key): age for key, age in experience.age.items()},
    }
    if experience.sequences is not None:
        state_NS, resets_T1N = experience.sequences
        fields |= {COUNTED: experience.counted_TN, STATE: state_NS, RESETS: resets_T1N}
    if experience.final_obs:
        fields[HAS_FINAL] = experience.truncated_TN & experience.valid_TN
    return fields
