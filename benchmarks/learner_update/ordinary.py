"""PPO as a person writes it in torch: nn.Sequential, Categorical, Adam, clip_grad_norm_."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from benchmarks.limits import mlp


@dataclass(frozen=True)
class Sizes:
    """What one version takes in: T steps of N environments, some passes in minibatches."""

    unroll_length: int
    num_envs: int
    epochs: int
    minibatch: int
    hidden: tuple[int, ...]

    @property
    def num_steps(self) -> int:
        return self.unroll_length * self.num_envs

    @property
    def num_updates(self) -> int:
        return self.epochs * (self.num_steps // self.minibatch)


class OrdinaryPPO:
    """One batch of made-up experience, trained on again and again: only the time matters."""

    def __init__(self, sizes: Sizes, gamma: float = 0.98, gae_lambda: float = 0.8) -> None:
        self._sizes, self._gamma, self._lambda = sizes, gamma, gae_lambda
        self._policy, self._value = mlp(4, sizes.hidden, 2), mlp(4, sizes.hidden, 1)
        self._parameters = [*self._policy.parameters(), *self._value.parameters()]
        self._optimiser = torch.optim.Adam(self._parameters, lr=1e-6, eps=1e-5)
        shape = (sizes.unroll_length, sizes.num_envs)
        self._obs = torch.randn(sizes.unroll_length + 1, sizes.num_envs, 4)
        self._action = torch.randint(0, 2, shape)
        self._log_prob = torch.full(shape, -0.693)
        self._reward = torch.ones(shape)
        self._going_on = (torch.rand(shape) > 0.03).float()

    def run(self) -> int:
        """All epochs over one batch; returns the number of updates."""
        advantages, targets = self._advantages()
        data = [
            self._obs[:-1].reshape(-1, 4),
            *(x.reshape(-1) for x in (self._action, self._log_prob, advantages, targets)),
        ]
        for _ in range(self._sizes.epochs):
            order = torch.randperm(self._sizes.num_steps)
            for chosen in order.split(self._sizes.minibatch):
                self._update(*(values[chosen] for values in data))
        return self._sizes.num_updates

    @torch.no_grad()
    def _advantages(self) -> tuple[Tensor, Tensor]:
        values = self._value(self._obs).squeeze(-1)
        advantages, running = torch.zeros_like(self._reward), torch.zeros(self._sizes.num_envs)
        for t in reversed(range(self._sizes.unroll_length)):
            discount = self._gamma * self._going_on[t]
            delta = self._reward[t] + discount * values[t + 1] - values[t]
            running = delta + discount * self._lambda * running
            advantages[t] = running
        return advantages, advantages + values[:-1]

    def _update(
        self, obs: Tensor, action: Tensor, log_prob: Tensor, advantage: Tensor, target: Tensor
    ) -> None:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = Categorical(logits=self._policy(obs))
        ratio = (policy.log_prob(action) - log_prob).exp()
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        value_loss = nn.functional.mse_loss(self._value(obs).squeeze(-1), target)
        loss = -gain + 0.5 * value_loss - 0.01 * policy.entropy().mean()
        self._optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._parameters, 0.5)
        self._optimiser.step()


def shapes(sizes: Sizes) -> Sequence[Sequence[int]]:
    """The layers of both networks, for the bare matrix products."""
    return [(4, *sizes.hidden, 2), (4, *sizes.hidden, 1)]
