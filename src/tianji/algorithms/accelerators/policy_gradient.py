"""The gradient of policy_gradient_objective() (algorithms/policy_gradient/loss.py), closed form.

B: steps that count, A: policy outputs.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias, cast

import torch

from tianji.algorithms.accelerators.heads import close_head
from tianji.algorithms.accelerators.network import ClosedNetwork, has_closed_form
from tianji.algorithms.gradient import Autograd, Gradient
from tianji.algorithms.policy_gradient.loss import WeightedSteps, policy_gradient_objective
from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.models.masks import legal_only
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import flatten

PolicyGradient: TypeAlias = Gradient[WeightedSteps, None, None]


class ClosedPolicyGradient:
    """d J / d log pi = weight."""

    def __init__(self, model: PolicyModel) -> None:
        self._network = ClosedNetwork(cast(StackedNet, model.net))
        self._head = close_head(model.head)
        self._mask = model.mask

    def prepare(self, batch: WeightedSteps, terms: None) -> WeightedSteps:
        return batch

    def gradient(self, minibatch: WeightedSteps, terms: None) -> None:
        x_BF = self._network.features(minibatch.obs)
        prepared_AB = self._head.prepare(minibatch.action_BK)
        with torch.inference_mode():
            (outputs_AB,), tape = self._network.forward(x_BF, len(x_BF))
            if self._mask is not None:
                outputs_AB = legal_only(outputs_AB, minibatch.obs[self._mask].bool().t())
            _, saved = self._head.log_prob(outputs_AB, prepared_AB)
            self._network.backward(tape, self._head.backward(saved, minibatch.weight_B, None))


def build_policy_gradient(model: PolicyModel) -> PolicyGradient:
    """Return the closed form where the model has one, plain torch otherwise."""
    if has_closed_form(model.net):
        return ClosedPolicyGradient(model)
    return Autograd(flatten(model), partial(policy_gradient_objective, model))
