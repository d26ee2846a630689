"""MLflow (extra `mlflow`): settings, metrics over environment steps, and the summary.

The library's own variables decide where a run goes: MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tianji.config.schema import flat
from tianji.config.settings import value_text
from tianji.observe.callbacks.interface import RunHandle
from tianji.observe.callbacks.tracking import (
    PROJECT,
    Tracker,
    import_library,
    keep_id,
    kept_id,
    plain_values,
)

if TYPE_CHECKING:
    from tianji.records import Metrics, StoppedBecause, Summary

NAME = "mlflow"
MOST_AT_ONCE = 100
"""Parameters that one call may carry."""
LONGEST_VALUE = 500
"""Characters of a parameter that every server takes."""
ENDS: Mapping[StoppedBecause, str] = {"failed": "FAILED", "interrupted": "KILLED"}
"""How MLflow calls ends; all others are `FINISHED`."""


class MlflowTracker(Tracker):
    """Sends a run to MLflow."""

    def __init__(self) -> None:
        super().__init__()
        self._mlflow = import_library(NAME, "MLflow")
        logging.getLogger(NAME).setLevel(logging.WARNING)  # the display is ours
        self._client: Any = None
        self._run_id = ""

    def log(self, run: RunHandle, record: Metrics) -> None:
        from tianji.observe.tensorboard import to_scalars

        self._send(run, to_scalars(record), record["env_steps"])

    def close(self, run: RunHandle, summary: Summary) -> None:
        values = plain_values(summary)
        numbers = {name: float(v) for name, v in values.items() if not isinstance(v, str)}
        self._send(run, numbers, summary["env_steps"])
        for name, text in values.items():
            if isinstance(text, str):
                self._client.set_tag(self._run_id, f"{PROJECT}.{name}", text)
        self._client.set_terminated(self._run_id, ENDS.get(summary["stopped_because"], "FINISHED"))
        self._client = None

    def _send(self, run: RunHandle, numbers: Mapping[str, float], step: int) -> None:
        metric, now_ms = self._mlflow.entities.Metric, int(time.time() * 1000)
        client = self._open(run)
        metrics = [metric(name, value, now_ms, step) for name, value in numbers.items()]
        client.log_batch(self._run_id, metrics=metrics)

    def _open(self, run: RunHandle) -> Any:
        """Return the client, with the run that is logged to; a resumed run continues its own."""
        if self._client is not None:
            return self._client
        client = self._mlflow.MlflowClient()
        kept = kept_id(run.run_dir, NAME)
        if kept is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
            experiment = client.get_experiment_by_name(name)
            where = (
                client.create_experiment(name) if experiment is None else experiment.experiment_id
            )
            self._run_id = client.create_run(where, run_name=run.run_dir.name).info.run_id
            self._log_settings(client, run)
            keep_id(run.run_dir, NAME, self._run_id)
        else:
            self._run_id = kept
            client.update_run(kept, status="RUNNING")
        self._client = client
        return client

    def _log_settings(self, client: Any, run: RunHandle) -> None:
        param = self._mlflow.entities.Param
        settings = flat(run.config.model_dump(mode="json"))
        params = [param(name, value_text(v)[:LONGEST_VALUE]) for name, v in settings.items()]
        for first in range(0, len(params), MOST_AT_ONCE):
            client.log_batch(self._run_id, params=params[first : first + MOST_AT_ONCE])
