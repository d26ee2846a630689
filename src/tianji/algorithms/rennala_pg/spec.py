"""Rennala PG's record. What it does is in algorithms/policy_gradient. No torch at import."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Algorithm, Update
from tianji.algorithms.policy_gradient import record
from tianji.algorithms.rennala_pg.config import RennalaPgConfig
from tianji.envs.interface import Spaces

if TYPE_CHECKING:
    import torch

    from tianji.config.run import RunConfig


def build_update(model: torch.nn.Module, spaces: Spaces, config: RunConfig) -> Update:
    from tianji.algorithms.policy_gradient import update

    return update.build_plain(model, spaces, config)


ALGORITHM = Algorithm(
    name="rennala-pg",
    config=RennalaPgConfig,
    cadence=partial(record.cadence, rule="first"),
    check=record.check,
    fields=record.fields,
    build_model=record.build_model,
    build_acting=record.build_acting,
    build_update=build_update,
    export=record.export,
    build_estimator=record.build_estimator,
)
