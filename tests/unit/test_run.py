"""One run from its first line to its last, mostly with an engine that does as it is told."""

import json
from pathlib import Path

import pytest

from tests.fakes.specs import MACHINE
from tianji import run
from tianji.channels.orders import Stop
from tianji.checkpoint.save import write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.config.files import load_config
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.display.curve import draw_curve
from tianji.envs.worlds import Counting
from tianji.errors import UsageError
from tianji.planning.planner import GATHERS
from tianji.planning.resolve.resolve import resolve
from tianji.run_folder.folder import read_plan


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "read_machine", lambda: MACHINE)


def config(**values):
    settings = {
        "env": "tianji.envs.worlds:Counting", "algorithm": "tests.fakes.scripted:ALGORITHM",
        "engine": "inline", "run": "it", "num_envs": 2, "num_actors": 1,
        "observe": {"display": "off", "tensorboard": False}, **values,
    }  # fmt: skip
    return RunConfig(**settings)


class Engine:
    """In place of a real one: keeps what it was given and ends as the test says."""

    outcome = {"because": "max_env_steps", "record": None, "restarts": 0, "first_cause": None}

    def __init__(self, spec, program, observer):
        self.spec, self.program, self.observer = spec, program, observer
        type(self).last = self

    def run(self, stop, resume):
        self.stop, self.resume = stop, resume
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def engine(monkeypatch):
    class Fresh(Engine):
        pass

    monkeypatch.setitem(run.ENGINES, "inline", Fresh)
    return Fresh


def test_a_whole_run_leaves_its_config_plan_metrics_summary_and_curve(monkeypatch):
    monkeypatch.setattr("tianji.display.curve.draw_curve", draw_curve)
    summary = run.train_config(config(max_env_steps=100, env_kwargs={"length": 3}))
    folder = Path(summary["run_dir"])
    assert folder == Path("runs/it")
    assert summary["stopped_because"] == "max_env_steps"
    assert summary["env_steps"] >= 100
    assert summary["start_up_s"] > 0.0
    assert Path(summary["checkpoint"]).name == f"v{summary['version']:08d}"
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert load_config(folder / "config.yaml").max_env_steps == 100
    plan = RunPlan.model_validate_json((folder / "plan.json").read_text())
    assert plan.num_actors == 1
    assert plan.policy_board_bytes > 0, "known when the network was built"
    assert (folder / "metrics.jsonl").read_text()
    assert list(folder.glob("*.png"))


@pytest.mark.parametrize(
    "values",
    [
        {"env": "NoSuchWorld-v0"},
        {"num_envs": 3, "num_actors": 2},
        {"algorithm": {"name": "tests.fakes.scripted:ALGORITHM", "steps_per_version": 7}},
    ],
)
def test_what_is_wrong_is_found_before_anything_is_left_behind(engine, values):
    with pytest.raises(UsageError):
        run.train_config(config(**values))
    assert not Path("runs").exists()


def test_the_engine_gets_the_spec_the_program_and_a_way_to_be_stopped(engine):
    run.train_config(config(seed=4))
    made = engine.last
    assert (made.spec.config.seed, made.spec.env) == (4, "tianji.envs.worlds:Counting")
    assert made.spec.plan.num_actors == 1
    assert [role.name for role in made.program.roles] == ["actor-0", "buffer", "learner"]
    assert (made.stop.level, made.resume) == (Stop.NO, False)


def test_a_callable_takes_the_place_of_the_environments_name(engine):
    from tianji.envs.worlds import Counting

    run.train_config(config(env="mine"), env=Counting)
    assert engine.last.spec.env is Counting
    assert load_config(Path("runs/it/config.yaml")).env == "mine"


def test_an_observation_that_is_converted_is_an_event_of_the_run(engine):
    class Doubles(Counting):
        def reset(self, **kwargs):
            observation, info = super().reset(**kwargs)
            return observation.astype("float64"), info

    run.train_config(config(), env=Doubles)
    events = [json.loads(line) for line in Path("runs/it/events.jsonl").read_text().splitlines()]
    (said,) = [event["text"] for event in events if event["role"] == "environment"]
    assert "'Doubles': the observation is dtype float64 where the space says dtype" in said


