"""What every worker of a run is started from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What was asked, what was derived, and what the environment is like."""

    config: RunConfig
    plan: RunPlan
    spaces: Spaces
    env: str | Callable[..., Any]
    """The environment: config.env, or the callable that was given instead."""
    run_dir: Path
