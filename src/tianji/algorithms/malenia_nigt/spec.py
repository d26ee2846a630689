"""Malenia NIGT's record. What it does is in algorithms/policy_gradient."""

from __future__ import annotations

from tianji.algorithms.malenia_nigt.config import MaleniaNigtConfig
from tianji.algorithms.policy_gradient.record import gathering

ALGORITHM = gathering(MaleniaNigtConfig, rule="harmonic")
