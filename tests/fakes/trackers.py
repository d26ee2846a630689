"""Stand-ins for `wandb` and `mlflow` with the signatures that we call, which write down the calls.

tests/system/test_tracker_runs.py uses the libraries themselves, where they are installed.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple


class WandbRun:
    """What wandb.init() returns."""

    def __init__(self) -> None:
        self.metrics: list[tuple[str, str | None]] = []
        self.logged: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = {}
        self.exit_code: int | None = None

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.metrics.append((name, step_metric))

    def log(self, data: dict[str, Any], step: int | None = None) -> None:
        assert self.exit_code is None, "it has been finished"
        self.logged.append(data)

    def finish(self, exit_code: int | None = None) -> None:
        self.exit_code = exit_code


class Wandb(ModuleType):
    """The module `wandb`."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.has_key = True
        self.inits: list[dict[str, Any]] = []
        self.runs: list[WandbRun] = []

    def login(self, *, verify: bool = False) -> bool:
        return self.has_key

    def Settings(self, *, console: str, silent: bool) -> dict[str, Any]:
        return {"console": console, "silent": silent}

    def init(
        self,
        *,
        project: str,
        name: str,
        id: str,
        resume: str,
        dir: str,
        config: dict[str, Any],
        settings: dict[str, Any],
    ) -> WandbRun:
        self.inits.append({"project": project, "name": name, "id": id, "resume": resume,
                           "dir": dir, "config": config, "settings": settings})  # fmt: skip
        self.runs.append(WandbRun())
        return self.runs[-1]


class Metric(NamedTuple):
    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    key: str
    value: str


class MlflowRun:
    """A run as the store has it."""

    def __init__(self, experiment_id: str, name: str) -> None:
        self.experiment_id, self.name, self.status = experiment_id, name, "RUNNING"
        self.metrics: list[Metric] = []
        self.params: dict[str, str] = {}
        self.tags: dict[str, str] = {}


class MlflowClient:
    """One store for all clients of a test."""

    def __init__(self, runs: list[MlflowRun], experiments: list[str]) -> None:
        self._runs, self._experiments = runs, experiments

    def get_experiment_by_name(self, name: str) -> Any:
        if name not in self._experiments:
            return None
        return SimpleNamespace(experiment_id=str(self._experiments.index(name)))

    def create_experiment(self, name: str) -> str:
        self._experiments.append(name)
        return str(self._experiments.index(name))

    def create_run(self, experiment_id: str, *, run_name: str) -> Any:
        self._runs.append(MlflowRun(experiment_id, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id=str(len(self._runs) - 1)))

    def update_run(self, run_id: str, status: str) -> None:
        self._runs[int(run_id)].status = status

    def log_batch(
        self, run_id: str, metrics: list[Metric] | None = None, params: list[Param] | None = None
    ) -> None:
        assert len(params or ()) <= 100 and len(metrics or ()) <= 1000, "the server's limits"
        run = self._runs[int(run_id)]
        run.metrics += metrics or ()
        for param in params or ():
            assert run.params.setdefault(param.key, param.value) == param.value, "written once"

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        self._runs[int(run_id)].tags[key] = value

    def set_terminated(self, run_id: str, status: str) -> None:
        self._runs[int(run_id)].status = status


class Mlflow(ModuleType):
    """The module `mlflow`."""

    entities = SimpleNamespace(Metric=Metric, Param=Param)

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.runs: list[MlflowRun] = []
        self.experiments: list[str] = []

    def MlflowClient(self) -> MlflowClient:
        return MlflowClient(self.runs, self.experiments)
