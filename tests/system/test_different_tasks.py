"""Runs whose actors have different environments."""

import time
from pathlib import Path

import pytest
from gymnasium.wrappers import TimeLimit

import tianji
from tests.system.runs import QUIET, resume, run
from tianji.config.files import load_config
from tianji.envs.worlds import Chain
from tianji.errors import TianjiError
from tianji.observe.run_log import read_last
from tianji.trained.evaluate import evaluate_run

MALENIA = {"name": "malenia-nigt", "m": 2, "unroll_length": 6}
SETTINGS = {"algorithm": MALENIA, "num_envs": 2, "num_actors": 2, "max_env_steps": 120}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def short():
    return TimeLimit(Chain(length=5), 2)


def long():
    return Chain(length=5)


def slow_to_start():
    time.sleep(1.0)
    return Chain(length=5)


@pytest.mark.parametrize(
    "engine", ["inline", "virtual", pytest.param("local", marks=pytest.mark.slow)]
)
def test_every_actor_has_its_own_task_and_each_is_reported(engine):
    second = slow_to_start if engine == "local" else long  # elsewhere nobody starts later
    trained = tianji.train(
        env=[short, second],
        engine=engine,
        observe=QUIET,
        evaluate={"period_s": 0.01, "episodes": 2},
        **{**SETTINGS, "max_env_steps": 1200},
    )
    summary = trained.summary
    assert summary["version"] > 5, "no steps are spent while an actor that is needed starts"
    assert list(summary["returns_by_env"].values()) == [2.0, 5.0]
    assert summary["mean_return_100"] == 3.5
    assert summary["gather"]["rule"] == "harmonic"
    assert min(summary["gather"]["counts"]) > 0
    record = read_last(Path(summary["run_dir"]) / "metrics.jsonl")
    assert record["returns_by_env"] == summary["returns_by_env"]


def test_the_config_names_them_and_resume_and_eval_find_them():
    names = ("tianji.envs.twins:plain", "tianji.envs.twins:mirrored")
    summary = run(
        envs=names, env_kwargs={"id": "CartPole-v1"}, engine="inline", **SETTINGS, run="both"
    )
    assert summary["env"] == " + ".join(names)
    assert load_config(Path("runs/both/config.yaml")).envs == names
    again = resume("runs/both", max_env_steps=240)
    assert set(again["returns_by_env"]) == set(names)
    report = evaluate_run(Path("runs/both"), 3, seed=1)
    assert (report["episodes"], set(report["returns_by_env"])) == (6, set(names))


def test_two_functions_of_one_name_are_told_apart():
    trained = tianji.train(
        env=[lambda: Chain(length=5), lambda: TimeLimit(Chain(5), 2)],
        engine="inline",
        observe=QUIET,
        **SETTINGS,
    )
    first, second = trained.summary["returns_by_env"]
    assert second == f"{first}#2"


class Broken(Chain):
    """Its second step fails: one whose first step fails is refused before a run."""

    num_steps = 0

    def step(self, action):
        self.num_steps += 1
        if self.num_steps > 1:
            raise RuntimeError("the cable is loose")
        return super().step(action)


def test_a_task_that_nobody_is_left_for_ends_the_run():
    """Rennala would go on with the other actor, and never learn this task."""
    with pytest.raises(TianjiError, match=r"the cable is loose\. .*No actor of .*Broken is left"):
        tianji.train(
            env=[long, Broken],
            engine="local",
            observe=QUIET,
            supervise={"max_restarts": 0},
            **{
                **SETTINGS,
                "algorithm": {**MALENIA, "name": "rennala-nigt"},
                "max_env_steps": 10**9,
                "max_wall_s": 60.0,
            },
        )
