"""REINFORCE's learner: one update for each batch.

    loss = E[ -A log pi(a) ] + E[ (V - G)^2 / 2 ] - entropy E[ H ],   A = G - V

G sums the rewards to the end of the unroll and adds the value from there on: gae() with lambda 1.
T: time, N: environments, R: valid rows of the batch, A: policy outputs.
"""

from __future__ import annotations

import torch

from reinforce.policy import ActorCritic
from tianji.algorithms.actor_critic.experience import Intake
from tianji.models.flat import flatten
from tianji.models.gradient import build_gradient_net
from tianji.models.optimizers import Adam, Optimizer
from tianji.ops.gae import gae


class ReinforceUpdate:
    def __init__(self, model: ActorCritic, spaces, config) -> None:
        flat = flatten(model)
        self.config, self.head = config.algorithm, model.head
        self.network = build_gradient_net(model.net, flat)
        self.intake = Intake(model, spaces, config)
        self.optimizer = Optimizer(flat, Adam(flat, 1e-5), self.config.max_grad_norm)

    def minibatch_steps(self, batch) -> int:
        return batch.num_steps

    def steps(self, batch, progress):
        seen = self.intake.take(batch)
        inputs = self.network.prepare(seen.obs_rows())
        value_T1N = self.network.evaluate(inputs)[1].numpy().reshape(-1, seen.valid_TN.shape[1])
        next_TN = seen.next_value(value_T1N, seen.cut_value(self.network))
        ends = (seen.terminated_TN, seen.truncated_TN, seen.valid_TN)
        advantage_TN = gae(seen.reward_TN, value_T1N[:-1], next_TN, *ends, self.config.gamma, 1.0)
        keep = seen.valid_rows()
        advantage_R = torch.from_numpy(advantage_TN.reshape(-1))[keep]
        push_R = (advantage_R - advantage_R.mean()) / (advantage_R.std() + 1e-8) / len(advantage_R)
        bonus_R = torch.full_like(push_R, self.config.entropy / len(push_R))
        with self.network.guard():  # gradients of the loss by the network's outputs, then back
            trained = {name: x[keep] for name, x in inputs.items()}
            outputs_AR, _ = self.network.forward(trained, len(push_R))
            self.head.log_prob(outputs_AR, self.head.prepare(seen.action_RK()[keep]))
            entropy = float(self.head.entropy().mean())
            value_1R = -advantage_R[None] / len(push_R)
            self.network.backward(self.head.backward(-push_R, -bonus_R), value_1R)
            norm = self.optimizer.step(self.config.learning_rate, lambda: {"advantages": push_R})
        yield {"entropy": entropy, "grad_norm": norm}

    def state(self) -> dict[str, torch.Tensor]:
        return {**self.optimizer.state(), **self.intake.state()}

    def load_state(self, state) -> None:
        self.optimizer.load_state(state)
        self.intake.load_state(state)
