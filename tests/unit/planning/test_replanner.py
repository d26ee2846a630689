"""A plan changes on the way only for a promise that is worth a restart."""

import pytest

from tests.unit.costs.profiles import actor, learner, profile
from tianji.balance.drift import Speeds
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.envs.build import probe
from tianji.planning.planned import Planned
from tianji.planning.replan import Replanner, observed_speeds, replanner_for
from tianji.planning.resolve.resolve import resolve

MACHINE = Machine((0, 1, 2, 3, 4), 1 << 34)
PROFILE = profile(
    actors=(actor(2, 0.02), actor(4, 0.04), actor(8, 0.08)),
    learners=(learner(1, 0.08),),
    steps_per_version=32,
)
"""One actor with 8 environments is as fast as the learner: unrolls of 4 steps, 32 a version."""


def config(**values):
    return RunConfig(
        env="tianji.envs.worlds:Counting",
        algorithm={
            "name": "tests.fakes.scripted:ALGORITHM", "unroll_length": 4, "steps_per_version": 32,
        },
        num_envs=8,
        **values,
    )  # fmt: skip


def one_actor(asked):
    return resolve(asked.model_copy(update={"num_actors": 1, "learner_threads": 1}), MACHINE, PROBE)


PROBE = probe("tianji.envs.worlds:Counting", {})


@pytest.fixture
def clock():
    return [0]


@pytest.fixture
def replanner(clock):
    return Replanner(config(), one_actor(config()), MACHINE, PROBE, PROFILE, lambda: clock[0])


def speeds(unroll_s=0.08, version_s=0.08, waiting=0.0):
    """One actor of 8 environments and a learner, each at work for the time it needs.

    waiting: of an unroll's time, without using the processor.
    """
    period_s = max(unroll_s, version_s)
    rate = 32 / period_s
    acting, learning = unroll_s / period_s, version_s / period_s
    return Speeds(rate, rate, acting, learning, acting * (1 - waiting), learning)


def test_speeds_follow_from_rates_and_busy_shares():
    seen = observed_speeds(speeds(unroll_s=0.4, version_s=0.1, waiting=0.75), one_actor(config()))
    assert (seen.unroll_s, seen.version_s) == (pytest.approx(0.4), pytest.approx(0.1))
    assert (seen.unroll_cpu_s, seen.version_cpu_s) == (pytest.approx(0.1), pytest.approx(0.1))
    assert (seen.envs_per_actor, seen.actor_threads, seen.learner_threads) == (8, 1, 1)


def test_a_run_that_stands_still_changes_nothing(replanner):
    assert not replanner(speeds(unroll_s=0.4)._replace(produced=0.0))
    assert not replanner(speeds(unroll_s=0.4)._replace(received=0.0))


def test_environments_that_became_slow_get_more_actors(replanner):
    assert replanner(speeds(unroll_s=0.4))
    plan = replanner.take()
    assert plan.num_actors == 4
    assert plan.source == "measured"
    assert plan.prediction.produced == pytest.approx(32 / 0.1)
    assert "1 actor and" in replanner.note and "4 actors and" in replanner.note
    assert replanner.changes == 1


@pytest.mark.parametrize(("waiting", "num_actors"), [(0.0, 2), (0.8, 4)])
def test_only_environments_that_wait_get_more_actors_than_there_are_cores(waiting, num_actors):
    two_cores = Machine((0, 1), 1 << 34)
    replanner = Replanner(config(), one_actor(config()), two_cores, PROBE, PROFILE)
    assert replanner(speeds(unroll_s=0.4, waiting=waiting))
    assert replanner.take().num_actors == num_actors


def test_speeds_that_are_as_measured_change_nothing(replanner):
    assert not replanner(speeds())


def test_a_slower_learner_that_no_other_plan_helps_changes_nothing(replanner):
    assert not replanner(speeds(version_s=0.4))


def test_shares_fixed_by_hand_stay(clock):
    asked = config(num_actors=1, learner_threads=1)
    fixed = Replanner(asked, one_actor(asked), MACHINE, PROBE, PROFILE, lambda: clock[0])
    assert not fixed(speeds(unroll_s=0.4))


def test_speeds_that_swing_are_not_followed(clock):
    many = PROFILE.model_copy(update={"actors": (actor(1, 0.01), *PROFILE.actors)})
    machine = Machine(tuple(range(9)), 1 << 34)
    replanner = Replanner(
        config(), one_actor(config()), machine, PROBE, many, now_ns=lambda: clock[0]
    )
    assert replanner(speeds(unroll_s=0.15))
    assert replanner.take().num_actors == 4
    slower = Speeds(4 * 8 / 0.4, 4 * 8 / 0.4, 4.0, 0.2, 4.0, 0.2)
    clock[0] = 59 * 10**9
    assert not replanner(slower)
    clock[0] = 61 * 10**9
    assert replanner(slower)
    assert replanner.take().num_actors == 8


def test_a_run_without_a_profile_has_no_other_plan(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = config()
    planned = Planned(asked, one_actor(asked), PROBE, "")
    assert replanner_for(planned, asked.env, MACHINE) is None


def test_a_run_with_a_free_balance_is_not_planned_again_by_the_costs_of_a_paced_one(monkeypatch):
    monkeypatch.setattr("tianji.planning.replan.kept_profile", lambda *asked: PROFILE)
    replay = {"store": "replay", "ratio": 2.0, "capacity_steps": 1000, "num_updates": 2}
    for balance, is_planned_again in (("paced", True), ("free", False)):
        values = config(balance=balance).model_dump()
        asked = RunConfig(**{**values, "algorithm": {**values["algorithm"], **replay}})
        planned = Planned(asked, one_actor(asked), PROBE, "")
        found = replanner_for(planned, asked.env, MACHINE)
        assert (found is not None) is is_planned_again
