"""Optimisers on one flat vector, with the gradient's norm clipped and watched; schedules.

P: all parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

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
        self.count = torch.zeros(())
        self._epsilon, self._beta1, self._beta2 = epsilon, beta1, beta2

    def step(self, vector_P: Tensor, gradient_P: Tensor, learning_rate: float) -> None:
        # torch.optim.Adam(fused=True) calls this, after 30 microseconds of other work: a tenth of a
        # whole update of a small network.
        self.count.add_(1.0)
        torch._fused_adam_(
            [vector_P], [gradient_P], [self.moments["m"]], [self.moments["v"]], [], [self.count],
            lr=learning_rate, beta1=self._beta1, beta2=self._beta2, weight_decay=0.0,
            eps=self._epsilon, amsgrad=False, maximize=False,
        )  # fmt: skip


class RMSProp:
    """Tieleman and Hinton 2012: v <- d v + (1 - d) g^2,  x <- x - lr * g / (sqrt(v) + epsilon)."""

    def __init__(self, flat: FlatParameters, epsilon: float, decay: float = 0.99) -> None:
        self.moments = {"v": torch.zeros_like(flat.vector_P)}
        self.count = torch.zeros(())
        self._epsilon, self._decay = epsilon, decay

    def step(self, vector_P: Tensor, gradient_P: Tensor, learning_rate: float) -> None:
        self.count.add_(1.0)
        v_P = self.moments["v"]
        v_P.mul_(self._decay).addcmul_(gradient_P, gradient_P, value=1.0 - self._decay)
        vector_P.addcdiv_(gradient_P, v_P.sqrt().add_(self._epsilon), value=-learning_rate)


class Optimizer:
    """Makes one update: checks the gradient's norm, clips it, applies the rule."""

    def __init__(self, flat: FlatParameters, rule: Adam | RMSProp, max_grad_norm: float) -> None:
        self._flat = flat
        self._rule = rule
        self._max_grad_norm = max_grad_norm

    def step(self, learning_rate: float, suspects: Callable[[], Mapping[str, Tensor]]) -> float:
        """Move the parameters by the flat gradient; return its norm before clipping.

        A norm that is not finite raises TrainingDiverged and leaves the parameters as they are.
        suspects: returns what the gradient was computed from, first causes first, to name one.
        """
        gradient_P = self._flat.gradient_P
        with torch.inference_mode():  # saves torch the bookkeeping for automatic gradients
            norm = float(torch.linalg.vector_norm(gradient_P))
            if not math.isfinite(norm):
                raise TrainingDiverged(self._explain(norm, suspects()))
            if norm > self._max_grad_norm:
                gradient_P.mul_(self._max_grad_norm / norm)
            self._rule.step(self._flat.vector_P, gradient_P, learning_rate)
        return norm

    def _explain(self, norm: float, suspects: Mapping[str, Tensor]) -> str:
        culprits = [name for name, x in suspects.items() if not bool(torch.isfinite(x).all())]
        first = f" The first quantity to go wrong: {culprits[0]}." if culprits else ""
        return (
            f"Training diverged: the gradient's norm is {norm} at update "
            f"{int(self._rule.count) + 1}.{first} The parameters are those of the update before. "
            "Try a lower learning rate, and check that the environment's rewards and observations "
            "are finite and not huge (`tianji doctor`; normalize.rewards scales them)."
        )

    def state(self) -> dict[str, Tensor]:
        moments = {name: moment_P.clone() for name, moment_P in self._rule.moments.items()}
        return {"count": self._rule.count.clone(), **moments}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._rule.count.copy_(state["count"])
        for name, moment_P in self._rule.moments.items():
            moment_P.copy_(state[name])


def linear(start: float, final: float | None, share: float) -> float:
    """start + (final - start) * share, with share held in [0, 1]; constant when final is None."""
    if final is None:
        return start
    return start + (final - start) * min(max(share, 0.0), 1.0)


def linear_by_steps(start: float, final: float | None, step: int, num_steps: int) -> float:
    """Return start at step 0, final from num_steps on, and a straight line between them."""
    return linear(start, final, step / num_steps if num_steps else 1.0)
