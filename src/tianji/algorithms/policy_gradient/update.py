"""The learner's side: one step for every aggregate of gradients (see ops/nigt.py).

P: all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from tianji.algorithms.policy_gradient.model import PolicyModel
from tianji.algorithms.policy_gradient.pace import pace
from tianji.envs.interface import Spaces
from tianji.errors import TrainingDiverged
from tianji.models.flat import flatten
from tianji.models.tensors import to_tensor
from tianji.ops.nigt import Federated, Nigt, OuterStep, PlainAscent, Point
from tianji.types import Batch

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


class GatheredUpdate:
    """See algorithms/interface.py. A batch is the sum of all contributions and its weight."""

    def __init__(self, outer: OuterStep) -> None:
        self.outer = outer

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps

    def steps(self, batch: Batch, progress: float) -> Iterator[Mapping[str, float]]:
        gradient_P = to_tensor(batch.arrays["sum"] / float(batch.arrays["weight"][0]))
        yield {**self.apply(gradient_P), "gradients": float(batch.num_items)}

    @torch.no_grad()
    def apply(self, gradient_P: Tensor) -> dict[str, float]:
        """Take the step that follows from the aggregate; returns its metrics."""
        norm = float(torch.linalg.vector_norm(gradient_P))
        if not math.isfinite(norm):
            raise TrainingDiverged(self._explain(norm))
        moved = self.outer.step(gradient_P)
        return {
            "grad_norm": norm,
            "direction_norm": moved.direction_norm,
            "learning_rate": moved.step_size,
        }

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


def _point(model: nn.Module) -> Point:
    assert isinstance(model, PolicyModel)
    theta_P = flatten(model).vector_P
    return Point(theta_P, theta_P.clone(), model.ahead, model.direction, model.eta)


@torch.no_grad()
def build_nigt(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    return GatheredUpdate(Nigt(_point(model), pace(config)))


@torch.no_grad()
def build_federated(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    return GatheredUpdate(Federated(_point(model), pace(config)))


@torch.no_grad()
def build_plain(model: nn.Module, spaces: Spaces, config: RunConfig) -> GatheredUpdate:
    return GatheredUpdate(PlainAscent(_point(model), pace(config)))
