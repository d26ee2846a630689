"""Which plans are rehearsed, and when it is enough."""

import logging

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.planning.measure.profiles import profile
from tests.unit.planning.plans import REPLAY, config, plan_for
from tianji.config.machine import Machine
from tianji.costs.profile import Cost, Rehearsal
from tianji.engines.spec import RunSpec
from tianji.envs.build import Probe
from tianji.errors import WorkerLost
from tianji.planning.rehearse import auditions
from tianji.planning.rehearse.auditions import Auditions
from tianji.planning.resolve.resolve import demand_of
from tianji.planning.solve.candidates import candidates
from tianji.wording import counted

PROBE = Probe(SPACES, False, "in words", offers_state=False, max_episode_steps=None)


@pytest.fixture
def tried(monkeypatch):
    """Every rehearsal as (actors, learner threads); all are equally fast."""
    tried = []

    def rehearse(spec, _seconds, _limit_s):
        plan = spec.plan
        tried.append((plan.num_actors, plan.learner_threads))
        rate = 4000.0
        return Rehearsal(
            num_actors=plan.num_actors, learner_threads=plan.learner_threads,
            actor_threads=plan.actor_threads, produced=rate, received=rate, trained=rate,
            lag_versions=1.0,
        )  # fmt: skip

    monkeypatch.setattr(auditions, "rehearse", rehearse)
    return tried


MEASURED = profile(envs=(1, 2, 4, 8))


def hold(monkeypatch, seconds=60.0, start_up_s=2.0, tell=logging.info, measured=MEASURED, **values):
    monkeypatch.setattr(auditions.time, "monotonic", lambda: 1000.0)
    asked = config(**values)
    spec = RunSpec(asked, plan_for(asked), SPACES, "X", None)
    machine = Machine((0, 1, 2, 3), 8 << 30)
    held = Auditions(spec, machine, PROBE, 1000.0 + seconds, start_up_s, tell)
    return held.hold(measured)


def test_the_best_three_are_tried_and_the_winner_once_more(monkeypatch, tried):
    found = hold(monkeypatch)
    assert len(tried[:3]) == len(set(tried)) == 3
    machine = Machine((0, 1, 2, 3), 8 << 30)
    winner = candidates(found, machine, demand_of(config(), PROBE))[0]
    assert tried[3:] == [(winner.num_actors, winner.learner_threads)]
    rehearsed = [(r.num_actors, r.learner_threads) for r in found.rehearsals]
    assert rehearsed == tried


def test_what_is_fixed_is_tried_and_tried_once_more(monkeypatch, tried):
    hold(monkeypatch, num_actors=2, learner_threads=1, actor_threads=1)
    assert tried == [(2, 1), (2, 1)]


def test_there_is_no_second_trial_without_the_time_for_it(monkeypatch, tried):
    rehearse, clock = auditions.rehearse, [1000.0]

    def slow(*words):
        clock[0] += 8.0
        return rehearse(*words)

    monkeypatch.setattr(auditions, "rehearse", slow)
    asked = config(num_actors=2, learner_threads=1, actor_threads=1)
    monkeypatch.setattr(auditions.time, "monotonic", lambda: clock[0])
    spec = RunSpec(asked, plan_for(asked), SPACES, "X", None)
    machine = Machine((0, 1, 2, 3), 8 << 30)
    Auditions(spec, machine, PROBE, 1012.0, 2.0, logging.info).hold(MEASURED)
    assert tried == [(2, 1)]


def test_none_is_tried_without_the_time_for_it(monkeypatch, tried):
    assert hold(monkeypatch, seconds=5.0).rehearsals == ()
    assert hold(monkeypatch, seconds=20.0, start_up_s=30.0).rehearsals == ()
    assert tried == []


def test_the_time_for_a_trial_has_the_warm_up_in_it(monkeypatch, tried):
    """A version is 16 steps and takes the actors a few milliseconds."""
    for warmup_steps, num_tried in ((33, 1), (200_000, 0)):
        asked = REPLAY | {"warmup_steps": warmup_steps, "capacity_steps": 200_000}
        hold(monkeypatch, algorithm=asked, num_actors=2, learner_threads=1, seconds=10.0)
        assert len(set(tried)) == num_tried
        tried.clear()


def test_where_the_best_ones_take_too_long_to_start_smaller_ones_are_tried(monkeypatch, tried):
    """Environments that wait, one after the other: 8 actors promise twice what 4 do."""
    costs = [Cost(alone_s=0.02 * n, loaded_s=0.02 * n, cpu_s=1e-5, noise=0.0) for n in (1, 2, 4, 8)]
    actors = zip(MEASURED.actors, costs, strict=True)
    slow = tuple(actor.model_copy(update={"unroll": unroll}) for actor, unroll in actors)
    measured = MEASURED.model_copy(update={"actors": slow})
    hold(monkeypatch, seconds=30.0, start_up_s=15.0, measured=measured)
    assert tried[0] == (4, 1)


def failing(monkeypatch, does_fail):
    rehearse = auditions.rehearse

    def fail(spec, *words):
        if does_fail(spec.plan):
            raise WorkerLost("actor-0: broken.")
        return rehearse(spec, *words)

    monkeypatch.setattr(auditions, "rehearse", fail)


def test_one_that_fails_is_told_and_not_taken_and_the_next_is_tried(monkeypatch, tried):
    machine, demand = Machine((0, 1, 2, 3), 8 << 30), demand_of(config(), PROBE)
    favourite = candidates(MEASURED, machine, demand)[0]
    failing(monkeypatch, lambda plan: plan.num_actors == favourite.num_actors)
    told = []
    found = hold(monkeypatch, tell=told.append)
    assert told[0] == (
        f"actor-0: broken. A plan with {counted(favourite.num_actors, 'actor')} and 1 learner "
        "thread is not used."
    )
    assert len(set(tried)) == 2
    after = candidates(found, machine, demand)
    assert after[0].num_actors != favourite.num_actors and after[0].is_rehearsed
    assert after[-1].num_actors == favourite.num_actors
    assert all(rehearsal.computed for rehearsal in found.rehearsals)


def test_where_all_fail_the_plan_rests_on_costs(monkeypatch, tried):
    failing(monkeypatch, lambda plan: True)
    told = []
    assert hold(monkeypatch, tell=told.append).rehearsals == ()
    assert len(told) == 4
    assert told[-1] == "Every test run of a plan failed: the plan uses measured costs alone."
    told.clear()
    hold(monkeypatch, tell=told.append, num_actors=2, learner_threads=1, actor_threads=1)
    assert len(told) == 2, "the only one is not tried again"
