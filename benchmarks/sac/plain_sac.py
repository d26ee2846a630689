"""SAC's update as a person writes it in torch: nn.Sequential, Normal, three Adams, polyak loops."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal

from benchmarks.limits import mlp

LOG_STD_BOUNDS = (-20.0, 2.0)


class Sizes(NamedTuple):
    """What one update takes in: Sizes(17, 6, (256, 256), 256)"""

    num_obs: int
    num_numbers: int
    hidden: Sequence[int]
    batch_size: int


class PlainSAC:
    """One minibatch of made-up experience, trained on again and again: only the time matters."""

    def __init__(self, sizes: Sizes, device: str) -> None:
        num_rated = sizes.num_obs + sizes.num_numbers
        self._policy = mlp(sizes.num_obs, sizes.hidden, 2 * sizes.num_numbers, nn.ReLU).to(device)
        critics = [mlp(num_rated, sizes.hidden, 1, nn.ReLU).to(device) for _ in range(2)]
        self._critics = nn.ModuleList(critics)
        self._targets = copy.deepcopy(self._critics).requires_grad_(False)
        self._log_alpha = torch.zeros(1, device=device, requires_grad=True)
        self._policy_adam = torch.optim.Adam(self._policy.parameters(), lr=1e-6)
        self._critic_adam = torch.optim.Adam(self._critics.parameters(), lr=1e-6)
        self._alpha_adam = torch.optim.Adam([self._log_alpha], lr=1e-6)
        rows = sizes.batch_size
        self._obs, self._next_obs = torch.randn(2, rows, sizes.num_obs, device=device)
        self._action = 2.0 * torch.rand(rows, sizes.num_numbers, device=device) - 1.0
        self._reward = torch.randn(rows, 1, device=device)
        self._going_on = torch.ones(rows, 1, device=device)
        self._target_entropy = -float(sizes.num_numbers)

    def run(self, num_updates: int) -> None:
        for _ in range(num_updates):
            self._update()

    def _draw(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self._policy(obs).chunk(2, 1)
        normal = Normal(mean, log_std.clamp(*LOG_STD_BOUNDS).exp())
        u = normal.rsample()
        slope = 2.0 * (math.log(2.0) - u - F.softplus(-2.0 * u))
        return torch.tanh(u), (normal.log_prob(u) - slope).sum(1, keepdim=True)

    @staticmethod
    def _rate(critics: nn.ModuleList, obs: Tensor, action: Tensor) -> list[Tensor]:
        rated = torch.cat([obs, action], 1)
        return [critic(rated) for critic in critics]

    def _update(self) -> None:
        drawn, log_prob = self._draw(self._obs)
        alpha = self._log_alpha.exp().detach()
        alpha_loss = -(self._log_alpha * (log_prob + self._target_entropy).detach()).mean()
        self._alpha_adam.zero_grad()
        alpha_loss.backward()
        self._alpha_adam.step()

        with torch.no_grad():
            next_drawn, next_log_prob = self._draw(self._next_obs)
            next_q = torch.minimum(*self._rate(self._targets, self._next_obs, next_drawn))
            y = self._reward + 0.99 * self._going_on * (next_q - alpha * next_log_prob)
        rated = self._rate(self._critics, self._obs, self._action)
        critic_loss = sum(0.5 * F.mse_loss(q, y) for q in rated)
        self._critic_adam.zero_grad()
        critic_loss.backward()
        self._critic_adam.step()

        best = torch.minimum(*self._rate(self._critics, self._obs, drawn))
        policy_loss = (alpha * log_prob - best).mean()
        self._policy_adam.zero_grad()
        policy_loss.backward()
        self._policy_adam.step()

        with torch.no_grad():
            pairs = zip(self._targets.parameters(), self._critics.parameters(), strict=True)
            for target, parameter in pairs:
                target.lerp_(parameter, 0.005)
