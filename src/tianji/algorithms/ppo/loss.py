"""PPO's loss (Schulman et al. 2017, equation 9) with a decoupled objective (Hilton, Cobbe and
Schulman 2022), and the rows of a batch that it is computed from.

B: rows of a minibatch, A: policy outputs, K: choices or numbers of an action.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.models.networks.recurrent import STATE
from tianji.models.tensors import Tensors, take_rows


class Columns(NamedTuple):
    """One number for each row, from before the first update.

    log_prob_B:           log pi_old(a|s), of the policy that the ratio is taken against
    weighted_advantage_B: w A
    target_B:             R, what the value should be
    value_B:              V_old
    """

    log_prob_B: Tensor
    weighted_advantage_B: Tensor
    target_B: Tensor
    value_B: Tensor

    @property
    def weights(self) -> Tensor | None:
        """Return None: every row counts."""
        return None


class PaddedColumns(NamedTuple):
    """Columns of a fixed number of rows: weight_B is 0 for those that only fill it up."""

    log_prob_B: Tensor
    weighted_advantage_B: Tensor
    target_B: Tensor
    value_B: Tensor
    weight_B: Tensor

    @property
    def weights(self) -> Tensor | None:
        return self.weight_B


AnyColumns: TypeAlias = Columns | PaddedColumns
C = TypeVar("C", bound=tuple[Any, ...])
"""A NamedTuple of tensors [B]: Columns, or what a closed form computes of them."""


class EvaluatedBatch(NamedTuple, Generic[C]):
    """Some rows of a batch. Inputs have the rows first, [B, ...]; actions have them last."""

    inputs: Tensors
    action_KB: Tensor
    columns: C

    @property
    def num_rows(self) -> int:
        return self.action_KB.shape[1]

    def rows_of(self, index: Tensor) -> Tensor:
        """Return the rows of these items: one each, or all of a sequence, time first."""
        if STATE not in self.inputs:
            return index
        num_sequences = len(self.inputs[STATE])
        first_T = torch.arange(0, self.num_rows, num_sequences, device=index.device)
        return (first_T[:, None] + index).flatten()

    def select(self, index: Tensor) -> EvaluatedBatch[C]:
        """Return these rows, or with a memory these sequences, in this order, as copies."""
        index_B = self.rows_of(index)
        columns_CB = torch.stack(self.columns).index_select(1, index_B)
        return EvaluatedBatch(
            {
                name: take_rows(x, index if name == STATE else index_B)
                for name, x in self.inputs.items()
            },
            self.action_KB.index_select(1, index_B),
            type(self.columns)(*columns_CB.unbind(0)),
        )

    def split(self, sizes: list[int]) -> Iterator[EvaluatedBatch[C]]:
        """Yield consecutive parts, as views."""
        inputs = {name: torch.split(x, sizes) for name, x in self.inputs.items()}
        actions = torch.split(self.action_KB, sizes, 1)
        columns = zip(*(torch.split(column, sizes) for column in self.columns), strict=True)
        for i, parts in enumerate(columns):
            part_inputs = {name: split[i] for name, split in inputs.items()}
            yield EvaluatedBatch(part_inputs, actions[i], type(self.columns)(*parts))


def part_sizes(num_rows: int, num_parts: int) -> list[int]:
    """Return the sizes of nearly equal parts, largest first, none of them empty."""
    size, rest = divmod(num_rows, num_parts)
    return [size + 1] * rest + ([size] * (num_parts - rest) if size else [])


@dataclass(frozen=True)
class LossTerms:
    """Coefficients of the loss, the same for all minibatches of a batch.

    clip:           epsilon
    value_clip:     c
    value_loss:     c_1
    entropy:        c_2
    minibatch_rows: m, on average: minibatches differ by one row, and every row counts equally
    """

    clip: float
    value_clip: float | None
    value_loss: float
    entropy: float
    minibatch_rows: float

    @cached_property
    def value_slope(self) -> Tensor:
        """2 c_1 / m, as a tensor: torch would make one of a number in every update."""
        return torch.tensor(2.0 * self.value_loss / self.minibatch_rows)


class TensorTerms(NamedTuple):
    """LossTerms of which those that change from batch to batch are tensors."""

    clip: Tensor
    value_clip: float | None
    value_loss: float
    entropy: float
    minibatch_rows: Tensor


AnyTerms: TypeAlias = LossTerms | TensorTerms


class Diagnostics(NamedTuple):
    """What the metrics need of one minibatch: log r, and V - R after clipping, [B] or [1, B]."""

    log_ratio_B: Tensor
    value_error: Tensor


def ppo_loss(
    model: ActorCritic, batch: EvaluatedBatch[AnyColumns], terms: AnyTerms
) -> tuple[Tensor, Diagnostics]:
    """Return the loss of a minibatch.

        L = 1/m sum_B [ -w min(r A, clip(r, 1 - epsilon, 1 + epsilon) A) + c_1 (V - R)^2 - c_2 H ]
        r = pi(a|s) / pi_old(a|s),    w = min(pi_old / pi_behaviour, max_behaviour_weight)

    pi_old is the learner's policy when it took the batch, pi_behaviour the policy that acted: w
    corrects for lag, the clipping of r bounds the step. With a value clip, (V - R)^2 is the larger
    one of (V - R)^2 and (V_old + clip(V - V_old, -c, c) - R)^2.
    """
    old = batch.columns
    outputs_BA, value_B1 = model(batch.inputs)
    value_B = value_B1[:, 0]
    log_ratio_B = model.head.log_prob(outputs_BA, batch.action_KB.t()) - old.log_prob_B
    surrogate_B = clipped_surrogate(log_ratio_B.exp(), old.weighted_advantage_B, terms.clip)
    error_B = value_B - old.target_B
    if terms.value_clip is not None:
        moved_B = (value_B - old.value_B).clamp(-terms.value_clip, terms.value_clip)
        clipped_B = old.value_B + moved_B - old.target_B
        error_B = torch.where(clipped_B.abs() > error_B.abs(), clipped_B, error_B)
    loss_B = -surrogate_B + terms.value_loss * error_B.square()
    if terms.entropy:
        loss_B = loss_B - terms.entropy * model.head.entropy(outputs_BA)
    if old.weights is not None:
        loss_B = loss_B * old.weights
    return loss_B.sum() / terms.minibatch_rows, Diagnostics(log_ratio_B.detach(), error_B.detach())


def clipped_surrogate(
    ratio_B: Tensor, weighted_advantage_B: Tensor, clip: float | Tensor
) -> Tensor:
    """Return w min(r A, clip(r) A), from w A: weights are positive."""
    clipped_B = torch.clamp(ratio_B, 1.0 - clip, 1.0 + clip)  # type: ignore[arg-type]
    return torch.minimum(ratio_B * weighted_advantage_B, clipped_B * weighted_advantage_B)
