"""Drift: what lasts is told once, with the one who holds the run up; what passes is not."""

import pytest

from tianji.balance.drift import LASTS_S, Drift, Seen

# Shares of the time for which the learner and the actors wait.
LEARNER_BOUND = 0.02, 0.75
ACTOR_BOUND = 0.6, 0.0
NOBODY_WAITS = 0.01, 0.02


class Run:
    """A run that is looked at once a second."""

    def __init__(self, expected=None, num_cores=2):
        self.drift = Drift(expected, num_cores)
        self.at_s = self.version = 0

    def goes(self, rate, seconds, waiting=LEARNER_BOUND, busy=2.0, versions_per_s=10):
        """What was found meanwhile."""
        found = []
        for _ in range(seconds):
            self.at_s += 1
            self.version += versions_per_s
            seen = Seen(self.at_s, int(self.version), rate, busy, *waiting)
            if (finding := self.drift.observe(seen)) is not None:
                found.append(finding)
        return found


def test_a_run_that_keeps_its_promise_is_quiet():
    assert Run(expected=1000).goes(rate=850, seconds=60) == []


def test_a_rate_under_four_fifths_of_the_promise_for_long_is_told_once():
    (finding,) = Run(expected=1000).goes(rate=780, seconds=60)
    assert (finding.measured, finding.expected, finding.is_over) == (780, 1000, False)


def test_it_is_told_only_after_a_while():
    assert Run(expected=1000).goes(rate=500, seconds=int(LASTS_S)) == []


def test_without_a_promise_the_best_rate_it_held_counts():
    run = Run()
    assert run.goes(rate=1000, seconds=30) == []
    (finding,) = run.goes(rate=700, seconds=40)
    assert finding.expected == 1000


def test_a_short_burst_is_no_rate_that_was_held():
    run = Run()
    run.goes(rate=1000, seconds=20)
    run.goes(rate=3000, seconds=1)
    assert run.goes(rate=1000, seconds=40) == []


def test_a_pause_of_a_few_seconds_is_no_imbalance():
    run = Run(expected=1000)
    run.goes(rate=1000, seconds=30)
    assert run.goes(rate=0, seconds=4) + run.goes(rate=1000, seconds=30) == []


def test_it_says_when_it_is_over():
    run = Run(expected=1000)
    run.goes(rate=400, seconds=30)
    (finding,) = run.goes(rate=980, seconds=30)
    assert finding.is_over
    assert finding.measured > 900


@pytest.mark.parametrize(
    ("waiting", "role"),
    [(LEARNER_BOUND, "learner"), (ACTOR_BOUND, "actors"), (NOBODY_WAITS, "processors")],
)
def test_it_names_the_one_that_the_others_wait_for(waiting, role):
    (finding,) = Run(expected=1000).goes(rate=500, seconds=30, waiting=waiting)
    assert finding.role == role
    assert role in finding.text
    assert "500 steps/s instead of 1,000" in finding.text


def test_a_learner_that_waits_while_a_core_is_idle_is_an_imbalance_at_any_rate():
    idle = 1.3
    (finding,) = Run(num_cores=4).goes(1000, 30, waiting=ACTOR_BOUND, busy=idle)
    assert finding.role == "actors"
    assert "2.7 of 4 cores are idle" in finding.text
    assert Run(num_cores=2).goes(1000, 30, waiting=ACTOR_BOUND, busy=idle) == []
    assert Run(num_cores=4).goes(1000, 30, waiting=LEARNER_BOUND, busy=idle) == []


def test_warm_up_is_no_rate_to_measure_by():
    run = Run()
    run.goes(rate=5000, seconds=40, versions_per_s=0)
    assert run.goes(rate=1000, seconds=60) == []


def test_long_versions_are_looked_at_for_longer():
    """A version of ten seconds: nothing arrives for most of the time."""
    run = Run(expected=1000)
    for _ in range(12):
        found = run.goes(rate=0, seconds=7, versions_per_s=0.1)
        found += run.goes(rate=3333, seconds=3, versions_per_s=0.1)
        assert found == []


def test_a_promise_that_is_kept_is_no_imbalance_whoever_waits():
    idle = 1.3
    run = Run(expected=1000, num_cores=4)
    assert run.goes(1000, 30, waiting=ACTOR_BOUND, busy=idle) == []


def test_in_serial_training_somebody_always_waits():
    idle = 0.9
    run = Run(num_cores=4)
    run.drift = Drift(None, 4, is_serial=True)
    assert run.goes(1000, 30, waiting=ACTOR_BOUND, busy=idle) == []
