"""Where a run's plan comes from: a kept profile, a measurement that pays, or the rule."""

from dataclasses import replace

import pytest

from tests.unit.costs.profiles import actor, learner, profile
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Rehearsal
from tianji.envs.timing import summarise
from tianji.envs.worlds import Counting
from tianji.errors import UsageError, WorkerLost
from tianji.planning import keep
from tianji.planning import planner as planning
from tianji.planning.keep import kept_profile
from tianji.planning.planner import measured_plan, plan_again, plan_run

MACHINE = Machine((0, 1), 1 << 34)
SLOW = 100_000_000
"""Steps of a run that takes minutes, whatever the environment."""
FOUR_ACTORS = profile(
    actors=(actor(1, 1.0), actor(2, 1.0), actor(4, 4.0), actor(8, 8.0)),
    learners=(learner(1, 0.1),),
    num_envs=8,
    rehearsals=(
        Rehearsal(
            num_actors=4, learner_threads=1, actor_threads=1, produced=4.0, received=4.0,
            trained=12.0, lag_versions=1.0,
        ),
    ),
)  # fmt: skip


def config(**values):
    settings = {
        "env": "tianji.envs.worlds:Counting", "algorithm": "tests.fakes.scripted:ALGORITHM",
        "num_envs": 8, "max_env_steps": 1000, **values,
    }  # fmt: skip
    return RunConfig(**settings)


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Every measurement that was asked for; none takes any time, and nothing was kept before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = []

    def measure(config, env, machine, probe, tell, settings, limit_s):
        tell("Measuring.")
        asked.append(config)
        return FOUR_ACTORS

    monkeypatch.setattr("tianji.planning.measure.measure.measure", measure)
    return asked


def plan(asked, env=None, machine=MACHINE):
    told = []
    planned = plan_run(asked, env or asked.env, machine, told.append)
    return planned, told


def test_a_short_run_is_shared_by_rule_and_told_how_to_do_better(measured):
    planned, told = plan(config())
    assert (measured, told) == ([], [])
    assert (planned.plan.source, planned.plan.prediction) == ("rule", None)
    assert "`tianji plan`" in planned.note
    assert planned.plan.num_actors == 1


def test_a_long_run_is_measured_first(measured):
    planned, told = plan(config(max_env_steps=SLOW))
    assert len(measured) == 1
    assert told == ["Measuring."]
    assert planned.plan.source == "measured"
    assert planned.plan.num_actors == planned.solved.solution.chosen.num_actors
    assert planned.plan.prediction == planned.solved.solution.chosen.prediction
    assert "measured in 0 s" in planned.note
    assert planned.planning_s > 0


def test_a_long_run_that_has_little_time_is_a_short_one(measured):
    plan(config(max_env_steps=SLOW, max_wall_s=30))
    assert measured == []


def test_what_was_measured_is_kept_for_the_next_run_however_short(measured):
    plan(config(max_env_steps=SLOW))
    planned, _ = plan(config(max_env_steps=10, seed=3))
    assert len(measured) == 1
    assert planned.solved.from_cache
    assert planned.plan.source == "measured"
    assert "saved profile" in planned.note


def test_what_was_measured_over_all_shares_serves_a_run_that_fixes_some(measured):
    plan(config(max_env_steps=SLOW))
    planned, _ = plan(config(max_env_steps=10, num_actors=2))
    assert planned.solved.from_cache
    assert planned.plan.num_actors == 2


def test_the_note_of_a_short_run_says_what_is_short_and_not_how_long_the_run_takes(measured):
    planned, _ = plan(config(max_env_steps=100))
    assert "its environment steps need only about 1 s in all" in planned.note
    planned, _ = plan(config(max_env_steps=SLOW, max_wall_s=30))
    assert "it ends after 30 s (max_wall_s)" in planned.note
    assert measured == []


def test_a_run_may_ask_for_a_measurement(measured):
    plan(config(plan={"source": "measure"}))
    assert len(measured) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"plan": {"source": "rule"}},
        {"num_actors": 2, "learner_threads": 1},
        {"engine": "inline"},
    ],
)
def test_there_are_runs_that_no_profile_would_change(measured, values):
    keep.save(keep.key_of(config(**values), MACHINE), FOUR_ACTORS)
    planned, _ = plan(config(max_env_steps=SLOW, **values))
    assert measured == []
    assert planned.plan.source == "rule"


