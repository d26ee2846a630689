"""Trackers, offline: what Weights & Biases and MLflow hold after a run and after its resume."""

import json
import struct
from pathlib import Path

import pytest

from tests.system.runs import PPO, QUIET
from tianji.config.run import RunConfig
from tianji.run import resume_run, train_config

KEY = "0123456789abcdef0123456789abcdef01234567"
BLOCK = 32 << 10


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def train(tracker):
    return train_config(
        RunConfig.model_validate({
            "algorithm": PPO, "engine": "inline", "num_envs": 4, "max_env_steps": 3000,
            "observe": {**QUIET, "period_s": 0.05}, "plan": {"source": "rule"},
            "callbacks": [tracker], "run": "it",
        })
    )  # fmt: skip


def test_mlflow_holds_settings_metrics_summary_and_checkpoint(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="extra mlflow is not installed")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    summary = train("mlflow")
    assert summary["callback_errors"] == 0
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("tianji")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.run_name == "it" and found.info.status == "FINISHED"
    assert found.data.params["algorithm.unroll_length"] == "16"
    assert found.data.tags["tianji.checkpoint"] == summary["checkpoint"]
    history = client.get_metric_history(found.info.run_id, "actor/mean_return_100")
    assert history[-1].step == summary["env_steps"]
    assert history[-1].value == summary["mean_return_100"] == found.data.metrics["mean_return_100"]
    again = resume_run(Path("runs/it"), {"max_env_steps": 4000})
    (found,) = client.search_runs([experiment.experiment_id])
    assert again["callback_errors"] == 0
    assert found.data.metrics["env_steps"] == again["env_steps"] > summary["env_steps"]


def test_mlflow_marks_a_failed_run(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="extra mlflow is not installed")
    from tianji.observe.callbacks.interface import RunHandle
    from tianji.observe.callbacks.mlflow import MlflowTracker
    from tianji.observe.summary import build_summary

    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    config = RunConfig(algorithm="ppo")
    facts = {"stopped_because": "failed", "first_cause": "it broke"}
    MlflowTracker().on_end(RunHandle(config, tmp_path), build_summary(config, tmp_path, facts))
    client = mlflow.MlflowClient()
    (found,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert found.info.status == "FAILED" and found.data.tags["tianji.first_cause"] == "it broke"


def test_wandb_holds_settings_metrics_summary_and_checkpoint(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="extra wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    summary = train("wandb")
    assert summary["callback_errors"] == 0
    (first,) = recorded()
    assert first["config"]["algorithm"]["unroll_length"] == 16
    assert first["history"][-1]["env_steps"] == summary["env_steps"]
    assert first["history"][-1]["actor/mean_return_100"] == summary["mean_return_100"]
    assert first["summary"]["checkpoint"] == summary["checkpoint"]
    assert first["summary"]["stopped_because"] == "max_env_steps"
    assert first["name"] == "it" and first["exit_code"] == 0
    resume_run(Path("runs/it"), {"max_env_steps": 4000})
    assert {one["id"] for one in recorded()} == {first["id"]}, "it continues the same run there"
    assert not [path for path in files_of(tmp_path) if KEY.encode() in path.read_bytes()]


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def recorded():
    """What the files of Weights & Biases hold, one after the other."""
    from wandb.proto import wandb_internal_pb2

    runs = []
    for path in sorted(Path("runs/it/wandb").rglob("*.wandb")):
        whole = {"history": [], "summary": {}, "config": {}}
        for data in log_entries(path.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                whole |= {"id": record.run.run_id, "name": record.run.display_name}
                whole["config"] |= values_of(record.run.config.update)
            elif record.HasField("history"):
                whole["history"].append(values_of(record.history.item))
            elif record.HasField("summary"):
                whole["summary"] |= values_of(record.summary.update)
            elif record.HasField("exit"):
                whole["exit_code"] = record.exit.exit_code
        runs.append(whole)
    return runs


def log_entries(data):
    """The entries of a log in the format of LevelDB: blocks of 32 KiB, entries in pieces."""
    place, whole = 7, b""
    while place + 7 <= len(data):
        if place % BLOCK > BLOCK - 7:
            place += -place % BLOCK
            continue
        size, kind = struct.unpack_from("<HB", data, place + 4)
        whole += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole entry, or the last piece of one
            yield whole
            whole = b""


def values_of(items):
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}


def test_wandb_without_a_key_is_refused_before_anything_starts(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="extra wandb is not installed")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    for given in (lambda verify: False, fail):
        monkeypatch.setattr(wandb, "login", given)
        with pytest.raises(Exception, match="WANDB_MODE=offline") as caught:
            train("wandb")
        assert KEY not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def fail(verify):
    raise ValueError(f"wrong key https://me:{KEY}@host.")
