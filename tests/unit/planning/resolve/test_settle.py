"""Which values the planner tries, and which it takes."""

import pytest

from tests.unit.costs.profiles import demand, learner, machine, profile
from tianji.config.run import RunConfig
from tianji.costs.profile import Rehearsal
from tianji.planning.resolve.settle import (
    MOST_VARIANTS,
    Trial,
    choose,
    open_settings,
    settle,
    variants,
    with_updates,
)
from tianji.planning.solve.solve import solve

UPDATES = "algorithm.updates_per_version"


def ppo(**values):
    return RunConfig(**{"algorithm": "ppo", **values})


def dqn(**values):
    return RunConfig(algorithm={"name": "dqn", **values})


def test_values_are_spread_around_the_default_by_powers_of_two():
    assert open_settings(ppo(num_envs="auto")) == {"num_envs": (4, 8, 16, 32)}
    assert open_settings(dqn(updates_per_version="auto")) == {UPDATES: (8,)}
    assert open_settings(ppo()) == {}


def test_environments_that_are_tried_can_be_shared_by_actors_that_are_fixed():
    asked = ppo(num_envs=9, num_actors=3, plan={"choose": ("num_envs",)})
    assert open_settings(asked) == {"num_envs": (3, 9, 18, 36)}


def test_one_setting_is_tried_at_every_value_its_own_first():
    assert [v["num_envs"] for v in variants(ppo(num_envs="auto"))] == [8, 4, 16, 32]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("ppo", ("unroll_length",)),
        ("ppo", ("unroll_length", "minibatch_size")),
        ("dqn", ("unroll_length", "batch_size", "updates_per_version")),
    ],
)
def test_several_are_changed_one_at_a_time_and_there_are_never_too_many(name, names):
    asked = RunConfig(num_envs="auto", algorithm={"name": name, **dict.fromkeys(names, "auto")})
    found = variants(asked)
    own = {path: found[0][path] for path in asked.plan.choose}
    assert 1 < len(found) <= MOST_VARIANTS
    assert settle(asked, own).algorithm == asked.algorithm
    changes = [sum(v[path] != own[path] for path in own) for v in found]
    assert changes == [0] + [1] * (len(found) - 1)
    assert len({tuple(v.values()) for v in found}) == len(found)


def test_a_settled_config_leaves_nothing_open_and_everything_else_as_it_was():
    asked = dqn(batch_size="auto", unroll_length="auto", gamma=0.5)
    found = settle(asked, {"algorithm.batch_size": 64})
    assert found.algorithm == asked.algorithm.model_copy(update={"batch_size": 64})
    assert found.plan == asked.plan.model_copy(update={"choose": ()})
    assert settle(asked, {}).algorithm == asked.algorithm


def trial(num_envs, version, **values):
    measured = profile(step_s=1e-5, version=version, num_envs=num_envs)
    return Trial({"num_envs": num_envs, **values}, measured, machine(9), demand(num_envs))


def test_the_smallest_value_is_taken_that_costs_no_speed():
    """800, 1000 and 1030 steps/s."""
    trials = [trial(8, 0.01), trial(16, 0.016), trial(32, 32 / 1030)]
    found = choose(ppo(num_envs="auto"), trials)
    assert found.values == {"num_envs": 16}
    assert found.profile is trials[1].profile
    assert found.notes == (
        "num_envs = 16: 1,000 of the 1,030 steps/s that the fastest of 3 measured variants "
        "reaches.",
    )


def test_updates_fill_the_time_that_the_learner_has_left():
    """Actors need 80 ms; a version of 8 updates of 4 ms, and 8 ms beside them, needs 40 ms."""
    costs = replace_update(learner(1, 0.040), 0.004)
    measured = profile(step_s=0.01, learners=(costs,))
    asked = demand(num_actors=1)
    found = choose(dqn(updates_per_version="auto"), [filled(measured, asked)])
    assert found.values == {UPDATES: 18}
    assert found.notes == (f"{UPDATES} = 18: as many as the learner has time for.",)
    after = solve(found.profile, machine(9), asked)
    assert after.chosen.prediction.bottleneck == "sampling"
    assert solve(with_updates(measured, 8, 19), machine(9), asked).chosen.prediction.bottleneck == (
        "training"
    )


def test_a_learner_that_is_the_limit_gets_fewer_updates():
    costs = replace_update(learner(1, 0.040), 0.004)
    slow = profile(step_s=0.0025, learners=(costs,))
    found = choose(dqn(updates_per_version="auto"), [filled(slow, demand(num_actors=1))])
    assert found.values == {UPDATES: 3}


def test_costs_with_other_updates_forget_what_was_tried_with_these():
    tried = Rehearsal(
        num_actors=1, learner_threads=1, actor_threads=1, produced=1.0, received=1.0, trained=1.0,
        lag_versions=1.0,
    )  # fmt: skip
    costs = replace_update(learner(1, 0.040), 0.004)
    measured = profile(learners=(costs,), rehearsals=(tried,))
    assert with_updates(measured, 8, 8) is measured
    more = with_updates(measured, 8, 10)
    assert more.learners[0].version.alone_s == pytest.approx(0.048)
    assert more.rehearsals == ()


def replace_update(cost, update_s):
    return cost.model_copy(update={"update_s": update_s})


def filled(measured, asked):
    return Trial({UPDATES: 8}, measured, machine(9), asked)
