"""n-step returns of sampled replay items (Sutton and Barto 2018, equation 7.1).

S: slots of the store, R: rows of a slot, N: environments side by side, B: sampled items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tianji.ops.gae import Bools, Floats

Indices = NDArray[np.integer]


class NStepReturn(NamedTuple):
    """One entry per sampled item.

    reward_B:   discounted sum of the first m rewards, 1 <= m <= n
    discount_B: gamma^m, the weight of the bootstrap value; 0 where the episode terminated
    next_row_B: row + m, the row of `obs` to bootstrap from
    ended_B:    the episode ended with step row + m - 1; a world that keeps final observations apart
                has the one to bootstrap from in row next_row - 1 of `final_obs`
    """

    reward_B: Floats
    discount_B: Floats
    next_row_B: NDArray[np.int64]
    ended_B: Bools


def n_step_return(
    reward_SRN: Floats,
    terminated_SRN: Bools,
    truncated_SRN: Bools,
    valid_SRN: Bools,
    slot_B: Indices,
    row_B: Indices,
    env_B: Indices,
    n: int,
    gamma: float,
) -> NStepReturn:
    """Look n steps ahead from each (slot, row, env), which must be a valid step.

        R_t = sum_{k < m} gamma^k r_t+k,    bootstrap gamma^m V(s_t+m)

    m is n, or less where the episode ends first (terminated: no bootstrap; truncated: bootstrap
    from the final observation) or where the next row is not valid. Row + n - 1 must lie in the
    slot. n = 1 gives ordinary transitions.
    """
    reward_B = np.zeros(len(row_B), np.float32)
    discount_B = np.ones(len(row_B), np.float32)
    next_row_B = row_B.astype(np.int64)
    terminated_B = np.zeros(len(row_B), np.bool_)
    ended_B = np.zeros(len(row_B), np.bool_)
    open_B = np.ones(len(row_B), np.bool_)
    for k in range(n):
        # Closed items look at their first row again, where nothing is added.
        at = (slot_B, np.where(open_B, row_B + k, row_B), env_B)
        open_B &= valid_SRN[at]
        # where, not a product: rewards of rows that are not valid may be anything, NaN included.
        reward_B += np.where(open_B, discount_B * reward_SRN[at], np.float32(0.0))
        discount_B = np.where(open_B, discount_B * np.float32(gamma), discount_B)
        next_row_B += open_B
        terminated_B |= open_B & terminated_SRN[at]
        ended_B |= open_B & (terminated_SRN[at] | truncated_SRN[at])
        open_B &= ~ended_B
    discount_B = np.where(terminated_B, np.float32(0.0), discount_B)
    return NStepReturn(reward_B, discount_B, next_row_B, ended_B)
