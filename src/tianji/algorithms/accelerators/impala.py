"""The gradient of impala_loss() (algorithms/impala/loss.py) in closed form.

R: rows, B: valid steps, A: policy outputs.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import torch

from tianji.algorithms.accelerators.actor_critic import (
    FEATURES,
    ClosedActorCritic,
    close_actor_critic,
    entropy_gradient,
)
from tianji.algorithms.actor_critic.evaluation import Evaluator, ModelEvaluator
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.gradient import Autograd, Gradient
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.algorithms.impala.loss import Diagnostics, UnrollPart, impala_loss, trace
from tianji.models.flat import flatten

ImpalaGradient: TypeAlias = Gradient[UnrollPart, ImpalaConfig, Diagnostics]


class ClosedImpala:
    """d L / d log pi = -rho A / B,   d L / d V = c_v (V - v) / B,   d L / d H = -c_e / B."""

    def __init__(self, model: ClosedActorCritic) -> None:
        self._network, self._head = model.network, model.head

    def prepare(self, batch: UnrollPart, terms: ImpalaConfig) -> UnrollPart:
        return batch

    def gradient(self, minibatch: UnrollPart, terms: ImpalaConfig) -> Diagnostics:
        num_valid = minibatch.order.num_valid
        prepared_AB = self._head.prepare(minibatch.action_BK)
        with torch.inference_mode():
            x_RF = minibatch.inputs[FEATURES]
            (outputs_AR, value_1R), tape = self._network.forward(x_RF, num_valid)
            log_prob_B, saved = self._head.log_prob(outputs_AR[:, :num_valid], prepared_AB)
            entropy_B = self._head.entropy(saved)
            found = trace(minibatch, terms, log_prob_B, entropy_B, value_1R[0])
            bonus_B = entropy_gradient(terms.entropy / num_valid, entropy_B)
            policy_B = found.advantage_B / -num_valid
            outputs_gradient_AB = self._head.backward(saved, policy_B, bonus_B)
            value_B = (found.value_B - found.target_B) * (terms.value_loss / num_valid)
            self._network.backward(tape, outputs_gradient_AB, value_B[None])
        return found


def build_impala(model: ActorCritic) -> tuple[Evaluator, ImpalaGradient]:
    """Return closed forms where the model has them, plain torch otherwise."""
    closed = close_actor_critic(model)
    if closed is not None:
        return closed, ClosedImpala(closed)
    return ModelEvaluator(model), Autograd(flatten(model), partial(impala_loss, model))
