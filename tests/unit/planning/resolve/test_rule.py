"""How many actors the rule gives, by a first look at the environment."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import GIB, config, plan_for
from tianji.config.machine import Machine
from tianji.envs.build import Probe
from tianji.envs.interface import Spaces
from tianji.envs.timing import StepTimes, summarise
from tianji.planning.resolve.resolve import resolve

CHEAP = summarise([40e-6] * 100, 1, cpu_s=40e-6)
BUSY = summarise([5e-3] * 100, 1, cpu_s=5e-3)
WAITING = summarise([20e-3] * 100, 1, cpu_s=100e-6)
RARE_SLEEPS = summarise([10e-6] * 49 + [0.2], 1, cpu_s=15e-6)
PPO = {"name": "ppo", "unroll_length": 256}


def actors(times: StepTimes, cores: int, more_step_s: float | None = None, **values) -> int:
    more = times.mean_s if more_step_s is None else more_step_s
    seen = Probe(SPACES, False, "in words", False, None, times=times, more_step_s=more)
    asked = config(values.pop("algorithm", PPO), **values)
    return resolve(asked, Machine(tuple(range(cores)), 64 * GIB), seen).num_actors


@pytest.mark.parametrize("cores", [1, 2, 4, 16, 64])
def test_a_cheap_vector_environment_has_one_actor_on_any_machine(cores):
    assert actors(CHEAP, cores, more_step_s=1e-6) == 1
    assert actors(CHEAP, cores, more_step_s=1e-6, num_envs=64) == 1


def test_a_cheap_environment_has_few_actors_where_there_are_many_cores():
    assert actors(CHEAP, 16) <= 4
    assert actors(CHEAP, 2) == 1


@pytest.mark.parametrize(("cores", "num_actors"), [(1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (16, 8)])
def test_an_environment_that_keeps_a_core_busy_has_all_cores_if_the_learner_has_little_to_do(
    cores, num_actors
):
    assert actors(BUSY, cores) == num_actors


@pytest.mark.parametrize(("cores", "num_actors"), [(2, 1), (4, 2), (8, 4)])
def test_a_learner_that_may_need_its_core_keeps_it(cores, num_actors):
    """The fastest learner would need half of its core beside these actors, a slow one all of it."""
    times = summarise([400e-6] * 100, 1, cpu_s=400e-6)
    epochs = 110 // num_actors
    assert actors(times, cores, algorithm={**PPO, "epochs": epochs}) == num_actors


def test_a_short_run_does_not_wait_for_an_actor_on_the_learners_core():
    times = summarise([100e-6] * 100, 1, cpu_s=100e-6)
    assert actors(times, 2, max_env_steps=4096) == 1
    assert actors(times, 2, max_env_steps=1_000_000) == 2


@pytest.mark.parametrize("times", [WAITING, RARE_SLEEPS])
@pytest.mark.parametrize("cores", [1, 2, 16])
def test_an_environment_that_mostly_waits_has_several_actors_per_core(times, cores):
    assert actors(times, cores) == 8
    assert actors(times, cores, num_envs=16) == (8 if cores == 1 else 16)


def test_a_short_run_does_not_wait_for_many_actors_to_start():
    assert actors(RARE_SLEEPS, 2, max_env_steps=1000, algorithm={**PPO, "unroll_length": 32}) < 8


def test_a_number_that_was_asked_for_stays():
    assert actors(RARE_SLEEPS, 2, num_actors=2) == 2


def test_long_steps_are_told_with_what_they_cost():
    seen = Probe(SPACES, False, "in words", False, None, times=RARE_SLEEPS, more_step_s=4e-3)
    machine = Machine((0, 1), 64 * GIB)
    short = resolve(config({**PPO, "unroll_length": 32}), machine, seen)
    told = " ".join(short.notes)
    assert "2.0 % of the steps take up to 200 ms, a typical one takes 0.01 ms" in told
    assert "versions of 256 steps and max_lag = 1" in told
    assert "to 1,280 of 1,995 possible steps/s" in told
    assert "hold the run" not in " ".join(resolve(config(PPO), machine, seen).notes)
    even = replace(seen, times=BUSY)
    assert "uneven" not in " ".join(resolve(config(PPO), machine, even).notes)


@pytest.mark.parametrize(
    ("cores_each", "actor_hosts", "num_actors", "threads"),
    [(1, 1, 1, 1), (2, 1, 2, 1), (2, 3, 4, 1), (4, 1, 2, 3), (4, 1, 4, 3), (16, 1, 8, 4)],
)
def test_the_links_to_other_hosts_have_a_core_beside_the_learner(
    cores_each, actor_hosts, num_actors, threads
):
    asked = config(PPO, engine="ray", num_actors=num_actors, actor_hosts=actor_hosts)
    made = plan_for(asked, cores=cores_each * (1 + actor_hosts))
    assert made.learner_threads == threads


def test_every_host_that_was_asked_for_has_an_actor():
    assert actors(CHEAP, 8, more_step_s=1e-6, engine="ray", actor_hosts=3) == 4


SAC = {"name": "sac", "batch_size": 256, "unroll_length": 4}
NUMBERS = Spaces(Box(-1, 1, (11,), np.float32), Box(-1, 1, (3,), np.float32))


@pytest.mark.parametrize(
    ("cores", "values", "threads"),
    [
        (1, {}, 1),
        (2, {}, 2),
        (4, {}, 4),
        (16, {}, 4),
        (2, {"model": {"hidden": (64, 64)}}, 1),
        (2, {"algorithm": {**SAC, "batch_size": 32}}, 1),
        (2, {"algorithm": {**SAC, "updates_per_version": 1}}, 1),
        (2, {"algorithm": {"name": "ppo", "unroll_length": 256}}, 1),
        (2, {"balance": "free"}, 1),
    ],
)
def test_a_learner_with_far_more_work_than_its_actors_has_a_thread_for_each_core(
    cores, values, threads
):
    seen = Probe(NUMBERS, False, "in words", False, None, times=CHEAP, more_step_s=40e-6)
    asked = config(**{"algorithm": SAC, **values})
    made = resolve(asked, Machine(tuple(range(cores)), 64 * GIB), seen)
    assert (made.num_actors, made.learner_threads) == (1, threads)
    assert made.shares_cores == (threads == cores)
