"""Whole sweeps over runs of some hundred steps."""

import json
import os
import signal
from pathlib import Path

import pytest

from tianji.cli.main import main
from tianji.cli.pages.sweep import ranked, show_sweep
from tianji.config.files import load_config
from tianji.config.machine import Machine
from tianji.config.values import from_mapping
from tianji.errors import UsageError
from tianji.run_folder.paths import find_run
from tianji.seeds.screen import make_screen
from tianji.sweep import sweep
from tianji.sweep import trials as module
from tianji.sweep.report import make_report
from tianji.sweep.request import make_request
from tianji.sweep.study import Study
from tianji.sweep.sweep import run_sweep
from tianji.sweep.trials import Trials

SETTINGS = {
    "env": "tianji.envs.worlds:Counting", "engine": "inline", "max_env_steps": 640, "num_envs": 2,
    "observe": {"display": "off", "tensorboard": False}, "unroll_length": 16, "minibatch_size": 16,
}  # fmt: skip


@pytest.fixture
def with_optuna(tmp_path, monkeypatch):
    pytest.importorskip("optuna", reason="extra sweep is not installed")
    monkeypatch.chdir(tmp_path)


def request(
    num_trials=1, searched=("learning_rate=1e-4:1e-2:log", "epochs=1:3"), num_jobs=1, **settings
):
    values = from_mapping({**SETTINGS, **settings})
    command = "tianji sweep ..."
    return make_request(None, searched, values, num_trials, num_jobs=num_jobs, command=command)


class Interrupting:
    """A screen whose person presses Ctrl-C as soon as the first trial has begun."""

    def __init__(self):
        self.is_pressed = False

    def start(self, runs, title, folder):
        self.runs = runs

    def update(self):
        if self.runs and not self.is_pressed:
            self.is_pressed = True
            os.kill(os.getpid(), signal.SIGINT)

    def event(self, text):
        pass

    def stop(self):
        assert not any(run.is_running for run in self.runs), "no process is left behind"


def test_a_sweep_that_was_interrupted_continues_with_the_same_command(with_optuna, capsys):
    stopped = run_sweep(request(), Interrupting())
    assert stopped["missing"] == 1 and stopped["best"] is None
    assert show_sweep(stopped).exit_code == 130
    report = run_sweep(request(), make_screen("off"))
    assert report["run_dir"] == stopped["run_dir"] == "runs/sweep-counting-ppo-s1"
    assert report["missing"] == 0 and len(report["trials"]) == 1
    assert [trial["state"] for trial in report["trials"]] == ["finished"]
    assert json.loads(Path(report["run_dir"], "sweep.json").read_text()) == report
    assert Path(report["picture"]).stat().st_size > 0

    best = load_config(Path(report["best_file"]))
    assert str(best.algorithm.epochs) == report["best"]["settings"]["epochs"]
    assert best.run is None and best.plan.source == "auto"
    assert main(["train", report["best_file"], "--max-env-steps", "64", "--run", "again"]) == 0
    number = report["trials"][0]["number"]
    assert find_run(f"sweep-counting-ppo-s1/trial-{number}")

    again = run_sweep(request(), make_screen("off"))
    assert again["trials"] == report["trials"], "there is nothing left to do"


def ended_study(folder, asked):
    """The folder of a sweep in which nothing was run yet."""
    folder.mkdir(parents=True)
    study = Study(folder, asked.searches, asked.objective, 1, prune=True)
    (folder / "sweep.json").write_text(json.dumps(make_report(asked, study, folder)))


def test_a_sweep_with_other_settings_gets_another_folder_unless_it_is_named(with_optuna, tmp_path):
    from tianji.sweep.folder import open_folder

    base = tmp_path / "runs"
    ended_study(base / "sweep-counting-ppo-s1", request())
    assert open_folder(request(num_trials=9), base).name == "sweep-counting-ppo-s1"
    assert open_folder(request(gamma=0.9), base).name == "sweep-counting-ppo-s1-2"
    ended_study(base / "mine", request())
    assert open_folder(request(run="mine"), base) == base / "mine"
    with pytest.raises(UsageError, match=r"'mine' has trials with other settings: .*gamma was"):
        open_folder(request(run="mine", gamma=0.9), base)
    with pytest.raises(UsageError, match=r"'mine' searches other values"):
        open_folder(request(run="mine", searched=("epochs=1:3",)), base)


def test_a_sweep_of_before_a_setting_existed_goes_on(with_optuna, tmp_path):
    from tianji.sweep.folder import open_folder

    base = tmp_path / "runs"
    ended_study(base / "sweep-counting-ppo-s1", request())
    path = base / "sweep-counting-ppo-s1" / "sweep.json"
    report = json.loads(path.read_text())
    del report["settings"]["combine_max_age"]
    path.write_text(json.dumps(report))
    assert open_folder(request(), base).name == "sweep-counting-ppo-s1"
    assert open_folder(request(combine_max_age=5), base).name == "sweep-counting-ppo-s1-2"


@pytest.mark.parametrize(("num_jobs", "at_once"), [(None, 3), (2, 2), (1, 1)])
def test_as_many_trials_run_at_a_time_as_cores_and_jobs_allow(
    num_jobs, at_once, with_optuna, tmp_path, monkeypatch
):
    """Trials side by side are planned by rule: each would disturb what another one measures."""
    found = {}

    def run_from(trials, shares, screen, title, folder):
        found.update(shares=shares, config=trials.next().config)

    monkeypatch.setattr(sweep, "run_from", run_from)
    monkeypatch.setattr(sweep, "read_machine", lambda: Machine((0, 1, 2, 3), 64 << 30))
    run_sweep(request(num_trials=3, num_jobs=num_jobs), None, tmp_path)
    assert len(found["shares"]) == at_once
    cores = [core for share in found["shares"] for core in share]
    assert len(set(cores)) == len(cores), "no core is shared"
    assert (found["config"].plan.source == "rule") is (at_once > 1)