def test_a_function_in_hand_is_measured_and_not_kept(measured):
    plan(config(max_env_steps=SLOW), env=Counting)
    assert len(measured) == 1
    assert kept_profile(config(), config().env, MACHINE) is None
    keep.save(keep.key_of(config(), MACHINE), FOUR_ACTORS)
    assert kept_profile(config(), Counting, MACHINE) is None


def fail(*_):
    raise WorkerLost("sampler: killed by signal 9")


def test_a_measurement_that_fails_does_not_stop_a_run_that_did_not_ask_for_it(
    measured, monkeypatch
):
    monkeypatch.setattr("tianji.planning.measure.measure.measure", fail)
    planned, _ = plan(config(max_env_steps=SLOW))
    assert planned.plan.source == "rule"
    assert "killed by signal 9" in planned.note
    with pytest.raises(WorkerLost):
        plan(config(plan={"source": "measure"}))


def test_a_run_that_does_not_fit_is_refused_with_the_arithmetic(measured):
    with pytest.raises(UsageError, match="does not fit"):
        plan(config(max_env_steps=SLOW), machine=Machine((0, 1), 100 << 20))


def test_a_plan_uses_what_was_kept_unless_it_must_be_fresh(measured):
    asked = config()
    first = measured_plan(asked, asked.env, MACHINE, print)
    second = measured_plan(asked, asked.env, MACHINE, print)
    assert len(measured) == 1
    assert (first.solved.from_cache, second.solved.from_cache) == (False, True)
    assert not measured_plan(asked, asked.env, MACHINE, print, fresh=True).solved.from_cache
    assert len(measured) == 2


@pytest.mark.parametrize(
    "values", [{"engine": "inline"}, {"num_envs": 3, "num_actors": 2}, {"env": "NoSuchWorld-v0"}]
)
def test_what_cannot_be_planned_is_said_before_anything_is_measured(measured, values):
    asked = config(**values)
    with pytest.raises(UsageError):
        measured_plan(asked, asked.env, MACHINE, print)
    assert measured == []


def test_a_slow_environment_makes_a_long_run(measured, monkeypatch):
    real = planning.probe_tasks

    def slow(env, kwargs, timed=False):
        assert timed, "its speed decides"
        return replace(real(env, kwargs, timed), times=summarise([0.2], 1, cpu_s=None))

    monkeypatch.setattr(planning, "probe_tasks", slow)
    plan(config(max_env_steps=1000))
    assert len(measured) == 1


OPEN = {"plan": {"choose": ("num_envs",)}, "num_envs": 4, "max_env_steps": SLOW}


def test_what_was_left_open_is_measured_in_several_ways_and_becomes_a_number(measured):
    planned, told = plan(config(**OPEN))
    assert [asked.num_envs for asked in measured] == [4, 2, 8, 16]
    assert all(asked.plan.choose == () for asked in measured)
    assert planned.config.num_envs in (2, 4, 8, 16)
    assert planned.config.plan.choose == ()
    assert planned.solved.settings == {"num_envs": planned.config.num_envs}
    assert planned.plan.num_actors * planned.plan.envs_per_actor == planned.config.num_envs
    assert f"num_envs = {planned.config.num_envs}" in planned.note
    assert "With num_envs = 8." in told
    plan(config(**OPEN))
    assert len(measured) == 4, "each was kept"


def test_by_rule_what_was_left_open_is_the_default(measured):
    planned, _ = plan(config(**{**OPEN, "max_env_steps": 100}))
    assert measured == []
    assert (planned.config.num_envs, planned.config.plan.choose) == (4, ())
    assert "num_envs: default, not measured." in planned.note


def test_a_way_that_cannot_run_is_passed_over(measured):
    version = {
        "name": "tests.fakes.scripted:ALGORITHM",
        "unroll_length": 4,
        "steps_per_version": 16,
    }
    plan(config(**OPEN, algorithm=version, num_actors=1))
    assert [asked.num_envs for asked in measured] == [4, 2], "8 environments overfill a version"


