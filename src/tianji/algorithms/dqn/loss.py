"""DQN's loss (Mnih et al. 2015) with double targets (van Hasselt et al. 2016).

U: updates of a batch, B: transitions of an update, A: actions.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from tianji.algorithms.dqn.model import QNetwork
from tianji.algorithms.dqn.settings import QLearningConfig
from tianji.models.tensors import Tensors

Loss = Literal["huber", "mse"]


def td_loss(error_B: Tensor, loss: Loss) -> Tensor:
    """Return for each item 1/2 e^2, or Huber's loss: 1/2 e^2 up to 1, |e| - 1/2 beyond."""
    if loss == "mse":
        return 0.5 * error_B.square()
    size_B = error_B.abs()
    inside_B = size_B.clamp(max=1.0)
    return inside_B * (size_B - 0.5 * inside_B)


class Transitions(NamedTuple):
    """Transitions of all updates of a batch, [U, B, ...], or of one of them, [B, ...].

    reward: R, the discounted sum of n rewards
    discount: gamma^n, the weight of the next value; 0 where the episode terminated
    weight: w, the correction for items that are not drawn alike; 1 where they are
    """

    obs: Tensors
    next_obs: Tensors
    action: Tensor
    reward: Tensor
    discount: Tensor
    weight: Tensor

    def update(self, u: int) -> Transitions:
        """Return the transitions of one update."""
        return Transitions(
            {name: x[u] for name, x in self.obs.items()},
            {name: x[u] for name, x in self.next_obs.items()},
            self.action[u],
            self.reward[u],
            self.discount[u],
            self.weight[u],
        )


class Diagnostics(NamedTuple):
    """What the metrics need of one minibatch."""

    q_B: Tensor
    target_B: Tensor


def dqn_loss(
    online: QNetwork, target: QNetwork, batch: Transitions, config: QLearningConfig
) -> tuple[Tensor, Diagnostics]:
    """Return the loss of a minibatch.

    L = E[ w huber(Q(s, a) - y) ],   y = R + discount * Q_target(s', a')
    a' = argmax_a Q(s', a) if double, else argmax_a Q_target(s', a)
    """
    q_B = online(batch.obs).gather(1, batch.action[:, None])[:, 0]
    with torch.no_grad():
        next_q_BA = target(batch.next_obs)
        ranked_BA = online(batch.next_obs) if config.double else next_q_BA
        best_B1 = ranked_BA.argmax(1, keepdim=True)
        y_B = batch.reward + batch.discount * next_q_BA.gather(1, best_B1)[:, 0]
    loss_B = batch.weight * td_loss(q_B - y_B, config.loss)
    return loss_B.mean(), Diagnostics(q_B.detach(), y_B)
