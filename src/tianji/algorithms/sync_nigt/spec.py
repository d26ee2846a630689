"""Synchronous NIGT's record. What it does is in algorithms/policy_gradient. No torch at import."""

from __future__ import annotations

from functools import partial

from tianji.algorithms.interface import Algorithm
from tianji.algorithms.policy_gradient import record
from tianji.algorithms.sync_nigt.config import SyncNigtConfig

ALGORITHM = Algorithm(
    name="sync-nigt",
    config=SyncNigtConfig,
    cadence=partial(record.cadence, rule="barrier"),
    check=record.check,
    fields=record.fields,
    build_model=record.build_model,
    build_acting=record.build_acting,
    build_update=record.build_nigt,
    export=record.export,
    build_estimator=record.build_estimator,
)
