"""The policy and value networks of PPO and IMPALA.

B: rows, A: policy outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.actions import action_layout
from tianji.models.export import GreedyPolicy
from tianji.models.flat import flatten
from tianji.models.heads import Head, build_head
from tianji.models.networks.build import build_net
from tianji.models.networks.stacked import StackedNet
from tianji.models.networks.user import UserNet

POLICY, VALUE = 0, 1
"""The networks of the stack."""


class ActorCritic(nn.Module):
    """A network with two outputs, and the distribution that the first one describes."""

    def __init__(self, net: StackedNet | UserNet, head: Head) -> None:
        super().__init__()
        self.net = net
        self.head = head

    def forward(self, obs: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
        """Return policy outputs [B, A] and values [B, 1]."""
        outputs: tuple[Tensor, ...] = self.net(obs)
        return outputs

    def policy(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return the policy outputs alone, at half the cost."""
        return self.net.one(obs, POLICY)


def build_model(spaces: Spaces, config: RunConfig) -> ActorCritic:
    """Build the networks. The policy's last layer begins 100 times smaller: nearly uniform."""
    layout = action_layout(spaces.action)
    net = build_net(spaces, config, (layout.num_outputs, 1), (0.01, 1.0))
    model = ActorCritic(net, build_head(layout))
    flatten(model)
    return model


def export(model: nn.Module, spaces: Spaces, config: RunConfig) -> GreedyPolicy:
    assert isinstance(model, ActorCritic)
    keys = [leaf.key for leaf in observation_leaves(spaces.observation)]
    return GreedyPolicy(model, model.policy, model.head.mode, keys, spaces.action)
