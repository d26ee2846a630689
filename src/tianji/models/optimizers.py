"""Optimisers on one flat vector, with the gradient's norm clipped and watched; schedules.

P: all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from tianji.devices.graphs import recorded
from tianji.errors import TrainingDiverged
from tianji.models.tensors import FlatParameters


class Adam:
    """Kingma and Ba 2015.

    m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
    x <- x - lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
    """

    def __init__(
        self, flat: FlatParameters, epsilon: float, beta1: float = 0.9, beta2: float = 0.999
    ) -> None:
        self.moments = {"m": torch.zeros_like(flat.vector_P), "v": torch.zeros_like(flat.vector_P)}
        self.count = torch.zeros((), device=flat.vector_P.device)
        self._epsilon, self._beta1, self._beta2 = epsilon, beta1, beta2

    def step(
        self,
        vector_P: Tensor,
        gradient_P: Tensor,
        learning_rate: float | Tensor,
        is_bad: Tensor | None = None,
    ) -> None:
        # torch.optim.Adam(fused=True) calls this, after 30 microseconds of other work: a tenth of a
        # whole update of a small network.
        self.count.add_(1.0)
        torch._fused_adam_(
            [vector_P], [gradient_P], [self.moments["m"]], [self.moments["v"]], [], [self.count],
            lr=learning_rate, beta1=self._beta1, beta2=self._beta2, weight_decay=0.0,
            eps=self._epsilon, amsgrad=False, maximize=False, found_inf=is_bad,
        )  # fmt: skip
        if is_bad is not None:
            self.count.sub_(is_bad)


class RMSProp:
    """Tieleman and Hinton 2012: v <- d v + (1 - d) g^2,  x <- x - lr * g / (sqrt(v) + epsilon).

    Epsilon is outside the root, as in PyTorch; Mnih et al. 2016 (A3C) have it inside."""

    def __init__(self, flat: FlatParameters, epsilon: float, decay: float = 0.99) -> None:
        self.moments = {"v": torch.zeros_like(flat.vector_P)}
        self.count = torch.zeros((), device=flat.vector_P.device)
        self._epsilon, self._decay = epsilon, decay

    def step(
        self,
        vector_P: Tensor,
        gradient_P: Tensor,
        learning_rate: float | Tensor,
        is_bad: Tensor | None = None,
    ) -> None:
        if is_bad is not None:
            self._step_unless(is_bad, vector_P, gradient_P, learning_rate)
            return
        self.count.add_(1.0)
        v_P = self.moments["v"]
        v_P.mul_(self._decay).addcmul_(gradient_P, gradient_P, value=1.0 - self._decay)
        assert isinstance(learning_rate, float)
        vector_P.addcdiv_(gradient_P, v_P.sqrt().add_(self._epsilon), value=-learning_rate)

    def _step_unless(
        self, is_bad: Tensor, vector_P: Tensor, gradient_P: Tensor, learning_rate: float | Tensor
    ) -> None:
        self.count.add_(1.0 - is_bad)
        v_P = self.moments["v"]
        new_P = self._decay * v_P + (1.0 - self._decay) * gradient_P.square()
        change_P = learning_rate * gradient_P / (new_P.sqrt() + self._epsilon)
        v_P.copy_(torch.where(is_bad > 0, v_P, new_P))
        vector_P.sub_(torch.where(is_bad > 0, torch.zeros_like(change_P), change_P))


class Optimizer:
    """Makes one update: checks the gradient's norm, clips it, applies the rule."""

    def __init__(self, flat: FlatParameters, rule: Adam | RMSProp, max_grad_norm: float) -> None:
        self._flat = flat
        self._rule = rule
        self._max_grad_norm = max_grad_norm
        self.norm_sum: float | Tensor = 0.0
        """Sum of the norms since begin_batch(), of the updates that advance() has made."""

    def step(
        self, learning_rate: float, suspects: Callable[[], Mapping[str, Tensor]]
    ) -> float | Tensor:
        """Move the parameters by the flat gradient; return its norm before clipping.

        A norm that is not finite raises TrainingDiverged and leaves the parameters as they are.
        suspects: returns what the gradient was computed from, first causes first, to name one.
        """
        gradient_P = self._flat.gradient_P
        with torch.inference_mode():  # saves torch the bookkeeping for automatic gradients
            norm = float(torch.linalg.vector_norm(gradient_P))
            if not math.isfinite(norm):
                what = f"is {norm} at update {int(self._rule.count) + 1}; it was not made"
                raise TrainingDiverged(explain_divergence(what, suspects()))
            if norm > self._max_grad_norm:
                gradient_P.mul_(self._max_grad_norm / norm)
            self._rule.step(self._flat.vector_P, gradient_P, learning_rate)
        return norm

    def begin_batch(self) -> None:
        """Start a new sum of norms."""
        self.norm_sum = 0.0

    def advance(self, learning_rate: float, suspects: Callable[[], Mapping[str, Tensor]]) -> None:
        """Do what step() does, and add the norm to norm_sum instead of returning it."""
        self.norm_sum += self.step(learning_rate, suspects)

    def flags(self) -> dict[str, Tensor]:
        """Return what check() wants to know, on the device; nothing where step() checks."""
        return {}

    def check(
        self, figures: dict[str, float], suspects: Callable[[], Mapping[str, Tensor]]
    ) -> dict[str, float]:
        """Return the figures without flags(); raise TrainingDiverged where a step was left out.

        suspects: as in step(), of all updates that the figures are about.
        """
        return figures

    def state(self) -> dict[str, Tensor]:
        moments = {name: moment_P.clone() for name, moment_P in self._rule.moments.items()}
        return {"count": self._rule.count.clone(), **moments}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._rule.count.copy_(state["count"])
        for name, moment_P in self._rule.moments.items():
            moment_P.copy_(state[name])


