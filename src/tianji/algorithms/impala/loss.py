"""IMPALA's loss (Espeholt et al. 2018, section 4.2), as a mean instead of the paper's sum.

T: time, N: environments, R: rows, B: valid steps, A: policy outputs, K: numbers of an action.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.actor_critic.experience import Experience, RowOrder
from tianji.algorithms.actor_critic.model import ActorCritic
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.models.tensors import Tensors, to_tensor
from tianji.ops.means import mean
from tianji.ops.returns import vtrace, vtrace_tensors


class TracedSteps(NamedTuple):
    """The valid steps of one minibatch under the learner's policy, before its update.

    ratio_B: pi / mu, unclipped;  target_B: v;  advantage_B: rho (r + gamma v' - V)
    """

    log_prob_B: Tensor
    ratio_B: Tensor
    entropy_B: Tensor
    value_B: Tensor
    target_B: Tensor
    advantage_B: Tensor


class UnrollPart(NamedTuple):
    """The unrolls of some environments, as one update takes them.

    inputs: [R, ...] by name; the first B rows are the valid steps
    """

    experience: Experience
    order: RowOrder
    inputs: Tensors
    action_BK: Tensor
    final_value_C: Tensor

    @property
    def num_steps(self) -> int:
        return self.order.num_valid

    @property
    def weights(self) -> Tensor | None:
        """Return None: only valid steps are kept."""
        return None

    def trace(
        self, config: ImpalaConfig, log_prob_B: Tensor, entropy_B: Tensor, value_R: Tensor
    ) -> TracedSteps:
        """Compute the V-trace targets and advantages of the valid steps."""
        experience = self.experience
        log_prob_TN = np.zeros_like(experience.log_prob_TN)
        log_prob_TN[experience.valid_TN] = log_prob_B.numpy(force=True)
        log_ratio_TN = log_prob_TN - experience.log_prob_TN
        value_T1N = experience.to_grid(self.order, value_R)
        traced = vtrace(
            log_ratio_TN if config.corrects_lag else np.zeros_like(log_ratio_TN),
            experience.reward_TN,
            value_T1N[:-1],
            experience.next_value(value_T1N, self.final_value_C),
            experience.terminated_TN,
            experience.truncated_TN,
            experience.valid_TN,
            config.gamma,
            config.trace_lambda,
            config.clip_rho,
            config.clip_c,
            config.clip_pg_rho,
        )
        return TracedSteps(
            log_prob_B,
            experience.valid_rows(log_ratio_TN).exp(),
            entropy_B,
            value_R[: self.order.num_valid],
            experience.valid_rows(traced.target_TN),
            experience.valid_rows(traced.advantage_TN),
        )


class PaddedPart(NamedTuple):
    """All steps of some environments as tensors of fixed shapes, for a CUDA graph.

    final_value_TN: values of final observations that are kept apart, where has_final_TN
    weight_B: 0 for steps that are not valid
    """

    inputs: Tensors
    action_BK: Tensor
    log_prob_TN: Tensor
    reward_TN: Tensor
    terminated_TN: Tensor
    truncated_TN: Tensor
    valid_TN: Tensor
    final_value_TN: Tensor
    has_final_TN: Tensor
    weight_B: Tensor

    @property
    def num_steps(self) -> int:
        return len(self.action_BK)

    @property
    def weights(self) -> Tensor | None:
        return self.weight_B

    def trace(
        self, config: ImpalaConfig, log_prob_B: Tensor, entropy_B: Tensor, value_R: Tensor
    ) -> TracedSteps:
        """Compute the V-trace targets and advantages of all steps."""
        shape = self.valid_TN.shape
        log_ratio_TN = log_prob_B.view(shape) - self.log_prob_TN
        value_T1N = value_R.view(shape[0] + 1, shape[1])
        traced = vtrace_tensors(
            log_ratio_TN if config.corrects_lag else torch.zeros_like(log_ratio_TN),
            self.reward_TN,
            value_T1N[:-1],
            torch.where(self.has_final_TN, self.final_value_TN, value_T1N[1:]),
            self.terminated_TN,
            self.truncated_TN,
            self.valid_TN,
            config.gamma,
            config.trace_lambda,
            config.clip_rho,
            config.clip_c,
            config.clip_pg_rho,
        )
        target_TN, advantage_TN, _ = traced
        return TracedSteps(
            log_prob_B,
            log_ratio_TN.masked_fill(~self.valid_TN, 0.0).exp().flatten(),
            entropy_B,
            value_R[: self.num_steps],
            target_TN.flatten(),
            advantage_TN.flatten(),
        )


def padded_part(experience: Experience, inputs: Tensors, final_value_C: Tensor) -> PaddedPart:
    """Return all steps of an Experience on its device."""
    device = experience.device
    has_final_TN = experience.truncated_TN & experience.valid_TN & bool(len(final_value_C))
    final_value_TN = torch.zeros(has_final_TN.shape, device=device)
    if len(final_value_C):
        final_value_TN.view(-1)[to_tensor(np.flatnonzero(has_final_TN), device)] = final_value_C
    weight_B = experience.weight_rows()
    assert weight_B is not None
    return PaddedPart(
        inputs,
        experience.action_rows(),
        log_prob_TN=to_tensor(experience.log_prob_TN, device),
        reward_TN=to_tensor(experience.reward_TN, device),
        terminated_TN=to_tensor(experience.terminated_TN, device),
        truncated_TN=to_tensor(experience.truncated_TN, device),
        valid_TN=to_tensor(experience.valid_TN, device),
        final_value_TN=final_value_TN,
        has_final_TN=to_tensor(has_final_TN, device),
        weight_B=weight_B,
    )


def impala_loss(
    model: ActorCritic, part: UnrollPart | PaddedPart, config: ImpalaConfig
) -> tuple[Tensor, TracedSteps]:
    """Return the loss of the valid steps of some environments.

        L = E[ -rho (r + gamma v' - V) log pi(a|s) + c_v (V - v)^2 / 2 - c_e H ]

    The targets v and the weights come from vtrace(), through which no gradient goes. Without a
    correction pi/mu is treated as 1 in it.
    """
    num_valid = part.num_steps
    outputs_BA, value_B, end_value = model.rows_and_ends(part.inputs, num_valid)
    log_prob_B = model.head.log_prob(outputs_BA, part.action_BK)
    entropy_B = model.head.entropy(outputs_BA)
    value_R = torch.cat([value_B.detach(), end_value])
    found = part.trace(config, log_prob_B.detach(), entropy_B.detach(), value_R)
    loss_B = -found.advantage_B * log_prob_B
    loss_B = loss_B + config.value_loss * 0.5 * (value_B - found.target_B).square()
    loss_B = loss_B - config.entropy * entropy_B
    return mean(loss_B, part.weights), found
