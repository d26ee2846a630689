"""Rennala NIGT's record. What it does is in algorithms/policy_gradient."""

from __future__ import annotations

from tianji.algorithms.policy_gradient.record import gathering
from tianji.algorithms.rennala_nigt.config import RennalaNigtConfig

ALGORITHM = gathering(RennalaNigtConfig, rule="first")