class GpuOptimizer(Optimizer):
    """Makes one update as a CUDA graph, without waiting for it.

    A norm that is not finite leaves the parameters as they are, and check() finds it later.
    """

    DIVERGED = "diverged"

    def __init__(self, flat: FlatParameters, rule: Adam | RMSProp, max_grad_norm: float) -> None:
        super().__init__(flat, rule, max_grad_norm)
        device = flat.vector_P.device
        self._learning_rate = torch.zeros((), device=device)
        self._set_rate = 0.0
        """The learning rate that the device has."""
        self._num_bad = torch.zeros((), device=device)
        self._norm_sum = self.norm_sum = torch.zeros((), device=device)
        self._graph = recorded(device, self._move, self._changes)

    def _changes(self) -> list[Tensor]:
        moments = self._rule.moments.values()
        flat = self._flat
        counts = [self._rule.count, self._num_bad, self._norm_sum]
        return [flat.vector_P, flat.gradient_P, *moments, *counts]

    @torch.no_grad()
    def _move(self) -> Tensor:
        gradient_P = self._flat.gradient_P
        norm = torch.linalg.vector_norm(gradient_P)
        is_bad = (~torch.isfinite(norm)).float()
        self._num_bad.add_(is_bad)
        self._norm_sum.add_(norm)
        gradient_P.mul_((self._max_grad_norm / norm).clamp(max=1.0))
        self._rule.step(self._flat.vector_P, gradient_P, self._learning_rate, is_bad)
        found: Tensor = norm
        return found

    def step(
        self, learning_rate: float, suspects: Callable[[], Mapping[str, Tensor]]
    ) -> float | Tensor:
        return self._launch(learning_rate).clone()

    def advance(self, learning_rate: float, suspects: Callable[[], Mapping[str, Tensor]]) -> None:
        self._launch(learning_rate)

    def _launch(self, learning_rate: float) -> Tensor:
        if learning_rate != self._set_rate:
            self._learning_rate.fill_(learning_rate)
            self._set_rate = learning_rate
        return self._graph()

    def begin_batch(self) -> None:
        self._norm_sum.zero_()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        super().load_state(state)
        self._num_bad.zero_()

    def flags(self) -> dict[str, Tensor]:
        return {self.DIVERGED: self._num_bad}

    def check(
        self, figures: dict[str, float], suspects: Callable[[], Mapping[str, Tensor]]
    ) -> dict[str, float]:
        if num_bad := int(figures.pop(self.DIVERGED, 0.0)):
            # Steps that were left out are not counted, and later ones may have been sound.
            last = int(self._rule.count) + num_bad
            what = f"was not finite in {num_bad} of the updates up to {last}; they were left out"
            raise TrainingDiverged(explain_divergence(what, suspects()))
        return figures


FROM_ENVIRONMENT = ("observations", "rewards")
"""Beginnings of the names of suspects whose values come from the environment."""


def explain_divergence(what: str, suspects: Mapping[str, Tensor]) -> str:
    """Return the message about a gradient, with the first suspect that is not finite.

    what: what is wrong with its norm.
    """
    culprits = [name for name, x in suspects.items() if not bool(torch.isfinite(x).all())]
    first = f" The first quantity to go wrong: {culprits[0]}." if culprits else ""
    if culprits and culprits[0].startswith(FROM_ENVIRONMENT):
        advice = (
            "Check with `tianji doctor` that the environment never returns NaN or infinite "
            "observations and rewards. If they are finite, try a lower learning rate."
        )
    else:
        advice = (
            "Try a lower learning rate, and check that the environment's rewards and observations "
            "are finite and not huge (`tianji doctor`; normalize.rewards scales them)."
        )
    return f"Training diverged: the gradient's norm {what}.{first} {advice}"


def build_optimizer(flat: FlatParameters, rule: Adam | RMSProp, max_grad_norm: float) -> Optimizer:
    """Return the optimiser for the device of the parameters."""
    kind = GpuOptimizer if flat.vector_P.is_cuda else Optimizer
    return kind(flat, rule, max_grad_norm)


def linear(start: float, final: float | None, share: float) -> float:
    """start + (final - start) * share, with share held in [0, 1]; constant when final is None."""
    if final is None:
        return start
    return start + (final - start) * min(max(share, 0.0), 1.0)


def linear_by_steps(start: float, final: float | None, step: int, num_steps: int) -> float:
    """Return start at step 0, final from num_steps on, and a straight line between them."""
    return linear(start, final, step / num_steps if num_steps else 1.0)
