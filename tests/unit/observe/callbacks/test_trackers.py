"""The trackers against stand-ins of the libraries: what they are told, and in which order."""

import sys

import pytest

from tests.fakes.trackers import Mlflow, Wandb
from tests.unit.observe.accounts import make_record
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.observe.callbacks.interface import RunHandle
from tianji.observe.callbacks.mlflow import LONGEST_VALUE, MlflowTracker
from tianji.observe.callbacks.tracking import kept_id
from tianji.observe.callbacks.wandb import WandbTracker
from tianji.observe.summary import build_summary

CONFIG = RunConfig(algorithm="ppo")


@pytest.fixture
def wandb(monkeypatch):
    for name in ("WANDB_MODE", "WANDB_PROJECT", "WANDB_DIR"):
        monkeypatch.delenv(name, raising=False)
    found = Wandb()
    monkeypatch.setitem(sys.modules, "wandb", found)
    return found


@pytest.fixture
def mlflow(monkeypatch):
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    found = Mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", found)
    return found


def follow(tracker, folder, because="max_env_steps", steps=(100, 200), config=CONFIG):
    """A whole run as the supervisor tells it."""
    run = RunHandle(config, folder)
    for env_steps in steps:
        tracker.on_version(run, make_record(env_steps=env_steps, mean_return_100=7.0))
    facts = {"stopped_because": because, "checkpoint": "runs/it/checkpoints/v1"}
    facts |= {"first_cause": "it broke"} if because == "failed" else {}
    record = make_record(env_steps=200, mean_return_100=7.0)
    tracker.on_end(run, build_summary(config, folder, facts, record))


def test_wandb_is_told_settings_metrics_and_the_summary(wandb, tmp_path):
    follow(WandbTracker(), tmp_path)
    ((init,), (run,)) = wandb.inits, wandb.runs
    assert (init["project"], init["name"], init["resume"]) == ("tianji", tmp_path.name, "allow")
    assert init["dir"] == str(tmp_path) and init["id"] == kept_id(tmp_path, "wandb")
    assert init["config"]["algorithm"]["name"] == "ppo"
    assert init["settings"] == {"console": "off", "silent": True}
    assert run.metrics == [("env_steps", None), ("*", "env_steps")]
    assert [one["env_steps"] for one in run.logged] == [100, 200]
    assert run.logged[-1]["actor/mean_return_100"] == 7.0
    assert run.summary["stopped_because"] == "max_env_steps"
    assert run.summary["checkpoint"] == "runs/it/checkpoints/v1" and run.exit_code == 0


def test_a_resumed_run_continues_in_wandb_and_a_failed_one_says_so(wandb, tmp_path):
    follow(WandbTracker(), tmp_path)
    follow(WandbTracker(), tmp_path, because="failed", steps=())
    first, second = wandb.inits
    assert first["id"] == second["id"] and wandb.runs[1].exit_code == 1


def test_wandb_goes_where_its_own_variables_say(wandb, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    monkeypatch.setenv("WANDB_DIR", "/elsewhere")
    follow(WandbTracker(), tmp_path)
    assert (wandb.inits[0]["project"], wandb.inits[0]["dir"]) == ("mine", "/elsewhere")


def test_wandb_without_a_key_is_refused_unless_it_is_offline(wandb, monkeypatch):
    wandb.has_key = False
    with pytest.raises(UsageError, match=r"has no API key.*WANDB_MODE=offline"):
        WandbTracker()
    monkeypatch.setenv("WANDB_MODE", "offline")
    WandbTracker()


def test_mlflow_is_told_settings_metrics_and_the_summary(mlflow, tmp_path):
    follow(MlflowTracker(), tmp_path)
    (run,) = mlflow.runs
    assert mlflow.experiments == ["tianji"] and run.name == tmp_path.name
    assert run.params["algorithm.name"] == "ppo" and run.params["model.hidden"] == "auto"
    returns = [(m.step, m.value) for m in run.metrics if m.key == "actor/mean_return_100"]
    assert returns == [(100, 7.0), (200, 7.0)]
    assert ("mean_return_100", 7.0, 200) in [(m.key, m.value, m.step) for m in run.metrics]
    assert run.tags["tianji.checkpoint"] == "runs/it/checkpoints/v1"
    assert run.status == "FINISHED"


def test_a_resumed_run_continues_in_mlflow_with_its_parameters_written_once(mlflow, tmp_path):
    follow(MlflowTracker(), tmp_path)
    follow(MlflowTracker(), tmp_path, because="interrupted", config=RunConfig(algorithm="dqn"))
    (run,) = mlflow.runs
    assert run.params["algorithm.name"] == "ppo" and run.status == "KILLED"


def test_mlflow_says_why_a_run_failed_and_goes_where_its_variable_says(
    mlflow, tmp_path, monkeypatch
):
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    long = RunConfig(algorithm="ppo", env_kwargs={"text": "x" * 1000})
    follow(MlflowTracker(), tmp_path, because="failed", config=long)
    (run,) = mlflow.runs
    assert mlflow.experiments == ["mine"] and run.status == "FAILED"
    assert run.tags["tianji.first_cause"] == "it broke"
    assert len(run.params["env_kwargs"]) == LONGEST_VALUE


@pytest.mark.parametrize(("name", "make"), [("wandb", WandbTracker), ("mlflow", MlflowTracker)])
def test_a_tracker_that_is_not_installed_names_its_extra(monkeypatch, name, make):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=rf"pip install 'tianji\[{name}\]'"):
        make()
