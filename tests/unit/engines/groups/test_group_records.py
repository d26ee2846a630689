"""Records of several groups, merged into those of their run."""

import pytest

from tests.fakes.roles import TWO_ACTORS
from tianji.channels.gauges import Gauge, Gauges
from tianji.engines.groups.merge import joined_gauges, merge_records, merge_sessions
from tianji.observe.watch import Watch
from tianji.records import NOTHING_LEARNED, ProgressRecord, SessionMetrics, nothing


def group(**values):
    return {**NOTHING_LEARNED, **values}


ONE = group(
    updates=30, version=10, discarded_items=1, env_failures=2,
    lag_versions={"mean": 1.0, "p95": 1, "max": 2}, lag_histogram=[1, 2],
    ratio={"target": 1.0, "actual": 0.5}, learner={"loss": 1.0, "only": 3.0},
)  # fmt: skip
OTHER = group(
    updates=50, version=12, discarded_items=3, env_failures=0,
    lag_versions={"mean": 3.0, "p95": 4, "max": 4}, lag_histogram=[0, 1, 5],
    ratio={"target": 1.0, "actual": 1.5}, learner={"loss": 2.0},
)  # fmt: skip


def test_counts_add_up_and_figures_are_means():
    merged = merge_records([ONE, OTHER])
    assert (merged["updates"], merged["version"]) == (80, 12)
    assert (merged["discarded_items"], merged["env_failures"]) == (4, 2)
    assert merged["lag_versions"] == {"mean": 2.0, "p95": 4, "max": 4}
    assert merged["lag_histogram"] == [1, 3, 5]
    assert merged["ratio"] == {"target": 1.0, "actual": 1.0}
    assert merged["learner"] == {"loss": 1.5, "only": 3.0}


def test_groups_that_have_learned_nothing_yet_have_no_lag():
    assert merge_records([group(), group()])["lag_versions"] == {
        "mean": None, "p95": None, "max": None
    }  # fmt: skip


def session(rate, roles):
    rates = dict.fromkeys(("produced", "received", "trained", "unique_trained"), rate)
    busy = dict.fromkeys(roles, rate / 100)
    return nothing(SessionMetrics, rates_per_s=rates, busy_s=busy, busy_share=busy)


def test_rates_add_up_and_roles_are_named_by_their_group():
    progress = nothing(ProgressRecord, env_steps=7)
    groups = {0: session(10.0, ["learner"]), 2: session(5.0, ["a"])}
    merged = merge_sessions(progress, merge_records([ONE]), groups, [])
    assert set(merged["rates_per_s"].values()) == {15.0}
    assert merged["busy_share"] == {"0/learner": 0.1, "2/a": 0.05}
    assert merged["env_steps"] == 7


def test_the_gauges_of_all_groups_read_as_those_of_one_run():
    by_group = {group: Gauges(TWO_ACTORS) for group in range(2)}
    now = [10**9]
    watch = Watch(joined_gauges(by_group), lambda: now[0])
    for gauges in by_group.values():
        gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 1
    watch.look()
    for group, gauges in by_group.items():
        gauges.rows["actor-1"][Gauge.STEPS] += 100 + group
        gauges.rows["buffer"][Gauge.RECEIVED_STEPS] += 10 + group
        gauges.rows["learner"][Gauge.STEPS] += 1000 + group
        gauges.rows["learner"][Gauge.BUSY_NS] += (1 + group) * 10**8
    now[0] += 10**9
    watch.look()
    seen = watch.now().measured
    assert seen["rates_per_s"]["produced"] == 201.0
    assert seen["rates_per_s"]["received"] == 21.0
    assert seen["rates_per_s"]["trained"] == 2001.0
    assert seen["busy_share"]["0/learner"] == pytest.approx(0.1)
    assert seen["busy_share"]["1/learner"] == pytest.approx(0.2)
    assert seen["worked_s"]["1/learner"]["updates"] == pytest.approx(0.2)
