"""Times on a core and without one, which an agent measures for its head."""

import pytest

from tests.fakes.roles import TWO_ACTORS
from tests.unit.observe.test_processes import Machine
from tianji.channels.gauges import Gauge, Gauges
from tianji.engines.agents.core_times import PERIOD_NS, CoreTimes


class Rig:
    def __init__(self, monkeypatch, threads, roles):
        self.machine = Machine(monkeypatch, threads)
        self.gauges, self.now_ns = Gauges(TWO_ACTORS), PERIOD_NS
        self.times = CoreTimes(self.gauges, roles, lambda: self.now_ns)

    def sit(self, **threads):
        for role, thread in threads.items():
            self.gauges.rows[role.replace("_", "-")][Gauge.THREAD_ID] = thread

    def shown(self, role):
        row = self.gauges.rows[role]
        return row[Gauge.CORE_NS], row[Gauge.NO_CORE_NS]


@pytest.fixture
def rig(monkeypatch):
    """The host of the learner and of one actor; actor-1 is on another host."""
    rig = Rig(monkeypatch, {1: [1], 2: [2]}, ["learner", "buffer", "actor-0"])
    rig.sit(learner=1, buffer=1, actor_0=2, actor_1=2)  # it has the same number there
    return rig


def test_the_gauges_show_the_times_of_the_roles_of_this_host(rig):
    pids = {"learner": 1, "actor-0": 2}
    rig.times.look(pids)
    rig.machine.core_ns = {1: 500, 2: 70}
    rig.now_ns += PERIOD_NS
    rig.times.look(pids)
    assert (rig.shown("learner"), rig.shown("actor-0")) == ((500, 50), (70, 7))
    assert rig.shown("actor-1") == (0, 0), "the agent of its own host measures it"


def test_a_head_that_asks_often_does_not_make_the_agent_measure_each_time(rig):
    rig.times.look({"learner": 1})
    rig.machine.core_ns = {1: 500}
    rig.now_ns += PERIOD_NS // 2
    rig.times.look({"learner": 1})
    assert rig.shown("learner") == (0, 0)
