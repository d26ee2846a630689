"""The Q network, or the two streams of a dueling one.

B: rows, A: actions.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from tianji.algorithms.dqn.settings import QLearningConfig
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.models.actions import Choices, action_layout
from tianji.models.heads import CategoricalHead, GreedyPolicy
from tianji.models.masks import masked
from tianji.models.networks.build import UserNet, build_net
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import flatten

SCORES = 0
"""The network whose largest output is the best action: Q values, or advantages, which differ from
them by the same number for all actions."""


class QNetwork(nn.Module):
    """Q values from one network, or from separate advantages and a value; those of illegal actions
    are the lowest of all."""

    def __init__(
        self,
        net: StackedNet | UserNet,
        num_actions: int,
        is_dueling: bool,
        mask: str | None = None,
    ) -> None:
        """mask: the leaf of the observations that says which actions are legal; None: all."""
        super().__init__()
        self.net = net
        self.num_actions = num_actions
        self.is_dueling = is_dueling
        self.mask = mask

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return Q values [B, A]; dueling: V + A - mean_a A (Wang et al. 2016, equation 9)."""
        outputs: tuple[Tensor, ...] = self.net(obs)
        q_BA = outputs[0]
        if self.is_dueling:
            advantage_BA, value_B1 = outputs
            q_BA = advantage_BA + (value_B1 - advantage_BA.mean(1, keepdim=True))
        return masked(q_BA, obs, self.mask)

    def scores(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return what ranks the actions, [B, A]."""
        return masked(self.net.one(obs, SCORES), obs, self.mask)


def build_model(spaces: Spaces, config: RunConfig) -> QNetwork:
    assert isinstance(config.algorithm, QLearningConfig)
    is_dueling, size = config.algorithm.dueling, action_layout(spaces.action).num_outputs
    widths = (size, 1) if is_dueling else (size,)
    net = build_net(spaces, config, widths, [1.0] * len(widths))
    model = QNetwork(net, size, is_dueling, spaces.mask)
    flatten(model)
    return model


def export(model: nn.Module, spaces: Spaces, config: RunConfig) -> GreedyPolicy:
    assert isinstance(model, QNetwork)
    mode = CategoricalHead(Choices((model.num_actions,), ())).mode
    return GreedyPolicy(model, model.scores, mode, spaces)
