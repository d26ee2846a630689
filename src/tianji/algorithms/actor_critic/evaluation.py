"""A batch under the learner's present policy and values.

R: rows, B: the first rows, which have actions, A: policy outputs, K: numbers of an action.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.models.tensors import Tensors

EVALUATED_ROWS = 2048
"""Rows of a large batch that are evaluated at once, which bounds the memory that images take."""


class Evaluation(NamedTuple):
    """The rows of a batch, without gradient."""

    log_prob_B: Tensor
    entropy_B: Tensor
    value_R: Tensor


class Evaluator(Protocol):
    """Evaluates the policy and the value of many rows."""

    def inputs(self, obs: Tensors) -> Tensors:
        """Return observations, or what can be computed of them without the parameters."""
        ...

    def actions(self, action_BK: Tensor) -> Tensor:
        """Return actions as evaluate() takes them: rows last, [K, B] or one-hot."""
        ...

    def evaluate(self, inputs: Tensors, action_KB: Tensor) -> Evaluation: ...

    def values(self, inputs: Tensors) -> Tensor:
        """Return the values [R]."""
        ...


class ModelEvaluator:
    """Evaluates any network on any device."""

    def __init__(self, model: ActorCritic) -> None:
        self._model = model

    def inputs(self, obs: Tensors) -> Tensors:
        return obs

    def actions(self, action_BK: Tensor) -> Tensor:
        return action_BK.t()

    @torch.no_grad()
    def evaluate(self, inputs: Tensors, action_KB: Tensor) -> Evaluation:
        outputs_RA, value_R1 = self._forward(inputs)
        outputs_BA, head = outputs_RA[: action_KB.shape[1]], self._model.head
        log_prob_B = head.log_prob(outputs_BA, action_KB.t())
        return Evaluation(log_prob_B, head.entropy(outputs_BA), value_R1[:, 0])

    @torch.no_grad()
    def values(self, inputs: Tensors) -> Tensor:
        return self._forward(inputs)[1][:, 0]

    def _forward(self, inputs: Tensors) -> tuple[Tensor, ...]:
        num_rows = len(next(iter(inputs.values())))
        slices = [slice(i, i + EVALUATED_ROWS) for i in range(0, num_rows, EVALUATED_ROWS)]
        parts = [self._model({key: x[rows] for key, x in inputs.items()}) for rows in slices]
        return tuple(torch.cat(outputs) for outputs in zip(*parts, strict=True))
