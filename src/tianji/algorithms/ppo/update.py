"""PPO's learner.

One batch: count it in the running statistics, evaluate all rows once (values, and
log-probabilities under the policy as it is now, the proximal one), estimate advantages, then make
epochs x minibatches updates of

    loss = E[ -w min(r A, clip(r) A) ] + value_loss E[ (V - target)^2 ] - entropy E[ H ]
    r = pi / pi_proximal,   w = min(pi_proximal / pi_behaviour, max_behaviour_weight)

which corrects for lag in w and bounds the step in r (Hilton, Cobbe and Schulman 2022). Gradients by
the network's outputs are in closed form (ops/policy_gradient.py, models/heads.py).

T: time, N: environments, R: valid rows of the batch, B: rows of a minibatch, A: policy outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from tianji.algorithms.actor_critic.experience import Experience, Intake
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.ppo.config import PPOConfig
from tianji.algorithms.ppo.rows import Columns, Rows, part_sizes
from tianji.algorithms.ppo.trace import Taken, Trace
from tianji.envs.interface import Spaces
from tianji.models.flat import flatten
from tianji.models.networks.gradient import build_gradient_net
from tianji.models.optimizers import Adam, Optimizer
from tianji.models.tensors import add_prefix, with_prefix
from tianji.ops.gae import Floats, gae
from tianji.ops.policy_gradient import clip_value, surrogate_gradient, surrogate_limits
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
        if not batch.arrays["valid"].any():
            return
        learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        rows, taken = self._take(batch, linear(config.clip, config.clip_final, progress))
        sizes = part_sizes(rows.num_rows, self._num_parts(batch))
        trace = Trace(taken, sizes, config.epochs)
        for epoch in range(config.epochs):
            shuffled = self._shuffle(rows, len(sizes))
            for part, minibatch in enumerate(shuffled.split(sizes)):
                self._update(minibatch, taken, learning_rate, trace)
                if part + 1 < len(sizes):
                    yield {}
            trace.end_epoch(shuffled.columns)
            if epoch + 1 == config.epochs or self._has_moved_enough(trace):
                break
            yield {}
        yield {**trace.metrics(), "learning_rate": learning_rate}

    def _num_parts(self, batch: Batch) -> int:
        """From all rows, valid or not: every batch makes the same number of updates."""
        return math.ceil(batch.arrays["valid"].size / self._config.minibatch_size)

    def _take(self, batch: Batch, clip: float) -> tuple[Rows, Taken]:
        """Evaluate the batch once; keep its valid rows with all that is known about them."""
        experience = self._intake.take(batch)
        order = experience.rows()
        inputs = self._network.prepare(experience.obs_rows(order))
        outputs_AR, value_1R = self._network.evaluate(inputs)
        value_T1N = experience.values(order, value_1R[0])
        advantage_R = experience.valid(self._advantage(experience, value_T1N))

        keep = slice(order.num_valid)
        action_AR = self._head.prepare(experience.action_BK())
        proximal_R = self._head.log_prob(outputs_AR[:, keep], action_AR)
        behaviour_R = experience.valid(experience.log_prob_TN)
        value_R = value_1R[0, keep]
        weight_R = (proximal_R - behaviour_R).exp().clamp(max=self._config.max_behaviour_weight)
        minibatch_rows = order.num_valid / self._num_parts(batch)
        push_R = self._normalize(advantage_R)
        limits = surrogate_limits(push_R, clip)
        columns = Columns(
            log_prob_B=proximal_R if self._config.decoupled else behaviour_R,
            pull_B=(push_R * weight_R if self._config.decoupled else push_R) / -minibatch_rows,
            lower_B=limits.lower_B,
            upper_B=limits.upper_B,
            target_B=value_R + advantage_R,
            value_B=value_R,
        )
        rows = Rows({name: x[keep] for name, x in inputs.items()}, action_AR, columns)
        value_slope = torch.tensor(2.0 * self._config.value_loss / minibatch_rows)
        return rows, Taken(clip, minibatch_rows, value_slope, self._head.entropy(), weight_R)

    def _advantage(self, experience: Experience, value_T1N: Floats) -> Floats:
        return gae(
            experience.reward_TN,
            value_T1N[:-1],
            experience.next_value(value_T1N, experience.cut_value(self._network)),
            experience.terminated_TN,
            experience.truncated_TN,
            experience.valid_TN,
            self._config.gamma,
            self._config.gae_lambda,
        )

    def _normalize(self, advantage_R: Tensor) -> Tensor:
        """Over the whole batch, so that every row weighs the same in whichever minibatch it is."""
        if not self._config.normalize_advantage:
            return advantage_R
        return (advantage_R - advantage_R.mean()) / (advantage_R.std(correction=0) + 1e-8)

    def _shuffle(self, rows: Rows, num_parts: int) -> Rows:
        """A new order for every epoch, where there is more than one minibatch to cut."""
        if num_parts == 1:
            return rows
        return rows.select(torch.randperm(rows.num_rows, generator=self._generator))

    def _update(self, rows: Rows, taken: Taken, learning_rate: float, trace: Trace) -> None:
        config, columns = self._config, rows.columns
        log_ratio_B, error_1B = trace.rooms[len(trace.norms)]
        with self._network.guard():
            outputs_AB, value_1B = self._network.forward(rows.inputs, rows.num_rows)
            log_prob_B = self._head.log_prob(outputs_AB, rows.action_AB)
            torch.sub(log_prob_B, columns.log_prob_B, out=log_ratio_B)
            policy_B = surrogate_gradient(log_ratio_B.exp(), columns.pull_B, columns.limits)
            torch.sub(value_1B, columns.target_B, out=error_1B)
            slope_1B = error_1B * taken.value_slope
            if config.value_clip is not None:
                clip_value(value_1B, columns.value_B, config.value_clip, error_1B, slope_1B)
            entropy_B = None
            if config.entropy:
                entropy_B = torch.full_like(policy_B, -config.entropy / taken.minibatch_rows)
            self._network.backward(self._head.backward(policy_B, entropy_B), slope_1B)
            norm = self._optimizer.step(
                learning_rate,
                lambda: {
                    "observations": next(iter(rows.inputs.values())),
                    "rewards, in the targets of the values": columns.target_B,
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
