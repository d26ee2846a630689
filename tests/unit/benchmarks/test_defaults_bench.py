"""What the benchmark of defaults relies on: a fair score, and runs that are made once."""

import json

import pytest

from benchmarks.defaults.bench import Book, jobs
from benchmarks.defaults.tasks import TASKS, Job, Task, is_passed, keeps_up

TASK = Task("A-v0", {"ppo": 100}, random=-100.0)
IDLE_IS_BEST = Task("B-v0", {"ppo": 100}, random=-33.0, floor=0.0)
JOB = Job("sb3", "ppo", "A-v0", 100, 1)


@pytest.mark.parametrize(
    ("task", "ours", "theirs", "passed"),
    [
        (TASK, 200.0, 200.0, True),
        (TASK, 185.0, 200.0, True),  # 5 % of (200 + 100) may be lost
        (TASK, 184.9, 200.0, False),
        (TASK, -95.0, -99.0, True),
        (TASK, -100.0, -100.0, False),  # both are random
        (IDLE_IS_BEST, 0.0, 0.0, False),  # both do nothing
        (IDLE_IS_BEST, 90.0, 0.0, True),
        (IDLE_IS_BEST, 0.0, 90.0, False),
    ],
)
def test_a_task_is_passed_up_to_a_twentieth_of_what_the_peer_gained(task, ours, theirs, passed):
    assert is_passed(task, ours, theirs) is passed


def test_results_are_kept_and_found_again(tmp_path):
    path = tmp_path / "sb3.json"
    Book(path).add(JOB, {"mean_return": 7.0})
    assert Book(path).find(JOB)["mean_return"] == 7.0
    assert Book(path).find(Job("sb3", "ppo", "A-v0", 100, 2)) is None
    assert json.loads(path.read_text())[0]["env"] == "A-v0"


def test_a_smoke_run_keeps_nothing():
    book = Book(None)
    book.add(JOB, {"mean_return": 7.0})
    assert book.find(JOB) is not None


def test_every_contestant_trains_equally_long_with_three_seeds():
    for algorithm, peers in (("auto", "ppo"), ("dqn", "dqn")):
        ours, theirs = (
            {(j.env, j.env_steps, j.seed) for j in jobs(who, [algorithm], None)}
            for who in ("tianji", "sb3")
        )
        assert ours == theirs
        assert len(ours) == 3 * sum(peers in task.steps for task in TASKS)
        assert {j.algorithm for j in jobs("sb3", [algorithm], None)} == {peers}


def test_the_peer_has_nothing_to_hold_against_impala():
    assert not list(jobs("sb3", ["impala"], None))
    assert list(jobs("tianji", ["impala"], None))


def test_who_stays_at_the_floor_with_the_peer_keeps_up_and_does_not_pass():
    assert keeps_up(TASK, -100.0, -100.0)
    assert not is_passed(TASK, -100.0, -100.0)
    assert not keeps_up(TASK, 184.9, 200.0)
