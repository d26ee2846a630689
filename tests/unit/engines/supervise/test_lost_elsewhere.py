"""Actors on other hosts that are gone: their lanes are reset, as those of local actors."""

from dataclasses import replace

import pytest

from tests.unit.engines.test_inline_engine import Watcher
from tests.unit.planning.plans import config, plan_for
from tianji.channels.orders import Control, Order
from tianji.engines.assembly.wiring import bell_names
from tianji.engines.supervise.recovery import Recovery
from tianji.engines.supervise.watched import WatchedWorker
from tianji.programs.one_group import program_for


@pytest.fixture
def recover():
    def make(here):
        asked = config(num_actors=3, num_envs=6)
        plan = plan_for(asked).model_copy(update={"actor_places": (0, 1, 1)})
        program = replace(program_for(asked, plan), here=here)
        control = Control.create(program.kinds(), bell_names(program))
        workers = {
            worker.name: WatchedWorker(worker, program.roles_in(worker.name), control.gauges)
            for worker in program.workers_here()
        }
        return Recovery(asked, program, control, workers, Watcher()), control, workers

    return make


def resets(control):
    rows = control.supervision.rows
    return [rows[name][Order.RESETS] for name in ("actor-0", "actor-1", "actor-2", "buffer")]


def test_the_buffer_is_told_of_each_loss_once(recover):
    recovery, control, _ = recover(here=0)
    recovery.lose_actor(1, 1)
    recovery.lose_actor(1, 1)  # told twice
    assert resets(control) == [0, 1, 0, 1]
    recovery.lose_actor(2, None)  # its host is gone
    recovery.lose_actor(1, None)
    assert resets(control) == [0, 2, 1, 3]


def test_a_sum_is_lost_with_its_host_and_not_with_its_actor(recover):
    recovery, control, workers = recover(here=0)
    row = control.supervision.rows["actor-1"]
    recovery.lose_actor(1, 1)
    assert (row[Order.RESETS], row[Order.SUM_LOST]) == (1, 0)
    recovery.lose_actor(1, None)
    assert (row[Order.RESETS], row[Order.SUM_LOST]) == (2, 2)
    recovery.lose_actor(1, 3)
    assert (row[Order.RESETS], row[Order.SUM_LOST]) == (3, 2)
    recovery.after_end(workers["actor-0"], "it died")
    row = control.supervision.rows["actor-0"]
    assert (row[Order.RESETS], row[Order.SUM_LOST]) == (1, 0)


def test_the_learner_goes_on_with_actors_elsewhere_alone(recover):
    recovery, _, workers = recover(here=0)
    worker = workers["actor-0"]
    for _ in range(20):
        worker.health.begin(0, 0, 0.0)
        recovery.after_end(worker, "it died")
    assert worker.health.is_given_up
    assert not recovery.has_failed


def test_a_host_whose_actors_are_all_given_up_has_failed(recover):
    recovery, _, workers = recover(here=1)
    for name in ("actor-1", "actor-2"):
        assert not recovery.has_failed
        for _ in range(20):
            workers[name].health.begin(0, 0, 0.0)
            recovery.after_end(workers[name], "it died")
    assert recovery.has_failed


def test_a_learner_without_actors_on_any_host_has_failed(recover):
    recovery, control, workers = recover(here=0)
    for _ in range(20):
        workers["actor-0"].health.begin(0, 0, 0.0)
        recovery.after_end(workers["actor-0"], "it died")
    control.supervision.post("actor-1", Order.GIVEN_UP, 1)
    recovery.check_actors()
    assert not recovery.has_failed
    control.supervision.post("actor-2", Order.GIVEN_UP, 1)
    recovery.check_actors()
    assert recovery.has_failed
    assert "on other hosts: it died" in recovery.first_cause
