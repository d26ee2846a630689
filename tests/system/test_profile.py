"""A whole profile, with real processes, in short form."""

import logging
import tempfile

import psutil
import pytest

from tests.system.runs import DQN, PPO
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.envs.build import probe
from tianji.errors import WorkerLost
from tianji.planning.measure import measurement
from tianji.planning.measure.measure import measure
from tianji.planning.rehearse import auditions, rehearsal

MACHINE = Machine((0, 1), 4 << 30)


@pytest.fixture(autouse=True)
def short(monkeypatch, tmp_path):
    for name in ("ALONE_S", "LOADED_S"):
        monkeypatch.setattr(measurement, name, 0.1)
    monkeypatch.setattr(auditions, "MOST", 1)
    monkeypatch.setattr(auditions, "REHEARSAL_S", 0.3)
    monkeypatch.setattr(rehearsal, "SETTLE_S", 0.1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def profile_of(algorithm, tell=logging.info, **values):
    settings = {"env": "tianji.envs.worlds:Counting", "num_envs": 4, "algorithm": algorithm}
    config = RunConfig.model_validate({**settings, **values})
    found = probe(config.env, config.env_kwargs)
    return measure(config, config.env, MACHINE, found, tell, {"num_envs": 4})


@pytest.fixture(autouse=True)
def children_before():
    """Processes that tests before this one have left to be reaped."""
    _children_before.clear()
    _children_before.update(psutil.Process().children())


_children_before = set()


def assert_nothing_is_left(tmp_path):
    assert set(psutil.Process().children()) <= _children_before
    assert list(tmp_path.iterdir()) == []


def test_what_is_fixed_is_measured_alone_and_serial_engines_rehearse_nothing(tmp_path):
    told = []
    profile = profile_of(DQN, told.append, num_actors=2, learner_threads=1, engine="inline")
    assert [cost.num_envs for cost in profile.actors] == [2]
    assert [cost.threads for cost in profile.learners] == [1]
    assert profile.rehearsals == ()
    assert profile.settings == {"num_envs": 4}
    assert all(sentence.endswith(".") for sentence in told)
    assert_nothing_is_left(tmp_path)


def test_an_environment_that_fails_is_told_by_its_own_words(tmp_path):
    flaky = {"env": "tianji.envs.worlds:Flaky", "env_kwargs": {"at_step": 5}}
    with pytest.raises(WorkerLost) as caught:
        profile_of(PPO, num_actors=2, **flaky)
    first, second, *_ = str(caught.value).splitlines()
    assert "RuntimeError: this world fails in step 5, as configured" in first
    assert "actor-bench-0" in second
    assert_nothing_is_left(tmp_path)


def test_a_person_who_breaks_off_leaves_nothing_behind(tmp_path):
    def break_off(sentence):
        if sentence.startswith("The learner"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        profile_of(PPO, break_off)
    assert_nothing_is_left(tmp_path)
