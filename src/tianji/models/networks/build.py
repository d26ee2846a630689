"""The network that a run asks for: the default one for its spaces, or the user's own."""

from __future__ import annotations

from collections.abc import Sequence

from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.envs.spaces import observation_leaves
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.stacked import StackedNet
from tianji.models.networks.user import UserNet, build_user_net


def build_net(
    spaces: Spaces, config: RunConfig, widths: Sequence[int], gains: Sequence[float]
) -> StackedNet | UserNet:
    """Build one network for each of the widths, behind one encoder."""
    if config.model.factory is not None:
        return build_user_net(config.model.factory, spaces, widths)
    normalize = config.normalize
    encoder = Encoder(
        observation_leaves(spaces.observation), normalize.observations, normalize.bound
    )
    return StackedNet(encoder, config.model.hidden, config.model.activation, widths, gains)
