"""REINFORCE with causality, on the discounted objective itself (Williams 1992):

    g(tau) = sum_t (sum_{h >= t} gamma^h r_h) grad log pi(a_t | s_t)

h counts from the beginning of the episode, in the discount too: unlike gamma^(h - t), it makes g an
unbiased gradient of E[sum_h gamma^h r_h] over the first T steps.

T: time, N: environments.
"""

from __future__ import annotations

import numpy as np

from tianji.ops.gae import Bools, Floats


def first_episode(done_TN: Bools, valid_TN: Bools) -> Bools:
    """Mark the steps of each environment up to and including its first end of an episode. A step
    that is not valid ends it, too: the environment failed there."""
    is_over_TN = np.zeros_like(valid_TN)
    np.logical_or.accumulate((done_TN | ~valid_TN)[:-1], 0, out=is_over_TN[1:])
    first_TN: Bools = valid_TN & ~is_over_TN
    return first_TN


def discounted_to_go(reward_TN: Floats, counts_TN: Bools, gamma: float) -> Floats:
    """Return sum_{h >= t} gamma^h r_h over the steps that count, in double precision."""
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
