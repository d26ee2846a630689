"""How long a worker of the local engine may show no sign of life."""

import pytest

from tests.fakes.specs import make_spec
from tianji.channels.gauges import Activity, Gauge, Gauges
from tianji.engines.supervise.watched import STARTS_S, WatchedWorker
from tianji.programs.one_group import program_for

LIMIT_S = 3.0
NOW_NS = 1000 * 10**9


@pytest.fixture
def because(tmp_path):
    """Why a worker is killed whose roles are doing these things, silent for so long."""
    spec = make_spec(tmp_path, engine="local")
    program = program_for(spec.config, spec.plan)
    gauges = Gauges(program.kinds())

    def because(name, activities, silent_s, since_ns=0):
        worker = WatchedWorker(program.worker(name), program.roles_in(name), gauges)
        for row, activity in zip(worker.rows, activities, strict=True):
            row[Gauge.ACTIVITY] = activity
            row[Gauge.HEARTBEAT_NS] = NOW_NS - int(silent_s * 1e9)
        return worker.silence(LIMIT_S, since_ns, NOW_NS)

    return because


def test_one_that_works_is_killed_when_it_is_silent_for_too_long(because):
    assert because("actor-0", [Activity.ACTING], 0.0) is None
    assert "no sign of life for 4 s while acting" in because("actor-0", [Activity.ACTING], 4.0)


def test_a_supervisor_that_could_not_listen_does_not_blame_others(because):
    assert because("actor-0", [Activity.ACTING], 4.0, since_ns=NOW_NS - 10**9) is None


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
