"""How long a worker of the local engine may show no sign of life."""

import pytest

from tests.unit.engines.sides import make_spec
from tianji.channels.gauges import Activity, Gauge
from tianji.engines import local
from tianji.engines.local import STARTS_S, LocalEngine
from tianji.programs.program import tianji

LIMIT_S = 3.0
NOW_NS = 1000 * 10**9


class Process:
    """Notes why it was killed."""

    def __init__(self):
        self.is_killed, self.because = False, None

    def dump_stack(self):
        pass

    def kill(self, because):
        self.is_killed, self.because = True, because


@pytest.fixture
def because(tmp_path, monkeypatch):
    """Why a worker is killed whose roles are doing these things, silent for so long."""
    spec = make_spec(tmp_path, engine="local", supervise={"heartbeat_timeout_s": LIMIT_S})
    engine = LocalEngine(spec, tianji(spec.config, spec.plan), observer=None)
    engine._last_check_ns = engine._awake_ns = 0
    monkeypatch.setattr(local, "ASLEEP_S", 1e6)
    monkeypatch.setattr(local.time, "monotonic_ns", lambda: NOW_NS)

    def because(worker, activities, silent_s):
        engine._workers[worker] = process = Process()
        for row, activity in zip(engine._rows(worker), activities, strict=True):
            row[Gauge.ACTIVITY] = activity
            row[Gauge.HEARTBEAT_NS] = NOW_NS - int(silent_s * 1e9)
        engine._check_heartbeats()
        return process.because

    return because


def test_one_that_works_is_killed_when_it_is_silent_for_too_long(because):
    assert because("actor-0", [Activity.ACTING], 0.0) is None
    assert "no sign of life for 4 s while acting" in because("actor-0", [Activity.ACTING], 4.0)


@pytest.mark.parametrize(
    ("worker", "activities"),
    [
        ("actor-0", [Activity.STARTING]),
        ("learner", [Activity.STARTING, Activity.STARTING]),
        ("learner", [Activity.RECEIVING, Activity.STARTING]),
    ],
)
def test_one_that_starts_may_take_its_time_and_not_for_ever(because, worker, activities):
    assert because(worker, activities, 10 * LIMIT_S) is None
    assert "no sign of life" in because(worker, activities, STARTS_S + 1.0)
