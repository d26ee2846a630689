"""Weights & Biases (extra `wandb`): settings, metrics over environment steps, and the summary.

The library's own variables decide where a run goes: WANDB_MODE=offline, WANDB_PROJECT,
WANDB_ENTITY, WANDB_DIR. Keys stay in its own files.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

from tianji.errors import UsageError
from tianji.observe.callbacks.interface import RunHandle
from tianji.observe.callbacks.secrets import without_secrets
from tianji.observe.callbacks.tracking import (
    PROJECT,
    Tracker,
    import_library,
    keep_id,
    kept_id,
    plain_values,
)

if TYPE_CHECKING:
    from tianji.records import Metrics, Summary

NAME = "wandb"
STEPS = "env_steps"
_OFFLINE = ("offline", "disabled", "dryrun")


class WandbTracker(Tracker):
    """Sends a run to Weights & Biases."""

    def __init__(self) -> None:
        super().__init__()
        self._wandb = import_library(NAME, "Weights & Biases")
        self._run: Any = None
        if os.environ.get("WANDB_MODE", "online") not in _OFFLINE:
            self._log_in()

    def _log_in(self) -> None:
        """Ask for the key now, while nothing runs yet."""
        try:
            is_logged_in = self._wandb.login(verify=False)
        except Exception as error:
            raise UsageError(
                f"Cannot log in to Weights & Biases: {without_secrets(str(error))} Use `wandb "
                "login`, or set WANDB_MODE=offline to write to the run folder only."
            ) from error
        if not is_logged_in:
            raise UsageError(
                "Weights & Biases has no API key. Use `wandb login`, or set WANDB_MODE=offline to "
                "write to the run folder only."
            )

    def log(self, run: RunHandle, record: Metrics) -> None:
        from tianji.observe.tensorboard import to_scalars

        self._open(run).log({STEPS: record["env_steps"], **to_scalars(record)})

    def close(self, run: RunHandle, summary: Summary) -> None:
        opened = self._open(run)
        opened.summary.update(plain_values(summary))
        opened.finish(exit_code=int(summary["stopped_because"] == "failed"))
        self._run = None

    def _open(self, run: RunHandle) -> Any:
        """Return the tracker's run; a resumed run continues the one that it had."""
        if self._run is None:
            run_id = kept_id(run.run_dir, NAME) or uuid.uuid4().hex[:12]
            self._run = self._wandb.init(
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                name=run.run_dir.name,
                id=run_id,
                resume="allow",
                dir=os.environ.get("WANDB_DIR", str(run.run_dir)),
                config=run.config.model_dump(mode="json"),
                settings=self._wandb.Settings(console="off", silent=True),  # the display is ours
            )
            self._run.define_metric(STEPS)
            self._run.define_metric("*", step_metric=STEPS)
            keep_id(run.run_dir, NAME, run_id)
        return self._run
