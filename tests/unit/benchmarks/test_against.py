"""What is concluded from pairs of measurements, and how a pair is measured."""

from argparse import Namespace

import pytest

from benchmarks.against.bench import chosen, main, measure_pair, show
from benchmarks.against.figures import FIGURES, Figure, Reading
from benchmarks.against.pairs import better_ratio, judge
from benchmarks.against.sides import Side, resolve_commit
from benchmarks.harness import ContestantFailed, Report


@pytest.fixture
def report():
    return Report("against", Namespace(quick=True, out=None, strict=True))


@pytest.fixture
def sides(tmp_path):
    return Side("this tree", tmp_path, tmp_path), Side("other", tmp_path, tmp_path)


def test_the_mean_is_geometric_and_lies_in_the_interval():
    verdict = judge([0.5, 2.0, 1.0, 1.0])
    assert verdict.mean == pytest.approx(1.0)
    assert verdict.low < 1.0 < verdict.high
    assert verdict.low == pytest.approx(1 / verdict.high, rel=0.05)
    assert verdict == judge([0.5, 2.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("ratios", "is_worse"),
    [([0.9] * 15, True), ([0.96] * 15, False), ([0.7, 1.2] * 7, False), ([0.8, 0.9] * 7, True)],
)
def test_a_figure_is_worse_where_the_whole_interval_lies_below_the_bound(ratios, is_worse):
    assert judge(ratios).is_worse is is_worse


def test_the_interval_narrows_with_the_number_of_pairs():
    few, many = judge([0.9, 1.1] * 2), judge([0.9, 1.1] * 50)
    assert many.high - many.low < few.high - few.low


def test_above_one_is_better_for_times_and_for_rates():
    assert better_ratio(1.0, 2.0, higher_is_better=False) == 2.0
    assert better_ratio(1.0, 2.0, higher_is_better=True) == 0.5


def test_figures_are_chosen_by_the_words_they_begin_with():
    assert chosen(None) == list(FIGURES)
    assert [figure.name for figure in chosen(["ppo", "start"])] == [
        "ppo to 300",
        "ppo to 475",
        "start-up",
    ]


def test_the_sides_take_turns_in_changing_order(report, sides):
    order = []

    def measure(side, seed, quick):
        order.append(side.name)
        return Reading({"this tree": 3.0, "other": 4.0}[side.name])

    figure = Figure("made up", "s", False, measure)
    pairs = [measure_pair(report, figure, sides, seed, quick=True) for seed in range(1, 9)]
    assert pairs == [(3.0, 4.0)] * 8
    assert {*zip(order[::2], order[1::2], strict=True)} == {
        ("this tree", "other"),
        ("other", "this tree"),
    }


def test_a_pair_of_which_one_side_fails_does_not_count(report, sides):
    def measure(side, seed, quick):
        raise ContestantFailed("ended with 2")

    assert measure_pair(report, Figure("made up", "s", False, measure), sides, 1, True) is None


def test_a_slower_figure_is_named_and_missed(report, capsys):
    slow, equal = (Figure(name, "s", False, lambda *_: Reading(1.0)) for name in ("slow", "equal"))
    failing = Figure("failing", "s", False, lambda *_: Reading(1.0))
    pairs = {slow: [(2.0, 1.0)] * 3, equal: [(1.0, 1.0)] * 3, failing: [(1.0, 1.0)]}
    show(report, pairs, 3, "abc")
    assert report.finish() == 1
    shown = capsys.readouterr().out
    assert "MISSED  slow" in shown and "met     equal" in shown
    assert "MISSED  failing, measured pairs: 1" in shown
    assert shown.count("below 0.95") == 1


def test_an_unknown_commit_is_refused_before_anything_runs(capsys):
    with pytest.raises(ValueError, match="git knows no commit 'no-such-commit'"):
        resolve_commit("no-such-commit")
    assert main(["no-such-commit", "--quick"]) == 2
