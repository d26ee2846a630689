"""Callbacks in every engine: what they are told, and a run that one of them stops."""

import json
from pathlib import Path

import pytest

import tianji
from tests.system.runs import PPO, QUIET
from tianji.cli.main import main
from tianji.config.run import RunConfig
from tianji.run import resume_run, train_config

ENGINES = {
    "inline": {"engine": "inline"},
    "virtual": {"engine": "virtual"},
    "local": {"engine": "local"},
    "inline groups": {"engine": "inline", "num_groups": 2, "combine": "average"},
    "local groups": {"engine": "local", "num_groups": 2, "combine": "average"},
    "joined inline groups": {"engine": "inline", "num_groups": 2},
}
OBSERVED = {"observe": {**QUIET, "period_s": 0.02}, "plan": {"source": "rule"}}


class Recorder(tianji.Callback):
    def __init__(self):
        self.records, self.episodes, self.checkpoints, self.summaries = [], [], [], []

    def on_version(self, run, record):
        self.records.append(record)

    def on_episode(self, run, episode):
        self.episodes.append(episode)

    def on_checkpoint(self, run, record):
        self.checkpoints.append(record)

    def on_end(self, run, summary):
        assert (run.run_dir / "summary.json").is_file()
        self.summaries.append(summary)


class StopAtSteps(tianji.Callback):
    def on_version(self, run, record):
        if record["env_steps"] >= 1000:
            run.stop("enough seen")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def train(given, **settings):
    values = {"algorithm": PPO, "num_envs": 4, **OBSERVED, **settings}
    return train_config(RunConfig.model_validate(values), callbacks=given)


MARKED = [
    pytest.param(name, marks=pytest.mark.slow if name == "local groups" else ()) for name in ENGINES
]


@pytest.mark.parametrize("engine", MARKED)
def test_a_callback_sees_the_whole_run(engine):
    recorder = Recorder()
    summary = train([recorder], max_env_steps=3000, **ENGINES[engine])
    assert recorder.summaries == [summary] and summary["callback_errors"] == 0
    assert recorder.records[-1]["env_steps"] == summary["env_steps"]
    logged = (Path(summary["run_dir"]) / "metrics.jsonl").read_text().splitlines()
    assert [r["version"] for r in recorder.records] == [json.loads(x)["version"] for x in logged]
    assert len(recorder.episodes) == summary["episodes"] > 0
    assert all(episode.length == episode.episode_return for episode in recorder.episodes)
    last = recorder.checkpoints[-1]
    assert Path(last["path"]).is_dir() and Path(last["path"]).name == f"v{last['version']:08d}"


@pytest.mark.parametrize("engine", MARKED)
def test_a_callback_stops_a_run_that_can_be_resumed(engine):
    summary = train([StopAtSteps], max_env_steps=10**9, **ENGINES[engine])
    assert summary["stopped_because"] == "interrupted"
    assert summary["stop_reason"] == "enough seen"
    run_dir = Path(summary["run_dir"])
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
    assert [e["role"] for e in events if "enough seen" in e["text"]] == ["callback StopAtSteps"]
    if engine == "inline":
        again = resume_run(run_dir, {"max_env_steps": summary["env_steps"] + 100})
        assert again["stopped_because"] == "max_env_steps" and "stop_reason" not in again


def test_a_stop_by_a_callback_is_no_failure_of_the_command(capsys):
    name = "tests.system.test_callbacks:StopAtSteps"
    words = ["--callbacks", name, "--engine", "inline", "--num-envs", "4", "--observe.period-s"]
    assert main(["train", "--target-return", "none", *words, "0.02", "--display", "off"]) == 0
    assert "a callback: enough seen" in capsys.readouterr().err


class Broken(tianji.Callback):
    def on_version(self, run, record):
        raise ValueError("a mistake of mine")


def test_a_run_goes_on_when_a_callback_raises():
    recorder = Recorder()
    summary = train([Broken, recorder], max_env_steps=3000, engine="inline")
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["callback_errors"] == len(recorder.records)
    events = (Path(summary["run_dir"]) / "events.jsonl").read_text().splitlines()
    assert len([line for line in events if "a mistake of mine" in line]) == 1


def test_callbacks_of_the_settings_are_loaded_in_every_session(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import tianji\n"
        "class Mine(tianji.Callback):\n"
        "    def on_end(self, run, summary):\n"
        "        with (run.run_dir / 'ends.txt').open('a') as file:\n"
        "            file.write(f\"{summary['env_steps']}\\n\")\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    summary = train([], max_env_steps=500, engine="inline", callbacks=("mine:Mine",))
    again = resume_run(Path(summary["run_dir"]), {"max_env_steps": 1000})
    ends = (Path(summary["run_dir"]) / "ends.txt").read_text().split()
    assert ends == [str(summary["env_steps"]), str(again["env_steps"])]


def test_names_and_objects_go_together_in_python(tmp_path, monkeypatch):
    recorder = Recorder()
    summary, _ = tianji.train(
        env="CartPole-v1",
        callbacks=[recorder, "tests.system.test_callbacks:Broken"],
        engine="inline",
        max_env_steps=3000,
        **OBSERVED,
    )
    assert recorder.summaries == [summary] and summary["callback_errors"] > 0
