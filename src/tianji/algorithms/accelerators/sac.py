"""The gradient of sac_losses() (algorithms/sac/loss.py), automatically or in closed form.

The closed form evaluates the policy in s and s' at once, and both critics for (s, a) and (s, b) at
once, where b is the policy's own action. The products that would differentiate the policy's loss by
the critics' parameters are left out.

U: updates of a batch, B: transitions of an update, K: numbers of an action, F: features of s,
D: features and action together. Rows come last in [K, B] (see network.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from tianji.algorithms.accelerators.network import ClosedNetwork, has_closed_form
from tianji.algorithms.gradient import Gradient
from tianji.algorithms.sac.loss import Diagnostics, Transitions, sac_losses
from tianji.algorithms.sac.model import Networks, TwinCritics
from tianji.devices.graphs import recorded
from tianji.models.heads import SMALLEST_SPREAD
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import Tensors, flatten

FEATURES, RATED, NEXT = "features", "rated", "next"
"""What ClosedSAC prepares: features of s and after them of s' [U, 2B, F]; what the critics rate,
(s, a) and after them (s, b) [U, 2B, D]; and what the target critics rate, (s', a') [U, B, D]. The
actions b and a' are filled in by gradient()."""

SACGradient: TypeAlias = Gradient[Transitions, float, Diagnostics]
"""Its terms are the target entropy."""


class AutogradSAC:
    """Differentiates the three losses automatically: any network on any device.

    On a GPU it is a CUDA graph: what it returns is overwritten by the next minibatch."""

    def __init__(self, networks: Networks, targets: TwinCritics) -> None:
        self._networks, self._targets = networks, targets
        self._flat = flatten(networks)
        self._run = recorded(self._flat.vector_P.device, self._differentiate)

    def prepare(self, batch: Transitions, terms: float) -> Transitions:
        return batch

    def gradient(self, minibatch: Transitions, terms: float) -> Diagnostics:
        return self._run(minibatch, terms)

    def _differentiate(self, minibatch: Transitions, target_entropy: float) -> Diagnostics:
        networks = self._networks
        self._flat.gradient_P.zero_()
        losses, found = sac_losses(networks, self._targets, minibatch, target_entropy)
        owners = (networks.critics, networks.policy, networks.temperature)
        for loss, owner in zip(losses, owners, strict=True):
            backward: Callable[..., None] = loss.backward
            backward(inputs=list(owner.parameters()))
        return found


