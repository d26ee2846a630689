"""A network of your own: any torch.nn.Module that gives policy outputs and a value.

    python 03_custom_network.py
    tianji train --model.factory 03_custom_network:build_network

Actors and learner each build it, so it is named as `module:function` and not passed as an object.
The learner differentiates it automatically.
"""

from __future__ import annotations

import sys

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

import tianji


class GatedNet(nn.Module):
    """Two layers, the second one gated by the first, shared by policy and value."""

    def __init__(self, num_numbers: int, num_actions: int, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(num_numbers, width)
        self.second = nn.Linear(width, width)
        self.logits = nn.Linear(width, num_actions)
        self.value = nn.Linear(width, 1)

    def features(self, obs: Tensor) -> Tensor:
        x = torch.tanh(self.first(obs))
        return x + torch.sigmoid(self.second(x)) * x

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        x = self.features(obs)
        return self.logits(x), self.value(x)

    def policy(self, obs: Tensor) -> Tensor:
        """Optional: what actors call, so that they need not compute values."""
        return self.logits(self.features(obs))


def build_network(observation_space: gym.Space, action_space: gym.Space) -> nn.Module:
    assert isinstance(action_space, gym.spaces.Discrete)
    return GatedNet(int(np.prod(observation_space.shape)), int(action_space.n))


if __name__ == "__main__":
    max_env_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    summary, policy = tianji.train(
        "cartpole-ppo",
        model={"factory": "03_custom_network:build_network"},
        target_return=300,
        max_env_steps=max_env_steps,
    )
    print(f"mean return {summary['mean_return_100']:.0f} after {summary['env_steps']} steps")
    print(policy.model.net.module)
