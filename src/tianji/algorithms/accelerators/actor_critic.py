"""Policy and value of a small network on a CPU, in closed form.

R: rows, B: rows with actions, A: policy outputs.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from tianji.algorithms.accelerators.heads import close_head
from tianji.algorithms.accelerators.network import ClosedNetwork, has_closed_form
from tianji.algorithms.actor_critic.evaluation import Evaluation
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import Tensors

FEATURES = "features"


class ClosedActorCritic:
    """An Evaluator, and the two parts that closed-form gradients are made of."""

    def __init__(self, model: ActorCritic) -> None:
        self.network = ClosedNetwork(cast(StackedNet, model.net))
        self.head = close_head(model.head)

    def inputs(self, obs: Tensors) -> Tensors:
        return {FEATURES: self.network.features(obs)}

    def actions(self, action_BK: Tensor) -> Tensor:
        return self.head.prepare(action_BK)

    def evaluate(self, inputs: Tensors, action_KB: Tensor) -> Evaluation:
        outputs_AR, value_1R = self.network.evaluate(inputs[FEATURES])
        log_prob_B, saved = self.head.log_prob(outputs_AR[:, : action_KB.shape[1]], action_KB)
        return Evaluation(log_prob_B, self.head.entropy(saved), value_1R[0])

    def values(self, inputs: Tensors) -> Tensor:
        return self.network.evaluate(inputs[FEATURES])[1][0]


def entropy_gradient(weight: float, like_B: Tensor) -> Tensor | None:
    """Return the gradient of -weight * H by each row's entropy; None without a bonus."""
    return torch.full_like(like_B, -weight) if weight else None


def close_actor_critic(model: ActorCritic) -> ClosedActorCritic | None:
    """Return the closed form of a model, if it has one."""
    return ClosedActorCritic(model) if has_closed_form(model.net) else None
