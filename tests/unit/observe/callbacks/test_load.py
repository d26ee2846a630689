"""Callbacks by name: classes, objects, and what is wrong with others."""

import importlib
import sys

import pytest

import tianji
from tianji.errors import UsageError
from tianji.observe.callbacks.load import load_callbacks

MODULE = """
import tianji

class Mine(tianji.Callback):
    def on_end(self, run, summary):
        pass

class Needy(Mine):
    def __init__(self, key):
        pass

class Idle(tianji.Callback):
    pass

class Misspelt(Mine):
    def on_versions(self, run, record):
        pass

made = Needy("key")
number = 3
"""


@pytest.fixture(autouse=True)
def a_module(tmp_path, monkeypatch):
    (tmp_path / "my_callbacks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("my_callbacks", None)


def test_a_class_and_an_object_are_found_by_name():
    names = ("my_callbacks:Mine", "my_callbacks:made")
    found = load_callbacks(names)
    assert [one.name for one in found] == list(names)
    assert [type(one.callback).__name__ for one in found] == ["Mine", "Needy"]


def test_objects_and_classes_of_python_are_taken_as_they_are():
    class Mine(tianji.Callback):
        def on_end(self, run, summary):
            pass

    mine = Mine()
    (given, made) = load_callbacks((), [mine, Mine])
    assert given.callback is mine and isinstance(made.callback, Mine)
    assert given.name.endswith("Mine")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wanbd", r"Unknown callback 'wanbd'. Did you mean 'wandb'\?.*Known: wandb, mlflow"),
        ("no_such_module:It", "Cannot load callback .*No module named 'no_such_module'"),
        ("my_callbacks:Yours", "Cannot load callback .*has no attribute 'Yours'"),
        ("my_callbacks:number", "is an int without any of the methods on_version, on_episode"),
        ("my_callbacks:Needy", "cannot be made without arguments: TypeError.*'key'"),
    ],
)
def test_what_is_wrong_with_a_name_is_told(name, says):
    with pytest.raises(UsageError, match=says):
        load_callbacks([name])


@pytest.mark.parametrize("as_object", [False, True])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Misspelt", "has the method on_versions, which no run calls. Did you mean 'on_version'"),
        ("Idle", "overrides none of the methods .*: on_version, on_episode, on_checkpoint, on_end"),
    ],
)
def test_a_callback_with_a_misspelt_hook_or_without_any_is_not_silent(name, says, as_object):
    kind = getattr(importlib.import_module("my_callbacks"), name)
    with pytest.raises(UsageError, match=says):
        load_callbacks((), [kind() if as_object else kind])


def test_a_hook_that_an_object_was_given_is_enough():
    class Idle(tianji.Callback):
        pass

    idle = Idle()
    idle.on_end = print
    assert load_callbacks((), [idle])[0].callback is idle


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_tracker_without_its_library_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=rf"pip install 'tianji\[{name}\]'"):
        load_callbacks([name])
