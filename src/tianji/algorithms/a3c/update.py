"""A3C's learner: one step of the optimiser for every gradient that arrives."""

from __future__ import annotations

from torch import nn

from tianji.algorithms.a3c.config import A3CConfig
from tianji.algorithms.gathered import Descent, GatheredUpdate
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.optimizers import Adam, RMSProp, build_optimizer
from tianji.models.tensors import flatten


def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    algorithm = config.algorithm
    assert isinstance(algorithm, A3CConfig)
    flat, epsilon = flatten(model), algorithm.optimizer_epsilon
    rule = (
        Adam(flat, epsilon)
        if algorithm.optimizer == "adam"
        else RMSProp(flat, epsilon, algorithm.rmsprop_decay)
    )
    optimizer = build_optimizer(flat, rule, algorithm.max_grad_norm)
    rates = algorithm.learning_rate, algorithm.learning_rate_final
    return GatheredUpdate(Descent(flat, optimizer, *rates))
