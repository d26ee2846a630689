"""An actor whose gradients take a given time holds them until they are due."""

from tests.unit.actor.test_gradient_actor import ROWS, Rig
from tianji.actor.gradients import GradientPlan
from tianji.balance.given_times import Times, Timing
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Order
from tianji.config.run import TimesConfig

UNIT_NS = 1000


class TimedRig(Rig):
    """Time passes only where the test says so."""

    def __init__(self, per="gradient", complete_after=None):
        super().__init__(complete_after)
        config = TimesConfig(law="equal", unit_s=UNIT_NS / 1e9, per=per)
        timing = Timing(Times(config, 1, num_parameters=1, seed=0), 0, "first")
        self.actor = self.make_actor(GradientPlan(ROWS, times_rows=per == "step"), timing)
        self.start = self.now
        self.publish(0)
        self.grant(3)

    def clock(self):
        return self.now

    def later(self, ns):
        self.now = self.start + ns


def test_a_gradient_is_held_until_it_is_due():
    rig = TimedRig()
    rig.tick(ROWS)
    rig.later(UNIT_NS - 1)
    assert not rig.actor.tick()
    assert rig.actor.due_ns == rig.start + UNIT_NS
    assert rig.posted()[0] is None
    assert rig.stream.take() is None
    rig.later(UNIT_NS)
    assert rig.actor.tick()
    assert rig.posted()[0] == (0, 1)
    assert rig.stream.take() is not None
    assert rig.actor.due_ns == 0


def test_one_that_took_longer_is_handed_over_at_once_and_the_next_has_all_its_time():
    rig = TimedRig()
    rig.tick(1)
    rig.later(3 * UNIT_NS)
    rig.tick(ROWS - 1)
    assert rig.posted()[0] == (0, 1)
    rig.tick(1)
    assert rig.actor.due_ns == rig.start + 4 * UNIT_NS


def test_waking_up_late_is_no_part_of_the_next_one():
    rig = TimedRig()
    rig.tick(ROWS)
    assert not rig.actor.tick()
    rig.later(UNIT_NS + 50)
    rig.tick(2)
    assert rig.actor.due_ns == rig.start + 2 * UNIT_NS


def test_waiting_for_a_version_is_no_part_of_the_next_one_either():
    rig = TimedRig()
    rig.tick(ROWS)
    assert not rig.actor.tick()
    rig.later(UNIT_NS)
    rig.tick(1)
    rig.orders[Order.CLOSED] = 1
    assert not rig.actor.tick()
    rig.later(5 * UNIT_NS)
    rig.publish(1)
    rig.tick(1)
    assert rig.actor.due_ns == rig.start + 6 * UNIT_NS


def test_one_that_is_held_when_its_round_is_closed_is_dropped():
    rig = TimedRig()
    rig.tick(ROWS)
    rig.later(UNIT_NS // 2)
    assert rig.actor.is_wanted()
    rig.orders[Order.CLOSED] = 1
    assert not rig.actor.is_wanted()
    assert not rig.actor.tick()
    assert not rig.actor.is_working and rig.actor.due_ns == 0
    assert rig.gauges[Gauge.DISCARDED] == 1
    assert rig.posted()[0] is None


def test_what_was_begun_in_the_same_moment_is_not_counted_as_lost():
    rig = TimedRig()
    rig.tick(1)
    rig.orders[Order.CLOSED] = 1
    assert not rig.actor.tick()
    assert rig.gauges[Gauge.DISCARDED] == 0


def test_of_times_per_step_the_rows_it_really_has_count():
    rig = TimedRig(per="step", complete_after=2)
    rig.tick(1)
    assert rig.actor.due_ns == 0
    rig.tick(1)
    assert rig.actor.due_ns == rig.start + 2 * UNIT_NS


def test_waiting_for_a_core_is_no_part_of_the_first_one_of_a_version():
    rig = TimedRig()
    rig.tick(1)
    rig.later(UNIT_NS // 2)
    rig.orders[Order.CLOSED] = 1
    rig.publish(1)
    rig.orders[Order.OPENED_NS] = rig.now
    rig.later(UNIT_NS)
    rig.tick(1)
    assert rig.actor.due_ns == rig.start + UNIT_NS // 2 + UNIT_NS


def test_a_version_that_is_not_said_to_be_open_yet_begins_now():
    rig = TimedRig()
    rig.orders[Order.OPENED_NS] = rig.start
    rig.tick(1)
    rig.later(UNIT_NS // 2)
    rig.orders[Order.CLOSED] = 1
    rig.publish(1)
    rig.tick(1)
    assert rig.actor.due_ns == rig.start + UNIT_NS // 2 + UNIT_NS


def test_an_actor_that_comes_later_begins_when_it_comes():
    rig = TimedRig()
    rig.orders[Order.OPENED_NS] = rig.start
    rig.later(UNIT_NS // 2)
    rig.tick(1)
    assert rig.actor.due_ns == rig.start + UNIT_NS // 2 + UNIT_NS


def test_a_gradient_that_takes_longer_than_was_given_is_counted():
    rig = TimedRig()
    rig.tick(ROWS - 1)
    rig.later(UNIT_NS)
    rig.tick(1)
    assert rig.gauges[Gauge.OVERDUE] == 0, "just in time"
    rig.tick(ROWS - 1)
    rig.later(2 * UNIT_NS + 1)
    rig.tick(1)
    assert rig.gauges[Gauge.OVERDUE] == 1
