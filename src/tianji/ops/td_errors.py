"""TD errors of n-step returns for all items of an unroll at once: the actors' first priorities.

R: rows of an unroll, T = R - n: items, which begin in its first rows, N: environments.
"""

from __future__ import annotations

import numpy as np

from tianji.ops.returns import Bools, Floats


def n_step_td_error(
    q_RN: Floats,
    value_RN: Floats,
    reward_RN: Floats,
    terminated_RN: Bools,
    truncated_RN: Bools,
    valid_RN: Bools,
    n: int,
    gamma: float,
    keeps_final: bool = False,
) -> Floats:
    """Return delta_t of the first T = R - n rows; 0 where a row is not valid.

        delta_t = sum_{k < m} gamma^k r_t+k + gamma^m V(s_t+m) - Q(s_t, a_t)

    q_RN is Q(s_t, a_t) and value_RN is V(s_t) = max_a Q(s_t, a). m is as in n_step_return().

    keeps_final: row t + 1 after the end of an episode is the first of the next one. The final
    observation has no value then; after a truncated step, that of the row before stands in.
    """
    num_items = len(q_RN) - n
    sum_TN = np.zeros(q_RN[:num_items].shape, np.float32)
    discount_TN = np.ones_like(sum_TN)
    bootstrap_TN = np.zeros_like(sum_TN)
    open_TN = np.ones(sum_TN.shape, np.bool_)
    for k in range(n):
        here, following = slice(k, k + num_items), slice(k + 1, k + 1 + num_items)
        open_TN &= valid_RN[here]
        # where, not a product: rows that are not valid may hold anything.
        sum_TN += np.where(open_TN, discount_TN * reward_RN[here], np.float32(0.0))
        value_TN = value_RN[following]
        if keeps_final:
            value_TN = np.where(truncated_RN[here], value_RN[here], value_TN)
        bootstrap_TN = np.where(open_TN, value_TN, bootstrap_TN)
        discount_TN = np.where(open_TN, discount_TN * np.float32(gamma), discount_TN)
        discount_TN[open_TN & terminated_RN[here]] = 0.0
        open_TN &= ~(terminated_RN[here] | truncated_RN[here])
    # where again: after a termination nothing is known of the row that follows.
    next_TN = np.where(discount_TN > 0.0, discount_TN * bootstrap_TN, np.float32(0.0))
    error_TN: Floats = np.where(
        valid_RN[:num_items], sum_TN + next_TN - q_RN[:num_items], np.float32(0.0)
    )
    return error_TN
