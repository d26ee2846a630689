"""The gradient of ppo_loss() (algorithms/ppo/loss.py) in closed form.

B: rows, A: policy outputs.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from tianji.algorithms.accelerators.actor_critic import (
    FEATURES,
    ClosedActorCritic,
    close_actor_critic,
    entropy_gradient,
)
from tianji.algorithms.actor_critic.evaluation import Evaluator, ModelEvaluator
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.gradient import Autograd, Gradient
from tianji.algorithms.ppo.batch import Columns, EvaluatedBatch
from tianji.algorithms.ppo.loss import Diagnostics, LossTerms, ppo_loss
from tianji.models.flat import flatten

PPOGradient: TypeAlias = Gradient[EvaluatedBatch[Any], LossTerms, Diagnostics]


class ClosedColumns(NamedTuple):
    """Columns, with what can be computed before the first update.

    slope_B: -w A / m, the derivative of the loss by an unclipped ratio
    lower_B, upper_B: limits of the ratio, min(r A, clip(r) A) = A clamp(r, lower, upper); positive
        advantages are bounded from above only, others from below only
    """

    log_prob_B: Tensor
    slope_B: Tensor
    lower_B: Tensor
    upper_B: Tensor
    target_B: Tensor
    value_B: Tensor


class ClosedPPO:
    """d L / d log pi = -w A r / m, 0 where r is clipped;   d L / d V = 2 c_1 (V - R) / m."""

    def __init__(self, model: ClosedActorCritic) -> None:
        self._network, self._head = model.network, model.head

    def prepare(
        self, batch: EvaluatedBatch[Columns], terms: LossTerms
    ) -> EvaluatedBatch[ClosedColumns]:
        log_prob_B, advantage_B, target_B, value_B = batch.columns
        is_good_B = advantage_B > 0
        infinity_B = torch.full_like(advantage_B, torch.inf)
        columns = ClosedColumns(
            log_prob_B,
            slope_B=advantage_B / -terms.minibatch_rows,
            lower_B=torch.where(is_good_B, torch.zeros_like(advantage_B), 1.0 - terms.clip),
            upper_B=torch.where(is_good_B, 1.0 + terms.clip, infinity_B),
            target_B=target_B,
            value_B=value_B,
        )
        return EvaluatedBatch(batch.inputs, batch.action_KB, columns)

    def gradient(self, minibatch: EvaluatedBatch[ClosedColumns], terms: LossTerms) -> Diagnostics:
        old = minibatch.columns
        with torch.inference_mode():
            x_BF = minibatch.inputs[FEATURES]
            (outputs_AB, value_1B), tape = self._network.forward(x_BF, len(x_BF))
            log_prob_B, saved = self._head.log_prob(outputs_AB, minibatch.action_KB)
            log_ratio_B = log_prob_B - old.log_prob_B
            ratio_B = log_ratio_B.exp()
            bounded_B = torch.clamp(ratio_B, old.lower_B, old.upper_B)
            policy_B = (ratio_B * old.slope_B).mul_(ratio_B == bounded_B)
            error_1B = value_1B - old.target_B
            value_gradient_1B = error_1B * terms.value_slope
            if terms.value_clip is not None:
                moved_1B = value_1B - old.value_B
                clip = terms.value_clip
                clipped_1B = error_1B + moved_1B.clamp(-clip, clip).sub_(moved_1B)
                is_clipped_1B = clipped_1B.abs() > error_1B.abs()
                value_gradient_1B.masked_fill_(is_clipped_1B, 0.0)
                error_1B = torch.where(is_clipped_1B, clipped_1B, error_1B)
            entropy_B = entropy_gradient(terms.entropy / terms.minibatch_rows, policy_B)
            outputs_gradient_AB = self._head.backward(saved, policy_B, entropy_B)
            self._network.backward(tape, outputs_gradient_AB, value_gradient_1B)
        return Diagnostics(log_ratio_B, error_1B)


def build_ppo(model: ActorCritic) -> tuple[Evaluator, PPOGradient]:
    """Return closed forms where the model has them, plain torch otherwise."""
    closed = close_actor_critic(model)
    if closed is not None:
        return closed, ClosedPPO(closed)
    return ModelEvaluator(model), Autograd(flatten(model), partial(ppo_loss, model))
