"""V-trace targets (Espeholt et al. 2018, equations 1 and 4).

T: time, N: environments side by side. NumPy for the reason given in gae.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tianji.ops.gae import Bools, Floats


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
    """Off-policy value targets and policy-gradient weights from log(pi / mu).

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
