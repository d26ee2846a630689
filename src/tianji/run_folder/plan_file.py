"""Reads and writes plan.json, the plan of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.config.plan import RunPlan
from tianji.errors import UsageError
from tianji.run_folder.paths import PLAN_FILE


def read_plan(run_dir: Path) -> RunPlan:
    path = run_dir / PLAN_FILE
    try:
        return RunPlan.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"Run '{run_dir}' has no {PLAN_FILE}: it never started.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"'{path}' is not a valid plan: {error}") from error


class PlanFile:
    """Rewrites plan.json when the plan changes."""

    def __init__(self, run_dir: Path, plan: RunPlan) -> None:
        self._path = run_dir / PLAN_FILE
        self._plan = plan

    def save(self) -> None:
        replace_json(self._path, self._plan.model_dump(mode="json"))

    def update(self, plan: RunPlan) -> None:
        self._plan = plan
        with contextlib.suppress(OSError):  # on a full disk the old file stays
            self.save()

    def complete(self, built: Mapping[str, Any]) -> None:
        """Add the values that are known once the network is built."""
        self.update(self._plan.model_copy(update=built))
