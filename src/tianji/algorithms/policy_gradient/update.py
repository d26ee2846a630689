"""The learner's side: one step for every aggregate of gradients (see ops/nigt.py).

P: all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn

from tianji.algorithms.interface import Minibatch
from tianji.algorithms.policy_gradient.config import (
    AFedPgConfig,
    MomentumConfig,
    PolicyGradientConfig,
)
from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import TrainingDiverged
from tianji.models.tensors import flatten, to_tensor
from tianji.ops.nigt import Federated, Nigt, Pace, PlainAscent, Point
from tianji.types import Batch


class GatheredUpdate:
    """See algorithms/interface.py. A batch is the sum of all contributions and its weight."""

    def __init__(self, outer: Nigt) -> None:
        self.outer = outer
        self._metrics: dict[str, float] = {}

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps

    def minibatches(self, batch: Batch, progress: float) -> Iterator[Minibatch]:
        self._metrics = {"gradients": float(batch.num_items)}
        gradient_P = to_tensor(batch.arrays["sum"] / float(batch.arrays["weight"][0]))
        yield Minibatch(lambda: gradient_P, partial(self._step, gradient_P))

    @torch.no_grad()
    def _step(self, gradient_P: Tensor) -> None:
        norm = float(torch.linalg.vector_norm(gradient_P))
        if not math.isfinite(norm):
            raise TrainingDiverged(self._explain(norm))
        moved = self.outer.step(gradient_P)
        self._metrics |= {
            "grad_norm": norm,
            "direction_norm": moved.direction_norm,
            "learning_rate": moved.step_size,
        }

    def metrics(self) -> Mapping[str, float]:
        return self._metrics

    def _explain(self, norm: float) -> str:
        return (
            f"Training diverged: the norm of the gathered gradient is {norm} at update "
            f"{self.outer.num_steps + 1}. The parameters are those of the update before. Try a "
            "lower learning rate, and check that the environment's rewards and observations are "
            "finite and not huge (`tianji doctor`)."
        )

    def state(self) -> dict[str, Tensor]:
        return self.outer.state()

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.outer.load_state(state)


@torch.no_grad()
def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    algorithm = config.algorithm
    assert isinstance(model, PolicyModel) and isinstance(algorithm, PolicyGradientConfig)
    theta_P = flatten(model).vector_P
    point = Point(theta_P, theta_P.clone(), model.ahead, model.direction, model.eta)
    if not isinstance(algorithm, MomentumConfig):
        pace = Pace(algorithm.learning_rate, schedule=algorithm.schedule)
        return GatheredUpdate(PlainAscent(point, pace))
    pace = Pace(algorithm.learning_rate, algorithm.eta, algorithm.schedule)
    step = Federated if isinstance(algorithm, AFedPgConfig) else Nigt
    return GatheredUpdate(step(point, pace))
