"""Plans of runs that gather gradients, and lists of environments."""

import pytest

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.planning.planner import (
    GATHERS,
    gathers,
    measured_plan,
    plan_run,
    probe_tasks,
    virtual_costs,
)

MACHINE = Machine((0, 1, 2, 3), 1 << 34)
TWINS = ("tianji.envs.twins:plain", "tianji.envs.twins:mirrored")


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def measure(*_):
        raise AssertionError("nothing is to be measured")

    monkeypatch.setattr("tianji.planning.measure.measure.measure", measure)


def config(**values):
    settings = {"algorithm": "rennala-nigt", "num_envs": 8, **values}
    return RunConfig(**settings)


def twins(**values):
    return config(envs=TWINS, env_kwargs={"id": "CartPole-v1"}, **values)


@pytest.mark.parametrize("source", ["auto", "measure"])
def test_rounds_need_no_measurement_and_the_plan_says_why(source):
    asked = config(plan={"source": source}, max_env_steps=10**9)
    planned = plan_run(asked, asked.env, MACHINE, print)
    assert (planned.note, planned.solved, planned.plan.source) == (GATHERS, None, "rule")


def test_all_cores_get_an_actor_since_the_learner_has_little_to_do():
    assert measured_plan(config(), "CartPole-v1", MACHINE, print).plan.num_actors == 4
    asked = config(algorithm="ppo", plan={"source": "rule"})
    assert plan_run(asked, asked.env, MACHINE, print).plan.num_actors < 4


@pytest.mark.parametrize(("num_envs", "actors"), [(8, 4), (6, 2), (2, 2)])
def test_actors_share_different_tasks_evenly(num_envs, actors):
    assert measured_plan(twins(num_envs=num_envs), TWINS, MACHINE, print).plan.num_actors == actors


def test_every_task_has_an_actor_also_where_cores_are_few():
    machine = Machine((0,), 1 << 34)
    assert measured_plan(twins(), TWINS, machine, print).plan.num_actors == 2


def test_a_task_that_nobody_would_train_on_is_refused():
    with pytest.raises(UsageError, match=r"2 environments.*num_actors = 1: 1 of them would never"):
        probe_tasks(twins(num_actors=1), TWINS)


def test_a_list_is_for_algorithms_that_gather():
    with pytest.raises(UsageError, match=r"ppo trains on one.*malenia-nigt"):
        probe_tasks(twins(algorithm="ppo"), TWINS)
    assert gathers(config()) and not gathers(config(algorithm="ppo"))


def test_the_virtual_engine_has_its_times_given(tmp_path):
    from tianji.engines.spec import RunSpec

    planned = measured_plan(twins(), TWINS, MACHINE, print)
    spec = RunSpec(planned.config, planned.plan, planned.probe.spaces, TWINS, tmp_path)
    assert virtual_costs(spec, print) is None
    assert [spec.env_of(actor) for actor in range(3)] == [TWINS[0], TWINS[1], TWINS[0]]
    assert spec.tasks == dict(zip(TWINS, TWINS, strict=True))
