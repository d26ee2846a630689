"""Gauges: one row of words per role, apart from all others."""

from tianji.channels.gauges import GAUGE_WORDS, Gauge, Gauges
from tianji.channels.memory import Segment

ROLES = ("actor-0", "buffer", "learner")


def test_every_gauge_has_a_word_of_its_own_and_fits():
    assert sorted(Gauge) == list(range(len(Gauge)))
    assert len(Gauge) <= GAUGE_WORDS


def test_rows_are_apart():
    gauges = Gauges(ROLES)
    for number, role in enumerate(ROLES):
        gauges.rows[role][:] = memoryview(bytearray(8 * GAUGE_WORDS)).cast("q")
        for gauge in Gauge:
            gauges.rows[role][gauge] = 100 * number + gauge
    for number, role in enumerate(ROLES):
        assert gauges.rows[role].tolist() == [
            *(100 * number + gauge for gauge in Gauge),
            *[0] * (GAUGE_WORDS - len(Gauge)),
        ]


def test_processes_that_share_a_segment_share_the_rows():
    segment = Segment.create("gauges", 64 + 8 * GAUGE_WORDS * len(ROLES))
    one, other = (Gauges.in_segment(ROLES, segment, 64) for _ in range(2))
    one.rows["actor-0"][Gauge.HEARTBEAT_NS] = 7
    one.rows["learner"][Gauge.UPDATES] += 5
    assert other.rows["learner"][Gauge.UPDATES] == 5
    assert other.rows["buffer"].tolist() == [0] * GAUGE_WORDS
    assert segment.words(0, 8).tolist() == [0] * 8, "what lies before the gauges is not theirs"


def test_a_row_can_be_read_by_name():
    gauges = Gauges(ROLES)
    gauges.rows["actor-0"][Gauge.STEPS] = 12
    found = gauges.read("actor-0")
    assert found["steps"] == 12
    assert found["heartbeat_ns"] == 0
    assert len(found) == len(Gauge)
