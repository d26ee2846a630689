"""AFedPG's record: our reconstruction of Lan et al. (2024) from what is known of it. What it does
is in algorithms/policy_gradient. No torch at import.

    learner: theta_{k+1} = theta_k + alpha_k d / |d| for every d that arrives; publishes
             theta_{k+1}, its look-ahead point and d
    actor:   d = (1 - eta) d_received + eta g, with g sampled and taken at the look-ahead point
             that it received, which may be several versions old when d arrives

The published sources leave open which coefficient the look-ahead has and how an actor comes by the
momentum; both are as in NIGT here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.algorithms.afedpg.config import AFedPgConfig
from tianji.algorithms.interface import Estimator, Update
from tianji.algorithms.policy_gradient.record import gathering
from tianji.envs.interface import Spaces

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def build_estimator(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Estimator:
    from tianji.algorithms.policy_gradient import estimator

    return estimator.build_federated(model, spaces, config)


def build_update(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Update:
    from tianji.algorithms.policy_gradient import update

    return update.build_federated(model, spaces, config)


ALGORITHM = gathering(AFedPgConfig, "every", build_update, build_estimator)
