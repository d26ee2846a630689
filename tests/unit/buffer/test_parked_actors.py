"""Parked actors: they sleep without a grant, take turns, and come back when they are needed."""

from tests.unit.buffer.rig import Rig
from tianji.balance.turns import FIRST_PATIENCE
from tianji.buffer.window import WAKE_PERIOD_NS
from tianji.channels.gauges import Gauge


class Parking(Rig):
    """Four actors, two unrolls of each in a version, production always ahead."""

    def __init__(self, point=(8, 0, 1), may_park=True):
        self.clock_ns = 10**9
        super().__init__(
            point, max_lag=9, num_actors=4, num_slots=40,
            now_ns=lambda: self.clock_ns, may_park=may_park,
        )  # fmt: skip
        self.made = [0] * 4
        self.buffer.tick()

    @property
    def active(self):
        return self.gauges[Gauge.ACTIVE]

    def at_work(self):
        return sum(map(bool, self.stream.granted))

    def produce_all(self):
        """Every actor makes all that it may, again and again."""
        while any(self.stream.granted):
            for actor, granted in enumerate(self.stream.granted):
                for _ in tuple(granted):
                    self.send(actor)
                    self.made[actor] += 1
            self.buffer.tick()

    def versions_ahead(self, count):
        for _ in range(count):
            self.produce_all()
            self.finish(self.take())


def test_everybody_works_until_production_was_ahead_several_times():
    rig = Parking()
    rig.versions_ahead(FIRST_PATIENCE - 1)
    assert (rig.active, rig.at_work()) == (4, 4)
    rig.versions_ahead(1)
    assert (rig.active, rig.at_work()) == (3, 3)


def test_in_the_end_one_works_at_a_time_and_gets_its_share_of_a_version():
    rig = Parking()
    rig.versions_ahead(3 * FIRST_PATIENCE)
    assert rig.active == 1
    assert sorted(map(len, rig.granted())) == [0, 0, 0, 2]


def test_parked_or_not_every_actor_contributes_alike():
    rig = Parking()
    rig.versions_ahead(10 * FIRST_PATIENCE)
    assert rig.active == 1
    rig.produce_all()
    assert max(rig.made) - min(rig.made) <= 2, "one share of a version"


def test_a_learner_that_waits_wakes_them_at_once_and_then_more_and_more():
    rig = Parking()
    rig.versions_ahead(4 * FIRST_PATIENCE)
    rig.produce_all()
    rig.finish(rig.take())
    rig.finish(rig.take())
    assert rig.take() is None, "nothing has been made for this version"
    assert (rig.active, rig.at_work()) == (2, 2)
    assert rig.take() is None
    assert rig.active == 2, "it has hardly waited yet"
    rig.clock_ns += WAKE_PERIOD_NS
    assert rig.take() is None
    assert (rig.active, rig.at_work()) == (4, 4)


def test_nobody_is_parked_where_everybody_has_a_core():
    rig = Parking(may_park=False)
    rig.versions_ahead(4 * FIRST_PATIENCE)
    assert (rig.active, rig.at_work()) == (4, 4)


def test_nobody_is_parked_in_serial_training():
    rig = Parking(point=(8, 0, 0))
    rig.versions_ahead(4 * FIRST_PATIENCE)
    assert (rig.active, rig.at_work()) == (4, 4)


def test_what_a_parked_run_counts_as_started_is_what_the_balance_allows():
    rig = Parking()
    rig.versions_ahead(4 * FIRST_PATIENCE)
    rig.produce_all()
    assert rig.window._started() == rig.window._point.allowed(4 * FIRST_PATIENCE)
