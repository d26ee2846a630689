"""plan.json: what runs in a run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.config.plan import RunPlan
from tianji.config.runs import PLAN_FILE
from tianji.errors import UsageError


def read_plan(run_dir: Path) -> RunPlan:
    path = run_dir / PLAN_FILE
    try:
        return RunPlan.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"Run '{run_dir}' has no {PLAN_FILE}: it never began.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"'{path}' is broken: {error}") from error


class PlanFile:
    """Rewritten when the plan changes or more of it becomes known."""

    def __init__(self, run_dir: Path, plan: RunPlan) -> None:
        self._path = run_dir / PLAN_FILE
        self._plan = plan

    def save(self) -> None:
        replace_json(self._path, self._plan.model_dump(mode="json"))

    def update(self, plan: RunPlan) -> None:
        self._plan = plan
        with contextlib.suppress(OSError):  # a full disk: the file stays as it was
            self.save()

    def complete(self, built: Mapping[str, Any]) -> None:
        """Add what is known once the network is built."""
        self.update(self._plan.model_copy(update=built))
