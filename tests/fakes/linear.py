"""An Algorithm that acts by one linear layer over all observation leaves; it cannot learn."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import torch

from tianji.algorithms.interface import Algorithm
from tianji.config.schema import AlgorithmConfig
from tianji.envs.spaces import observation_leaves
from tianji.types import leaf_name


class FakeConfig(AlgorithmConfig):
    wrong_export: bool = False


class Linear(torch.nn.Module):
    def __init__(self, spaces):
        super().__init__()
        sizes = [int(np.prod(leaf.shape)) for leaf in observation_leaves(spaces.observation)]
        self.discrete = isinstance(spaces.action, gym.spaces.Discrete)
        outputs = spaces.action.n if self.discrete else spaces.action.shape[0]
        self.layer = torch.nn.Linear(sum(sizes), int(outputs))

    def forward(self, *leaves):
        flat = torch.cat([leaf.reshape(len(leaf), -1).float() for leaf in leaves], 1)
        scores = self.layer(flat)
        return scores.argmax(1) if self.discrete else scores


class Exported(torch.nn.Module):
    """Gives the environment's own actions, or others on purpose."""

    def __init__(self, model, spaces, config):
        super().__init__()
        self.model = model
        self.start = int(getattr(spaces.action, "start", 0))
        self.wrong = config.algorithm.wrong_export

    def forward(self, *leaves):
        action = self.model(*leaves) + self.start
        return 1 - action if self.wrong else action


def build_acting(model, spaces, _config):
    names = [leaf_name("obs", leaf.key) for leaf in observation_leaves(spaces.observation)]

    def greedy(obs):
        with torch.no_grad():
            return model(*(torch.as_tensor(obs[name]) for name in names)).numpy()

    return SimpleNamespace(greedy=greedy)


def refuse(*_):
    raise AssertionError("a policy that is only used needs no learner")


ALGORITHM = Algorithm(
    name="fake",
    config=FakeConfig,
    cadence=refuse,
    check=refuse,
    fields=refuse,
    build_model=lambda spaces, _config: Linear(spaces),
    build_acting=build_acting,
    build_update=refuse,
    export=Exported,
)
