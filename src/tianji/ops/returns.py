"""Returns, advantages and targets: GAE, V-trace, n-step returns and REINFORCE's returns-to-go.

T: time, N: environments side by side, S: slots of a store, R: rows of a slot, B: sampled items.
NumPy, because the recursions touch N numbers at a time and NumPy's call is several times cheaper
than a tensor library's on so few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Indices = NDArray[np.integer]


def gae(
    reward_TN: Floats,
    value_TN: Floats,
    next_value_TN: Floats,
    terminated_TN: Bools,
    truncated_TN: Bools,
    valid_TN: Bools,
    gamma: float,
    gae_lambda: float,
    next_N: Indices | None = None,
) -> Floats:
    """Return the advantage of every valid step (Schulman et al. 2016, equation 16); 0 for others.

        delta_t = r_t + gamma * V(s_t+1) * (1 - terminated_t) - V(s_t)
        A_t     = delta_t + gamma * lambda * (1 - terminated_t) * (1 - truncated_t) * A_t+1

    next_value_TN is the value of what step t led to: at the end of an episode that of the final
    observation, never that of the next episode's first. A truncated step bootstraps from it and
    ends the recursion; a terminated one does neither. A step that is not valid adds nothing and
    lets nothing through. lambda 0 gives the TD error, lambda 1 the return minus the value.

    next_N: the column in which the steps of each column go on, -1 where they do not; None: nowhere.
    The recursion runs on from the last row of one to the first row of the other.
    """
    bootstrap_TN = np.where(terminated_TN, np.float32(0.0), next_value_TN)
    delta_TN = reward_TN + np.float32(gamma) * bootstrap_TN - value_TN
    advantage_TN: Floats = np.where(valid_TN, delta_TN, np.float32(0.0))
    goes_on_TN = valid_TN & ~terminated_TN & ~truncated_TN
    carry_TN = np.float32(gamma * gae_lambda) * goes_on_TN
    for t in range(len(advantage_TN) - 2, -1, -1):
        advantage_TN[t] += carry_TN[t] * advantage_TN[t + 1]
    if next_N is not None:
        share_TN = np.cumprod(carry_TN[::-1], 0)[::-1]
        first_N = _first_rows(advantage_TN[0], share_TN[0], next_N)
        advantage_TN += share_TN * np.where(next_N < 0, np.float32(0.0), first_N[next_N])
    return advantage_TN


def _first_rows(alone_N: Floats, share_N: Floats, next_N: Indices) -> Floats:
    """Return the first advantage of every column, with all columns that follow it.

        first_n = alone_n + share_n * first_next(n)

    Each turn puts the equation of the next column into that of this one, which doubles how far it
    looks ahead.
    """
    first_N, share_N = alone_N, np.where(next_N < 0, np.float32(0.0), share_N)
    while share_N.any():
        first_N = first_N + share_N * first_N[next_N]
        share_N, next_N = share_N * share_N[next_N], next_N[next_N]
    return first_N


def gae_tensors(
    reward_TN: Tensor,
    value_TN: Tensor,
    next_value_TN: Tensor,
    terminated_TN: Tensor,
    truncated_TN: Tensor,
    valid_TN: Tensor,
    gamma: float,
    gae_lambda: float,
    next_N: Tensor,
) -> Tensor:
    """Return what gae() returns, on any device and without a look at the values."""
    bootstrap_TN = next_value_TN.masked_fill(terminated_TN, 0.0)
    delta_TN = reward_TN + gamma * bootstrap_TN - value_TN
    advantage_TN = delta_TN.masked_fill(~valid_TN, 0.0)
    carry_TN = gamma * gae_lambda * (valid_TN & ~terminated_TN & ~truncated_TN)
    for t in range(len(advantage_TN) - 2, -1, -1):
        advantage_TN[t].addcmul_(carry_TN[t], advantage_TN[t + 1])
    share_TN = carry_TN.flip(0).cumprod(0).flip(0)
    goes_on_N, at_N = next_N >= 0, next_N.clamp(min=0)
    first_N, share_N, ahead_N = advantage_TN[0], share_TN[0] * goes_on_N, at_N
    for _ in range(len(next_N).bit_length()):  # see _first_rows
        first_N = first_N + share_N * first_N[ahead_N]
        share_N, ahead_N = share_N * share_N[ahead_N], ahead_N[ahead_N]
    return advantage_TN + share_TN * (goes_on_N * first_N[at_N])


class VTrace(NamedTuple):
    """Targets and weights of IMPALA's losses; all 0 where a step is not valid.

    target_TN:    v_t, what the value of s_t should be
    advantage_TN: rho_pg_t * (r_t + gamma_t v_t+1 - V(s_t)), the weight of grad log pi(a_t)
    ratio_TN:     pi / mu, unclipped
    """

    target_TN: Floats
    advantage_TN: Floats
    ratio_TN: Floats


def vtrace(
    log_ratio_TN: Floats,
    reward_TN: Floats,
    value_TN: Floats,
    next_value_TN: Floats,
    terminated_TN: Bools,
    truncated_TN: Bools,
    valid_TN: Bools,
    gamma: float,
    trace_lambda: float = 1.0,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    clip_pg_rho: float = 1.0,
) -> VTrace:
    """Return value targets and policy-gradient weights (Espeholt et al. 2018, equations 1 and 4).

        rho_t = min(clip_rho, pi/mu)     c_t = lambda * min(clip_c, pi/mu)
        delta_t      = rho_t (r_t + gamma_t V(s_t+1) - V(s_t)),  gamma_t = gamma (1 - terminated_t)
        v_t - V(s_t) = delta_t + gamma_t c_t (v_t+1 - V(s_t+1))

    next_value_TN is as for gae(). A truncated step bootstraps from it, and both v_t+1 and the
    trace stop there; a step that is not valid adds nothing and lets nothing through. With pi = mu
    and no clipping, v is the lambda-return and the advantage that of lambda = 1 bootstrapping on v.
    """
    zero = np.float32(0.0)
    ratio_TN = np.exp(np.where(valid_TN, log_ratio_TN, zero))
    goes_on_TN = valid_TN & ~terminated_TN & ~truncated_TN
    bootstrap_TN = np.where(terminated_TN, zero, next_value_TN)
    td_error_TN = reward_TN + np.float32(gamma) * bootstrap_TN - value_TN
    delta_TN = np.minimum(ratio_TN, np.float32(clip_rho)) * td_error_TN

    correction_TN: Floats = np.where(valid_TN, delta_TN, zero)
    trace_TN = np.float32(gamma * trace_lambda) * np.minimum(ratio_TN, np.float32(clip_c))
    carry_TN = trace_TN * goes_on_TN
    for t in range(len(correction_TN) - 2, -1, -1):
        correction_TN[t] += carry_TN[t] * correction_TN[t + 1]

    # The last row, and a row before a border, bootstrap from V itself: its correction is 0.
    next_correction_TN = np.zeros_like(correction_TN)
    next_correction_TN[:-1] = np.where(goes_on_TN[:-1], correction_TN[1:], zero)
    weight_TN = np.minimum(ratio_TN, np.float32(clip_pg_rho))
    advantage_TN = weight_TN * (td_error_TN + np.float32(gamma) * next_correction_TN)
    return VTrace(
        target_TN=np.where(valid_TN, value_TN + correction_TN, zero),
        advantage_TN=np.where(valid_TN, advantage_TN, zero),
        ratio_TN=np.where(valid_TN, ratio_TN, zero),
    )


def vtrace_tensors(
    log_ratio_TN: Tensor,
    reward_TN: Tensor,
    value_TN: Tensor,
    next_value_TN: Tensor,
    terminated_TN: Tensor,
    truncated_TN: Tensor,
    valid_TN: Tensor,
    gamma: float,
    trace_lambda: float = 1.0,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    clip_pg_rho: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what vtrace() returns (targets, advantages, ratios), on any device."""
    ratio_TN = log_ratio_TN.masked_fill(~valid_TN, 0.0).exp()
    goes_on_TN = valid_TN & ~terminated_TN & ~truncated_TN
    bootstrap_TN = next_value_TN.masked_fill(terminated_TN, 0.0)
    td_error_TN = reward_TN + gamma * bootstrap_TN - value_TN
    correction_TN = (ratio_TN.clamp(max=clip_rho) * td_error_TN).masked_fill(~valid_TN, 0.0)
    carry_TN = gamma * trace_lambda * ratio_TN.clamp(max=clip_c) * goes_on_TN
    for t in range(len(correction_TN) - 2, -1, -1):
        correction_TN[t].addcmul_(carry_TN[t], correction_TN[t + 1])
    following_TN = torch.zeros_like(correction_TN)
    following_TN[:-1] = correction_TN[1:].masked_fill(~goes_on_TN[:-1], 0.0)
    advantage_TN = ratio_TN.clamp(max=clip_pg_rho) * (td_error_TN + gamma * following_TN)
    found = value_TN + correction_TN, advantage_TN, ratio_TN
    target_TN, advantage_TN, ratio_TN = (x_TN.masked_fill(~valid_TN, 0.0) for x_TN in found)
    return target_TN, advantage_TN, ratio_TN


