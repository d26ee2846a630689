"""Figures of gathered gradients: real runs, small ones."""

from itertools import islice

import pytest
import torch
from safetensors.torch import load_file

from tests.unit.figures.gathering.made_up_runs import TASK
from tianji.figures.gathering.grid import end_s, rounds_of
from tianji.figures.gathering.panels import (
    EQUAL,
    FIGURES,
    NO_NETWORK,
    REACHER_TWINS,
    SLOW_NETWORK,
    TEN_TIMES,
    UNEQUAL,
    Choice,
    Law,
    Trial,
)  # fmt: skip
from tianji.figures.gathering.trial import config_of, core_s, curve, make_run
from tianji.run import train_config

METHODS = ("rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg")


def trial(method, order=NO_NETWORK, num_rounds=4, seed=1):
    return Trial(TASK, method, 3, order, Choice(-4, m=6), seed, num_rounds)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_as_long_and_takes_as_long_as_the_simulation_says(method):
    run = make_run(trial(method))
    simulated = [done.finish_s for done in islice(rounds_of(method, NO_NETWORK, 3, 6), 4)]
    assert run["curve"]["rounds"][:4] == [1, 2, 3, 4]
    assert run["curve"]["seconds"][:4] == pytest.approx(simulated, abs=1e-5)
    assert all(value >= 1 for value in run["curve"]["return"])


def weights_after(num_rounds, method, law, folder, monkeypatch):
    """Of a run under this law, however long the rounds are."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    seconds = end_s(rounds_of(method, law, 3, 6, TASK.num_parameters), num_rounds) * (1 + 1e-6)
    config = config_of(trial(method))
    times = config.times.model_copy(update={"law": law.compute, "network": law.network})
    summary = train_config(config.model_copy(update={"times": times, "max_wall_s": seconds}))
    assert summary["version"] >= num_rounds
    weights = load_file(f"{summary['checkpoint']}/weights.safetensors")
    return {**weights, "version": torch.tensor(summary["version"])}


@pytest.mark.parametrize(
    ("method", "laws"),
    [
        ("rennala-nigt", (NO_NETWORK, SLOW_NETWORK)),
        ("malenia-nigt", (NO_NETWORK, UNEQUAL)),
        ("sync-nigt", (EQUAL, SLOW_NETWORK)),
        ("afedpg", (NO_NETWORK, UNEQUAL)),
    ],
)
def test_laws_that_share_runs_give_the_same_parameters(method, laws, tmp_path, monkeypatch):
    first, second = (
        weights_after(5, method, law, tmp_path / str(number), monkeypatch)
        for number, law in enumerate(laws)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_another_order_of_arrivals_is_another_run(tmp_path, monkeypatch):
    first, second = (
        weights_after(5, "rennala-nigt", law, tmp_path / law.compute, monkeypatch)
        for law in (EQUAL, NO_NETWORK)
    )
    assert any(not torch.equal(first[name], second[name]) for name in first)


def test_methods_begin_at_the_same_point_with_the_same_seed():
    configs = [config_of(trial(method, seed=7)) for method in METHODS]
    assert {config.seed for config in configs} == {7}
    assert {config.model for config in configs} == {configs[0].model}
    assert {config.algorithm.gamma for config in configs} == {0.99}
    assert {config.algorithm.learning_rate for config in configs} == {2.0**-4}
    assert {getattr(c.algorithm, "m", None) for c in configs} == {6, None}


def test_two_tasks_are_the_twins_of_one():
    config = config_of(Trial(REACHER_TWINS, "afedpg", 2, TEN_TIMES, Choice(-6), 1, 5))
    assert [env.partition(":")[2] for env in config.envs] == ["plain", "mirrored"]
    assert config.env_kwargs == {"id": REACHER_TWINS.env}
    assert config.times.compute == (1.0, 10.0)


def test_the_curve_of_several_tasks_is_the_mean_of_theirs():
    records = [
        {"version": 0, "wall_s": 0.5, "mean_return_100": 4.0},
        {"version": 1, "wall_s": 1.0, "mean_return_100": None},
        {"version": 2, "wall_s": 2.0, "mean_return_100": 5.0},
        {"version": 2, "wall_s": 2.5, "mean_return_100": 6.0},
        {"version": 3, "wall_s": 3.0, "mean_return_100": 7.0, "returns_by_env": {}},
    ]
    assert curve(records) == {"rounds": [2, 3], "seconds": [2.0, 3.0], "return": [5.0, 7.0]}
    of_two = [{**records[2], "returns_by_env": {"a": 1.0, "b": 3.0}}]
    assert curve(of_two)["return"] == [2.0]
    assert curve(of_two)["task_1"] == [3.0]


@pytest.mark.parametrize("task", sorted({p.task for ps in FIGURES.values() for p in ps}, key=str))
def test_the_network_is_as_large_as_the_law_of_messages_says(task):
    pytest.importorskip("mujoco")
    from tianji.algorithms.registry import load_algorithm
    from tianji.envs.build import probe

    config = config_of(Trial(task, "rennala-nigt", 2, Law("equal"), Choice(-6), 1, 1))
    found = probe((config.envs or (config.env,))[0], config.env_kwargs)
    model = load_algorithm("rennala-nigt").build_model(found.spaces, config)
    assert sum(parameter.numel() for parameter in model.parameters()) == task.num_parameters


def test_longer_runs_are_thought_to_take_longer():
    assert core_s(trial("sync-nigt", num_rounds=50)) > core_s(trial("sync-nigt", num_rounds=5))
