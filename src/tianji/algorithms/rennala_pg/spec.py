"""Rennala PG's record. What it does is in algorithms/policy_gradient. No torch at import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tianji.algorithms.interface import Update
from tianji.algorithms.policy_gradient.record import gathering
from tianji.algorithms.rennala_pg.config import RennalaPgConfig
from tianji.envs.interface import Spaces

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def build_update(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Update:
    from tianji.algorithms.policy_gradient import update

    return update.build_plain(model, spaces, config)


ALGORITHM = gathering(RennalaPgConfig, rule="first", build_update=build_update)