class NStepReturn(NamedTuple):
    """One entry per sampled item.

    reward_B:   discounted sum of the first m rewards, 1 <= m <= n
    discount_B: gamma^m, the weight of the bootstrap value; 0 where the episode terminated
    next_row_B: row + m, the row of `obs` to bootstrap from; it may lie beyond the end of the ring
    ended_B:    the episode ended with step row + m - 1; a world that keeps final observations apart
                has the one to bootstrap from in row next_row - 1 of `final_obs`
    """

    reward_B: Floats
    discount_B: Floats
    next_row_B: NDArray[np.int64]
    ended_B: Bools


def n_step_return(
    reward_LRN: Floats,
    terminated_LRN: Bools,
    truncated_LRN: Bools,
    valid_LRN: Bools,
    lane_B: Indices,
    row_B: Indices,
    env_B: Indices,
    n: int,
    gamma: float,
) -> NStepReturn:
    """Look n steps ahead from each (lane, row, env), which must be a valid step (Sutton and Barto
    2018, equation 7.1).

        R_t = sum_{k < m} gamma^k r_t+k,    bootstrap gamma^m V(s_t+m)

    m is n, or less where the episode ends first (terminated: no bootstrap; truncated: bootstrap
    from the final observation) or where the next row is not valid. The rows of a lane are a ring:
    row 0 follows the last one. n = 1 gives ordinary transitions.
    """
    _, num_rows, num_envs = reward_LRN.shape
    reward, terminated, truncated, valid = (
        each.reshape(-1) for each in (reward_LRN, terminated_LRN, truncated_LRN, valid_LRN)
    )
    begin_B = lane_B * num_rows
    reward_B = np.zeros(len(row_B), np.float32)
    discount_B = np.ones(len(row_B), np.float32)
    next_row_B = row_B.astype(np.int64)
    terminated_B = np.zeros(len(row_B), np.bool_)
    ended_B = np.zeros(len(row_B), np.bool_)
    open_B = np.ones(len(row_B), np.bool_)
    for k in range(n):
        at_B = (begin_B + (row_B + k) % num_rows) * num_envs + env_B
        open_B &= valid.take(at_B)
        # where, not a product: rewards of rows that are not valid may be anything, NaN included.
        reward_B += np.where(open_B, discount_B * reward.take(at_B), np.float32(0.0))
        discount_B = np.where(open_B, discount_B * np.float32(gamma), discount_B)
        next_row_B += open_B
        ends_B = terminated.take(at_B)
        terminated_B |= open_B & ends_B
        ended_B |= open_B & (ends_B | truncated.take(at_B))
        open_B &= ~ended_B
    discount_B = np.where(terminated_B, np.float32(0.0), discount_B)
    return NStepReturn(reward_B, discount_B, next_row_B, ended_B)


