"""Networks such as people bring, good and bad."""

import torch
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, observation_space, action_space):
        super().__init__()
        self.trunk = nn.Linear(observation_space.shape[0], 16)
        self.heads = nn.Linear(16, int(action_space.n) + 1)

    def forward(self, obs):
        both = self.heads(torch.tanh(self.trunk(obs)))
        return both[:, :-1], both[:, -1]


class WithPolicy(ActorCritic):
    def policy(self, obs):
        self.was_asked = True
        return self.forward(obs)[0]


class Dictionary(nn.Module):
    """Takes a dictionary of leaves."""

    def __init__(self, observation_space, action_space):
        super().__init__()
        self.net = nn.Linear(3, int(action_space.n) + 1)

    def forward(self, obs):
        both = self.net(obs["arm.angle"])
        return both[:, :-1], both[:, -1:]


def q_values(observation_space, action_space):
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, int(action_space.n)))


def squashed(observation_space, action_space):
    """Means and spreads of bounded numbers."""
    num_outputs = 2 * action_space.shape[0]
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, num_outputs))


def too_wide(observation_space, action_space):
    return nn.Linear(4, 9)


def fails(observation_space, action_space):
    return nn.Linear(5, 3)


def no_module(observation_space, action_space):
    return "network"
