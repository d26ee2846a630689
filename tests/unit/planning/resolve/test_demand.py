"""What the planner is told about a run, and the plan made of its answer."""

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.costs.profiles import profile
from tests.unit.planning.plans import GIB, REPLAY, SCRIPTED, config, plan_for
from tianji.channels.board import NUM_COPIES
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.envs.build import Probe
from tianji.errors import UsageError
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.solve.solve import solve

PROBE = Probe(SPACES, False, "in words", offers_state=False, max_episode_steps=None)
CORES = Machine((0, 1, 2, 3, 4), 64 * GIB)


def solved(asked, **costs):
    solution = solve(profile(**costs), CORES, demand_of(asked, PROBE))
    return solution, resolve(asked, CORES, PROBE, solution)


def test_the_demand_is_the_configs_in_numbers():
    asked = config(REPLAY, num_envs=4, max_lag=3, evaluate={"period_s": 5})
    found = demand_of(asked, PROBE)
    assert (found.num_envs, found.unroll_length, found.steps_per_version) == (4, 4, 16)
    assert (found.trained_steps_per_version, found.ratio) == (8 * 16, 8.0)
    assert (found.lag_target, found.max_lag, found.has_evaluator) == (1, 3, True)
    assert (found.num_actors, found.learner_threads, found.actor_threads) == (None, None, None)
    assert found.policy_copies == NUM_COPIES


def test_what_is_fixed_is_told_and_nothing_else_is_open():
    asked = config(num_actors=4, learner_threads=2, actor_threads=3)
    found = demand_of(asked, PROBE)
    assert (found.num_actors, found.learner_threads, found.actor_threads) == (4, 2, 3)
    assert list(found.shared) == [4]


def test_only_numbers_of_actors_that_share_evenly_are_open():
    assert list(demand_of(config(num_envs=12), PROBE).shared) == [1, 2, 3, 4, 6, 12]
    half = {**SCRIPTED, "steps_per_version": 4 * 12 // 2}
    assert list(demand_of(config(half, num_envs=12), PROBE).shared) == [2, 4, 6, 12]
    with pytest.raises(UsageError, match="num_actors = 5"):
        demand_of(config(num_actors=5), PROBE)


@pytest.mark.parametrize("algorithm", [SCRIPTED, REPLAY])
@pytest.mark.parametrize("num_actors", [1, 2, 4])
def test_the_shared_memory_that_is_told_is_what_the_plan_takes(algorithm, num_actors):
    asked = config(algorithm, num_envs=4, num_actors=num_actors)
    told = demand_of(asked, PROBE).shared[num_actors]
    assert told.total == plan_for(asked).shared_memory_bytes
    assert (told.replay > 0) == (algorithm is REPLAY)


def test_a_batch_over_what_it_is_drawn_from_is_one_for_a_queue_and_little_for_replay():
    """P of the paper's equation 2. The scripted store keeps 100 steps; a version's 128 sampled
    steps are 4 minibatches of 32."""
    assert demand_of(config(), PROBE).staleness == 1.0
    assert demand_of(config(REPLAY, num_envs=4), PROBE).staleness == pytest.approx(32 / 100)
    pooled = RunConfig(num_envs=8, algorithm={"name": "ppo", "pool_batches": 8})
    assert demand_of(pooled, PROBE).staleness == 1 / 8


def test_a_solution_becomes_the_plan_with_its_promise_and_its_reasons():
    solution, plan = solved(config(), step_s=0.01, version=0.001)
    chosen = solution.chosen
    assert (plan.num_actors, plan.envs_per_actor) == (chosen.num_actors, chosen.envs_per_actor)
    assert plan.num_actors == 8, "the rule would have taken 4"
    assert (plan.source, plan.prediction) == ("measured", solution.chosen.prediction)
    assert plan.notes[2:] == solution.reasons
    assert plan.shares_cores, "9 workers on 5 cores"
    assert plan.cores == {}


def test_a_solution_that_fills_the_machine_is_pinned():
    _, plan = solved(config(num_actors=4), step_s=0.01, version=0.001)
    assert plan.cores == {"learner": (0,), **{f"actor-{i}": (i + 1,) for i in range(4)}}
    assert not plan.shares_cores


def test_what_was_fixed_after_the_solution_was_made_still_wins():
    solution, _ = solved(config(), step_s=0.01, version=0.001)
    fixed = config(num_actors=2, learner_threads=3, actor_threads=2)
    plan = resolve(fixed, CORES, PROBE, solution)
    assert (plan.num_actors, plan.learner_threads, plan.actor_threads) == (2, 3, 2)
    with pytest.raises(UsageError, match="num_actors = 3"):
        resolve(config(num_actors=3), CORES, PROBE, solution)


def test_without_a_solution_the_plan_promises_nothing():
    plan = plan_for(config())
    assert (plan.source, plan.prediction) == ("rule", None)


@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ({"num_actors": 4}, True),
        ({"num_actors": 2}, False),
        ({"num_actors": 2, "learner_threads": 2, "evaluate": {"period_s": 1}}, True),
        ({"num_actors": 4, "engine": "inline"}, False),
    ],
)
def test_it_is_told_when_there_are_more_threads_than_cores(values, shares):
    assert plan_for(config(**values), cores=4).shares_cores == shares
