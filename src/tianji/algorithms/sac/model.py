"""The policy, which is published, and the networks that stay in the learner: twin critics and the
temperature.

B: rows, A: policy outputs, K: numbers of an action, F: features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tianji.algorithms.actor_critic.model import StochasticPolicy
from tianji.algorithms.sac.config import SACConfig
from tianji.algorithms.sac.spec import NUM_CRITICS
from tianji.config.run import RunConfig
from tianji.config.seeding import seed_for
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.actions import Squashed, squashed_layout
from tianji.models.heads import SquashedHead
from tianji.models.networks.build import UserNet, build_net
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.precision import set_precision
from tianji.models.networks.stacked import StackedNet
from tianji.models.sizes import hidden_widths
from tianji.models.tensors import flatten

SMALL = 0.01
"""Scale of the first weights of the last layers. The policy begins alike in all states, and the
critics near 0 for all actions: else the policy would first learn what random weights prefer."""
ACTION = "sac:action"
"""The key of the action beside the leaves of an observation."""


class SACPolicy(StochasticPolicy):
    """A network with one output, and the squashed Gaussian that it describes."""

    head: SquashedHead

    def __init__(self, net: StackedNet | UserNet, head: SquashedHead) -> None:
        super().__init__(net, head)

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return policy outputs [B, A]."""
        return self.policy(obs)


def build_model(spaces: Spaces, config: RunConfig) -> SACPolicy:
    """Build the policy, whose last layer begins 100 times smaller."""
    layout = action_layout(spaces)
    net = build_net(spaces, config, (layout.num_outputs,), (SMALL,))
    model = SACPolicy(net, SquashedHead(layout))
    flatten(model)
    return model


def action_layout(spaces: Spaces) -> Squashed:
    layout = squashed_layout(spaces.action)
    assert isinstance(layout, Squashed), "check() refuses choices"
    return layout


class StateActionEncoder(Encoder):
    """Features of an observation, with an action beside them."""

    def __init__(self, spaces: Spaces, config: RunConfig) -> None:
        normalize = config.normalize
        leaves = observation_leaves(spaces.observation)
        super().__init__(leaves, normalize.observations, normalize.bound, config.model.torso)
        self.num_features += action_layout(spaces).num_numbers

    def state(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return the features of the observation alone."""
        return super().forward(obs)

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([self.state(obs), obs[ACTION]], 1)


class TwinCritics(nn.Module):
    """Two Q functions with separate weights behind one encoder, computed together."""

    def __init__(self, spaces: Spaces, config: RunConfig) -> None:
        super().__init__()
        self.encoder = StateActionEncoder(spaces, config)
        self.net = StackedNet(
            self.encoder,
            hidden_widths(spaces, config),
            config.model.activation,
            [1] * NUM_CRITICS,
            [SMALL] * NUM_CRITICS,
        )

    def forward(self, obs: Mapping[str, Tensor], action_BK: Tensor) -> tuple[Tensor, Tensor]:
        """Return Q_1 and Q_2 of actions in [-1, 1], both [B]."""
        one_B1, two_B1 = self.net({**obs, ACTION: action_BK})
        return one_B1[:, 0], two_B1[:, 0]

    def normalize_like(self, policy: SACPolicy) -> None:
        """Use the policy's own statistics of observations, which change in training."""
        if isinstance(policy.net, StackedNet):
            self.encoder.normalizer = policy.net.encoder.normalizer


class Temperature(nn.Module):
    """The weight of the entropy, alpha, as its logarithm: it is always positive."""

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor([math.log(initial)]))

    def forward(self) -> Tensor:
        """Return alpha, without gradient: losses of policy and critics take it as a constant."""
        return self.log.detach().exp()


class Networks(nn.Module):
    """All that SAC learns. The parameters are one flat vector, the policy's first."""

    def __init__(self, policy: SACPolicy, critics: TwinCritics, temperature: Temperature) -> None:
        super().__init__()
        self.policy = policy
        self.critics = critics
        self.temperature = temperature


def build_networks(policy: SACPolicy, spaces: Spaces, config: RunConfig) -> Networks:
    """Build what the learner has beside the policy, with the same initial weights for every number
    of threads. All of it computes in float32 unless the run asks for less: TD errors are small
    differences of large numbers."""
    assert isinstance(config.algorithm, SACConfig)
    asked = config.algorithm.initial_temperature
    device, threads = flatten(policy).vector_P.device, torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(config.seed, "learner"))
        critics = TwinCritics(spaces, config)
    torch.set_num_threads(threads)
    networks = Networks(policy, critics, Temperature(1.0 if asked == "auto" else asked)).to(device)
    critics.normalize_like(policy)
    set_precision(networks, config.model.precision == "bfloat16")
    return networks