def test_the_summary_says_how_it_ended_and_what_only_the_engine_knows(engine, monkeypatch):
    drawn = []
    monkeypatch.setattr("tianji.display.curve.draw_curve", drawn.append)
    record = {"env_steps": 0, "version": 3, "learner": {"loss": 1.0}}
    engine.outcome = {
        "because": "failed", "record": record, "restarts": 5, "first_cause": "actor-0: it broke",
    }  # fmt: skip
    summary = run.train_config(config())
    assert (summary["stopped_because"], summary["restarts"]) == ("failed", 5)
    assert (summary["version"], summary["first_cause"]) == (3, "actor-0: it broke")
    assert "learner" not in summary
    assert summary["start_up_s"] is None, "no step was ever made"
    assert drawn == [], "a run without steps has no curve"


def test_start_up_counts_from_when_the_person_asked(engine):
    class Watched(engine):
        def run(self, stop, resume):
            self.observer.first_step_ns = lambda: 7 * 10**9
            return super().run(stop, resume)

    run.ENGINES["inline"] = Watched
    assert run.train_config(config(), started_ns=4 * 10**9)["start_up_s"] == 3.0


def test_an_engine_that_raises_leaves_the_terminal_in_order(engine):
    engine.outcome = RuntimeError("it broke")
    closed = []

    class Watched(engine):
        def __init__(self, spec, program, observer):
            super().__init__(spec, program, observer)
            observer._screen.stop = lambda _whole: closed.append(True)

    run.ENGINES["inline"] = Watched
    with pytest.raises(RuntimeError, match="it broke"):
        run.train_config(config())
    assert closed == [True]


def with_checkpoint(folder="runs/it"):
    import torch

    write_checkpoint(Path(folder), Snapshot(1, {"count": torch.zeros(1)}))


def test_a_resume_keeps_every_setting_that_was_not_changed(engine):
    checkpoint = {"period_s": 7.0, "keep_last": 9}
    run.train_config(config(seed=4, checkpoint=checkpoint, max_env_steps=100))
    with_checkpoint()
    changes = {"max_env_steps": 200, "checkpoint": {"period_s": 5.0}}
    run.resume_run(Path("runs/it"), changes)
    asked = engine.last.spec.config
    assert engine.last.resume
    assert (asked.max_env_steps, asked.checkpoint.period_s) == (200, 5.0)
    assert (asked.seed, asked.checkpoint.keep_last) == (4, 9)
    assert engine.last.spec.run_dir == Path("runs/it")
    assert load_config(Path("runs/it/config.yaml")) == asked


@pytest.mark.parametrize("because", ["failed", "interrupted"])
def test_a_resume_that_did_nothing_leaves_the_summary_of_the_finished_run(engine, because):
    run.train_config(config(max_env_steps=100))
    with_checkpoint()
    summary = Path("runs/it/summary.json")
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "env_steps": 100}))
    before = summary.read_text()
    cause = "actor-0: it broke" if because == "failed" else None
    engine.outcome = {"because": because, "record": None, "restarts": 1, "first_cause": cause}
    told = run.resume_run(Path("runs/it"), {"max_env_steps": 200})
    assert (told["stopped_because"], told["env_steps"]) == (because, 100)
    assert told.get("first_cause") == cause
    assert summary.read_text() == before


def test_a_run_without_a_checkpoint_cannot_be_resumed(engine):
    run.train_config(config())
    with pytest.raises(UsageError, match=r"Run runs/it has no checkpoint to continue from\."):
        run.resume_run(Path("runs/it"), {})


def test_a_run_resumed_on_a_machine_with_more_cores_goes_on(monkeypatch):
    asked = config(num_envs=4, num_actors="auto", max_env_steps=5 * 16)
    run.train_config(asked)
    monkeypatch.setattr(run, "read_machine", lambda: Machine((0, 1, 2, 3, 4), 1 << 30))
    summary = run.resume_run(Path("runs/it"), {"max_env_steps": 10 * 16})
    assert summary["env_steps"] >= 10 * 16
    assert summary["version"] > 5


