"""Profiles kept for the next run."""

import dataclasses
import json
import logging
import os

import pytest

from tests.unit.planning.measure.profiles import profile
from tests.unit.planning.plans import config
from tianji.config.machine import Machine
from tianji.planning import keep
from tianji.planning.keep import DISTURBED_AGE_S, MOST_AGE_S, key_of, load, save

MACHINE = Machine((0, 1), 1 << 33)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tianji" / "profiles"


def test_what_was_kept_comes_back(cache):
    save("abc", profile())
    assert load("abc") == profile()
    assert [file.name for file in cache.iterdir()] == ["abc.json"]


def test_nothing_was_kept():
    assert load("abc") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"steps_per_version": 3}'])
def test_a_file_that_is_no_profile_counts_as_none(cache, text):
    cache.mkdir(parents=True)
    (cache / "abc.json").write_text(text)
    assert load("abc") is None


def test_a_profile_of_another_format_counts_as_none(cache):
    save("abc", profile())
    path = cache / "abc.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "blue"}))
    assert load("abc") is None


def test_a_cache_that_cannot_be_written_is_only_worth_a_note(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "tianji"):
        save("abc", profile())
    assert "measures again" in caplog.text


def test_without_the_variable_it_lies_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    save("abc", profile())
    assert (tmp_path / ".cache" / "tianji" / "profiles" / "abc.json").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"env": "Acrobot-v1"},
        {"env_kwargs": {"length": 3}},
        {"num_envs": 16},
        {"max_lag": 0},
        {"model": {"hidden": (256, 256)}},
        {"normalize": {"observations": True}},
        {"num_actors": 2},
    ],
)
def test_what_changes_the_costs_changes_the_key(change):
    assert key_of(config(), MACHINE) != key_of(config(**change), MACHINE)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 7},
        {"run": "mine"},
        {"max_env_steps": 5},
        {"target_return": 3.0},
        {"checkpoint": {"period_s": 3.0}},
        {"plan": {"source": "measure"}},
    ],
)
def test_what_does_not_leaves_it(change):
    assert key_of(config(), MACHINE) == key_of(config(**change), MACHINE)


def test_another_machine_has_another_key(monkeypatch):
    fewer = dataclasses.replace(MACHINE, cores=(0,))
    less_free = dataclasses.replace(MACHINE, memory_bytes=1 << 30)
    same_number = dataclasses.replace(MACHINE, cores=(4, 5))
    assert key_of(config(), fewer) != key_of(config(), MACHINE)
    assert key_of(config(), less_free) == key_of(config(), MACHINE)
    assert key_of(config(), same_number) == key_of(config(), MACHINE)
    before = key_of(config(), MACHINE)
    monkeypatch.setattr("tianji.planning.keep.processor", lambda: "another one")
    assert key_of(config(), MACHINE) != before


def aged(cache, seconds):
    path = cache / "abc.json"
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_an_old_profile_counts_as_none_and_a_disturbed_one_sooner(cache):
    save("abc", profile())
    aged(cache, DISTURBED_AGE_S + 60)
    assert load("abc") is not None
    aged(cache, MOST_AGE_S)
    assert load("abc") is None
    save("abc", profile().model_copy(update={"is_disturbed": True}))
    assert load("abc") is not None
    aged(cache, DISTURBED_AGE_S + 60)
    assert load("abc") is None


def test_a_run_with_an_evaluator_has_a_profile_of_its_own():
    watched = config(evaluate={"period_s": 5.0})
    assert key_of(watched, MACHINE) != key_of(config(), MACHINE)
    assert key_of(config(engine="virtual"), MACHINE) != key_of(config(), MACHINE)


@pytest.mark.parametrize("error", [PermissionError(13, "not yours"), RuntimeError("no home")])
def test_a_home_that_cannot_be_read_is_no_reason_to_fail(monkeypatch, caplog, error):
    def fail():
        raise error

    monkeypatch.setattr(keep, "_folder", fail)
    assert not keep.has_any()
    assert load("abc") is None
    save("abc", profile())
    assert "measures again" in caplog.text
