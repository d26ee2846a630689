"""The objective whose gradient actors contribute: REINFORCE with causality (Williams 1992).

B: steps that count, K: choices or numbers of an action.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.models.tensors import Tensors


class WeightedSteps(NamedTuple):
    """The steps of the first episodes.

    weight_B: sum_{h >= t} gamma^h r_h, minus the baseline, divided by the number of environments
    """

    obs: Tensors
    action_BK: Tensor
    weight_B: Tensor


def policy_gradient_objective(
    model: PolicyModel, steps: WeightedSteps, terms: None
) -> tuple[Tensor, None]:
    """Return the sum whose gradient estimates that of the discounted return (ops/returns.py).

    J = sum_t weight_t log pi(a_t | s_t)
    """
    log_prob_B = model.head.log_prob(model(steps.obs), steps.action_BK)
    return (steps.weight_B * log_prob_B).sum(), None
