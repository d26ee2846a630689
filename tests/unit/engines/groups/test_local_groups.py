"""The engines of several groups on threads, under one head; the engines themselves are made up."""

import threading

import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.gauges import Gauge, Gauges
from tianji.channels.orders import Stop
from tianji.engines.agents.interface import RunLost
from tianji.engines.groups import local
from tianji.engines.groups.local import LocalGroups
from tianji.engines.groups.specs import group_specs
from tianji.engines.interface import Outcome
from tianji.engines.signals import StopRequest
from tianji.errors import UsageError
from tianji.records import SessionMetrics, nothing

KINDS = {"actor-0": "actor", "buffer": "buffer", "learner": "learner"}


class MadeUpEngine:
    """Reports some episodes, then does as its group is told in `plays`."""

    plays = {}

    def __init__(self, spec, program, observer, neighbours):
        self.group = spec.group
        self.observer = observer
        self.neighbours = neighbours
        self.gauges = Gauges(KINDS)
        self.waited = threading.Event()

    def run(self, stop, resume):
        self.observer.watch(self.gauges, {"learner": 1})
        self.gauges.rows["learner"][Gauge.ENV_STEPS] = 1000 * (self.group + 1)
        return self.plays[self.group](self, stop)

    def episodes(self, value, count, end_ns):
        rows = [(end_ns + i, float(value), 5, 0) for i in range(count)]
        record = {"until_ns": end_ns + count, "episodes": rows}
        self.observer.report({"kind": "episodes", "record": record})

    def until_told(self, stop, because="interrupted"):
        while stop.level == Stop.NO:
            self.waited.wait(0.005)
        return self.outcome(because)

    def outcome(self, because, cause=None):
        record = nothing(SessionMetrics, version=self.group + 3, env_steps=1000)
        return Outcome(because=because, record=record, restarts=0, first_cause=cause)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "LocalEngine", MadeUpEngine)
    monkeypatch.setattr(local, "LOOK_S", 0.005)

    def run(*plays, stop=None, **values):
        MadeUpEngine.plays = dict(enumerate(plays))
        num_groups = len(plays) // values.get("learners_per_group", 1)
        spec = make_spec(tmp_path, engine="local", num_groups=num_groups, **values)
        watcher = Watcher()
        groups = LocalGroups(spec, [spec.plan] * len(plays), None, watcher)
        made = stop or StopRequest()
        try:
            return groups.run(made, resume=False), watcher
        finally:
            made.close()

    return run


def test_the_target_is_reached_by_the_episodes_of_all_and_ends_all(run):
    def play(engine, stop):
        engine.episodes(10.0 + engine.group, 60, end_ns=100)
        return engine.until_told(stop)

    outcome, _ = run(play, play, combine="average", target_return=10.4)
    assert outcome["because"] == "target_reached"
    record = outcome["record"]
    assert (record["episodes"], record["env_steps"]) == (120, 3000)
    assert [figures["env_steps"] for figures in record["groups"]] == [1000, 2000]


def test_a_group_that_ends_at_the_limit_ends_the_others(run):
    outcome, _ = run(
        lambda engine, stop: engine.outcome("max_env_steps"),
        lambda engine, stop: engine.until_told(stop),
        combine="gossip",
    )
    assert outcome["because"] == "max_env_steps"


def test_a_group_that_fails_is_left_out_with_a_note(run):
    failed = threading.Event()

    def fails(engine, stop):
        failed.set()
        return engine.outcome("failed", "learner: broke")

    def ends(engine, stop):
        failed.wait(5)
        while engine.neighbours.other_steps() != 1000:
            engine.waited.wait(0.005)
        return engine.outcome("max_env_steps")

    outcome, watcher = run(fails, ends, combine="average")
    assert outcome["because"] == "max_env_steps"
    (note,) = [text for text in watcher.texts("note") if "Group 0 has failed" in text]
    assert "learner: broke" in note and "groups left: 1" in note