class Child:
    """A trial that runs until it is asked to stop."""

    is_started = True

    def __init__(self, config, base, label):
        self.config, self.folder, self.asked = config, base / config.run, 0
        self.ending, self.steps = None, 0

    @property
    def is_running(self):
        return self.ending is None

    def record(self):
        return {"env_steps": self.steps}

    def ask_to_stop(self):
        self.asked += 1

    def summary(self):
        return {"first_cause": "it broke", "mean_return_100": 1.0, **self.ending}


@pytest.fixture
def rig(with_optuna, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ChildRun", Child)
    curve = [{"env_steps": 0, "wall_s": 0.0, "mean_return_100": 1.0}]
    monkeypatch.setattr(
        module, "all_metrics", lambda folder: [*curve, {**curve[0], "env_steps": 640}]
    )
    asked = request()
    study = Study(tmp_path, asked.searches, asked.objective, 1, prune=True)
    return Trials(asked, study, tmp_path, num_left=3, by_rule=True), study


def test_how_a_trial_ended_decides_what_the_study_learns(rig):
    trials, study = rig
    endings = [
        {"stopped_because": "failed"},
        {"stopped_because": "max_env_steps", "mean_return_100": None},
        {"stopped_because": "interrupted", "stop_reason": "a callback had enough"},
    ]
    for ending in endings:
        trials.next().ending = ending
    assert trials.next() is None, "three were left"
    told = [(t.state, t.value, t.first_cause) for t in study.ended()]
    assert told == [("failed", None, "it broke"), ("failed", None, module.NO_EPISODE),
                    ("finished", 1.0, "")]  # fmt: skip


def test_trials_that_end_between_two_looks_are_compared_with_later_ones_too(rig, monkeypatch):
    trials, study = rig
    seen = {}
    monkeypatch.setattr(study, "is_hopeless", lambda number, marks: seen.update({number: marks}))
    trials.next().ending = {"stopped_because": "max_env_steps"}
    trials.look()
    assert set(seen[0].values()) == {1.0} and len(seen[0]) == 18
    assert [t.state for t in study.ended()] == ["finished"]


def test_a_hopeless_trial_is_asked_to_stop_once_and_counts_as_pruned(rig, monkeypatch):
    trials, study = rig
    child = trials.next()
    monkeypatch.setattr(study, "is_hopeless", lambda number, marks: bool(marks))
    trials.look()
    assert child.asked == 0, "nothing is to be compared before the first mark"
    child.steps = 300
    trials.look()
    child.steps = 600
    trials.look()
    assert child.asked == 1
    child.ending = {"stopped_because": "interrupted"}
    trials.look()
    assert [t.state for t in study.ended()] == ["pruned"]


def test_values_that_do_not_fit_together_make_a_failed_trial(rig, monkeypatch):
    trials, study = rig
    real = type(trials._request).with_values

    def refuse_first(asked, values):
        if not study.ended():
            raise UsageError("these do not fit together")
        return real(asked, values)

    monkeypatch.setattr(type(trials._request), "with_values", refuse_first)
    child = trials.next()
    assert child.config.run == "trial-1" and child.config.plan.source == "rule"
    assert [t.first_cause for t in study.ended()] == ["these do not fit together"]


def test_trials_are_listed_from_best_to_worst():
    def trial(number, value, mean):
        return {"number": number, "value": value, "mean_return_100": mean}

    trials = [trial(0, None, 5.0), trial(1, 9.0, 480.0), trial(2, 3.0, 476.0), trial(3, None, None)]
    found = ranked({"direction": "minimize", "trials": trials})
    assert [one["number"] for one in found] == [2, 1, 0, 3]
    assert [one["number"] for one in ranked({"direction": "maximize", "trials": trials})][:2] == [
        1,
        2,
    ]


def test_the_bare_command_searches_the_usual_settings(with_optuna, capfd):
    words = [f"--{name.replace('_', '-')}={text}" for name, text in (
        ("algorithm", "ppo"), ("env", SETTINGS["env"]), ("engine", "inline"), ("num_envs", 2),
        ("max_env_steps", 64), ("unroll_length", 16), ("observe.display", "off"),
    )]  # fmt: skip
    assert main(["sweep", *words, "--trials", "1", "--jobs", "1", "--json"]) == 0
    told = capfd.readouterr()
    report = json.loads(told.out)
    assert "the usual settings are searched: learning_rate from" in told.err
    assert [*report["search"]] == ["learning_rate", "gamma", "entropy"]
    assert [*report["best"]["settings"]] == ["learning_rate", "gamma", "entropy"]


def test_options_of_the_command_are_checked(capsys):
    assert main(["sweep", "cartpole-ppo", "--trials", "0", "--search", "epochs=1:3"]) == 2
    assert "--trials = 0: must be greater than or equal to 1" in capsys.readouterr().err
    assert main(["sweep", "cartpole-ppo", "--search"]) == 2
    assert "'--search' needs a value" in capsys.readouterr().err
    assert main(["sweep", "--help"]) == 0
    assert "--search key=low:high" in capsys.readouterr().out
