"""Rates and shares from the gauges, with a clock of our own."""

import os

import pytest

from tianji.channels.gauges import Activity, Gauge, Gauges
from tianji.observe import watch as module
from tianji.observe.watch import WINDOW_S, Watch, resident_bytes

S = 10**9
ROLES = ("actor-0", "actor-1", "buffer", "learner")


class Rig:
    def __init__(self, monkeypatch):
        self.now_ns = 50 * S
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: self.now_ns)
        self.gauges = Gauges(ROLES)
        self.watch = Watch(self.gauges)

    def add(self, role, gauge, amount):
        self.gauges.rows[role][gauge] += amount

    def pass_s(self, seconds):
        self.now_ns += int(seconds * S)
        self.watch.look()


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


def test_there_is_nothing_to_say_before_the_first_look(rig):
    assert rig.watch.now() == {}
    rig.watch.look()
    assert set(rig.watch.now()["rates_per_s"].values()) == {0.0}


def test_each_rate_comes_from_its_own_gauge(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.STEPS, 100)
    rig.add("actor-1", Gauge.STEPS, 60)
    rig.add("buffer", Gauge.RECEIVED_STEPS, 140)
    rig.add("learner", Gauge.STEPS, 1000)
    rig.add("learner", Gauge.UNIQUE_STEPS, 120)
    rig.pass_s(2)
    assert rig.watch.now()["rates_per_s"] == {
        "produced": 80.0, "received": 70.0, "trained": 500.0, "unique_trained": 60.0
    }  # fmt: skip


def test_what_was_counted_before_the_first_look_is_no_rate(rig):
    rig.add("learner", Gauge.STEPS, 10**9)
    rig.watch.look()
    rig.add("learner", Gauge.STEPS, 10)
    rig.pass_s(1)
    assert rig.watch.now()["rates_per_s"]["trained"] == 10.0


def test_rates_are_those_of_the_last_seconds(rig):
    rig.watch.look()
    rig.add("actor-0", Gauge.STEPS, 1000)
    for _ in range(10):
        rig.pass_s(WINDOW_S / 3)
        rig.add("actor-0", Gauge.STEPS, 1)
    assert rig.watch.now()["rates_per_s"]["produced"] == pytest.approx(1.0)


def test_a_look_after_a_long_pause_still_has_something_to_compare_with(rig):
    rig.watch.look()
    rig.pass_s(1)
    rig.add("actor-0", Gauge.STEPS, 1000)
    rig.pass_s(100)
    assert rig.watch.now()["rates_per_s"]["produced"] == pytest.approx(10.0)


def test_a_counter_that_fell_back_makes_no_negative_rate(rig):
    rig.add("learner", Gauge.STEPS, 500)
    rig.watch.look()
    rig.add("learner", Gauge.STEPS, -300)
    rig.pass_s(1)
    assert rig.watch.now()["rates_per_s"]["trained"] == 0.0


def test_shares_are_the_time_at_work_and_asleep_of_the_time_that_passed(rig):
    rig.add("actor-0", Gauge.BUSY_NS, 77 * S)
    rig.watch.look()
    rig.add("actor-0", Gauge.BUSY_NS, 1 * S)
    rig.add("actor-0", Gauge.WAIT_NS, 2 * S)
    rig.add("learner", Gauge.BUSY_NS, 5 * S)
    rig.pass_s(4)
    found = rig.watch.now()
    assert found["busy_share"] == {"actor-0": 0.25, "actor-1": 0.0, "buffer": 0.0, "learner": 1.0}
    assert found["paced_share"]["actor-0"] == 0.5


def test_the_first_step_is_that_of_the_first_actor(rig):
    assert rig.watch.first_step_ns() == 0
    rig.add("actor-1", Gauge.FIRST_STEP_NS, 9)
    assert rig.watch.first_step_ns() == 9
    rig.add("actor-0", Gauge.FIRST_STEP_NS, 4)
    assert rig.watch.first_step_ns() == 4


def test_activities_are_told_by_name(rig):
    rig.add("learner", Gauge.ACTIVITY, Activity.PUBLISHING)
    assert rig.watch.activities() == {
        "actor-0": "starting", "actor-1": "starting", "buffer": "starting", "learner": "publishing"
    }  # fmt: skip


def test_the_memory_of_a_process_is_that_of_its_pages_in_ram():
    status = open(f"/proc/{os.getpid()}/status").read()  # noqa: SIM115
    told_kib = int(next(x for x in status.splitlines() if x.startswith("VmRSS")).split()[1])
    assert resident_bytes(os.getpid()) == pytest.approx(told_kib * 1024, rel=0.2)


def test_a_process_that_is_gone_has_no_memory():
    assert resident_bytes(2**22 + 1) is None
