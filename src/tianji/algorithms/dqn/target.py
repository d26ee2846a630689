"""The target network: an older copy of the online one."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor

from tianji.algorithms.dqn.config import DQNConfig
from tianji.algorithms.dqn.model import QNetwork
from tianji.models.flat import flatten
from tianji.models.networks.stacked import StackedNet


class TargetNetwork:
    """Follows the online network: a full copy every so often, or a little in every update."""

    def __init__(self, online: QNetwork, config: DQNConfig) -> None:
        self._config = config
        self._online = online
        self._online_P = flatten(online).vector_P
        self.model = copy.deepcopy(online).requires_grad_(False)
        if isinstance(self.model.net, StackedNet) and isinstance(online.net, StackedNet):
            # Both normalise observations alike, whatever the target's age.
            self.model.net.encoder.normalizer = online.net.encoder.normalizer
        self._vector_P = flatten(self.model).vector_P
        self._updates = 0

    def follow(self) -> None:
        """Move towards the online network; called after every update."""
        self._updates += 1
        if self._config.target_tau is not None:
            self._vector_P.lerp_(self._online_P, self._config.target_tau)
        elif self._updates % self._config.target_period_updates == 0:
            self._vector_P.copy_(self._online_P)
        else:
            return
        for mine, theirs in zip(self.model.buffers(), self._online.buffers(), strict=True):
            mine.copy_(theirs)

    def state(self) -> dict[str, Tensor]:
        return {"parameters": self._vector_P.clone(), "updates": torch.tensor(self._updates)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._vector_P.copy_(state["parameters"])
        self._updates = int(state["updates"])