def first_episode(done_TN: Bools, valid_TN: Bools) -> Bools:
    """Mark the steps of each environment up to and including its first end of an episode. A step
    that is not valid ends it, too: the environment failed there."""
    is_over_TN = np.zeros_like(valid_TN)
    np.logical_or.accumulate((done_TN | ~valid_TN)[:-1], 0, out=is_over_TN[1:])
    first_TN: Bools = valid_TN & ~is_over_TN
    return first_TN


def discounted_to_go(reward_TN: Floats, counts_TN: Bools, gamma: float) -> Floats:
    """Return sum_{h >= t} gamma^h r_h over the steps that count, in double precision.

    These are the weights of REINFORCE with causality (Williams 1992), on the discounted objective:

        g(tau) = sum_t (sum_{h >= t} gamma^h r_h) grad log pi(a_t | s_t)

    h counts from the beginning of the episode, in the discount too: unlike gamma^(h - t), it makes
    g an unbiased gradient of E[sum_h gamma^h r_h] over the first T steps.
    """
    discount_T1 = np.power(gamma, np.arange(len(reward_TN), dtype=np.float64))[:, None]
    discounted_TN = np.where(counts_TN, reward_TN, 0.0) * discount_T1
    return np.cumsum(discounted_TN[::-1], 0)[::-1]


def without_peers(to_go_TN: Floats, counts_TN: Bools) -> Floats:
    """Subtract the mean of the other environments that are still in their episode at that step.

    Those do not depend on this environment's actions, so the mean of the gradient does not change.
    Differences are taken first, so that equal returns give exactly 0: a normalised step would blow
    a rounding error up to its full length. An environment without others keeps its return.
    """
    best_T1 = np.where(counts_TN, to_go_TN, -np.inf).max(1, keepdims=True)
    behind_TN = np.where(counts_TN, to_go_TN - best_T1, 0.0)
    num_others_T1 = counts_TN.sum(1, keepdims=True) - 1
    others_TN = behind_TN.sum(1, keepdims=True) - behind_TN
    compared_TN = behind_TN - others_TN / np.maximum(num_others_T1, 1)
    return np.where(counts_TN, np.where(num_others_T1 > 0, compared_TN, to_go_TN), 0.0)
