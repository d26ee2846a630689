"""Steps that an aggregated policy gradient makes the parameters take. P: flat parameters.

Normalised ascent with implicit gradient transport (NIGT), for t = 1, 2, ...:

    d_t         = (1 - eta_t) d_{t-1} + eta_t g_t                        d_1 = g_1
    theta_{t+1} = theta_t + alpha_t d_t / |d_t|                          theta_t where d_t = 0
    ahead_{t+1} = theta_{t+1} + (1 - eta_{t+1}) / eta_{t+1} (theta_{t+1} - theta_t)

g_t is sampled and taken at ahead_t, and ahead_1 = theta_1. The norm is one number over all
parameters. With eta = 1 this is normalised policy gradient.

    point = Point.at(theta_P)                     # or made of the tensors that are published
    outer = Nigt(point, Pace(alpha=0.05, eta=0.1))
    outer.step(gradient_P)                        # moves point.theta_P and point.ahead_P in place
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

Schedule = Literal["constant", "decaying"]


@dataclass(frozen=True, slots=True)
class Pace:
    """Step size alpha_t and momentum eta_t, t counted from 1.

    decaying: alpha * 2 / (t + 2) and eta * (2 / (t + 2))^(4/5).
    """

    alpha: float
    eta: float = 1.0
    schedule: Schedule = "constant"

    def step_size(self, t: int) -> float:
        return self.alpha * (2.0 / (t + 2) if self.schedule == "decaying" else 1.0)

    def momentum(self, t: int) -> float:
        return self.eta * ((2.0 / (t + 2)) ** 0.8 if self.schedule == "decaying" else 1.0)


class Point(NamedTuple):
    """The state of the method, written in place.

    previous_P:  theta before the last step
    ahead_P:     where the next gradient is taken
    direction_P: d of the last step
    eta:         float64 [1], the share of the next gradient in the next direction
    """

    theta_P: torch.Tensor
    previous_P: torch.Tensor
    ahead_P: torch.Tensor
    direction_P: torch.Tensor
    eta: torch.Tensor

    @staticmethod
    def at(theta_P: torch.Tensor) -> Point:
        """Return the state before the first step from theta_P."""
        direction_P, eta = torch.zeros_like(theta_P), torch.ones(1, dtype=torch.float64)
        return Point(theta_P, theta_P.clone(), theta_P.clone(), direction_P, eta)


class Moved(NamedTuple):
    """Metrics of one step.

    step_size: length of the step, or alpha_t where it is not normalised
    """

    direction_norm: float
    step_size: float


class Nigt:
    """Rennala, Malenia and synchronous NIGT."""

    def __init__(self, point: Point, pace: Pace) -> None:
        self.point = point
        self.num_steps = 0
        self._pace = pace
        point.previous_P.copy_(point.theta_P)
        point.direction_P.zero_()
        self._look_ahead()

    def step(self, gradient_P: torch.Tensor) -> Moved:
        self.num_steps += 1
        self._turn(gradient_P)
        moved = self._move()
        self._look_ahead()
        return moved

    def state(self) -> dict[str, torch.Tensor]:
        """Return fresh copies of all but theta."""
        return {
            "previous": self.point.previous_P.clone(),
            "direction": self.point.direction_P.clone(),
            "num_steps": torch.tensor(self.num_steps),
        }

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Continue from a state; theta must have been loaded before."""
        self.point.previous_P.copy_(state["previous"])
        self.point.direction_P.copy_(state["direction"])
        self.num_steps = int(state["num_steps"])
        self._look_ahead()

    def _turn(self, gradient_P: torch.Tensor) -> None:
        direction_P, eta = self.point.direction_P, float(self.point.eta)
        if eta == 1.0:
            direction_P.copy_(gradient_P)
            return
        direction_P.mul_(1.0 - eta).add_(gradient_P, alpha=eta)

    def _move(self) -> Moved:
        theta_P, previous_P, _, direction_P, _ = self.point
        previous_P.copy_(theta_P)
        norm = float(torch.linalg.vector_norm(direction_P, dtype=torch.float64))
        if norm == 0.0:
            return Moved(0.0, 0.0)
        step_size = self._pace.step_size(self.num_steps)
        # Divided first: step_size / norm overflows float32 where the momentum is nearly 0.
        theta_P.add_(direction_P / norm, alpha=step_size)
        return Moved(norm, step_size)

    def _look_ahead(self) -> None:
        theta_P, previous_P, ahead_P, _, next_eta = self.point
        eta = self._pace.momentum(self.num_steps + 1) if self.num_steps else 1.0
        next_eta.fill_(eta)
        torch.sub(theta_P, previous_P, out=ahead_P)
        ahead_P.mul_((1.0 - eta) / eta).add_(theta_P)


class Federated(Nigt):
    """AFedPG, our reconstruction: a direction arrives, not a gradient.

    The actor computes it from the direction that it received and its gradient,
    d = (1 - eta_t) d_received + eta_t g, with t - 1 the steps taken when it was published.
    """

    def _turn(self, gradient_P: torch.Tensor) -> None:
        self.point.direction_P.copy_(gradient_P)


class PlainAscent(Nigt):
    """Rennala PG: theta += alpha_t g, and the gradient is taken at theta itself."""

    def _turn(self, gradient_P: torch.Tensor) -> None:
        self.point.direction_P.copy_(gradient_P)

    def _move(self) -> Moved:
        theta_P, previous_P, _, direction_P, _ = self.point
        previous_P.copy_(theta_P)
        step_size = self._pace.step_size(self.num_steps)
        theta_P.add_(direction_P, alpha=step_size)
        return Moved(float(torch.linalg.vector_norm(direction_P, dtype=torch.float64)), step_size)

    def _look_ahead(self) -> None:
        self.point.ahead_P.copy_(self.point.theta_P)