def test_after_a_kill_and_a_resume_no_counter_falls_and_no_version_is_used_again():
    summary = run.train_config(config(max_env_steps=80))
    metrics = Path("runs/it/metrics.jsonl")
    last = json.loads(metrics.read_text().splitlines()[-1])
    lost = {**last, "version": 90, "env_steps": 5000, "updates": 5000, "wall_s": 1e6}
    with metrics.open("a") as file:  # what the killed run had done since its last checkpoint
        file.write(json.dumps(lost) + "\n")
    resumed = run.resume_run(Path("runs/it"), {"max_env_steps": 160})
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    for key in ("version", "env_steps", "updates", "wall_s"):
        values = [record[key] for record in records]
        assert values == sorted(values), key
    assert resumed["version"] > 90 > summary["version"]
    assert resumed["env_steps"] < 5000
    assert json.loads(Path("runs/it/metrics-lost.jsonl").read_text()) == lost
    events = Path("runs/it/events.jsonl").read_text()
    assert "as version 91; what was learned after that checkpoint is lost." in events
    assert "Its records (1) were moved to metrics-lost.jsonl." in events


def planned_notes():
    lines = map(json.loads, Path("runs/it/events.jsonl").read_text().splitlines())
    return [line["text"] for line in lines if line["role"] == "planner"]


def test_where_the_plan_comes_from_is_an_event_of_the_run(monkeypatch, engine):
    monkeypatch.setitem(run.ENGINES, "local", run.ENGINES["inline"])
    run.train_config(config(engine="local", num_actors="auto", plan={"source": "rule"}))
    assert planned_notes() == ["Cores are shared by rule (plan.source = rule)."]


class Replanned(Engine):
    """Ends for a new plan once, then goes on to its end."""

    plans, explained_by = [], []

    def __init__(self, spec, program, observer, replan=None):
        super().__init__(spec, program, observer)
        self.replan = replan

    def run(self, stop, resume):
        self.plans.append((self.spec.plan.num_actors, len(self.program.roles), resume))
        self.explained_by.append(self.observer._screen.plan.num_actors)
        if len(self.plans) > 1:
            with_checkpoint()
            return {**self.outcome, "restarts": 1}
        self.interrupt(stop)
        return {**self.outcome, "because": "replan", "restarts": 2}

    def interrupt(self, stop):
        pass


class OtherPlan:
    changes = 0
    note = "Two actors promise more."

    def __init__(self, plan):
        self.plan = plan

    def take(self):
        self.changes += 1
        return self.plan


@pytest.fixture
def replanned(monkeypatch):
    def other_plan(planned, env, machine):
        asked = planned.config.model_copy(update={"num_actors": 2})
        return OtherPlan(resolve(asked, machine, planned.probe))

    class Fresh(Replanned):
        plans, explained_by = [], []

    monkeypatch.setitem(run.ENGINES, "local", Fresh)
    monkeypatch.setattr("tianji.planning.replan.replanner_for", other_plan)
    return Fresh


REPLAN = {"engine": "local", "plan": {"replan": True, "source": "rule"}}


def test_a_run_goes_on_with_a_better_plan_in_the_same_folder(replanned):
    summary = run.train_config(config(**REPLAN))
    assert replanned.plans == [(1, 3, False), (2, 4, True)]
    assert replanned.explained_by == [1, 2]
    assert replanned.last.replan is not None, "it may change again"
    assert (summary["stopped_because"], summary["restarts"]) == ("max_env_steps", 3)
    assert summary["replans"] == 1
    assert read_plan(Path("runs/it")).num_actors == 2
    assert "Two actors promise more." in planned_notes()
    assert "Version 0 could not be saved; the run goes on from its beginning." in planned_notes()


def test_a_ctrl_c_wins_over_a_new_plan(replanned):
    replanned.interrupt = lambda self, stop: stop.ask()
    summary = run.train_config(config(**REPLAN))
    assert summary["stopped_because"] == "interrupted"
    assert len(replanned.plans) == 1


def test_rounds_of_gradients_are_never_planned_anew(monkeypatch, engine):
    monkeypatch.setitem(run.ENGINES, "local", run.ENGINES["inline"])
    run.train_config(config(**REPLAN, algorithm="rennala-nigt"))
    assert planned_notes() == [GATHERS]


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ({}, run.NO_REPLAN),
        ({"inference": "served"}, run.NO_COSTS),
        ({"balance": "free", "algorithm": "dqn"}, run.NO_BALANCE),
    ],
)
def test_a_run_that_cannot_change_its_plan_says_so(values, note, monkeypatch, engine):
    monkeypatch.setitem(run.ENGINES, "local", run.ENGINES["inline"])
    run.train_config(config(**REPLAN, **values))
    assert planned_notes()[1:] == [note]


