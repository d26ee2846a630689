"""The policy and value networks of PPO and IMPALA, and their evaluation on a whole batch.

R: rows, B: rows with actions, A: policy outputs, K: numbers of an action.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.actions import action_layout
from tianji.models.heads import GreedyPolicy, Head, build_head
from tianji.models.masks import masked
from tianji.models.networks.build import UserNet, build_net
from tianji.models.networks.recurrent import STATE, RecurrentNet
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import Tensors, flatten

POLICY, VALUE = 0, 1
"""The networks of the stack."""
EVALUATED_ROWS = 2048
"""Rows of a large batch that are evaluated at once, which bounds the memory that images take."""


class StochasticPolicy(nn.Module):
    """A network, and the distribution over actions that its first output describes."""

    def __init__(self, net: StackedNet | UserNet, head: Head, mask: str | None = None) -> None:
        """mask: the leaf of the observations that says which actions are legal; None: all."""
        super().__init__()
        self.net = net
        self.head = head
        self.mask = mask

    def policy(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return the policy outputs alone, [B, A]."""
        return masked(self.net.one(obs, POLICY), obs, self.mask)

    def policy_step(self, obs: Mapping[str, Tensor], state_NS: Tensor) -> tuple[Tensor, Tensor]:
        """Return the policy outputs [N, A] and the states after them, with a memory."""
        assert isinstance(self.net, RecurrentNet), "only a memory has states"
        outputs_NA, after_NS = self.net.step(obs, state_NS, POLICY)
        return masked(outputs_NA, obs, self.mask), after_NS


class ActorCritic(StochasticPolicy):
    """A policy whose network also estimates values."""

    def forward(self, obs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return policy outputs [B, A] and values [B, 1]."""
        outputs_BA, value_B1 = self.net(obs)
        return masked(outputs_BA, obs, self.mask), value_B1

    def rows_and_ends(
        self, inputs: Mapping[str, Tensor], num_rows: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return policy outputs [B, A] and values [B] of the first rows, and the values of the
        others without gradient."""
        if isinstance(self.net, RecurrentNet):  # a sequence is evaluated as a whole
            outputs_RA, value_R1 = self(inputs)
            value_R = value_R1[:, 0]
            return outputs_RA[:num_rows], value_R[:num_rows], value_R[num_rows:].detach()
        outputs_BA, value_B1 = self({name: x[:num_rows] for name, x in inputs.items()})
        ends = ModelEvaluator(self).values({name: x[num_rows:] for name, x in inputs.items()})
        return outputs_BA, value_B1[:, 0], ends


def build_model(spaces: Spaces, config: RunConfig) -> ActorCritic:
    """Build the networks. The policy's last layer begins 100 times smaller: nearly uniform."""
    layout = action_layout(spaces.action)
    net = build_net(spaces, config, (layout.num_outputs, 1), (0.01, 1.0))
    model = ActorCritic(net, build_head(layout), spaces.mask)
    flatten(model)
    return model


def export(model: nn.Module, spaces: Spaces, config: RunConfig) -> GreedyPolicy:
    assert isinstance(model, StochasticPolicy)
    has_memory = isinstance(model.net, RecurrentNet)
    outputs = model.policy_step if has_memory else model.policy
    return GreedyPolicy(model, outputs, model.head.mode, spaces)


class Evaluation(NamedTuple):
    """The rows of a batch, without gradient."""

    log_prob_B: Tensor
    entropy_B: Tensor
    value_R: Tensor


class Evaluator(Protocol):
    """Evaluates the policy and the value of many rows."""

    def inputs(self, obs: Tensors) -> Tensors:
        """Return observations, or what can be computed of them without the parameters."""

    def actions(self, action_BK: Tensor) -> Tensor:
        """Return actions as evaluate() takes them: rows last, [K, B] or one-hot."""

    def evaluate(self, inputs: Tensors, action_KB: Tensor) -> Evaluation: ...

    def values(self, inputs: Tensors) -> Tensor:
        """Return the values [R]."""

    def states(self, inputs: Tensors) -> Tensor:
        """Return the states [R, S] after these rows, where the policy has a memory."""


class ModelEvaluator:
    """Evaluates any network on any device."""

    def __init__(self, model: ActorCritic) -> None:
        self._model = model

    def inputs(self, obs: Tensors) -> Tensors:
        net = self._model.net
        return net.encoder.arranged(obs) if isinstance(net, StackedNet) else obs

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

    @torch.no_grad()
    def states(self, inputs: Tensors) -> Tensor:
        net = self._model.net
        assert isinstance(net, RecurrentNet), "only a memory has states"
        return net.states(inputs).flatten(0, 1)

    def _forward(self, inputs: Tensors) -> tuple[Tensor, ...]:
        if STATE in inputs:  # sequences are whole
            outputs: tuple[Tensor, ...] = self._model(inputs)
            return outputs
        num_rows = len(next(iter(inputs.values())))
        slices = [slice(i, i + EVALUATED_ROWS) for i in range(0, num_rows, EVALUATED_ROWS)]
        parts = [self._model({key: x[rows] for key, x in inputs.items()}) for rows in slices]
        return tuple(torch.cat(outputs) for outputs in zip(*parts, strict=True))
