"""When a worker that fails is started again, and when it is given up."""

import pytest

from tests.unit.engines.sides import make_spec
from tianji.channels.gauges import Activity, Gauge
from tianji.config.run import RunConfig
from tianji.engines import local
from tianji.engines.health import (
    MAX_FRUITLESS,
    REFUND_S,
    REFUND_STEPS,
    Health,
    Work,
    work_of_actor,
    work_of_learner,
)
from tianji.engines.local import LocalEngine
from tianji.programs.program import tianji

LIMIT = 5


class Observer:
    def __init__(self):
        self.texts = []

    def report(self, report):
        self.texts.append(report["text"])


class Supervisor:
    """A supervisor whose workers live and die by hand."""

    def __init__(self, tmp_path, monkeypatch):
        spec = make_spec(
            tmp_path, engine="local", supervise={"max_restarts": LIMIT}, evaluate={"period_s": 5}
        )
        self.observer, self.now_s = Observer(), 1000.0
        self.engine = LocalEngine(spec, tianji(spec.config, spec.plan), self.observer)
        monkeypatch.setattr(local.time, "monotonic", lambda: self.now_s)

    def lives(self, worker, items=0, steps=0, life_s=0.0, silent_s=0.0, checkpoints=0, error=None):
        """One life of a worker, from its start to its end. silent_s: at its end."""
        row, health = self.engine._rows(worker)[0], self.engine._health[worker]
        health.begin(row[Gauge.ITEMS], row[Gauge.STEPS], self.now_s)
        row[Gauge.ITEMS] += items
        row[Gauge.STEPS] += steps
        self.now_s += life_s
        row[Gauge.HEARTBEAT_NS] = int(self.now_s * 1e9)
        self.now_s += silent_s
        for _ in range(checkpoints):
            report = {"kind": "checkpoint_written", "role": worker, "text": "saved"}
            self.engine._take(worker, report)
        if error is not None:
            self.engine._take(worker, {"kind": "error", "role": worker, "text": error})
        self.engine._recover(worker, error or "killed by SIGKILL")
        return not health.is_given_up and not self.engine._failed


@pytest.fixture
def supervisor(tmp_path, monkeypatch):
    return Supervisor(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "life",
    [
        {"items": 8, "steps": 2_000},
        {"items": 1, "steps": 40, "life_s": 3600.0},
    ],
    ids=["once in 2,000 steps", "once an hour"],
)
def test_an_actor_that_fails_now_and_then_does_not_end_the_run(supervisor, life):
    assert all(supervisor.lives("actor-0", **life) for _ in range(100))
    assert supervisor.engine._health["actor-0"].restarts == 100


def test_an_actor_that_fails_again_and_again_ends_the_run_soon(supervisor):
    lives = [supervisor.lives("actor-0", items=1, steps=64) for _ in range(LIMIT + 1)]
    assert lives == [True] * LIMIT + [False]


def test_an_actor_that_never_does_anything_ends_the_run_sooner(supervisor):
    assert [supervisor.lives("actor-0") for _ in range(3)] == [True, True, False]


def test_an_hour_without_an_unroll_is_no_work(supervisor):
    lives = [supervisor.lives("actor-0", life_s=3600.0) for _ in range(3)]
    assert lives == [True, True, False]


def test_an_actor_that_hangs_again_and_again_ends_the_run(supervisor):
    silent_s = RunConfig(algorithm="ppo").supervise.heartbeat_timeout_s + 1
    hangs = {"items": 1, "steps": 64, "life_s": 2.0, "silent_s": silent_s}
    lives = [supervisor.lives("actor-0", **hangs) for _ in range(LIMIT + 1)]
    assert lives == [True] * LIMIT + [False]


def test_the_closing_words_name_the_cause_and_the_setting(supervisor):
    while supervisor.lives("actor-0", items=1, steps=64, error="RuntimeError: broken cable"):
        pass
    cause = supervisor.engine._first_cause
    assert cause.startswith("actor-0: RuntimeError: broken cable. It was given up")
    assert f"supervise.max_restarts = {LIMIT}" in cause
    assert supervisor.observer.texts[-1] in cause


def test_a_learner_that_saves_in_between_may_be_restarted_for_ever(supervisor):
    assert all(supervisor.lives("learner", items=9, checkpoints=2) for _ in range(100))


def test_a_learner_that_saves_nothing_new_goes_nowhere(supervisor):
    lives = [supervisor.lives("learner", items=9, checkpoints=1) for _ in range(LIMIT + 1)]
    assert lives == [True] * LIMIT + [False]


def test_an_exception_of_the_learner_ends_the_run_at_once(supervisor):
    assert not supervisor.lives("learner", items=9, checkpoints=9, error="TrainingDiverged: nan")
    assert supervisor.engine._first_cause == "learner: TrainingDiverged: nan"


def test_an_evaluator_that_fails_once_an_hour_is_not_given_up(supervisor):
    assert all(supervisor.lives("evaluator", items=9, life_s=3600.0) for _ in range(100))
    assert supervisor.engine._rows("evaluator")[0][Gauge.ACTIVITY] != Activity.STOPPED


def test_work_pays_for_one_restart_each_time():
    assert work_of_actor(1, REFUND_STEPS - 1, REFUND_S - 1) == Work(1, refunded=0)
    assert work_of_actor(9, 3 * REFUND_STEPS, REFUND_S) == Work(9, refunded=4)
    assert work_of_learner(9, checkpoints=3) == Work(9, refunded=2)
    health = Health(used=3)
    health.fail("it broke", Work(9, refunded=2))
    assert health.used == 1
    health.fail("it broke", Work(9, refunded=2))
    assert health.used == 0, "what is not needed is not saved up"


def test_the_wait_doubles_and_is_short_again_after_work():
    health = Health()
    assert [health.use_restart(0.5) for _ in range(4)] == [0.0, 0.5, 1.0, 2.0]
    health.fail("it broke", Work(9, refunded=4))
    assert health.use_restart(0.5) == 0.0
    assert health.restarts == 5


def test_the_first_cause_is_that_of_the_failures_since_the_last_work():
    health = Health()
    health.fail("old", Work(1))
    health.fail("new", Work(1))
    health.fail("follows from it", Work())
    assert health.first_cause == "new"
    assert health.fruitless == 1 < MAX_FRUITLESS
