"""Synchronous NIGT's record. What it does is in algorithms/policy_gradient."""

from __future__ import annotations

from tianji.algorithms.policy_gradient.record import gathering
from tianji.algorithms.sync_nigt.config import SyncNigtConfig

ALGORITHM = gathering(SyncNigtConfig, rule="barrier")
