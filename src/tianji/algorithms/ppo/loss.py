"""PPO's loss (Schulman et al. 2017, equation 9) with a decoupled objective (Hilton, Cobbe and
Schulman 2022).

B: rows of a minibatch, A: policy outputs, K: choices or numbers of an action.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.ppo.batch import AnyColumns, EvaluatedBatch


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
