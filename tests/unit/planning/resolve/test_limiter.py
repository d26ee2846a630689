"""The rate limiter of a run: its numbers, and what is refused before anything starts."""

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import GIB, config
from tianji.buffer.rate_limited import SLOTS_AT_HAND
from tianji.config.machine import Machine
from tianji.config.plan import LimiterPlan
from tianji.envs.build import Probe
from tianji.errors import UsageError
from tianji.planning.resolve.resolve import resolve

PPO = {"name": "ppo", "unroll_length": 16}
DQN = {
    "name": "dqn", "unroll_length": 4, "updates_per_version": 2, "batch_size": 64,
    "warmup_steps": 960, "replay_size": 10_000,
}  # fmt: skip
UNROLL_STEPS = 4 * 4  # 2 actors with 4 environments each


def plan(algorithm, limiter=None, **values):
    settings = {"balance": "limiter", "limiter": limiter or {}, **values}
    asked = config(algorithm, num_envs=8, num_actors=2, **settings)
    machine = Machine((0, 1, 2), 64 * GIB)
    return resolve(asked, machine, Probe(SPACES, False, "in words", False, None))


def test_replay_has_the_ratio_of_the_algorithm_and_the_error_buffer_of_acme():
    found = plan(DQN)
    assert found.target_ratio == found.ratio == 4.0
    assert found.limiter.samples_per_insert == 4.0
    assert found.limiter.min_size == 960 + UNROLL_STEPS * found.unrolls_per_version == 992
    assert found.limiter.min_diff == pytest.approx(0.9 * 4.0 * 992)
    assert found.limiter.max_diff == pytest.approx(1.1 * 4.0 * 992)
    assert (found.limiter.items_per_batch, found.limiter.items_per_unroll) == (128, UNROLL_STEPS)


def test_a_queue_has_the_narrowest_window_that_is_allowed():
    found = plan(PPO)
    batch = found.unrolls_per_version
    assert found.limiter == LimiterPlan(
        samples_per_insert=1.0, min_size=batch, min_diff=0.0, max_diff=2.0 * batch,
        items_per_batch=batch, items_per_unroll=1, is_replay=False,
    )  # fmt: skip


def test_a_queue_has_slots_for_its_window_and_for_the_learner_and_the_actors():
    found = plan(PPO)
    batch = found.unrolls_per_version
    assert found.num_slots == 2 * batch + batch + 2 * (SLOTS_AT_HAND + 1)


def test_the_lag_is_what_all_that_is_ahead_makes():
    queue, replay = plan(PPO), plan(DQN)
    at_hand = 2 * SLOTS_AT_HAND
    assert queue.lag_target == -(
        -(2 * queue.unrolls_per_version + at_hand) // queue.unrolls_per_version
    )
    assert replay.lag_target == -(-at_hand // replay.unrolls_per_version)
    assert plan(PPO, max_lag=0, engine="inline").lag_target == 0


def test_asked_numbers_are_used():
    asked = {"samples_per_insert": 4, "min_size": 1000, "error_buffer": 500}
    found = plan(DQN, asked).limiter
    assert (found.samples_per_insert, found.min_size) == (4.0, 1000)
    assert (found.min_diff, found.max_diff) == (3500.0, 4500.0)
    found = plan(DQN, {"bounds": (-100.0, 50_000.0)})
    assert (found.limiter.min_diff, found.limiter.max_diff) == (-100.0, 50_000.0)
    assert plan(DQN, {"samples_per_insert": 4}).target_ratio == 4.0


def test_a_window_below_the_minimum_size_is_noted_in_the_plan():
    warned = plan(DQN, {"samples_per_insert": 4, "min_size": 1000, "bounds": (0.0, 3000.0)})
    assert any("ends below samples_per_insert x min_size = 4000" in note for note in warned.notes)
    assert not any("limiter" in note for note in plan(DQN).notes)


REFUSED = [
    (DQN, {"error_buffer": 10}, {}, "wide, and it must be at least"),
    (DQN, {"bounds": (1e6, 2e6)}, {}, "begins above samples_per_insert x min_size"),
    (DQN, {"bounds": (0.0,)}, {}, "limiter.bounds has 1 numbers"),
    (DQN, {"bounds": (0.0, 1e6), "error_buffer": 1e5}, {}, "give either two bounds"),
    (DQN, {"min_size": 3}, {}, "limiter.min_size is 3, and one version takes"),
    (DQN, {"min_size": 20_000}, {}, "the replay store keeps 10000"),
    (PPO, {"samples_per_insert": 2}, {}, "which hands out every unroll once"),
    (PPO, {"min_size": 1}, {}, "the first batch must be in the store"),
    (PPO, {}, {"max_lag": 0}, "max_lag is 0"),
    (PPO, {}, {"lag_target": 1}, "lag_target is 1"),
    (PPO, {"min_size": 4}, {"balance": "paced"}, "which has no rate limiter"),
    ("rennala-nigt", {}, {}, "gathers gradients"),
]


@pytest.mark.parametrize(("algorithm", "limiter", "values", "words"), REFUSED)
def test_what_cannot_work_is_refused(algorithm, limiter, values, words):
    with pytest.raises(UsageError) as error:
        plan(algorithm, limiter, **values)
    assert words in str(error.value)


def test_batches_from_a_pool_are_refused():
    with pytest.raises(UsageError, match="a pool of several"):
        plan({"name": "ppo", "unroll_length": 16, "pool_batches": 2})
