"""SAC's losses (Haarnoja et al. 2018b): twin critics, policy, temperature.

U: updates of a batch, B: transitions of an update, K: numbers of an action.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tianji.algorithms.sac.model import Networks, TwinCritics
from tianji.models.tensors import Tensors


class Transitions(NamedTuple):
    """Transitions of all updates of a batch, [U, B, ...], or of one of them, [B, ...].

    action: in [-1, 1]
    reward: R, the discounted sum of n rewards
    discount: gamma^n, the weight of the next value; 0 where the episode terminated
    noise, next_noise: normal noise, which draws the policy's actions in s and in s'
    """

    obs: Tensors
    next_obs: Tensors
    action: Tensor
    reward: Tensor
    discount: Tensor
    noise: Tensor
    next_noise: Tensor

    def update(self, u: int) -> Transitions:
        """Return the transitions of one update."""
        return Transitions(
            {name: x[u] for name, x in self.obs.items()},
            {name: x[u] for name, x in self.next_obs.items()},
            *(x[u] for x in self[2:]),
        )


class Losses(NamedTuple):
    """Each is differentiated by its own parameters alone: Q by the critics', J by the policy's, the
    last by the temperature's."""

    critics: Tensor
    policy: Tensor
    temperature: Tensor


class Diagnostics(NamedTuple):
    """What the metrics need of one minibatch.

    q: the mean of both critics for the action that was taken
    policy_q: the smaller Q value of the policy's own action
    """

    q_B: Tensor
    target_B: Tensor
    log_prob_B: Tensor
    policy_q_B: Tensor
    alpha: Tensor


def sac_losses(
    networks: Networks, targets: TwinCritics, batch: Transitions, target_entropy: float
) -> tuple[Losses, Diagnostics]:
    """Return the losses of a minibatch.

    L_Q = 1/2 E[ (Q_1(s, a) - y)^2 + (Q_2(s, a) - y)^2 ]
    y   = R + discount * (min_i Q_target,i(s', a') - alpha log pi(a' | s')),   a' ~ pi(s')
    J   = E[ alpha log pi(b | s) - min_i Q_i(s, b) ],   b ~ pi(s)
    L_T = -log alpha * E[ log pi(b | s) + target entropy ]
    """
    policy, critics = networks.policy, networks.critics
    alpha = networks.temperature()
    with torch.no_grad():
        outputs_BA = policy(batch.next_obs)
        next_action_BK, next_log_prob_B = policy.head.draw(outputs_BA, batch.next_noise)
        next_q_B = torch.minimum(*targets(batch.next_obs, next_action_BK))
        y_B = batch.reward + batch.discount * (next_q_B - alpha * next_log_prob_B)
    one_B, two_B = critics(batch.obs, batch.action)
    critic_loss = 0.5 * ((one_B - y_B).square() + (two_B - y_B).square()).mean()

    action_BK, log_prob_B = policy.head.draw(policy(batch.obs), batch.noise)
    policy_q_B = torch.minimum(*critics(batch.obs, action_BK))
    policy_loss = (alpha * log_prob_B - policy_q_B).mean()

    surprise = (log_prob_B.detach() + target_entropy).mean()
    temperature_loss = -(networks.temperature.log * surprise).sum()
    found = (0.5 * (one_B + two_B), y_B, log_prob_B, policy_q_B, alpha)
    losses = Losses(critic_loss, policy_loss, temperature_loss)
    return losses, Diagnostics(*(x.detach() for x in found))
