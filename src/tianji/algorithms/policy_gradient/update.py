"""The learner's side: one step for every aggregate of gradients (see ops/nigt.py).

P: all parameters.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tianji.algorithms.gathered import GatheredUpdate
from tianji.algorithms.policy_gradient.config import (
    AFedPgConfig,
    MomentumConfig,
    PolicyGradientConfig,
)
from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import TrainingDiverged
from tianji.models.tensors import flatten
from tianji.ops.nigt import Federated, Nigt, Pace, PlainAscent, Point


class Ascent:
    """Steps along an objective's gradient (ops/nigt.py), refused if it is not finite."""

    def __init__(self, nigt: Nigt) -> None:
        self.nigt = nigt
        self.state = nigt.state
        self.load_state = nigt.load_state

    def step(self, gradient_P: Tensor, progress: float) -> dict[str, float]:
        norm = float(torch.linalg.vector_norm(gradient_P))
        if not math.isfinite(norm):
            raise TrainingDiverged(self._explain(norm))
        moved = self.nigt.step(gradient_P)
        return {
            "grad_norm": norm,
            "direction_norm": moved.direction_norm,
            "learning_rate": moved.step_size,
        }

    def _explain(self, norm: float) -> str:
        return (
            f"Training diverged: the norm of the gathered gradient is {norm} at update "
            f"{self.nigt.num_steps + 1}. The parameters are those of the update before. Try a "
            "lower learning rate, and check that the environment's rewards and observations are "
            "finite and not huge (`tianji doctor`)."
        )


@torch.no_grad()
def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    algorithm = config.algorithm
    assert isinstance(model, PolicyModel) and isinstance(algorithm, PolicyGradientConfig)
    theta_P = flatten(model).vector_P
    point = Point(theta_P, theta_P.clone(), model.ahead, model.direction, model.eta)
    if not isinstance(algorithm, MomentumConfig):
        pace = Pace(algorithm.learning_rate, schedule=algorithm.schedule)
        return GatheredUpdate(Ascent(PlainAscent(point, pace)))
    pace = Pace(algorithm.learning_rate, algorithm.eta, algorithm.schedule)
    step = Federated if isinstance(algorithm, AFedPgConfig) else Nigt
    return GatheredUpdate(Ascent(step(point, pace)))
