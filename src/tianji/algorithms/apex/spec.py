"""Ape-X's record: DQN's parts with the settings of config.py. No torch at import: the supervisor
reads this."""

from __future__ import annotations

from dataclasses import replace

from tianji.algorithms.apex.config import ApexConfig
from tianji.algorithms.dqn.spec import ALGORITHM as DQN

ALGORITHM = replace(DQN, name="apex", config=ApexConfig)
