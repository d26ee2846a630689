"""Runs that are too large are refused before anything starts: for memory, and for steps."""

from dataclasses import replace

import pytest

from tests.unit.planning.plans import GIB, REPLAY, config, plan_for
from tianji.config.machine import Machine
from tianji.envs.build import probe
from tianji.errors import UsageError
from tianji.planning.resolve.resolve import check_network, resolve
from tianji.planning.resolve.slots import WORKER_BYTES
from tianji.planning.solve.demand import SAFE_MEMORY_SHARE, RunMemory, SharedBytes

MIB = 1 << 20


def refused(asked, **values):
    with pytest.raises(UsageError) as told:
        plan_for(asked, **values)
    return str(told.value)


def test_500_actors_do_not_start_where_memory_is_for_100():
    text = refused(config(num_envs=500, num_actors=500), memory_bytes=23 * GIB)
    assert f"500 actors x {WORKER_BYTES // MIB}" in text
    assert "23,552 MiB are free, and a run may take 80 % of that, 18,842 MiB" in text
    most = int(text.split("At most ")[1].split()[0])
    assert plan_for(config(num_envs=most, num_actors=most), memory_bytes=23 * GIB)
    assert 90 < most < 120


def test_the_rule_gives_no_more_actors_than_there_is_memory_for():
    assert plan_for(config(), cores=64).num_actors == 8
    assert plan_for(config(), cores=64, memory_bytes=GIB).num_actors == 2
    assert "Use fewer environments" in refused(config(), memory_bytes=GIB // 8)


@pytest.mark.parametrize("engine", ["inline", "virtual"])
def test_one_process_has_no_actor_processes_but_all_the_slots(engine):
    assert plan_for(config(num_actors=8, engine=engine), memory_bytes=GIB // 2)
    large = {**REPLAY, "capacity_steps": 40_000_000}
    text = refused(config(large, num_actors=2, num_envs=4, engine=engine), memory_bytes=GIB)
    assert "replay" in text and "smaller replay_size" in text


def test_a_network_that_is_too_large_is_refused():
    model = {"hidden": (20_000, 20_000)}
    text = refused(config(num_actors=1, model=model), memory_bytes=16 * GIB)
    assert "smaller network" in text
    assert plan_for(config(num_actors=1, model=model), memory_bytes=128 * GIB)


def test_a_network_of_ones_own_is_checked_when_it_has_been_built():
    found = probe("tianji.envs.worlds:Counting", {})
    asked, machine = config(num_actors=1, model={"factory": "somewhere:net"}), Machine((0,), GIB)
    plan = resolve(asked, machine, found)
    check_network(asked, machine, found, plan, num_parameters=10_000)
    with pytest.raises(UsageError, match="smaller network"):
        check_network(asked, machine, found, plan, num_parameters=100_000_000)


def test_environments_count_in_every_actor():
    found = replace(
        probe("tianji.envs.worlds:Counting", {}), env_bytes=GIB, more_env_bytes=GIB // 2
    )
    asked = config(num_actors=2)
    assert resolve(asked, Machine((0, 1), 16 * GIB), found).num_actors == 2
    with pytest.raises(UsageError, match="2 actors x 2,7"):
        resolve(asked, Machine((0, 1), 6 * GIB), found)


def test_what_was_measured_counts_and_not_the_estimate():
    found = probe("tianji.envs.worlds:Counting", {})
    asked, machine = config(num_actors=8), Machine((0, 1), GIB)
    with pytest.raises(UsageError):
        resolve(asked, machine, found)
    small = RunMemory(8, 8 * MIB, 0, 0, SharedBytes(0, 0, 0), supervisor=0)
    assert resolve(asked, machine, found, memory=small).num_actors == 8
    large = replace(small, learner=int(GIB * SAFE_MEMORY_SHARE) - 8 * MIB + 1)
    with pytest.raises(UsageError):
        resolve(asked, machine, found, memory=large)


def test_a_version_far_longer_than_the_run_is_refused():
    text = refused(config(num_envs=200_000, num_actors=1, max_env_steps=1000))
    assert "800,000 environment steps, 800 times max_env_steps = 1,000" in text
    assert "--max-env-steps 800000" in text and "--num-envs" in text
    assert plan_for(config(num_envs=200_000, num_actors=1, max_env_steps=800_000))


def test_gradients_of_short_episodes_may_be_shorter_than_their_unrolls():
    rounds = {"name": "rennala-nigt", "m": 4, "m_init": 4}
    assert plan_for(config(rounds, num_actors=4, max_env_steps=100))
    text = refused(config(rounds, num_envs=200_000, num_actors=4, max_env_steps=1000))
    assert "at least 200,000 environment steps" in text


def test_a_warm_up_counts_as_steps_of_the_run():
    asked = {**REPLAY, "warmup_steps": 40_000}
    assert "warm-up" in refused(config(asked, num_envs=4, max_env_steps=1000))


def test_one_version_may_be_somewhat_longer_than_the_run():
    assert plan_for(config(max_env_steps=10))
