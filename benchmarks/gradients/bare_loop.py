"""The same estimator as a person writes it: one environment, ordinary torch, autograd."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from benchmarks.limits import mlp


class BareLoop:
    """One episode, cut at the horizon, makes one gradient of
    sum_t (sum_{h >= t} gamma^h r_h) log pi(a_t | s_t), which is added to a sum."""

    def __init__(self, env: str, horizon: int, gamma: float, keeps_graph: bool) -> None:
        """keeps_graph: every step's forward pass is the one that is differentiated; else steps are
        acted without gradients, and the whole episode goes through the network once more."""
        self._env = gym.make(env)
        self._horizon, self._gamma, self._keeps_graph = horizon, gamma, keeps_graph
        num_observed = math.prod(self._env.observation_space.shape or ())
        space = self._env.action_space
        self._is_discrete = isinstance(space, gym.spaces.Discrete)
        num_outputs = int(space.n) if isinstance(space, gym.spaces.Discrete) else 0
        self._net = mlp(num_observed, (64, 64), num_outputs or 2 * math.prod(space.shape or ()))
        self._high = 0.0 if self._is_discrete else float(space.high.flat[0])  # type: ignore[attr-defined]
        self._parameters = list(self._net.parameters())
        self._sums = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._env.reset(seed=1)

    def run(self, num_gradients: int) -> int:
        """Returns the environment steps."""
        return sum(self._add_gradient() for _ in range(num_gradients))

    def _add_gradient(self) -> int:
        obs, actions, rewards, outputs = [], [], [], []
        observed, _ = self._env.reset()
        for _ in range(self._horizon):
            obs.append(torch.as_tensor(observed, dtype=torch.float32))
            with torch.set_grad_enabled(self._keeps_graph):
                outputs.append(self._net(obs[-1]))
                action = self._sample(outputs[-1].detach())
            actions.append(action)
            given = int(action) if self._is_discrete else self._high * torch.tanh(action).numpy()
            observed, reward, terminated, truncated, _ = self._env.step(given)
            rewards.append(float(reward))
            if terminated or truncated:
                break
        outputs_TA = torch.stack(outputs) if self._keeps_graph else self._net(torch.stack(obs))
        log_prob_T = self._log_prob(outputs_TA, torch.stack(actions))
        discounted = np.array(rewards) * self._gamma ** np.arange(len(rewards))
        to_go_T = torch.from_numpy(np.cumsum(discounted[::-1])[::-1].astype(np.float32))
        gradients = torch.autograd.grad((to_go_T * log_prob_T).sum(), self._parameters)
        torch._foreach_add_(self._sums, list(gradients))
        return len(rewards)

    def _sample(self, output_A: Tensor) -> Tensor:
        if self._is_discrete:
            return torch.multinomial(torch.softmax(output_A, 0), 1)[0]
        mean_K, spread_K = output_A.chunk(2)
        return mean_K + softplus(spread_K) * torch.randn(len(mean_K))

    def _log_prob(self, outputs_TA: Tensor, action_T: Tensor) -> Tensor:
        if self._is_discrete:
            log_p_TA = torch.log_softmax(outputs_TA, 1)
            return log_p_TA.gather(1, action_T[:, None])[:, 0]
        mean_TK, spread_TK = outputs_TA.chunk(2, 1)
        deviation_TK = softplus(spread_TK)
        z_TK = (action_T - mean_TK) / deviation_TK
        return (-0.5 * z_TK.square() - deviation_TK.log()).sum(1)
