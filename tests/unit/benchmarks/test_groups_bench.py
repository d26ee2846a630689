"""Groups against unconnected copies: who has which cores, and what is compared."""

import os

import pytest

from benchmarks.groups import bench
from tianji.config.machine import Machine


def test_groups_have_shares_of_the_same_size_and_too_many_are_refused(monkeypatch):
    machine = Machine(tuple(range(7)), 64 << 30)
    monkeypatch.setattr(bench, "read_machine", lambda: machine)
    assert bench.shares_of(2, 2) == [(0, 1), (2, 3)]
    with pytest.raises(SystemExit, match="4 groups of 2 cores"):
        bench.shares_of(4, 2)


def summary(received, trained):
    return {
        "rates_per_s": {"received": received, "trained": trained},
        "lag_versions": {"mean": 1.0},
        "groups": [],
        "plan": {"learner_threads": 1, "num_actors": 1, "cores": {}},
    }


def test_copies_run_at_the_same_time_with_seeds_of_their_own_and_add_up(monkeypatch):
    asked = []

    def train(preset, *words):
        asked.append((preset, words, os.sched_getaffinity(0)))
        return summary(10.0, 30.0)

    monkeypatch.setattr(bench, "train", train)
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    found = bench.run_copies("cartpole-ppo", [(core,), (core,)], ("--x", "1"))
    assert (found["received_per_s"], found["trained_per_s"]) == (20.0, 60.0)
    assert sorted(words[-1] for _, words, _ in asked) == ["1", "2"]
    assert all(cores == {core} for _, _, cores in asked)
    assert os.sched_getaffinity(0) == before, "only the threads of the copies are bound"


def test_one_run_has_all_groups_and_its_failure_is_told(monkeypatch):
    def train(preset, *words):
        assert words == ("--num-groups", "2", "--combine", "gossip", "--combine-every", "4")
        raise RuntimeError("failed")

    monkeypatch.setattr(bench, "train", train)
    core = min(os.sched_getaffinity(0))
    with pytest.raises(RuntimeError, match="failed"):
        bench.run_groups("cartpole-ppo", [(core,), (core,)], "gossip", 4, ())