def test_a_resume_keeps_its_plan_and_its_promise(engine):
    run.train_config(config(num_envs=4, num_actors="auto"))
    with_checkpoint()
    before = read_plan(Path("runs/it"))
    promise = {
        "produced": 1.0, "received": 1.0, "trained": 3.0, "lag_versions": 1.0,
        "bottleneck": "training",
    }  # fmt: skip
    measured = {**before.model_dump(), "source": "measured", "prediction": promise}
    Path("runs/it/plan.json").write_text(json.dumps(measured))
    run.resume_run(Path("runs/it"), {"max_env_steps": 2 * 10**6})
    plan = engine.last.spec.plan
    assert (plan.source, plan.prediction.trained) == ("measured", 3.0)


def test_a_resume_may_ask_for_other_actors(engine):
    run.train_config(config(num_envs=4, num_actors=1))
    with_checkpoint()
    run.resume_run(Path("runs/it"), {"num_actors": 2})
    assert engine.last.spec.plan.num_actors == 2
    assert engine.last.spec.plan.learner_threads == 1
    run.resume_run(Path("runs/it"), {})
    assert engine.last.spec.plan.num_actors == 2, "and keeps them"


@pytest.mark.parametrize(
    ("because", "failures", "ends"),
    [("max_wall", 1, "failed"), ("max_wall", 0, "max_wall"), ("interrupted", 1, "interrupted")],
)
def test_a_run_whose_environments_fail_before_a_step_was_made_has_failed(
    engine, monkeypatch, because, failures, ends
):
    def fail(self, stop, resume):
        for _ in range(failures):
            told = "Environment 0 of 2 failed: RuntimeError: the cable is loose."
            self.observer.report({"kind": "env_failure", "role": "actor-0", "text": told})
        return {"because": because, "record": None, "restarts": 1, "first_cause": None}

    monkeypatch.setattr(engine, "run", fail)
    summary = run.train_config(config(max_wall_s=3.0))
    assert summary["stopped_because"] == ends
    if ends == "failed":
        assert "without a single step to train on. Environment 0" in summary["first_cause"]
        assert "the cable is loose" in summary["first_cause"]


FULL = "Checkpoint v00000003 was not written: the disk of runs/it is full."


@pytest.mark.parametrize(
    ("because", "is_saved", "stop_reason", "ends"),
    [
        ("target_reached", False, None, "failed"),
        ("max_env_steps", False, None, "failed"),
        ("max_env_steps", True, None, "max_env_steps"),
        ("interrupted", False, None, "interrupted"),
        ("interrupted", False, "good enough", "failed"),
    ],
)
def test_a_run_that_ends_without_a_saved_policy_has_failed(
    engine, monkeypatch, because, is_saved, stop_reason, ends
):
    def fill_the_disk(self, stop, resume):
        if is_saved:
            with_checkpoint()
        self.observer.callbacks.run.stop_reason = stop_reason
        self.observer.report({"kind": "checkpoint_failed", "role": "learner", "text": FULL})
        return {"because": because, "record": None, "restarts": 0, "first_cause": None}

    monkeypatch.setattr(engine, "run", fill_the_disk)
    summary = run.train_config(config())
    assert summary["stopped_because"] == ends
    if ends == "failed":
        assert f"{summary['first_cause']}." == f"{run.NO_POLICY} {FULL}", "sentences go on after it"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("tianji.run.write_summary", "The summary is not on disk"),
        ("tianji.display.curve.draw_curve", "The picture of the learning curve is not on disk"),
    ],
)
def test_the_file_that_a_full_disk_has_no_room_for_is_named(
    engine, monkeypatch, caplog, function, told
):
    def is_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tianji.display.curve.draw_curve", lambda _: None)
    monkeypatch.setattr(function, is_full)
    engine.outcome = {**engine.outcome, "record": {"env_steps": 100, "version": 1}}
    run.train_config(config())
    assert caplog.messages == [f"{told}: [Errno 28] No space left on device"]
