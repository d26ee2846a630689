"""Optuna's side of a sweep: proposals, pruning, and what is kept for the next session."""

import sys

import pytest

from tianji.errors import UsageError
from tianji.sweep.objective import Objective
from tianji.sweep.space import Choices, Range
from tianji.sweep.study import Study, import_optuna

SEARCHES = (
    Range("a.rate", "rate", 1e-4, 1e-2, is_log=True),
    Range("a.count", "count", 1, 100, is_whole=True),
    Choices("b.kind", "kind", ("x", "y")),
)
RETURN = Objective("return", None)


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"pip install 'tianji\[sweep\]'"):
        import_optuna()


@pytest.fixture
def study(tmp_path):
    pytest.importorskip("optuna", reason="extra sweep is not installed")

    def opened(folder="one", seed=1, prune=True):
        (tmp_path / folder).mkdir(exist_ok=True)
        return Study(tmp_path / folder, SEARCHES, RETURN, seed, prune)

    return opened


def test_the_same_seed_proposes_the_same_settings(study):
    one, same, other = study("one"), study("two"), study("three", seed=2)
    first = [one.ask() for _ in range(3)]
    assert first == [same.ask() for _ in range(3)]
    assert first != [other.ask() for _ in range(3)]
    values = first[0].values
    assert 1e-4 <= float(values["a.rate"]) <= 1e-2
    assert values["a.count"].isdecimal() and values["b.kind"] in "xy"


def test_a_session_that_continues_knows_the_trials_and_draws_other_numbers(study):
    before = study()
    first = before.ask()
    before.tell(first.number, 5.0)
    after = study()
    assert [(t.number, t.state, t.value, t.values) for t in after.ended()] == [
        (0, "finished", 5.0, first.values)
    ]
    assert after.best() == 0
    assert after.ask().values != first.values


def test_interrupted_settings_are_proposed_again_and_do_not_count(study):
    before = study()
    stopped, lost, broken = before.ask(), before.ask(), before.ask()
    before.tell_interrupted(stopped.number)
    before.tell_failed(broken.number, "it broke")
    after = study()  # the other one was killed with its session
    assert [(t.number, t.state, t.first_cause) for t in after.ended()] == [
        (2, "failed", "it broke")
    ]
    assert [after.ask().values, after.ask().values] == [stopped.values, lost.values]
    assert after.ask().values not in (stopped.values, lost.values)


def test_settings_are_not_repeated_by_every_session(study):
    before = study()
    stopped = before.ask()
    before.tell_interrupted(stopped.number)
    study()
    again = study()
    assert again.ask().values == stopped.values != again.ask().values


@pytest.mark.parametrize("prune", [True, False])
def test_a_trial_that_is_worse_than_the_median_is_hopeless(study, prune):
    made = study(prune=prune)
    for value in (10.0, 20.0, 30.0, 40.0, 50.0):
        number = made.ask().number
        assert not made.is_hopeless(number, dict.fromkeys(range(4), value))
        made.tell(number, value)
    worse, better = made.ask().number, made.ask().number
    assert not made.is_hopeless(worse, {0: 1.0, 1: 1.0}), "not before the warm-up"
    assert made.is_hopeless(worse, {0: 1.0, 1: 1.0, 2: 1.0}) == prune
    assert not made.is_hopeless(better, dict.fromkeys(range(4), 60.0))
    made.tell_pruned(worse)
    made.tell(better, 60.0)
    assert [t.state for t in made.ended()][-2:] == ["pruned", "finished"]
    assert made.best() == better
