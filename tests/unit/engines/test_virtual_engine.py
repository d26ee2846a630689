"""The virtual engine: asynchronous in simulated time, in this process."""

import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Stop
from tianji.engines.one_process import IN_THE_MIDDLE
from tianji.engines.virtual import VirtualEngine
from tianji.programs.one_group import program_for
from tianji.virtual.costs import ENV_STEP_S, PUBLISH_S, RECEIVE_S, ROW_S, UPDATE_S

STEPS = 8  # of an unroll: 4 rows, 2 environments
UNROLL_S = 4 * (ROW_S + 2 * ENV_STEP_S)
VERSION_S = RECEIVE_S + 2 * UPDATE_S + PUBLISH_S


def run(run_dir, resume=False, watcher=None, **values):
    settings = {"engine": "virtual", "env_kwargs": {"length": 10_000}, **values}
    spec = make_spec(run_dir, **settings)
    watcher = watcher or Watcher()
    engine = VirtualEngine(spec, program_for(spec.config, spec.plan), watcher)
    return engine.run(watcher.stop, resume), watcher, engine


def test_serial_training_takes_sampling_plus_learning(tmp_path):
    outcome, *_ = run(tmp_path, max_env_steps=10 * STEPS)
    assert outcome["because"] == "max_env_steps"
    assert outcome["record"]["version"] == 10
    assert outcome["record"]["lag_versions"]["max"] == 0
    # The last version is over for the engine when it is made, not when its time is.
    expected = 10 * (UNROLL_S + VERSION_S) - PUBLISH_S
    assert outcome["record"]["wall_s"] == pytest.approx(expected, abs=1e-7)


def test_with_lag_the_actor_works_while_the_learner_learns(tmp_path):
    outcome, *_ = run(tmp_path, max_lag=1, max_env_steps=100 * STEPS)
    record = outcome["record"]
    assert record["lag_versions"]["mean"] == pytest.approx(1.0, abs=0.02)
    assert record["wall_s"] == pytest.approx(UNROLL_S + 100 * VERSION_S, rel=0.02)
    assert record["busy_share"]["learner"] > 0.9
    assert record["busy_share"]["actor-0"] == pytest.approx(UNROLL_S / VERSION_S, rel=0.05)


def test_time_asleep_and_in_the_environments_is_virtual_too(tmp_path):
    outcome, watcher, _ = run(tmp_path, max_lag=1, max_env_steps=100 * STEPS)
    row = watcher.gauges.rows["actor-0"]
    share = 2 * ENV_STEP_S / (ROW_S + 2 * ENV_STEP_S)
    assert row[Gauge.ENV_NS] == pytest.approx(share * row[Gauge.BUSY_NS], rel=0.01)
    spent_s = (row[Gauge.BUSY_NS] + row[Gauge.WAIT_NS]) / 1e9
    assert spent_s == pytest.approx(outcome["record"]["wall_s"], rel=0.05)


def test_several_actors_run_side_by_side(tmp_path):
    outcome, watcher, _ = run(
        tmp_path, max_lag=1, num_envs=8, num_actors=4, max_env_steps=40 * 4 * STEPS
    )
    counts = [watcher.gauges.rows[f"actor-{i}"][Gauge.ITEMS] for i in range(4)]
    assert max(counts) - min(counts) <= 1
    assert outcome["record"]["lag_versions"]["max"] == 1


def test_a_stop_lets_it_finish_the_version_and_saves(tmp_path):
    watcher = Watcher()
    watcher.stop_at, watcher.how = 3, Stop.FINISH
    outcome, *_ = run(tmp_path, watcher=watcher, max_env_steps=10**6)
    assert outcome["because"] == "interrupted"
    assert outcome["record"]["version"] == 3


def test_a_world_that_fails_ends_the_run_and_everything_is_closed(tmp_path, monkeypatch):
    spec = make_spec(tmp_path, engine="virtual")
    watcher = Watcher()
    engine = VirtualEngine(spec, program_for(spec.config, spec.plan), watcher)
    world = engine._roles.actors["actor-0"]._world

    def fail(*_):
        raise RuntimeError("this world fails")

    monkeypatch.setattr(world, "recv", fail)
    with pytest.raises(RuntimeError, match="this world fails"):
        engine.run(watcher.stop, resume=False)
    assert world._closed


def test_without_lag_a_resumed_run_continues_its_episodes(tmp_path):
    run(tmp_path, max_env_steps=3 * STEPS)
    outcome, watcher, engine = run(tmp_path, resume=True, max_env_steps=6 * STEPS)
    assert outcome["record"]["version"] == 6
    assert watcher.texts("note") == []
    world = engine._roles.actors["actor-0"]._world
    assert [env.unwrapped.total for env in world.envs] == [24, 24]


def test_with_lag_a_resumed_run_begins_new_episodes_and_says_so(tmp_path):
    run(tmp_path, max_env_steps=3 * STEPS, max_lag=1)
    outcome, watcher, _ = run(tmp_path, resume=True, max_env_steps=6 * STEPS, max_lag=1)
    assert outcome["record"]["version"] == 6
    assert watcher.texts("note") == [IN_THE_MIDDLE]


def test_an_evaluation_comes_when_it_is_due_in_virtual_time(tmp_path):
    period_s = 50 * VERSION_S
    settings = {"evaluate": {"period_s": period_s}, "env_kwargs": {"length": 20}}
    _, watcher, engine = run(tmp_path, max_lag=1, max_env_steps=1000 * STEPS, **settings)
    made = [report for report in watcher.reports if report["kind"] == "evaluation"]
    assert 2 <= len(made) <= 21
    (world,) = engine._roles.evaluators["evaluator"]._tasks.values()
    assert world._closed
