"""Gauges: one row of words per role, apart from all others."""

from tests.fakes.roles import ONE_ACTOR, TWO_ACTORS
from tianji.channels.gauges import GAUGE_WORDS, Gauge, Gauges
from tianji.channels.memory import Segment


def test_every_gauge_has_a_word_of_its_own_and_fits():
    assert sorted(Gauge) == list(range(len(Gauge)))
    assert len(Gauge) <= GAUGE_WORDS


def test_rows_are_apart():
    gauges = Gauges(ONE_ACTOR)
    for number, role in enumerate(ONE_ACTOR):
        gauges.rows[role][:] = memoryview(bytearray(8 * GAUGE_WORDS)).cast("q")
        for gauge in Gauge:
            gauges.rows[role][gauge] = 100 * number + gauge
    for number, role in enumerate(ONE_ACTOR):
        assert gauges.rows[role].tolist() == [
            *(100 * number + gauge for gauge in Gauge),
            *[0] * (GAUGE_WORDS - len(Gauge)),
        ]


def test_processes_that_share_a_segment_share_the_rows():
    segment = Segment.create("gauges", 64 + 8 * GAUGE_WORDS * len(ONE_ACTOR))
    one, other = (
        Gauges(ONE_ACTOR, segment.words(64, GAUGE_WORDS * len(ONE_ACTOR))) for _ in range(2)
    )
    one.rows["actor-0"][Gauge.HEARTBEAT_NS] = 7
    one.rows["learner"][Gauge.UPDATES] += 5
    assert other.rows["learner"][Gauge.UPDATES] == 5
    assert other.rows["buffer"].tolist() == [0] * GAUGE_WORDS
    assert segment.words(0, 8).tolist() == [0] * 8, "what lies before the gauges is not theirs"


def test_rows_are_found_by_kind():
    gauges = Gauges(TWO_ACTORS)
    assert list(gauges.of_kind("actor")) == ["actor-0", "actor-1"]
    assert gauges.of_kind("evaluator") == {}
    gauges.the("learner")[Gauge.UPDATES] = 5
    assert gauges.rows["learner"][Gauge.UPDATES] == 5
