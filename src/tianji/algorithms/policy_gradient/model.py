"""The policy network of the algorithms that gather gradients.

The parameters are theta, the policy that is evaluated, saved and exported. Published beside them
are `ahead`, the point that gradients are taken at, and `direction`, the momentum, into which the
actors of AFedPG mix their gradients with the share `eta`.

B: rows, A: policy outputs, P: all parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tianji.algorithms.actor_critic.policy import StochasticActing
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.actions import squashed_layout
from tianji.models.export import GreedyPolicy
from tianji.models.flat import flatten
from tianji.models.heads import Head, build_head
from tianji.models.networks.build import build_net
from tianji.models.networks.stacked import StackedNet
from tianji.models.networks.user import UserNet


class PolicyModel(nn.Module):
    """A network with one output, and the distribution that it describes."""

    ahead: Tensor
    direction: Tensor
    eta: Tensor

    def __init__(self, net: StackedNet | UserNet, head: Head) -> None:
        super().__init__()
        self.net = net
        self.head = head
        theta_P = flatten(self).vector_P
        self.register_buffer("ahead", theta_P.clone())
        self.register_buffer("direction", torch.zeros_like(theta_P))
        self.register_buffer("eta", torch.ones(1, dtype=torch.float64))

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return policy outputs [B, A]."""
        return self.net.one(obs, 0)


def build_model(spaces: Spaces, config: RunConfig) -> PolicyModel:
    """Build the network. Its last layer begins 100 times smaller: nearly uniform policies."""
    layout = squashed_layout(spaces.action)
    net = build_net(spaces, config, (layout.num_outputs,), (0.01,))
    return PolicyModel(net, build_head(layout))


def build_acting(model: nn.Module, spaces: Spaces, config: RunConfig) -> StochasticActing:
    assert isinstance(model, PolicyModel)
    model.eval()
    layout = squashed_layout(spaces.action)
    return StochasticActing(model.net, model.head, layout, spaces.observation)


def export(model: nn.Module, spaces: Spaces, config: RunConfig) -> GreedyPolicy:
    assert isinstance(model, PolicyModel)
    keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
    return GreedyPolicy(model, model.forward, model.head.mode, keys, spaces.action)
