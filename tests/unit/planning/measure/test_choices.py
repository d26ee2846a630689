"""Which points are measured."""

import pytest

from tests.unit.planning.measure.profiles import sampled
from tests.unit.planning.plans import config, plan_for
from tianji.config.machine import Machine
from tianji.planning.measure.choices import (
    actor_counts,
    does_help,
    is_inference_heavy,
    is_waiting,
    loads,
    num_actors_at_once,
    spread,
    thread_counts,
)


def machine(cores):
    return Machine(tuple(range(cores)), 1 << 33)


def test_actors_share_the_environments_evenly_up_to_two_a_core():
    assert actor_counts(config(num_envs=32), machine(2)) == [4, 2, 1]
    assert actor_counts(config(num_envs=12), machine(2)) == [4, 3, 2, 1]


def test_actors_that_wait_may_be_many_more_than_cores():
    assert actor_counts(config(num_envs=32), machine(2), are_waiting=True) == [32, 16, 8, 4, 2, 1]
    assert max(actor_counts(config(num_envs=256), machine(2), are_waiting=True)) == 64


def test_no_more_than_eight_points_both_ends_among_them():
    counts = actor_counts(config(num_envs=2520), machine(32))
    assert len(counts) == 8
    assert (counts[0], counts[-1]) == (63, 1)
    assert counts == sorted(counts, reverse=True)
    assert spread([1, 2, 3, 4, 5], 3) == [1, 3, 5]


def test_what_is_fixed_by_hand_is_the_only_point():
    fixed = config(num_envs=32, num_actors=8, learner_threads=3)
    assert actor_counts(fixed, machine(2), are_waiting=True) == [8]
    assert thread_counts(fixed, machine(16)) == [3]


@pytest.mark.parametrize(("cores", "expected"), [(1, [1]), (2, [1, 2]), (6, [1, 2, 4])])
def test_threads_double_up_to_the_cores(cores, expected):
    assert thread_counts(config(), machine(cores)) == expected


def test_twice_the_threads_must_bring_five_per_cent():
    assert does_help(1.0, 0.9)
    assert not does_help(1.0, 0.97)
    assert not does_help(1.0, 2.0)


def test_an_unroll_waits_when_it_leaves_its_core_for_a_third_of_its_time():
    assert is_waiting(alone_s=1.0, cpu_s=0.6)
    assert not is_waiting(alone_s=1.0, cpu_s=0.8)


@pytest.mark.parametrize("cores", [2, 4, 16])
@pytest.mark.parametrize("num_points", [1, 3, 8])
def test_every_thread_count_meets_actors_and_every_point_meets_a_learner(cores, num_points):
    threads = thread_counts(config(), machine(cores))
    met = [loads(threads, index, num_points - 1, cores) for index in range(num_points)]
    assert {count for counts in met for count in counts} == {n for n in threads if n < cores}
    assert all(met)


def test_a_learner_that_leaves_no_core_meets_nobody():
    assert loads([1], 0, 2, num_cores=1) == []
    assert loads([2], 0, 2, num_cores=2) == []
    assert loads([1, 2], 1, 2, num_cores=2) == [1]


def test_as_many_actors_are_started_as_there_are_cores_beside_the_learner():
    assert num_actors_at_once(config(num_envs=32), machine(4)) == 3
    assert num_actors_at_once(config(num_envs=32), machine(1)) == 1
    assert num_actors_at_once(config(num_envs=64), Machine(tuple(range(64)), 1 << 40)) == 16


def test_no_more_actors_are_started_than_a_run_would_have_actors():
    assert num_actors_at_once(config(num_envs=32, num_actors=1), machine(8)) == 1
    assert num_actors_at_once(config(num_envs=4), machine(8)) == 4


def test_no_more_actors_are_started_than_there_is_memory_for():
    assert num_actors_at_once(config(num_envs=32), Machine(tuple(range(8)), 1200 << 20)) == 3
    assert num_actors_at_once(config(num_envs=32), Machine(tuple(range(8)), 100 << 20)) == 1


def test_two_threads_are_tried_where_long_inference_is_most_of_the_work_and_cores_are_many():
    plan = plan_for(config())  # unrolls of 4 rows
    assert is_inference_heavy(sampled(), plan, num_cores=4)
    assert not is_inference_heavy(sampled(), plan, num_cores=2)
    assert not is_inference_heavy(sampled(environment_share=0.6), plan, num_cores=4)
    assert not is_inference_heavy(sampled(unroll_s=0.001), plan, num_cores=4)
