"""AFedPG's record: our reconstruction of Lan et al. (2024) from what is known of it. What it does
is in algorithms/policy_gradient.

    learner: theta_{k+1} = theta_k + alpha_k d / |d| for every d that arrives; publishes
             theta_{k+1}, its look-ahead point and d
    actor:   d = (1 - eta) d_received + eta g, with g sampled and taken at the look-ahead point
             that it received, which may be several versions old when d arrives

The published sources leave open which coefficient the look-ahead has and how an actor comes by the
momentum; both are as in NIGT here.
"""

from __future__ import annotations

from tianji.algorithms.afedpg.config import AFedPgConfig
from tianji.algorithms.policy_gradient.record import gathering

ALGORITHM = gathering(AFedPgConfig, "every", "build_federated", "build_federated")
