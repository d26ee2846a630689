"""The gradient of dqn_loss() (algorithms/dqn/loss.py) in closed form.

U: updates of a batch, B: transitions of an update, A: actions, F: features.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from tianji.algorithms.accelerators.network import ClosedNetwork, has_closed_form
from tianji.algorithms.dqn.loss import Diagnostics, Transitions, dqn_loss
from tianji.algorithms.dqn.model import QNetwork
from tianji.algorithms.dqn.settings import QLearningConfig
from tianji.algorithms.gradient import Autograd, Gradient
from tianji.models.masks import legal_only
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import Tensors, flatten

FEATURES, MASK = "features", "mask"

DQNGradient: TypeAlias = Gradient[Transitions, QLearningConfig, Diagnostics]


class ClosedDQN:
    """d L / d Q(s, a) = w clamp(Q - y, -1, 1) / B, without the clamp for squared errors."""

    def __init__(self, online: QNetwork, target: QNetwork) -> None:
        self._is_dueling = online.is_dueling
        self._num_actions = online.num_actions
        self._mask = online.mask
        self._online = ClosedNetwork(cast(StackedNet, online.net))
        self._target = ClosedNetwork(cast(StackedNet, target.net))

    def prepare(self, batch: Transitions, terms: QLearningConfig) -> Transitions:
        """Return features [U, 2B, F] of s and after them of s', one-hot actions [U, A, B], and the
        masks [U, B, A] of s' where there are some."""
        here_UBF, there_UBF = (self._features(obs) for obs in (batch.obs, batch.next_obs))
        hot_UBA = F.one_hot(batch.action, self._num_actions)
        mask = self._mask
        return Transitions(
            {FEATURES: torch.cat([here_UBF, there_UBF], 1)},
            {} if mask is None else {MASK: batch.next_obs[mask].bool()},
            hot_UBA.transpose(1, 2).float().contiguous(),
            batch.reward,
            batch.discount,
            batch.weight,
        )

    def gradient(self, minibatch: Transitions, terms: QLearningConfig) -> Diagnostics:
        x_2BF, hot_AB, reward_B = minibatch.obs[FEATURES], minibatch.action, minibatch.reward
        num_rows = len(reward_B)
        with torch.inference_mode():
            next_q_AB = self._combine(self._target.evaluate(x_2BF[num_rows:]))
            next_q_AB = self._legal(next_q_AB, minibatch.next_obs)
            if not terms.double:
                x_2BF = x_2BF[:num_rows]
            outputs, tape = self._online.forward(x_2BF, num_rows)
            all_q_AB = self._combine(outputs)
            if terms.double:
                ranked_AB = self._legal(all_q_AB[:, num_rows:], minibatch.next_obs)
                best_1B = ranked_AB.argmax(0, keepdim=True)
                next_B = next_q_AB.gather(0, best_1B)[0]
            else:
                next_B = next_q_AB.amax(0)
            target_B = torch.addcmul(reward_B, minibatch.discount, next_B)
            q_B = torch.sum(all_q_AB[:, :num_rows] * hot_AB, 0)
            error_B = q_B - target_B
            slope_B = error_B if terms.loss == "mse" else error_B.clamp(-1.0, 1.0)
            slope_B = slope_B * minibatch.weight / num_rows
            q_gradient_AB = hot_AB * slope_B
            if self._is_dueling:
                value_1B = q_gradient_AB.sum(0, keepdim=True)
                advantage_AB = q_gradient_AB - value_1B / len(q_gradient_AB)
                self._online.backward(tape, advantage_AB, value_1B)
            else:
                self._online.backward(tape, q_gradient_AB)
        return Diagnostics(q_B, target_B)

    def _features(self, obs: Tensors) -> Tensor:
        num_updates, num_rows = next(iter(obs.values())).shape[:2]
        flat = {name: x.flatten(0, 1) for name, x in obs.items()}
        return self._online.features(flat).view(num_updates, num_rows, -1)

    def _legal(self, next_q_AB: Tensor, next_obs: Tensors) -> Tensor:
        return next_q_AB if self._mask is None else legal_only(next_q_AB, next_obs[MASK].t())

    def _combine(self, outputs_AB: tuple[Tensor, ...]) -> Tensor:
        if not self._is_dueling:
            return outputs_AB[0]
        advantage_AB, value_1B = outputs_AB
        return advantage_AB + (value_1B - advantage_AB.mean(0, keepdim=True))


def build_dqn(online: QNetwork, target: QNetwork) -> DQNGradient:
    """Return the closed form where the model has one, plain torch otherwise."""
    if has_closed_form(online.net):
        return ClosedDQN(online, target)
    return Autograd(flatten(online), partial(dqn_loss, online, target))
