"""PPO's learner.

One batch: count it in the running statistics, evaluate all rows once (values, and
log-probabilities under the policy as it is now, the proximal one), estimate advantages, then make
epochs x minibatches updates of

    loss = E[ -w min(r A, clip(r) A) ] + value_loss E[ (V - target)^2 ] - entropy E[ H ]
    r = pi / pi_proximal,   w = min(pi_proximal / pi_behaviour, max_behaviour_weight)

which corrects for lag in w and bounds the step in r (Hilton, Cobbe and Schulman 2022). Gradients by
the network's outputs are in closed form (ops/policy_gradient.py, models/heads.py).

T: time, N: environments, R: valid rows of the batch, B: rows of a minibatch, A: policy outputs,
K: choices or numbers of one action.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from tianji.algorithms.actor_critic.experience import Experience, Intake
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.rows import Columns, Rows, part_sizes
from tianji.algorithms.ppo.trace import Taken, Trace
from tianji.envs.interface import Spaces
from tianji.models.flat import flatten
from tianji.models.gradient import build_gradient_net
from tianji.models.optimizers import Adam, Optimizer
from tianji.models.tensors import add_prefix, to_tensor, with_prefix
from tianji.ops.gae import Floats, gae
from tianji.ops.policy_gradient import clipped_value_error, surrogate_gradient, surrogate_limits
from tianji.ops.schedules import linear
from tianji.types import Batch

if TYPE_CHECKING:
    from tianji.config.run import RunConfig

ADAM_EPSILON = 1e-5


class PPOUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, PPOConfig)
        self._config = config.algorithm
        flat = flatten(model)
        self._head = model.head
        self._network = build_gradient_net(model.net, flat)
        self._intake = Intake(model, spaces, config)
        self._optimizer = Optimizer(flat, Adam(flat, ADAM_EPSILON), config.algorithm.max_grad_norm)
        self._generator = torch.Generator().manual_seed(config.seed)

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._num_parts(batch)

    def steps(self, batch: Batch, progress: float) -> Iterator[Mapping[str, float]]:
        config = self._config
        learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        rows, taken = self._take(batch, linear(config.clip, config.clip_final, progress))
        if not rows.num_rows:
            return
        sizes = part_sizes(rows.num_rows, self._num_parts(batch))
        trace = Trace(rows.num_rows, config.epochs)
        for epoch in range(config.epochs):
            shuffled = self._shuffle(rows, len(sizes))
            trace.begin_epoch(shuffled.columns_CB, sizes)
            for part, minibatch in enumerate(shuffled.split(sizes)):
                self._update(minibatch, learning_rate, trace)
                if part + 1 < len(sizes):
                    yield {}
            if epoch + 1 == config.epochs or self._has_moved_enough(trace):
                break
            yield {}
        yield {**trace.metrics(taken), "learning_rate": learning_rate}

    def _num_parts(self, batch: Batch) -> int:
        """From all rows, valid or not: every batch makes the same number of updates."""
        return math.ceil(batch.arrays["valid"].size / self._config.minibatch_size)

    def _take(self, batch: Batch, clip: float) -> tuple[Rows, Taken]:
        """Evaluate the batch once, and keep its valid rows."""
        experience = self._intake.take(batch)
        num_steps = experience.valid_TN.size
        obs = {
            key: to_tensor(array.reshape(-1, *array.shape[2:]))
            for key, array in experience.obs.items()
        }
        inputs = self._network.prepare(obs)
        outputs_AR, value_1R = self._network.evaluate(inputs)
        value_T1N = value_1R.numpy(force=True).reshape(-1, experience.valid_TN.shape[1])
        advantage_TN = self._advantage(experience, value_T1N)
        action_KR = experience.action_KR()
        proximal_R = self._head.log_prob(outputs_AR[:, :num_steps].contiguous(), action_KR)
        entropy_R = self._head.entropy()

        columns_CR = torch.stack(
            [proximal_R]
            + [
                torch.from_numpy(x_TN.reshape(-1))
                for x_TN in (experience.log_prob_TN, advantage_TN, value_T1N[:-1])
            ]
            + [entropy_R]
        )
        rows = Rows({name: x[:num_steps] for name, x in inputs.items()}, action_KR, columns_CR)
        if not experience.valid_TN.all():
            rows = rows.select(torch.from_numpy(np.flatnonzero(experience.valid_TN)))
        return self._weigh(rows, clip)

    def _advantage(self, experience: Experience, value_T1N: Floats) -> Floats:
        return gae(
            experience.reward_TN,
            value_T1N[:-1],
            experience.next_value(self._network, value_T1N),
            experience.terminated_TN,
            experience.truncated_TN,
            experience.valid_TN,
            self._config.gamma,
            self._config.gae_lambda,
        )

    def _weigh(self, rows: Rows, clip: float) -> tuple[Rows, Taken]:
        """Targets, weights and limits of the valid rows."""
        proximal_R, behaviour_R, advantage_R, value_R, entropy_R = rows.columns_CB.unbind(0)
        target_R = value_R + advantage_R
        if self._config.normalize_advantage:
            deviation = advantage_R.std(correction=0) + 1e-8
            advantage_R = (advantage_R - advantage_R.mean()) / deviation
        weight_R = (proximal_R - behaviour_R).exp().clamp(max=self._config.max_behaviour_weight)
        pull_R = -advantage_R * weight_R if self._config.decoupled else -advantage_R
        limits = surrogate_limits(advantage_R, clip)
        columns = Columns(
            log_prob_B=proximal_R if self._config.decoupled else behaviour_R,
            pull_B=pull_R,
            lower_B=limits.lower_B,
            upper_B=limits.upper_B,
            target_B=target_R,
            value_B=value_R,
        )
        taken = Taken(clip, entropy_R, weight_R, target_R, value_R)
        return rows._replace(columns_CB=torch.stack(columns)), taken

    def _shuffle(self, rows: Rows, num_parts: int) -> Rows:
        """A new order for every epoch, where there is more than one minibatch to cut."""
        if num_parts == 1:
            return rows
        return rows.select(torch.randperm(rows.num_rows, generator=self._generator))

    def _update(self, rows: Rows, learning_rate: float, trace: Trace) -> None:
        config, columns, num_rows = self._config, rows.columns(), rows.num_rows
        outputs_AB, value_1B = self._network.forward(rows.inputs, num_rows)
        log_prob_B = self._head.log_prob(outputs_AB, rows.action_KB)
        log_ratio_B, error_B = trace.room()
        torch.sub(log_prob_B, columns.log_prob_B, out=log_ratio_B)
        policy_B = surrogate_gradient(log_ratio_B.exp(), columns.pull_B, columns.limits)
        policy_B.mul_(1.0 / num_rows)
        torch.sub(value_1B[0], columns.target_B, out=error_B)
        value_B = error_B * (2.0 * config.value_loss / num_rows)
        if config.value_clip is not None:
            clipped_B = clipped_value_error(
                value_1B[0], columns.value_B, columns.target_B, config.value_clip
            )
            value_B.mul_(clipped_B == error_B)
            error_B.copy_(clipped_B)
        entropy_B = None
        if config.entropy:
            entropy_B = torch.full((), -config.entropy / num_rows).expand(num_rows)
        outputs_gradient_AB = self._head.backward(policy_B, entropy_B)
        self._network.backward(outputs_gradient_AB, value_B[None])
        norm = self._optimizer.step(
            learning_rate,
            lambda: {
                "observations": next(iter(rows.inputs.values())),
                "rewards, as seen in the value targets": columns.target_B,
                "advantages": columns.pull_B,
                "policy outputs": outputs_AB,
                "values": value_1B,
            },
        )
        trace.norms.append(norm)

    def _has_moved_enough(self, trace: Trace) -> bool:
        target = self._config.target_kl
        return target is not None and trace.kl_of_epoch() > target

    def state(self) -> dict[str, Tensor]:
        return {
            "generator": self._generator.get_state(),
            **add_prefix("optimizer", self._optimizer.state()),
            **self._intake.state(),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._generator.set_state(state["generator"])
        self._optimizer.load_state(with_prefix("optimizer", state))
        self._intake.load_state(state)


def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> PPOUpdate:
    assert isinstance(model, ActorCritic)
    return PPOUpdate(model, spaces, config)
