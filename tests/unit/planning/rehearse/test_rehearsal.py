"""A rehearsal reads whole versions of the steady part, and knows when it has seen enough."""

import pytest

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import config, plan_for
from tianji.channels.gauges import Gauge, Gauges
from tianji.channels.orders import Stop
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.errors import WorkerLost
from tianji.planning.rehearse import rehearsal as module
from tianji.planning.rehearse.rehearsal import Stage, mean_lag
from tianji.reports import MetricsReport

DONE = {"because": "interrupted", "record": {}, "restarts": 0, "first_cause": None}


class Rig:
    """A stage with a clock and gauges that the test moves."""

    def __init__(self, monkeypatch, seconds=2.0, limit_s=20.0):
        self.now_s, self.version = 100.0, 0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now_s)
        self.stop = StopRequest()
        self.stage = Stage(self.stop, seconds, limit_s)
        self.gauges = Gauges(
            {"actor-0": "actor", "actor-1": "actor", "buffer": "buffer", "learner": "learner"}
        )
        self.stage.watch(self.gauges)

    def version_after(self, seconds, lag=1):
        self.now_s += seconds
        self.version += 1
        rows = self.gauges.rows
        for name in ("actor-0", "actor-1"):
            rows[name][Gauge.STEPS] += 50
        rows["buffer"][Gauge.RECEIVED_STEPS] += 100
        rows["learner"][Gauge.STEPS] += 300
        lags = [0, self.version] if lag else [self.version]
        record = {"version": self.version, "lag_histogram": lags, "ratio": {"actual": 1.0}}
        self.stage.report(MetricsReport(kind="metrics", role="learner", record=record))
        self.stage.tick()

    def result(self, outcome=DONE):
        asked = config(num_actors=2)
        return self.stage.result(RunSpec(asked, plan_for(asked), SPACES, "X", None), outcome)


@pytest.fixture
def rig(monkeypatch):
    rig = Rig(monkeypatch)
    yield rig
    rig.stop.close()


def test_rates_are_those_of_the_steady_part(rig):
    for _ in range(3):
        rig.version_after(3.0)  # slow at first
    while not rig.stage.is_over:
        rig.version_after(0.1)
    found = rig.result()
    assert found.produced == pytest.approx(1000.0)
    assert found.received == pytest.approx(1000.0)
    assert found.trained == pytest.approx(3000.0)
    assert found.lag_versions == 1.0
    assert (found.num_actors, found.learner_threads) == (2, 2)


def test_it_stops_at_once_when_it_has_seen_enough(rig):
    while not rig.stage.is_over:
        rig.version_after(0.1)
    assert rig.stop.level == Stop.NOW
    assert 2.6 <= rig.now_s - 100.0 < 3.5


def test_long_versions_are_given_three_times_the_seconds(rig):
    while not rig.stage.is_over:
        rig.version_after(0.9)
    assert 6.0 <= rig.now_s - 102.7 <= 7.5


def test_it_gives_up_at_its_limit(rig):
    rig.version_after(1.0)
    rig.now_s += 30
    rig.stage.tick()
    assert rig.stage.is_over
    with pytest.raises(WorkerLost, match="too few versions in 20 s"):
        rig.result()


def test_a_plan_too_slow_to_settle_is_judged_by_what_it_did(rig):
    rig.version_after(8.0)
    rig.version_after(5.0)
    rig.now_s += 10
    rig.stage.tick()
    assert rig.result().produced == pytest.approx(20.0)


def test_a_run_that_fails_says_why(rig):
    with pytest.raises(WorkerLost, match="actor-0: RuntimeError: broken"):
        rig.result({**DONE, "because": "failed", "first_cause": "actor-0: RuntimeError: broken"})


def test_lag_is_that_of_what_came_in_between():
    assert mean_lag((5, 5), (5, 8, 3)) == pytest.approx((3 * 1 + 3 * 2) / 6)
    assert mean_lag((5,), (5,)) == 0.0
