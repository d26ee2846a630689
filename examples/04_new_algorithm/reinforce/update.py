"""REINFORCE's learner, in plain PyTorch: one update for each batch.

loss = E[ -A log pi(a) ] + E[ (V - G)^2 / 2 ] - entropy E[ H ],   A = G - V,   G: gae, lambda 1
"""

import numpy as np
import torch
from torch.distributions import Categorical

from tianji.algorithms.interface import Minibatch
from tianji.models.optimizers import Adam, Optimizer
from tianji.models.tensors import flatten
from tianji.ops.returns import gae


class ReinforceUpdate:
    def __init__(self, model, config) -> None:
        self.model, self.config, self.found = model, config.algorithm, {}
        self.flat = flatten(model)
        self.optimizer = Optimizer(self.flat, Adam(self.flat, 1e-5), self.config.max_grad_norm)
        self.state, self.load_state = self.optimizer.state, self.optimizer.load_state

    def minibatch_steps(self, batch) -> int:
        return batch.num_steps

    def minibatches(self, batch, progress):
        yield Minibatch(lambda: self.gradient(batch), self.step)

    def gradient(self, batch) -> torch.Tensor:
        arrays, valid = batch.arrays, batch.arrays["valid"]
        advantage_B = torch.from_numpy(self.advantages(arrays)[valid])
        scaled_B = (advantage_B - advantage_B.mean()) / (advantage_B.std() + 1e-8)
        outputs_BA, value_B1 = self.model({"": torch.from_numpy(arrays["obs"][:-1][valid])})
        policy, value_B = Categorical(logits=outputs_BA), value_B1[:, 0]
        value_loss = (value_B - value_B.detach() - advantage_B).square().mean() / 2
        log_prob_B = policy.log_prob(torch.from_numpy(arrays["action"][valid]))
        entropy = policy.entropy().mean()
        loss = value_loss - (scaled_B * log_prob_B).mean() - self.config.entropy * entropy
        self.flat.gradient_P.zero_()
        loss.backward()
        self.found = {"loss/value": value_loss.item(), "entropy": entropy.item()}
        return self.flat.gradient_P

    def step(self) -> None:
        self.found["grad_norm"] = self.optimizer.step(self.config.learning_rate, lambda: {})

    def metrics(self) -> dict[str, float]:
        return self.found

    @torch.no_grad()
    def advantages(self, arrays) -> np.ndarray:
        ends = arrays["terminated"], arrays["truncated"], arrays["valid"]
        value_T1N = self.values(arrays["obs"])
        final_TN = self.values(arrays["final_obs"]) if "final_obs" in arrays else value_T1N[1:]
        next_TN = np.where(arrays["truncated"], final_TN, value_T1N[1:])
        return gae(arrays["reward"], value_T1N[:-1], next_TN, *ends, self.config.gamma, 1.0)

    def values(self, obs) -> np.ndarray:
        value_B1 = self.model({"": torch.from_numpy(obs).flatten(0, 1)})[1]
        return value_B1.numpy().reshape(obs.shape[:2])
