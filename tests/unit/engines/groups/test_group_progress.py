"""Steps and episodes of several groups, put together."""

import pytest

from tianji.engines.groups.progress import PATIENCE_NS, EpisodeMerge, RunCount
from tianji.types import Episode


def episode(end_ns, value=0.0):
    return Episode(end_ns, value, 5, 0)


def test_the_steps_of_a_run_are_those_of_all_groups():
    steps = RunCount([0, 0, 0], 0)
    steps.see([100, 0, 30])
    assert (steps.total, steps.by_group) == (130, (100, 0, 30))
    assert [steps.others(group) for group in range(3)] == [30, 130, 100]


def test_a_group_that_goes_back_to_its_checkpoint_does_not_lower_the_count():
    steps = RunCount([0, 0], 0)
    steps.see([100, 50])
    steps.see([40, 60])
    assert (steps.total, steps.others(0)) == (160, 120)
    steps.see([45, 60])
    assert (steps.total, steps.others(0), steps.others(1)) == (165, 120, 105)


def test_a_group_that_has_not_begun_again_keeps_its_last_count():
    steps = RunCount([100, 50], 150)
    steps.see([0, 0])
    assert (steps.total, steps.by_group) == (150, (100, 50))


@pytest.mark.parametrize(("restored", "total"), [([40], 100), ([100, 100, 100], 100)])
def test_a_run_with_another_number_of_groups_continues_with_its_own_count(restored, total):
    steps = RunCount(restored, total)
    assert steps.total == total
    steps.see([count + 7 for count in restored])
    assert steps.total == total + 7 * len(restored)
    assert steps.others(0) + restored[0] + 7 == steps.total


def test_episodes_come_in_the_order_of_their_ends_whoever_reports_first():
    merge = EpisodeMerge(2, now_ns=0)
    merge.add(0, 50, [episode(10), episode(40)], now_ns=50)
    assert merge.ready(50) == [], "group 1 may report an earlier one"
    merge.add(1, 30, [episode(5), episode(20)], now_ns=60)
    assert [e.finished_ns for e in merge.ready(60)] == [5, 10, 20]
    merge.add(1, 60, [], now_ns=70)
    assert [e.finished_ns for e in merge.ready(70)] == [40]


def test_a_silent_group_is_not_waited_for():
    merge = EpisodeMerge(2, now_ns=0)
    merge.add(0, PATIENCE_NS, [episode(10)], now_ns=PATIENCE_NS)
    assert [e.finished_ns for e in merge.ready(PATIENCE_NS)] == [10]
    merge.add(1, PATIENCE_NS + 1, [episode(7)], now_ns=PATIENCE_NS + 1)
    assert [e.finished_ns for e in merge.ready(PATIENCE_NS + 1)] == [7], "late, but not lost"


def test_the_end_of_the_run_takes_the_rest():
    merge = EpisodeMerge(2, now_ns=0)
    merge.add(0, 50, [episode(30), episode(10)], now_ns=50)
    assert [e.finished_ns for e in merge.rest()] == [10, 30]
    assert merge.rest() == []
