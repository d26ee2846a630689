"""The policy network of the algorithms that gather gradients.

The parameters are theta, the policy that is evaluated, saved and exported. Published beside them
are `ahead`, the point that gradients are taken at, and `direction`, the momentum, into which the
actors of AFedPG mix their gradients with the share `eta`.

B: rows, A: policy outputs, P: all parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tianji.algorithms.actor_critic.model import StochasticPolicy
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.actions import squashed_layout
from tianji.models.heads import Head, build_head
from tianji.models.networks.build import UserNet, build_net
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import flatten


class PolicyModel(StochasticPolicy):
    """A network with one output, and the distribution that it describes."""

    ahead: Tensor
    direction: Tensor
    eta: Tensor

    def __init__(self, net: StackedNet | UserNet, head: Head, mask: str | None = None) -> None:
        super().__init__(net, head, mask)
        theta_P = flatten(self).vector_P
        self.register_buffer("ahead", theta_P.clone())
        self.register_buffer("direction", torch.zeros_like(theta_P))
        self.register_buffer("eta", torch.ones(1, dtype=torch.float64))

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return policy outputs [B, A]."""
        return self.policy(obs)


def build_model(spaces: Spaces, config: RunConfig) -> PolicyModel:
    """Build the network. Its last layer begins 100 times smaller: nearly uniform policies."""
    layout = squashed_layout(spaces.action)
    net = build_net(spaces, config, (layout.num_outputs,), (0.01,))
    return PolicyModel(net, build_head(layout), spaces.mask)
