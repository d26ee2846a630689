"""On a GPU, test runs decide where inference runs; cores are shared by rule."""

import pytest

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Rehearsal
from tianji.errors import UsageError, WorkerLost
from tianji.planning.placing import NOT_KEPT
from tianji.planning.planner import measured_plan, plan_again, plan_run
from tianji.planning.replan import replanner_for

MACHINE = Machine(tuple(range(8)), 1 << 36)
RATES = {"served": 21_000.0, "learner": 17_500.0, "actor-gpu": 9_000.0, "actor-cpu": 5_000.0}


def pixels(**values):
    settings = {
        "env": "tianji.envs.worlds:Pixels", "num_envs": 8,
        "algorithm": {"name": "ppo", "unroll_length": 4, "minibatch_size": 16}, **values,
    }  # fmt: skip
    return RunConfig(**settings)


def rehearsal(plan, rate):
    return Rehearsal(
        num_actors=plan.num_actors, learner_threads=plan.learner_threads,
        actor_threads=plan.actor_threads, produced=rate, received=rate, trained=3 * rate,
        lag_versions=1.0,
    )  # fmt: skip


class Stage:
    """A machine with a GPU, and the rates of its places; test runs take no time."""

    def __init__(self):
        self.device, self.rates, self.tried = "cuda:0", dict(RATES), []

    def rehearse(self, spec, seconds, limit_s):
        inference = spec.plan.inference
        assert (spec.config.inference, spec.plan.device) == (inference, self.device)
        self.tried.append(inference)
        if isinstance(rate := self.rates[inference], Exception):
            raise rate
        return rehearsal(spec.plan, rate)


