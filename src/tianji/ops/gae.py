"""Generalised advantage estimation (Schulman et al. 2016, equation 16).

T: time, N: environments side by side. NumPy, because the recursion touches N numbers at a time and
NumPy's call is several times cheaper than a tensor library's on so few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


def gae(
    reward_TN: Floats,
    value_TN: Floats,
    next_value_TN: Floats,
    terminated_TN: Bools,
    truncated_TN: Bools,
    valid_TN: Bools,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Advantage of every valid step; 0 for the others.

        delta_t = r_t + gamma * V(s_t+1) * (1 - terminated_t) - V(s_t)
        A_t     = delta_t + gamma * lambda * (1 - terminated_t) * (1 - truncated_t) * A_t+1

    next_value_TN is the value of what step t led to: at the end of an episode that of the final
    observation, never that of the next episode's first. A truncated step bootstraps from it and
    ends the recursion; a terminated one does neither. A step that is not valid adds nothing and
    lets nothing through. lambda 0 gives the TD error, lambda 1 the return minus the value.
    """
    bootstrap_TN = np.where(terminated_TN, np.float32(0.0), next_value_TN)
    delta_TN = reward_TN + np.float32(gamma) * bootstrap_TN - value_TN
    advantage_TN: Floats = np.where(valid_TN, delta_TN, np.float32(0.0))
    goes_on_TN = valid_TN & ~terminated_TN & ~truncated_TN
    carry_TN = np.float32(gamma * gae_lambda) * goes_on_TN
    for t in range(len(advantage_TN) - 2, -1, -1):
        advantage_TN[t] += carry_TN[t] * advantage_TN[t + 1]
    return advantage_TN
