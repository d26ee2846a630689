"""When a worker that fails is started again, and when it is given up."""

import pytest

from tests.fakes.specs import make_spec
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.orders import Control
from tianji.config.run import RunConfig
from tianji.engines.assembly.wiring import bell_names
from tianji.engines.supervise import watched
from tianji.engines.supervise.recovery import Recovery
from tianji.engines.supervise.watched import (
    MAX_FRUITLESS,
    REFUND_S,
    REFUND_STEPS,
    Health,
    WatchedWorker,
    Work,
    work_of_actor,
    work_of_learner,
)
from tianji.programs.one_group import program_for

LIMIT = 5


class Observer:
    def __init__(self):
        self.texts = []
        self.away = []

    def report(self, report):
        self.texts.append(report["text"])
        if report["kind"] == "restart":
            self.away.append((report["role"], report["stops_learner"], report["stops_actors"]))


class Supervisor:
    """A supervisor whose workers live and die by hand."""

    def __init__(self, tmp_path, monkeypatch, **values):
        spec = make_spec(
            tmp_path,
            engine="local",
            supervise={"max_restarts": LIMIT},
            evaluate={"period_s": 5},
            **values,
        )
        self.observer, self.now_s = Observer(), 1000.0
        program = program_for(spec.config, spec.plan)
        control = Control.create(program.kinds(), bell_names(program))
        self.workers = {
            worker.name: WatchedWorker(worker, program.roles_in(worker.name), control.gauges)
            for worker in program.workers
        }
        self.recovery = Recovery(spec.config, program, control, self.workers, self.observer)
        monkeypatch.setattr(watched.time, "monotonic", lambda: self.now_s)

    def lives(self, worker, items=0, steps=0, life_s=0.0, silent_s=0.0, checkpoints=0, error=None):
        """One life of a worker, from its start to its end. silent_s: at its end."""
        life = self.workers[worker]
        row, health = life.rows[0], life.health
        life.begin(process=None)
        row[Gauge.ITEMS] += items
        row[Gauge.STEPS] += steps
        self.now_s += life_s
        row[Gauge.HEARTBEAT_NS] = int(self.now_s * 1e9)
        self.now_s += silent_s
        health.checkpoints = checkpoints
        if error is not None:
            health.last_error = {"kind": "error", "role": worker, "text": error}
        self.recovery.after_end(life, error or "killed by SIGKILL")
        return not health.is_given_up and not self.recovery.has_failed


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
    assert supervisor.workers["actor-0"].health.restarts == 100


def test_restarts_after_good_work_do_not_all_say_that_they_are_the_first(supervisor):
    for _ in range(9):
        supervisor.lives("actor-0", items=8, steps=2_000)
    first, *_, last = supervisor.observer.texts
    assert first == "killed by SIGKILL. Restart 1 of 5."
    assert last == (
        "killed by SIGKILL. Restart 9, which counts as 1 of 5 because it worked in between."
    )


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
    cause = supervisor.recovery.first_cause
    assert cause.startswith("actor-0: RuntimeError: broken cable. It was given up")
    assert f"supervise.max_restarts = {LIMIT}" in cause
    assert supervisor.observer.texts[-1] in cause


def test_a_learner_that_saves_in_between_may_be_restarted_for_ever(supervisor):
    assert all(supervisor.lives("learner", items=9, checkpoints=2) for _ in range(100))


def test_a_learner_that_saves_nothing_new_goes_nowhere(supervisor):
    lives = [supervisor.lives("learner", items=9, checkpoints=1) for _ in range(LIMIT + 1)]
    assert lives == [True] * LIMIT + [False]


def test_a_restart_says_whether_learner_or_actors_are_away_meanwhile(supervisor):
    for worker in ("actor-0", "learner", "evaluator"):
        supervisor.lives(worker, items=9)
    away = [("actor-0", False, True), ("learner", True, False), ("evaluator", False, False)]
    assert supervisor.observer.away == away


def test_an_exception_of_the_learner_ends_the_run_at_once(supervisor):
    assert not supervisor.lives("learner", items=9, checkpoints=9, error="TrainingDiverged: nan")
    assert supervisor.recovery.first_cause == "learner: TrainingDiverged: nan"


def test_an_evaluator_that_fails_once_an_hour_is_not_given_up(supervisor):
    assert all(supervisor.lives("evaluator", items=9, life_s=3600.0) for _ in range(100))
    assert supervisor.workers["evaluator"].rows[0][Gauge.ACTIVITY] != Activity.STOPPED


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


def test_a_run_fails_without_the_server_that_all_actors_wait_for(tmp_path, monkeypatch):
    supervisor = Supervisor(tmp_path, monkeypatch, inference="served")
    while supervisor.lives("inference"):
        pass
    assert supervisor.recovery.has_failed
    assert supervisor.recovery.first_cause.startswith("inference: killed by SIGKILL. It was given")
