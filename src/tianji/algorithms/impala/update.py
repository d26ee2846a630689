"""IMPALA's learner: one pass over every batch.

    loss = E[ -rho A log pi(a) ] + value_loss E[ (V - v)^2 / 2 ] - entropy E[ H ]

with v and rho A from V-trace (ops/vtrace.py), through which no gradient goes. Gradients by the
network's outputs are in closed form (models/heads.py).

T: time, N: environments, R: rows, B: valid steps, A: policy outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tianji.algorithms.actor_critic.experience import Experience, Intake
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.envs.interface import Spaces
from tianji.models.flat import flatten
from tianji.models.networks.gradient import build_gradient_net
from tianji.models.optimizers import Adam, Optimizer, RMSProp
from tianji.models.tensors import add_prefix, with_prefix
from tianji.ops.gae import Floats
from tianji.ops.policy_gradient import approximate_kl
from tianji.ops.schedules import linear
from tianji.ops.vtrace import VTrace, vtrace
from tianji.types import Batch

if TYPE_CHECKING:
    from tianji.config.run import RunConfig


ROUNDING = 1.0 + 1e-4
"""Ratios of 1 are not exactly 1: actors and learners add in different orders."""


class _Evaluated(NamedTuple):
    """The valid steps of one part of a batch, under the learner's policy."""

    log_prob_B: Tensor
    ratio_B: Tensor
    entropy_B: Tensor
    value_B: Tensor
    target_B: Tensor
    advantage_B: Tensor


class ImpalaUpdate:
    """See algorithms/interface.py."""

    def __init__(self, model: ActorCritic, spaces: Spaces, config: RunConfig) -> None:
        assert isinstance(config.algorithm, ImpalaConfig)
        self._config = config.algorithm
        flat = flatten(model)
        self._head = model.head
        self._network = build_gradient_net(model.net, flat)
        self._intake = Intake(model, spaces, config)
        epsilon = self._config.optimizer_epsilon
        rule = (
            Adam(flat, epsilon)
            if self._config.optimizer == "adam"
            else RMSProp(flat, epsilon, self._config.rmsprop_decay)
        )
        self._optimizer = Optimizer(flat, rule, self._config.max_grad_norm)

    def minibatch_steps(self, batch: Batch) -> int:
        return batch.num_steps // self._config.minibatches

    def steps(self, batch: Batch, progress: float) -> Iterator[Mapping[str, float]]:
        config = self._config
        learning_rate = linear(config.learning_rate, config.learning_rate_final, progress)
        experience = self._intake.take(batch)
        ends = np.linspace(0, experience.valid_TN.shape[1], config.minibatches + 1).astype(int)
        parts = [
            experience.envs(slice(begin, end))
            for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        ]
        parts = [part for part in parts if part.valid_TN.any()]
        evaluated, norms = [], []
        for index, part in enumerate(parts):
            one, norm = self._update(part, learning_rate)
            evaluated.append(one)
            norms.append(norm)
            if index + 1 < len(parts):
                yield {}
        if parts:
            yield {
                **self._metrics(evaluated),
                "grad_norm": sum(norms) / len(norms),
                "learning_rate": learning_rate,
            }

    def _update(self, part: Experience, learning_rate: float) -> tuple[_Evaluated, float]:
        order = part.rows()
        num_valid = order.num_valid
        cut_value_C = part.cut_value(self._network)
        inputs = self._network.prepare(part.obs_rows(order))
        action_AB = self._head.prepare(part.action_BK())
        with self._network.guard():
            outputs_AR, value_1R = self._network.forward(inputs, num_valid)
            log_prob_B = self._head.log_prob(outputs_AR[:, :num_valid], action_AB)
            entropy_B = self._head.entropy()
            value_T1N = part.values(order, value_1R[0])
            traced = self._trace(part, log_prob_B, value_T1N, cut_value_C)
            target_B, advantage_B = part.valid(traced.target_TN), part.valid(traced.advantage_TN)
            value_B = value_1R[0, :num_valid]

            bonus = self._config.entropy / num_valid
            outputs_gradient_AB = self._head.backward(
                advantage_B / -num_valid, torch.full_like(entropy_B, -bonus) if bonus else None
            )
            slope_B = (value_B - target_B) * (self._config.value_loss / num_valid)
            self._network.backward(outputs_gradient_AB, slope_B[None])
            norm = self._optimizer.step(
                learning_rate,
                lambda: {
                    "observations": next(iter(inputs.values())),
                    "rewards": part.valid(part.reward_TN),
                    "policy outputs": outputs_AR,
                    "values": value_1R,
                    "value targets": target_B,
                },
            )
        ratio_B = part.valid(traced.ratio_TN)
        return _Evaluated(log_prob_B, ratio_B, entropy_B, value_B, target_B, advantage_B), norm

    def _trace(
        self, part: Experience, log_prob_B: Tensor, value_T1N: Floats, cut_value_C: Floats
    ) -> VTrace:
        log_prob_TN = np.zeros_like(part.log_prob_TN)
        log_prob_TN[part.valid_TN] = log_prob_B.numpy(force=True)
        return vtrace(
            log_prob_TN - part.log_prob_TN,
            part.reward_TN,
            value_T1N[:-1],
            part.next_value(value_T1N, cut_value_C),
            part.terminated_TN,
            part.truncated_TN,
            part.valid_TN,
            self._config.gamma,
            self._config.trace_lambda,
            self._config.clip_rho,
            self._config.clip_c,
            self._config.clip_pg_rho,
        )

    def _metrics(self, evaluated: list[_Evaluated]) -> dict[str, float]:
        """Means over all valid steps, before the update that they went into."""
        every = _Evaluated(*(torch.cat(parts) for parts in zip(*evaluated, strict=True)))
        error_B = every.target_B - every.value_B
        spread = every.target_B.var(correction=0).clamp(1e-12)
        values = {
            "loss/policy": -(every.advantage_B * every.log_prob_B).mean(),
            "loss/value": 0.5 * error_B.square().mean(),
            "approx_kl": approximate_kl(every.ratio_B.log()),
            "entropy": every.entropy_B.mean(),
            "explained_variance": 1.0 - error_B.var(correction=0) / spread,
            "rho": every.ratio_B.mean(),
            "rho_clipped": (every.ratio_B > self._config.clip_rho * ROUNDING).float().mean(),
        }
        return {name: float(value) for name, value in values.items()}

    def state(self) -> dict[str, Tensor]:
        return {**add_prefix("optimizer", self._optimizer.state()), **self._intake.state()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._optimizer.load_state(with_prefix("optimizer", state))
        self._intake.load_state(state)


def build_update(model: nn.Module, spaces: Spaces, config: RunConfig) -> ImpalaUpdate:
    assert isinstance(model, ActorCritic)
    return ImpalaUpdate(model, spaces, config)
