"""Policy and value of a small network on a CPU, and the gradients of ppo_loss() and impala_loss()
(loss.py of either algorithm), in closed form.

R: rows, B: rows with actions, A: policy outputs.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor

from tianji.algorithms.accelerators.heads import close_head
from tianji.algorithms.accelerators.network import ClosedNetwork, has_closed_form
from tianji.algorithms.actor_critic.model import ActorCritic, Evaluation, Evaluator, ModelEvaluator
from tianji.algorithms.gradient import Autograd, Gradient
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.algorithms.impala.loss import TracedSteps, UnrollPart, impala_loss
from tianji.algorithms.ppo.batch import Columns, EvaluatedBatch
from tianji.algorithms.ppo.loss import Diagnostics, LossTerms, ppo_loss
from tianji.models.masks import legal_only
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import Tensors, flatten

FEATURES, MASK = "features", "mask"
"""Inputs of the closed forms: [R, F], and [R, A] where there are masks: gradients of illegal
actions are 0, as their probabilities are."""


class ClosedActorCritic:
    """An Evaluator, and the two parts that closed-form gradients are made of."""

    def __init__(self, model: ActorCritic) -> None:
        self.network = ClosedNetwork(cast(StackedNet, model.net))
        self.head = close_head(model.head)
        self._mask = model.mask

    def inputs(self, obs: Tensors) -> Tensors:
        found = {FEATURES: self.network.features(obs)}
        return found if self._mask is None else found | {MASK: obs[self._mask].bool()}

    def legal(self, outputs_AR: Tensor, inputs: Tensors) -> Tensor:
        """Return the outputs, without those of illegal actions where there are masks."""
        return legal_only(outputs_AR, inputs[MASK].t()) if MASK in inputs else outputs_AR

    def actions(self, action_BK: Tensor) -> Tensor:
        return self.head.prepare(action_BK)

    def evaluate(self, inputs: Tensors, action_KB: Tensor) -> Evaluation:
        outputs_AR, value_1R = self.network.evaluate(inputs[FEATURES])
        outputs_AR = self.legal(outputs_AR, inputs)
        log_prob_B, saved = self.head.log_prob(outputs_AR[:, : action_KB.shape[1]], action_KB)
        return Evaluation(log_prob_B, self.head.entropy(saved), value_1R[0])

    def values(self, inputs: Tensors) -> Tensor:
        return self.network.evaluate(inputs[FEATURES])[1][0]

    def states(self, inputs: Tensors) -> Tensor:
        raise NotImplementedError("a network in closed form has no memory")


def entropy_gradient(weight: float, like_B: Tensor) -> Tensor | None:
    """Return the gradient of -weight * H by each row's entropy; None without a bonus."""
    return torch.full_like(like_B, -weight) if weight else None


PPOGradient: TypeAlias = Gradient[EvaluatedBatch[Any], Any, Diagnostics]


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
        self._network, self._head, self._legal = model.network, model.head, model.legal

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
            outputs_AB = self._legal(outputs_AB, minibatch.inputs)
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
    if has_closed_form(model.net):
        closed = ClosedActorCritic(model)
        return closed, ClosedPPO(closed)
    return ModelEvaluator(model), Autograd(flatten(model), partial(ppo_loss, model))


ImpalaGradient: TypeAlias = Gradient[Any, ImpalaConfig, TracedSteps]


class ClosedImpala:
    """d L / d log pi = -rho A / B,   d L / d V = c_v (V - v) / B,   d L / d H = -c_e / B."""

    def __init__(self, model: ClosedActorCritic) -> None:
        self._network, self._head, self._legal = model.network, model.head, model.legal

    def prepare(self, batch: UnrollPart, terms: ImpalaConfig) -> UnrollPart:
        return batch

    def gradient(self, minibatch: UnrollPart, terms: ImpalaConfig) -> TracedSteps:
        num_valid = minibatch.order.num_valid
        prepared_AB = self._head.prepare(minibatch.action_BK)
        with torch.inference_mode():
            x_RF = minibatch.inputs[FEATURES]
            (outputs_AR, value_1R), tape = self._network.forward(x_RF, num_valid)
            outputs_AR = self._legal(outputs_AR, minibatch.inputs)
            log_prob_B, saved = self._head.log_prob(outputs_AR[:, :num_valid], prepared_AB)
            entropy_B = self._head.entropy(saved)
            found = minibatch.trace(terms, log_prob_B, entropy_B, value_1R[0])
            bonus_B = entropy_gradient(terms.entropy / num_valid, entropy_B)
            policy_B = found.advantage_B / -num_valid
            outputs_gradient_AB = self._head.backward(saved, policy_B, bonus_B)
            value_B = (found.value_B - found.target_B) * (terms.value_loss / num_valid)
            self._network.backward(tape, outputs_gradient_AB, value_B[None])
        return found


def build_impala(model: ActorCritic) -> tuple[Evaluator, ImpalaGradient]:
    """Return closed forms where the model has them, plain torch otherwise."""
    if has_closed_form(model.net):
        closed = ClosedActorCritic(model)
        return closed, ClosedImpala(closed)
    return ModelEvaluator(model), Autograd(flatten(model), partial(impala_loss, model))
