"""Which plans are rehearsed, and when it is enough."""

import logging

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.profile.profiles import profile
from tests.unit.programs.plans import config, plan_for
from tianji.balance.candidates import candidates
from tianji.balance.profile import Rehearsal
from tianji.config.machine import Machine
from tianji.engines.spec import RunSpec
from tianji.envs.build import Probe
from tianji.errors import WorkerLost
from tianji.profile import auditions
from tianji.profile.auditions import Auditions
from tianji.programs.resolve import demand_of

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


def hold(monkeypatch, seconds=60.0, start_up_s=2.0, tell=logging.info, **values):
    monkeypatch.setattr(auditions.time, "monotonic", lambda: 1000.0)
    asked = config(**values)
    spec = RunSpec(asked, plan_for(asked), SPACES, "X", None)
    machine = Machine((0, 1, 2, 3), 8 << 30)
    held = Auditions(spec, machine, PROBE, 1000.0 + seconds, start_up_s, tell)
    return held.hold(profile(envs=(1, 2, 4, 8)))


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
    Auditions(spec, machine, PROBE, 1012.0, 2.0, logging.info).hold(profile(envs=(1, 2, 4, 8)))
    assert tried == [(2, 1)]


def test_none_is_tried_without_the_time_for_it(monkeypatch, tried):
    assert hold(monkeypatch, seconds=5.0).rehearsals == ()
    assert hold(monkeypatch, seconds=20.0, start_up_s=30.0).rehearsals == ()
    assert tried == []


def test_one_that_fails_leaves_the_costs_and_is_told(monkeypatch):
    def fail(*_):
        raise WorkerLost("actor-0: broken.")

    monkeypatch.setattr(auditions, "rehearse", fail)
    told = []
    assert hold(monkeypatch, tell=told.append).rehearsals == ()
    assert told == ["actor-0: broken. The plan rests on costs."]
