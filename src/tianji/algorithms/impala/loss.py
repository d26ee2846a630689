"""IMPALA's loss (Espeholt et al. 2018, section 4.2), as a mean instead of the paper's sum.

T: time, N: environments, R: rows, B: valid steps, A: policy outputs, K: numbers of an action.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tianji.algorithms.actor_critic.experience import Experience, RowOrder
from tianji.algorithms.actor_critic.model import ActorCritic, ModelEvaluator
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.models.tensors import Tensors
from tianji.ops.returns import Floats, vtrace


class UnrollPart(NamedTuple):
    """The unrolls of some environments, as one update takes them.

    inputs: [R, ...] by name; the first B rows are the valid steps
    """

    experience: Experience
    order: RowOrder
    inputs: Tensors
    action_BK: Tensor
    final_value_C: Floats


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


def impala_loss(
    model: ActorCritic, part: UnrollPart, config: ImpalaConfig
) -> tuple[Tensor, TracedSteps]:
    """Return the loss of the valid steps of some environments.

        L = E[ -rho (r + gamma v' - V) log pi(a|s) + c_v (V - v)^2 / 2 - c_e H ]

    The targets v and the weights come from vtrace(), through which no gradient goes.
    """
    num_valid = part.order.num_valid
    outputs_BA, value_B1 = model({name: x[:num_valid] for name, x in part.inputs.items()})
    value_B = value_B1[:, 0]
    log_prob_B = model.head.log_prob(outputs_BA, part.action_BK)
    entropy_B = model.head.entropy(outputs_BA)
    end_inputs = {name: x[num_valid:] for name, x in part.inputs.items()}
    value_R = torch.cat([value_B.detach(), ModelEvaluator(model).values(end_inputs)])
    found = trace(part, config, log_prob_B.detach(), entropy_B.detach(), value_R)
    loss_B = -found.advantage_B * log_prob_B
    loss_B = loss_B + config.value_loss * 0.5 * (value_B - found.target_B).square()
    loss_B = loss_B - config.entropy * entropy_B
    return loss_B.mean(), found


def trace(
    part: UnrollPart, config: ImpalaConfig, log_prob_B: Tensor, entropy_B: Tensor, value_R: Tensor
) -> TracedSteps:
    """Compute the V-trace targets and advantages of the valid steps."""
    experience = part.experience
    log_prob_TN = np.zeros_like(experience.log_prob_TN)
    log_prob_TN[experience.valid_TN] = log_prob_B.numpy(force=True)
    value_T1N = experience.to_grid(part.order, value_R)
    traced = vtrace(
        log_prob_TN - experience.log_prob_TN,
        experience.reward_TN,
        value_T1N[:-1],
        experience.next_value(value_T1N, part.final_value_C),
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
        experience.valid_rows(traced.ratio_TN),
        entropy_B,
        value_R[: part.order.num_valid],
        experience.valid_rows(traced.target_TN),
        experience.valid_rows(traced.advantage_TN),
    )
