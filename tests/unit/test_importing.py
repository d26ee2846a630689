"""Modules of users that start a run when they are imported."""

import importlib
import sys
from dataclasses import replace

import gymnasium as gym
import pytest

from tests.fakes.specs import make_spec
from tianji.algorithms.registry import load_algorithm
from tianji.engines.supervise.process import encode_run
from tianji.engines.worker import read_run
from tianji.envs.find import find_maker
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.importing import refuse_runs
from tianji.models.networks.build import build_user_net
from tianji.observe.callbacks.load import load_callbacks

PLAIN = Spaces(gym.spaces.Box(-1, 1, (3,)), gym.spaces.Discrete(3))
TRAINS = "import tianji\ntianji.train('cartpole-ppo')\n"
COMPARES = "import tianji\ntianji.compare('cartpole-ppo', styles=['tianji'])\n"


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "trains_at_once", raising=False)
    return (tmp_path / "trains_at_once.py").write_text


@pytest.mark.parametrize(
    ("find", "what"),
    [
        (lambda name: find_maker(name, {}), "its environment"),
        (lambda name: find_maker(f"pettingzoo:{name}", {}), "its environment"),
        (lambda name: load_callbacks([name]), "a callback"),
        (load_algorithm, "an algorithm"),
    ],
)
def test_a_module_that_trains_when_it_is_imported_starts_no_run(find, what, write_module):
    write_module(TRAINS)
    with pytest.raises(UsageError) as caught:
        find("trains_at_once:Chase")
    assert str(caught.value) == (
        f"tianji.train() was called while TianJi was importing 'trains_at_once' to find {what}. "
        "Put what trains under `if __name__ == '__main__':`."
    )


def test_a_network_whose_module_trains_starts_no_run(write_module):
    write_module(TRAINS)
    with pytest.raises(UsageError, match=r"^tianji\.train\(\) was called .* to find a network"):
        build_user_net("trains_at_once:make", PLAIN, [3])


def test_a_module_that_compares_when_it_is_imported_starts_no_run(write_module):
    write_module(COMPARES)
    with pytest.raises(UsageError, match=r"^tianji\.compare\(\) was called while"):
        find_maker("trains_at_once:Chase", {})


def test_runs_may_start_again_after_a_refused_import(write_module):
    write_module(TRAINS)
    with pytest.raises(UsageError):
        find_maker("trains_at_once:Chase", {})
    refuse_runs("tianji.train()")


def test_a_worker_that_imports_a_module_that_trains_starts_no_run(write_module, tmp_path):
    write_module("def make():\n    return None\n")
    maker = importlib.import_module("trains_at_once").make
    told = encode_run(replace(make_spec(tmp_path), env=maker))
    del sys.modules["trains_at_once"]
    write_module(TRAINS)
    with pytest.raises(UsageError, match="in a process of another run"):
        read_run(told)