@pytest.fixture
def stage(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stage = Stage()
    monkeypatch.setattr(
        "tianji.planning.resolve.places.find_device",
        lambda asked, is_worthwhile: "cpu" if asked == "cpu" else stage.device,
    )
    monkeypatch.setattr("tianji.planning.rehearse.places.rehearse", stage.rehearse)

    def measure(*args):
        raise AssertionError("the costs of a run on a GPU are not measured on the CPU")

    monkeypatch.setattr("tianji.planning.measure.measure.measure", measure)
    return stage


def plan(asked, fresh=False, env=None):
    told = []
    return measured_plan(asked, env or asked.env, MACHINE, told.append, fresh), told


def start(asked):
    return plan_run(asked, asked.env, MACHINE, print)


@pytest.mark.parametrize("fastest", ["served", "actor-gpu", "actor-cpu"])
def test_the_fastest_place_wins_and_the_plan_says_why(fastest, stage):
    stage.rates[fastest] = 42_000.0
    planned, told = plan(pixels())
    assert stage.tried == ["served", "actor-gpu", "actor-cpu"], "these worlds have no threads"
    assert (planned.plan.device, planned.plan.inference) == ("cuda:0", fastest)
    (reason,) = [note for note in planned.plan.notes if note.startswith("Inference:")]
    assert reason.startswith(f"Inference: {fastest} 42,000 steps/s, ")
    assert f"The run uses {fastest}, which received" in reason
    assert f"Inference {fastest}: 42,000 steps/s." in told
    assert planned.config.inference == "auto", "a resume on another machine chooses anew"
    assert (planned.plan.source, planned.solved) == ("rule", None)


def test_all_rates_are_in_the_notes_the_highest_first(stage):
    planned, _ = plan(pixels())
    (reason,) = [note for note in planned.plan.notes if note.startswith("Inference:")]
    assert reason == (
        "Inference: served 21,000 steps/s, actor-gpu 9,000, actor-cpu 5,000. The run uses served, "
        "which received 133 % more steps/s than actor-gpu in a test run."
    )


def test_a_place_that_fails_is_left_out_with_its_reason(stage):
    stage.rates["served"] = WorkerLost("learner: The GPU has no memory left.")
    planned, told = plan(pixels())
    assert planned.plan.inference == "actor-gpu"
    left_out = "served was left out, because its test run failed: learner: The GPU has no memory"
    assert any(left_out in note for note in planned.plan.notes)
    assert any("served is left out" in text for text in told)


def test_results_with_a_failure_are_not_kept(stage):
    stage.rates["served"] = WorkerLost("learner: The GPU has no memory left.")
    _, told = plan(pixels())
    assert NOT_KEPT in told
    assert start(pixels()).placed is None
    stage.rates = dict(RATES)
    planned, told = plan(pixels())
    assert (planned.plan.inference, planned.placed.from_cache) == ("served", False)
    assert NOT_KEPT not in told
    assert start(pixels()).placed.from_cache


def test_a_place_that_does_not_fit_is_left_out(stage, monkeypatch):
    from tianji.planning.rehearse import places

    resolve = places.resolve

    def too_large(config, machine, probe):
        if config.inference == "served":
            raise UsageError("This run does not fit on cuda:0.")
        return resolve(config, machine, probe)

    monkeypatch.setattr(places, "resolve", too_large)
    planned, _ = plan(pixels())
    assert stage.tried == ["actor-gpu", "actor-cpu"]
    assert planned.plan.inference == "actor-gpu"


def test_if_every_place_fails_so_does_the_plan(stage):
    stage.rates = dict.fromkeys(RATES, WorkerLost("broken"))
    with pytest.raises(WorkerLost, match="broken"):
        plan(pixels())
    stage.rates = dict(RATES)
    assert not plan(pixels())[0].placed.from_cache, "a failure is not kept"


def test_a_run_uses_the_kept_choice_without_measuring(stage):
    stage.rates["actor-gpu"] = 42_000.0
    plan(pixels())
    stage.tried.clear()
    planned = start(pixels(seed=4, max_env_steps=9))
    assert stage.tried == []
    assert planned.plan.inference == "actor-gpu"
    assert "Inference: actor-gpu 42,000 steps/s" in planned.note
    assert "Measured earlier" in planned.note
    assert plan(pixels())[0].placed.from_cache
    assert not plan(pixels(), fresh=True)[0].placed.from_cache
    assert len(stage.tried) == 3


@pytest.mark.parametrize("shares", [{}, {"num_actors": 2, "learner_threads": 1}])
def test_a_run_without_a_kept_choice_uses_the_rule_and_says_how_to_measure(stage, shares):
    planned = start(pixels(max_env_steps=100_000_000, **shares))
    assert (stage.tried, planned.plan.inference) == ([], "served")
    assert "`tianji plan`" in planned.note
    assert planned.plan.num_actors == shares.get("num_actors", planned.plan.num_actors)


def test_a_run_may_ask_for_a_measurement(stage):
    stage.rates["actor-cpu"] = 42_000.0
    planned = start(pixels(plan={"source": "measure"}))
    assert (len(stage.tried), planned.plan.inference) == (3, "actor-cpu")
    assert "Measured now." in planned.note


@pytest.mark.parametrize(
    "values",
    [{"model": {"torso": "impala"}}, {"num_envs": 16}, {"emulator_threads": 2}, {"max_lag": 2}],
)
def test_another_run_has_a_choice_of_its_own(stage, values):
    plan(pixels())
    assert start(pixels(**values)).placed is None


def test_another_gpu_has_a_choice_of_its_own(stage):
    plan(pixels())
    stage.device = "cuda:1"
    assert start(pixels()).placed is None


def test_what_the_rule_is_asked_for_is_not_replaced(stage):
    stage.rates["actor-gpu"] = 42_000.0
    plan(pixels())
    planned = start(pixels(plan={"source": "rule"}))
    assert (planned.plan.inference, planned.placed) == ("served", None)


def test_a_place_that_a_person_sets_is_the_only_one_measured(stage):
    planned, _ = plan(pixels(inference="actor-gpu"))
    assert (stage.tried, planned.plan.inference) == (["actor-gpu"], "actor-gpu")
    started = start(pixels(inference="actor-cpu"))
    assert (started.plan.inference, started.placed) == ("actor-cpu", None)
    assert "`tianji plan`" not in started.note


def test_a_server_on_the_cpu_is_rehearsed_and_not_solved(stage):
    stage.device = "cpu"
    planned, _ = plan(pixels(inference="served"))
    assert (stage.tried, planned.plan.inference) == (["served"], "served")


def test_a_function_in_hand_is_measured_and_not_kept(stage):
    from tianji.envs.worlds import Pixels

    plan(pixels(), env=Pixels)
    assert start(pixels()).placed is None


def test_a_resumed_run_keeps_its_place(stage):
    stage.rates["actor-gpu"] = 42_000.0
    asked = pixels()
    before = plan(asked)[0].plan
    planned = plan_again(asked, {}, asked.env, MACHINE, before, print)
    assert (planned.plan.inference, planned.note) == ("actor-gpu", "")
    assert planned.plan.num_actors == before.num_actors
    moved = pixels(inference="actor-cpu")
    planned = plan_again(moved, {}, moved.env, MACHINE, before, print)
    assert planned.plan.inference == "actor-cpu"
    assert "inference: actor-gpu) and continues on cuda:0 (inference: actor-cpu)" in planned.note


def test_a_run_on_a_gpu_is_not_planned_again_by_costs_on_the_cpu(stage):
    planned, _ = plan(pixels())
    assert replanner_for(planned, planned.config.env, MACHINE) is None
