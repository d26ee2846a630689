"""A stop is obeyed soon: in the middle of a long version, and while workers are started."""

from collections import deque

import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.orders import Stop
from tianji.checkpoint.load import latest, read_checkpoint
from tianji.engines import local
from tianji.engines.inline import InlineEngine
from tianji.engines.local import FINISH_S, GRACE_S, LocalEngine
from tianji.learner import training
from tianji.learner.training import CUT_SHORT, Patience
from tianji.programs.one_group import program_for

LONG = {"name": "tests.fakes.scripted:ALGORITHM", "script": ({},) * 1000}
ENOUGH_S = 5.0


def test_the_waits_add_up_to_less_than_five_seconds():
    assert training.PATIENCE_S < FINISH_S
    assert FINISH_S + GRACE_S < ENOUGH_S


def test_patience_begins_with_the_stop():
    now = [0]
    patience = Patience(lambda: now[0])
    now[0] = 10**12
    assert not patience.is_spent(Stop.NO)
    assert not patience.is_spent(Stop.FINISH)
    now[0] += int(training.PATIENCE_S * 1e9) + 1
    assert patience.is_spent(Stop.FINISH)


class StopsInTheMiddle(Watcher):
    """Asks to stop when some updates of a version have been made."""

    def tick(self):
        super().tick()
        if self.gauges.rows["learner"][Gauge.UPDATES] == 10:
            self.stop.level = Stop.FINISH


def test_a_long_version_is_cut_short_and_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "PATIENCE_S", -1.0)
    spec = make_spec(tmp_path, algorithm=LONG)
    watcher = StopsInTheMiddle()
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), watcher)
    outcome = engine.run(watcher.stop, resume=False)
    assert outcome["because"] == "interrupted"
    assert (outcome["record"]["version"], outcome["record"]["updates"]) == (1, 11)
    assert read_checkpoint(latest(tmp_path).path).version == 1
    assert watcher.texts("note").count(CUT_SHORT) == 1


def test_a_version_that_is_soon_done_is_finished(tmp_path):
    spec = make_spec(tmp_path, algorithm={**LONG, "script": ({},) * 20})
    watcher = StopsInTheMiddle()
    engine = InlineEngine(spec, program_for(spec.config, spec.plan), watcher)
    assert engine.run(watcher.stop, resume=False)["record"]["updates"] == 20


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A supervisor that is at second 100, with a learner and nothing else."""
    spec = make_spec(tmp_path, engine="local", num_envs=6, num_actors=6)
    made = LocalEngine(spec, program_for(spec.config, spec.plan), Watcher())
    now = [100.0]
    monkeypatch.setattr(local.time, "monotonic", lambda: now[0])
    made.now = now
    made._learner.process = object()
    return made


def request(level):
    return type("StopRequest", (), {"level": level, "note": ""})()


@pytest.mark.parametrize(
    ("level", "activity", "late_s", "must_end"),
    [
        (Stop.NO, Activity.UPDATING, 100.0, False),
        (Stop.NOW, Activity.SAVING, -1.0, True),
        (Stop.FINISH, Activity.UPDATING, -1.0, False),
        (Stop.FINISH, Activity.UPDATING, 1.0, True),
        (Stop.FINISH, Activity.STARTING, 1.0, True),
        (Stop.FINISH, Activity.SAVING, 1.0, False),
    ],
)
def test_the_supervisor_waits_for_a_version_so_long_and_for_a_checkpoint_longer(
    engine, level, activity, late_s, must_end
):
    engine._finish_by_s = 100.0 - late_s
    engine._learner_row[Gauge.ACTIVITY] = activity
    assert engine._must_end(request(level)) is must_end


def test_nobody_is_waited_for_where_the_learner_was_not_started(engine):
    engine._learner.process = None
    assert engine._must_end(request(Stop.FINISH))
    assert not engine._must_end(request(Stop.NO))


def test_workers_are_started_in_slices_and_none_after_a_stop(engine, monkeypatch):
    started = []

    def start(worker, resume, is_restart):
        started.append(worker.name)
        engine.now[0] += local.START_SLICE_S / 2 + 1e-3

    monkeypatch.setattr(engine, "_start", start)
    engine._pending = deque(["learner", *(f"actor-{i}" for i in range(6))])
    engine._start_pending(resume=False)
    assert started == ["learner", "actor-0"], "then the supervisor looks whether to stop"
    assert engine._timeout_s() == 0.0
    engine._start_pending(resume=False)
    engine._pass_on(request(Stop.FINISH))
    engine._start_pending(resume=False)
    assert len(started) == 4
    assert engine._timeout_s() > 0
