"""Gorila's learner: one step of the optimiser for every gradient that arrives."""

from __future__ import annotations

from torch import nn

from tianji.algorithms.dqn.update import ADAM_EPSILON
from tianji.algorithms.gathered import Descent, GatheredUpdate
from tianji.algorithms.gorila.config import GorilaConfig
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.optimizers import Adam, build_optimizer
from tianji.models.tensors import flatten


def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    algorithm = config.algorithm
    assert isinstance(algorithm, GorilaConfig)
    flat = flatten(model)
    optimizer = build_optimizer(flat, Adam(flat, ADAM_EPSILON), algorithm.max_grad_norm)
    rates = algorithm.learning_rate, algorithm.learning_rate_final
    return GatheredUpdate(Descent(flat, optimizer, *rates))