class ClosedSAC:
    """With b = tanh(u), u = m + s e and e the noise:

    d J / d u = -d min Q / d b * (1 - b^2) + 2 alpha b
    d J / d m = d J / d u,   d J / d s = e * d J / d u - alpha / s,   d s / d spread = 1 - exp(-s)
    d L_Q / d Q_i = Q_i - y,   d L_T / d log alpha = -E[ log pi(b | s) + target entropy ]
    """

    def __init__(self, networks: Networks, targets: TwinCritics) -> None:
        flatten(networks)
        self._num_numbers = networks.policy.head.num_numbers
        self._policy = ClosedNetwork(cast(StackedNet, networks.policy.net))
        self._critics = ClosedNetwork(networks.critics.net)
        self._targets = ClosedNetwork(targets.net)
        self._encoder = networks.critics.encoder
        self._temperature = networks.temperature
        # log pi = -sum(e^2 / 2) - sum(log s) + 2 sum(u + softplus(-2 u)) - this
        self._constant = self._num_numbers * (0.5 * math.log(2.0 * math.pi) + 2.0 * math.log(2.0))

    def prepare(self, batch: Transitions, terms: float) -> Transitions:
        """Return the inputs of all networks, noise [U, K, 2B] and half the sum of its squares."""
        here_UBF, there_UBF = (self._features(obs) for obs in (batch.obs, batch.next_obs))
        rated_UBD, rated_later_UBD, next_UBD = (
            torch.cat([features, batch.action], 2) for features in (here_UBF, here_UBF, there_UBF)
        )
        noise_U2BK = torch.cat([batch.noise, batch.next_noise], 1)
        return Transitions(
            {
                FEATURES: torch.cat([here_UBF, there_UBF], 1),
                RATED: torch.cat([rated_UBD, rated_later_UBD], 1),
                NEXT: next_UBD,
            },
            {},
            batch.action,
            batch.reward,
            batch.discount,
            noise_U2BK.transpose(1, 2).contiguous(),
            noise_U2BK.square().sum(2).mul_(0.5).add_(self._constant),
        )

    def gradient(self, minibatch: Transitions, terms: float) -> Diagnostics:
        inputs, reward_B, noise_K2B = minibatch.obs, minibatch.reward, minibatch.noise
        num_rows, num_numbers = len(reward_B), self._num_numbers
        with torch.inference_mode():
            alpha = self._temperature()
            (outputs,), tape = self._policy.forward(inputs[FEATURES], num_rows)
            mean_K2B, spread_K2B = torch.split(outputs, num_numbers)
            deviation_K2B = F.softplus(spread_K2B.clamp(SMALLEST_SPREAD))
            u_K2B = torch.addcmul(mean_K2B, deviation_K2B, noise_K2B)
            drawn_K2B = u_K2B.tanh()
            wide_K2B = F.softplus(-2.0 * u_K2B).add_(u_K2B).mul_(2.0).sub_(deviation_K2B.log())
            log_prob_2B = wide_K2B.sum(0).sub_(minibatch.next_noise)
            log_prob_B, next_log_prob_B = torch.split(log_prob_2B, num_rows)

            next_BD = inputs[NEXT]
            next_BD[:, -num_numbers:] = drawn_K2B[:, num_rows:].t()
            next_q_B = torch.minimum(*self._targets.evaluate(next_BD))[0]
            soft_B = next_q_B.sub_(alpha * next_log_prob_B)
            target_B = torch.addcmul(reward_B, minibatch.discount, soft_B)

            b_KB, noise_KB = drawn_K2B[:, :num_rows], noise_K2B[:, :num_rows]
            policy_q_B, q_B, q_gradient_KB = self._rate(inputs[RATED], b_KB, target_B)
            share = alpha / num_rows
            u_gradient_KB = (1.0 - b_KB.square()).mul_(q_gradient_KB).addcmul_(b_KB, 2.0 * share)
            deviation_KB = deviation_K2B[:, :num_rows]
            slope_KB = -torch.expm1(-deviation_KB) * (spread_K2B[:, :num_rows] >= SMALLEST_SPREAD)
            spread_gradient_KB = (noise_KB * u_gradient_KB).sub_(share / deviation_KB)
            self._policy.backward(
                tape, torch.cat([u_gradient_KB, spread_gradient_KB.mul_(slope_KB)])
            )
            log = self._temperature.log
            assert log.grad is not None, "flatten() the module first"
            log.grad.copy_(-(log_prob_B.mean() + terms))
        return Diagnostics(q_B, target_B, log_prob_B, policy_q_B, alpha)

    def _rate(
        self, rated_2BD: Tensor, b_KB: Tensor, target_B: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Set the critics' gradients; return min Q(s, b), the mean of Q(s, a), and the gradient of
        -E[min Q(s, b)] by b, [K, B]."""
        num_rows, first_action = len(target_B), rated_2BD.shape[1] - len(b_KB)
        rated_2BD[num_rows:, first_action:] = b_KB.t()
        (one_12B, two_12B), tape = self._critics.forward(rated_2BD, 2 * num_rows)
        one_2B, two_2B = one_12B[0], two_12B[0]
        one_is_less_B = (one_2B[num_rows:] <= two_2B[num_rows:]).float()
        gradients_2B = (
            torch.cat([one_2B[:num_rows] - target_B, -one_is_less_B]),
            torch.cat([two_2B[:num_rows] - target_B, one_is_less_B - 1.0]),
        )
        self._critics.backward(
            tape, *(x_2B.div_(num_rows)[None] for x_2B in gradients_2B), num_counted=num_rows
        )
        gradient_KB = self._critics.input_gradient(tape, num_rows, first_action)
        mean_B = (one_2B[:num_rows] + two_2B[:num_rows]).mul_(0.5)
        return torch.minimum(one_2B[num_rows:], two_2B[num_rows:]), mean_B, gradient_KB

    def _features(self, obs: Tensors) -> Tensor:
        num_updates, num_rows = next(iter(obs.values())).shape[:2]
        flat = {name: x.flatten(0, 1) for name, x in obs.items()}
        return self._encoder.state(flat).view(num_updates, num_rows, -1)


def build_sac(networks: Networks, targets: TwinCritics) -> SACGradient:
    """Return the closed form where the networks have one, plain torch otherwise."""
    if has_closed_form(networks.policy.net) and has_closed_form(networks.critics.net):
        return ClosedSAC(networks, targets)
    return AutogradSAC(networks, targets)
