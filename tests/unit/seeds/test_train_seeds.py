"""Several seeds in one command."""

import io
import json
import os
import signal
from pathlib import Path

import pytest

from tianji.config.overrides import make_config
from tianji.config.run import RunConfig
from tianji.engines.signals import StopRequest
from tianji.errors import UsageError
from tianji.observe.summary import build_summary
from tianji.run_folder.paths import find_run
from tianji.seeds import child
from tianji.seeds import run_all as running
from tianji.seeds import train as module
from tianji.seeds.one import ChildRun
from tianji.seeds.screen import make_screen
from tianji.seeds.summary import spread, sum_up
from tianji.seeds.train import train_seeds


class Run:
    """A seed whose process needs some looks to end."""

    def __init__(self, name, going, looks=2):
        self.name, self._going, self._looks = name, going, looks
        self.asked, self.cores, self.is_started = 0, None, False

    def start(self, cores):
        self.cores, self.is_started = cores, True
        self._going.append(self.name)
        assert len(self._going) <= 2

    @property
    def is_running(self):
        self._looks -= 1
        if self._looks >= 0 and not self.asked:
            return True
        if self.name in self._going:
            self._going.remove(self.name)
        return False

    def ask_to_stop(self):
        self.asked += 1


class Screen:
    def __init__(self, on_update=lambda: None):
        self.events, self._on_update = [], on_update

    def update(self):
        self._on_update()

    def event(self, text):
        self.events.append(text)


@pytest.fixture
def stop(monkeypatch):
    monkeypatch.setattr(running, "LOOK_S", 0.0)
    request = StopRequest()
    yield request
    request.close()


def test_whoever_ends_leaves_its_cores_to_the_next(stop):
    going = []
    runs = [Run(name, going, looks) for name, looks in (("a", 1), ("b", 9), ("c", 1), ("d", 1))]
    running._until_all_ended(running.Listed(runs), ((0, 1), (2, 3)), stop, Screen())
    assert [run.cores for run in runs] == [(0, 1), (2, 3), (0, 1), (0, 1)]


def test_ctrl_c_stops_those_that_go_on_and_starts_no_other(stop):
    going = []
    runs = [Run(name, going, looks=10**9) for name in "abc"]
    screen = Screen(on_update=lambda: stop.ask() if not runs[0].asked else None)
    running._until_all_ended(running.Listed(runs), ((0,), (1,)), stop, screen)
    assert [run.asked for run in runs] == [1, 1, 0]
    assert [run.is_started for run in runs] == [True, True, False]
    assert len(screen.events) == 1


def counting(**settings):
    quiet = {"display": "off", "tensorboard": False}
    defaults = {"env": "tianji.envs.worlds:Counting", "engine": "inline", "observe": quiet}
    return make_config(None, **{**defaults, "max_env_steps": 256, **settings})


def test_two_seeds_are_two_runs_in_one_folder(tmp_path):
    report = train_seeds(counting(seed=3), 2, make_screen("off"), tmp_path)
    folder = Path(report["run_dir"])
    assert folder == tmp_path / "counting-ppo-2-seeds"
    assert report["seeds"] == [3, 4] and report["stopped_because"] == {"max_env_steps": 2}
    assert [run["seed"] for run in report["runs"]] == [3, 4]
    assert json.loads((folder / "seeds.json").read_text()) == report
    assert (folder / "seed-4" / "checkpoints").is_dir()
    assert find_run("counting-ppo-2-seeds/seed-4", tmp_path) == folder / "seed-4"
    with pytest.raises(UsageError, match=r"contains 2 runs.*Name one of them, such as '.*/seed-3'"):
        find_run("counting-ppo-2-seeds", tmp_path)


def test_a_mistake_is_told_before_any_folder_is_made(tmp_path):
    with pytest.raises(UsageError, match="No-Such-Env"):
        train_seeds(counting(env="No-Such-Env-v0"), 2, make_screen("off"), tmp_path)
    assert list(tmp_path.iterdir()) == []


class Process:
    """A child that ends when it is asked to, or has ended by itself."""

    def __init__(self, returncode=None):
        self.returncode, self.signals = returncode, []

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        self.signals.append(number)
        self.returncode = 130


def test_a_seed_that_fails_at_once_leaves_its_last_words(tmp_path):
    run = ChildRun(counting(run="seed-1"), tmp_path, "seed 1")
    run._process = Process(returncode=2)
    assert run.summary()["first_cause"] == "ended with exit code 2"
    run.log.write_text("Note: ...\nUnknown environment 'No-Such-Env-v0'.\n\n")
    summary = run.summary()
    assert summary["stopped_because"] == "failed"
    assert summary["first_cause"] == "Unknown environment 'No-Such-Env-v0'."


def test_a_seed_that_was_stopped_before_it_could_sum_up_was_interrupted(tmp_path):
    run = ChildRun(counting(run="seed-1"), tmp_path, "seed 1")
    run._process = process = Process()
    run.ask_to_stop()
    run.ask_to_stop()
    assert process.signals == [signal.SIGINT], "the second time it has ended"
    assert run.summary()["stopped_because"] == "interrupted"


def test_the_process_of_a_seed_is_pinned_to_its_cores_before_it_trains(monkeypatch):
    start = {"config": counting().model_dump(mode="json"), "base": "runs", "cores": [3]}
    calls = []
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**start, "parent": 1})))
    monkeypatch.setattr(child, "die_with_parent", lambda parent: None)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: calls.append((pid, cores)))
    monkeypatch.setattr("tianji.run.train_config", lambda config, base: calls.append("run"))
    assert child.main() == 0
    assert calls == [(0, [3]), "run"]


def summary_of(seed, **facts):
    config = RunConfig(algorithm="ppo", seed=seed)
    return build_summary(config, Path(f"runs/n/seed-{seed}"), {"first_cause": "it broke", **facts})


def test_the_summary_has_centre_and_spread_of_what_is_known():
    runs = [
        summary_of(1, stopped_because="target_reached", mean_return_100=470.0),
        summary_of(2, stopped_because="target_reached", mean_return_100=490.0),
        summary_of(3, stopped_because="failed"),
    ]
    report = sum_up(runs, [4], Path("runs/n"), 9.0)
    assert report["mean_return_100"] == {
        "count": 2, "mean": 480.0, "median": 480.0, "std": 10.0, "min": 470.0, "max": 490.0
    }  # fmt: skip
    assert report["stopped_because"] == {"target_reached": 2, "failed": 1}
    assert (report["not_started"], report["time_to_target_s"]) == ([4], None)
    assert spread([None]) is None


def test_seeds_beyond_the_largest_are_refused_before_anything_starts(tmp_path):
    with pytest.raises(UsageError, match=r"the last one must be below .* Use a smaller --seed"):
        train_seeds(counting(seed=2**63 - 1), 2, make_screen("off"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_seeds_that_do_not_fit_in_memory_together_run_one_after_the_other():
    config = counting(engine="local", num_actors=1)
    roomy = module.Machine(cores=tuple(range(8)), memory_bytes=1 << 40)
    assert len(module.shares_of(config, 4, roomy)) == 4
    tight = module.Machine(cores=tuple(range(8)), memory_bytes=700 << 20)
    assert module.shares_of(config, 4, tight) == (tuple(range(8)),)


def test_ctrl_c_before_the_first_seed_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "run_all", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        train_seeds(counting(), 2, make_screen("off"), tmp_path)
    assert list(tmp_path.iterdir()) == []
