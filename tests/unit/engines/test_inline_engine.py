"""The inline engine: every role in turn, in this process."""

from functools import partial

import pytest

from tests.fakes.specs import make_spec
from tianji.channels.orders import Stop
from tianji.checkpoint.load import latest, list_checkpoints, read_checkpoint
from tianji.engines.inline import InlineEngine
from tianji.engines.one_process import LOST_EPISODES
from tianji.envs.worlds import Flaky
from tianji.programs.one_group import program_for

STEPS = 8  # of a version: 4 rows, 2 environments


class Watcher:
    """An observer that asks to stop when a version has been reported."""

    def __init__(self):
        self.reports = []
        self.stop = type("StopRequest", (), {"level": Stop.NO})()
        self.stop_at, self.how = None, Stop.FINISH
        self.ticks = 0

    def report(self, report):
        self.reports.append(report)
        record = report.get("record", {})
        if report["kind"] == "metrics" and record["version"] == self.stop_at:
            self.stop.level = self.how

    def watch(self, gauges, pids=None, now_ns=None, settle=None):
        self.gauges = gauges

    def tick(self):
        self.ticks += 1

    def texts(self, kind):
        return [report["text"] for report in self.reports if report["kind"] == kind]


def run(run_dir, resume=False, watcher=None, **values):
    spec = make_spec(run_dir, **values)
    watcher = watcher or Watcher()
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), watcher)
    return engine.run(watcher.stop, resume), watcher, engine


def actors_closed(engine):
    return all(actor._world._closed for actor in engine.roles.actors.values())


def test_it_trains_until_it_has_what_it_was_asked_for(tmp_path):
    outcome, watcher, engine = run(tmp_path, max_env_steps=5 * STEPS, env_kwargs={"length": 50})
    assert outcome["because"] == "max_env_steps"
    assert (outcome["restarts"], outcome["first_cause"]) == (0, None)
    assert outcome["record"]["version"] == 5
    assert outcome["record"]["env_steps"] == 5 * STEPS
    assert read_checkpoint(latest(tmp_path).path).version == 5
    assert watcher.ticks > 0
    assert actors_closed(engine)


@pytest.mark.parametrize("max_lag", [0, 1, 3])
def test_every_item_is_used_by_the_version_that_made_it(tmp_path, max_lag):
    outcome, _, _ = run(tmp_path, max_env_steps=20 * STEPS, max_lag=max_lag, num_actors=2)
    assert outcome["record"]["lag_versions"]["max"] == 0
    assert outcome["record"]["discarded_items"] == 0


@pytest.mark.parametrize("num_actors", [1, 2])
def test_the_same_seed_gives_the_same_run(tmp_path, num_actors):
    values = {"max_env_steps": 10 * STEPS, "num_actors": num_actors, "env_kwargs": {"spread": 5}}
    one, other = (run(tmp_path / name, **values)[0]["record"] for name in "ab")
    for key in ("env_steps", "version", "episodes", "mean_return_100"):
        assert one[key] == other[key], key


def test_a_stop_lets_it_finish_the_version_and_saves(tmp_path):
    watcher = Watcher()
    watcher.stop_at = 3
    outcome, _, engine = run(tmp_path, watcher=watcher)
    assert outcome["because"] == "interrupted"
    assert outcome["record"]["version"] == 3
    assert read_checkpoint(latest(tmp_path).path).version == 3
    assert actors_closed(engine)


def test_a_stop_now_saves_nothing_more(tmp_path):
    watcher = Watcher()
    watcher.stop_at, watcher.how = 3, Stop.NOW
    outcome, _, _ = run(tmp_path, watcher=watcher)
    assert outcome["because"] == "interrupted"
    assert [read_checkpoint(path).version for path in list_checkpoints(tmp_path)] == [0]


def test_a_world_that_fails_ends_the_run_with_its_exception_and_everything_is_closed(tmp_path):
    spec = make_spec(tmp_path, env=partial(Flaky, "raise", 7))
    watcher = Watcher()
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), watcher)
    with pytest.raises(RuntimeError, match="this world fails in step 7"):
        engine.run(watcher.stop, resume=False)
    assert actors_closed(engine)


def test_a_resumed_run_continues_its_episodes(tmp_path):
    values = {"env_kwargs": {"length": 1000}}
    run(tmp_path, max_env_steps=3 * STEPS, **values)
    outcome, watcher, engine = run(tmp_path, resume=True, max_env_steps=6 * STEPS, **values)
    assert outcome["record"]["version"] == 6
    assert watcher.texts("note") == []
    assert [env.unwrapped.total for env in engine.roles.actors["actor-0"]._world.envs] == [24, 24]


def test_a_resumed_run_says_so_when_it_begins_new_episodes(tmp_path):
    values = {"env": "tests.fakes.stateless:Stateless"}
    run(tmp_path, max_env_steps=3 * STEPS, **values)
    outcome, watcher, _ = run(tmp_path, resume=True, max_env_steps=6 * STEPS, **values)
    assert outcome["record"]["version"] >= 6
    assert watcher.texts("note") == [LOST_EPISODES]


def test_an_evaluation_that_was_asked_for_is_made(tmp_path):
    _, watcher, engine = run(tmp_path, max_env_steps=200 * STEPS, evaluate={"period_s": 1e-6})
    assert any(report["kind"] == "evaluation" for report in watcher.reports)
    (world,) = engine.roles.evaluators["evaluator"]._tasks.values()
    assert world._closed


def test_an_evaluation_does_not_change_the_training_beside_it(tmp_path):
    records = []
    for name, period_s in (("with", 1e-6), ("without", 0.0)):
        evaluate = {"period_s": period_s}
        outcome, *_ = run(tmp_path / name, max_env_steps=50 * STEPS, evaluate=evaluate)
        records.append(outcome["record"])
    for key in ("env_steps", "version", "episodes", "mean_return_100"):
        assert records[0][key] == records[1][key], key
