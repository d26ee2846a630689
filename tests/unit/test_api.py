"""The Python door: settings as keywords, a summary and a policy as the answer."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tianji
from tianji.config.files import load_config
from tianji.envs.build import name_of
from tianji.envs.worlds import Counting
from tianji.errors import UsageError

SMALL = {
    "algorithm": "tests.fakes.scripted:ALGORITHM", "engine": "inline", "num_envs": 2,
    "num_actors": 1, "max_env_steps": 24, "observe": {"display": "off", "tensorboard": False},
}  # fmt: skip
OBSERVATION = np.zeros(4, np.float32)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_training_returns_the_summary_and_the_policy_of_the_last_version():
    trained = tianji.train(env="tianji.envs.worlds:Counting", seed=3, **SMALL)
    assert trained.summary["stopped_because"] == "max_env_steps"
    assert (trained.summary["seed"], trained.summary["env"]) == (3, "tianji.envs.worlds:Counting")
    assert trained.policy.version == trained.summary["version"] > 0
    assert float(trained.policy.model.count.detach()) == trained.summary["updates"]
    assert trained.policy.act(OBSERVATION) == 0


def test_training_returns_the_last_policy_and_loading_the_best(monkeypatch):
    asked = []
    summary = {"run_dir": "runs/mine", "stopped_because": "target_reached"}
    monkeypatch.setattr("tianji.run.train_config", lambda config, **_: summary)
    monkeypatch.setattr("tianji.run_folder.paths.find_run", Path)

    def load(run_dir, which, env):
        asked.append(which)
        return SimpleNamespace(note="")

    monkeypatch.setattr("tianji.trained.policy.load_policy", load)
    tianji.train(**SMALL)
    tianji.load("runs/mine")
    assert asked == ["latest", "best"]


def test_an_environment_may_be_a_callable_and_the_config_says_which():
    trained = tianji.train(env=Counting, run="mine", **SMALL)
    assert trained.summary["env"] == "tianji.envs.worlds:Counting"
    assert load_config(Path("runs/mine/config.yaml")).env == "tianji.envs.worlds:Counting"
    assert trained.policy.act(OBSERVATION) == 0


def test_an_environment_without_a_name_can_still_be_used_when_it_is_given_again():
    tianji.train(env=lambda: Counting(length=5), run="mine", **SMALL)
    policy = tianji.load("mine", env=lambda: Counting(length=5))
    assert policy.act(OBSERVATION) == 0


def test_a_run_can_be_loaded_by_name_and_by_path():
    trained = tianji.train(env="tianji.envs.worlds:Counting", run="mine", **SMALL)
    for name in ("mine", "runs/mine", Path("runs/mine").resolve()):
        assert tianji.load(name).version == trained.policy.version
    with pytest.raises(UsageError, match="yours"):
        tianji.load("yours")


def test_settings_are_those_of_the_command_line():
    config = tianji.make_config("cartpole-ppo", gamma=0.9, seed=5, checkpoint={"period_s": 5})
    assert (config.algorithm.gamma, config.seed, config.checkpoint.period_s) == (0.9, 5, 5.0)
    assert config.env == "CartPole-v1"
    with pytest.raises(UsageError, match="gamma"):
        tianji.make_config(gama=0.9)


def test_a_wrong_setting_is_told_before_anything_starts():
    with pytest.raises(UsageError, match="num_envs"):
        tianji.train(num_envs=0)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (3, r"env is 3 \(int\), but it must be a Gymnasium id"),
        ([], r"env is \[\] \(list\), but it must be .* or a list of these"),
        ({"a": 1}, r"env is \{'a': 1\} \(dict\)"),
        ([Counting, None], r"env\[1\] is None \(NoneType\)"),
        (Counting(), r"\(Counting\), an environment that exists already; every actor makes"),
    ],
)
def test_what_is_no_environment_is_refused_in_words(env, words):
    with pytest.raises(UsageError, match=words):
        tianji.train(env=env, **SMALL)
    assert not Path("runs").exists()


def test_loading_a_policy_refuses_what_is_no_environment_too():
    tianji.train(env="tianji.envs.worlds:Counting", run="mine", **SMALL)
    with pytest.raises(UsageError, match=r"env is 3 \(int\), but it must be"):
        tianji.load("mine", env=3)


class Factory:
    def __call__(self):
        return Counting()


@pytest.mark.parametrize(
    ("factory", "name"),
    [
        (Counting, "tianji.envs.worlds:Counting"),
        (Factory(), f"{__name__}:Factory"),
        (partial(Counting, 5), "functools:partial"),
    ],
)
def test_a_callable_is_named_after_where_it_was_defined(factory, name):
    assert name_of(factory) == name


@pytest.mark.parametrize("callbacks", [3, "module:name", object()])
def test_callbacks_that_are_no_list_are_refused(callbacks):
    with pytest.raises(UsageError, match="must be a list of callbacks"):
        tianji.train(env="CartPole-v1", callbacks=callbacks)


def test_several_seeds_in_python_are_answered_with_the_two_ways():
    with pytest.raises(UsageError, match=r"seed=2\); or use the command `tianji train --seeds N`"):
        tianji.train("cartpole-ppo", seeds=2)