def test_groups_that_make_every_update_together_end_with_the_first_that_fails(run):
    outcome, watcher = run(
        lambda engine, stop: engine.outcome("failed", "learner: broke"),
        lambda engine, stop: engine.until_told(stop),
        combine="gradients",
    )
    assert (outcome["because"], outcome["first_cause"]) == ("failed", "0/learner: broke")
    assert not [text for text in watcher.texts("note") if "goes on without it" in text]


def test_a_learner_that_fails_ends_its_group_and_no_other(run):
    ended = []

    def fails(engine, stop):
        return engine.outcome("failed", "learner: broke")

    def ends_with_it(engine, stop):
        outcome = engine.until_told(stop)
        ended.append(engine.group)
        return outcome

    def goes_on(engine, stop):
        while not ended:
            engine.waited.wait(0.005)
        if stop.level != Stop.NO:
            return engine.outcome("interrupted")
        return engine.outcome("max_env_steps")

    outcome, watcher = run(
        ends_with_it, fails, goes_on, goes_on, combine="average", learners_per_group=2
    )
    assert (ended, outcome["because"]) == ([0], "max_env_steps")
    (note,) = [text for text in watcher.texts("note") if "has failed" in text]
    assert note.startswith("Group 0 has failed: learner: broke.") and "groups left: 1" in note


def test_a_run_without_any_group_left_has_failed(run):
    def fails(engine, stop):
        raise RuntimeError("no memory")

    outcome, _ = run(fails, fails, combine="average")
    assert outcome["because"] == "failed"
    assert "RuntimeError: no memory" in outcome["first_cause"]


@pytest.mark.parametrize("error", [RunLost, UsageError])
def test_a_group_without_which_the_run_cannot_go_on_ends_the_others(run, error):
    def refused(engine, stop):
        raise error("On rank 1 (far): no")

    outcome, watcher = run(MadeUpEngine.until_told, refused, combine="average")
    assert (outcome["because"], outcome["first_cause"]) == ("failed", "On rank 1 (far): no")
    assert outcome["record"]["groups"][0]["env_steps"] == 1000, "the other group ended in order"
    assert not [text for text in watcher.texts("note") if "goes on without it" in text]


def test_a_person_who_asks_to_stop_stops_all_groups(run):
    stop = StopRequest()
    stop.ask()
    outcome, watcher = run(
        MadeUpEngine.until_told, MadeUpEngine.until_told, stop=stop, combine="average"
    )
    assert outcome["because"] == "interrupted"
    assert watcher.texts("note") == [stop.note]


def test_events_are_named_by_their_group_and_only_the_first_tells_the_size_of_the_network(run):
    def play(engine, stop):
        engine.observer.report({"kind": "built", "record": {"policy_board_bytes": engine.group}})
        engine.observer.report({"kind": "restart", "role": "actor-0", "text": "again"})
        return engine.outcome("max_env_steps")

    outcome, watcher = run(play, play, combine="average")
    assert [r["record"] for r in watcher.reports if r["kind"] == "built"] == [
        {"policy_board_bytes": 0}
    ]
    assert sorted(r["role"] for r in watcher.reports if r["kind"] == "restart") == [
        "0/actor-0", "1/actor-0"
    ]  # fmt: skip
    assert [figures["restarts"] for figures in outcome["record"]["groups"]] == [1, 1]


def test_only_the_first_group_evaluates_and_no_group_knows_the_target(tmp_path):
    spec = make_spec(
        tmp_path, num_groups=2, combine="average", target_return=5.0, max_wall_s=9.0,
        evaluate={"period_s": 3.0},
    )  # fmt: skip
    first, second = group_specs(spec, [spec.plan] * 2, None)
    assert (first.config.evaluate.period_s, second.config.evaluate.period_s) == (3.0, 0.0)
    for group, made in enumerate((first, second)):
        assert (made.config.target_return, made.config.max_wall_s) == (None, None)
        assert made.config.max_env_steps == spec.config.max_env_steps
        assert (made.group, made.has_head) == (group, True)
        assert made.run_dir == tmp_path / "groups" / str(group) and made.run_dir.is_dir()
        assert made.number_of(0) == group
