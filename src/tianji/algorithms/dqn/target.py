"""The target network of Q-learning: an older copy of the online one."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor

from tianji.algorithms.dqn.model import QNetwork
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import add_prefix, flatten, with_prefix


class TargetNetwork:
    """Follows the online network: a full copy every so often, or a little in every update."""

    def __init__(self, online: QNetwork, period_updates: int, tau: float | None = None) -> None:
        """period_updates: updates between two copies. tau: moves this part of the way in every
        update instead."""
        self._period_updates, self._tau = period_updates, tau
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
        if self._tau is not None:
            self._vector_P.lerp_(self._online_P, self._tau)
            self._copy_buffers()
        elif self._updates % self._period_updates == 0:
            self.copy()

    def copy(self) -> None:
        """Become equal to the online network."""
        self._vector_P.copy_(self._online_P)
        self._copy_buffers()

    def _copy_buffers(self) -> None:
        for mine, theirs in zip(self.model.buffers(), self._online.buffers(), strict=True):
            mine.copy_(theirs)

    def state(self) -> dict[str, Tensor]:
        buffers = {name: value.clone() for name, value in self.model.named_buffers()}
        return {
            "parameters": self._vector_P.clone(),
            "updates": torch.tensor(self._updates),
            **add_prefix("buffers", buffers),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._vector_P.copy_(state["parameters"])
        self._updates = int(state["updates"])
        saved = with_prefix("buffers", state)  # none in checkpoints of version 0.1
        for name, value in self.model.named_buffers():
            if name in saved:
                value.copy_(saved[name])