def test_a_world_that_fails_in_a_step_is_not_measured(measured):
    flaky = {"env": "tianji.envs.worlds:Flaky", "env_kwargs": {"at_step": 5}}
    planned, _ = plan(config(max_env_steps=SLOW, **flaky))
    assert measured == []
    assert "failed in a step" in planned.note


def test_what_was_not_rehearsed_is_not_kept(measured, monkeypatch):
    costs = FOUR_ACTORS.model_copy(update={"rehearsals": ()})
    monkeypatch.setattr("tianji.planning.measure.measure.measure", lambda *_: costs)
    plan(config(max_env_steps=SLOW))
    assert kept_profile(config(), config().env, MACHINE) is None


def test_a_profile_that_was_disturbed_says_so(measured, monkeypatch):
    disturbed = FOUR_ACTORS.model_copy(update={"is_disturbed": True})
    monkeypatch.setattr("tianji.planning.measure.measure.measure", lambda *_: disturbed)
    planned, _ = plan(config(max_env_steps=SLOW))
    assert "Other programs used the machine" in planned.note


def test_costs_for_another_engine_do_not_become_plans(measured):
    virtual = config(engine="virtual")
    keep.save(keep.key_of(virtual, MACHINE), FOUR_ACTORS)
    assert kept_profile(config(), config().env, MACHINE) is None
    assert kept_profile(virtual, virtual.env, MACHINE) == FOUR_ACTORS
    other = FOUR_ACTORS.model_copy(update={"num_cores": 2})
    keep.save(keep.key_of(config(), MACHINE), other)
    assert kept_profile(virtual, virtual.env, MACHINE) == other, "one with rehearsals is better"


PIXELS = {
    "env": "tianji.envs.worlds:Pixels", "num_envs": 8,
    "algorithm": {"name": "ppo", "unroll_length": 4, "minibatch_size": 16},
}  # fmt: skip


def on(device):
    """Find this device, whatever is asked."""
    return lambda asked, is_worthwhile: device


def again(asked, before, machine=MACHINE):
    return plan_again(asked, {}, asked.env, machine, before, print)


def test_a_run_that_moves_between_gpu_and_cpu_is_shared_out_anew(measured, monkeypatch):
    asked, machine = RunConfig(**PIXELS), Machine(tuple(range(8)), 1 << 36)
    monkeypatch.setattr("tianji.planning.resolve.places.find_device", on("cuda:0"))
    on_gpu = plan_run(asked, asked.env, machine, print)
    assert on_gpu.plan.device == "cuda:0"
    assert on_gpu.plan.inference != "actor-cpu"
    monkeypatch.setattr("tianji.planning.resolve.places.find_device", on("cpu"))
    on_cpu = again(on_gpu.config, on_gpu.plan, machine)
    assert (on_cpu.plan.device, on_cpu.plan.inference) == ("cpu", "actor-cpu")
    assert on_cpu.plan.learner_threads == 8
    before = f"was on cuda:0 (inference: {on_gpu.plan.inference})"
    assert f"{before} and continues on cpu (inference: actor-cpu)" in on_cpu.note
    assert on_cpu.config.device == "auto"
    monkeypatch.setattr("tianji.planning.resolve.places.find_device", on("cuda:0"))
    assert again(on_cpu.config, on_cpu.plan, machine).plan.device == "cuda:0"


def test_a_run_that_stays_where_it_is_keeps_its_shares(measured):
    first, _ = plan(config(num_actors=2, learner_threads=2))
    found = again(config(), first.plan)
    assert (found.plan.num_actors, found.plan.learner_threads, found.note) == (2, 2, "")


def test_a_gpu_that_was_asked_for_and_is_gone_is_named_with_the_way_out(measured, monkeypatch):
    asked = RunConfig(**PIXELS, device="cuda")
    with monkeypatch.context() as patch:
        patch.setattr("tianji.planning.resolve.places.find_device", on("cuda:0"))
        before = plan_run(asked, asked.env, MACHINE, print).plan
    with pytest.raises(UsageError, match=r"device is 'cuda'.*--device cpu"):
        again(asked, before)
