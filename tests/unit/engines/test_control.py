"""The control segment: words, gauges and bells that every process sees the same way."""

import os

from tianji.channels.gauges import GAUGE_WORDS, Gauge
from tianji.channels.memory import BELL_BYTES, Segment
from tianji.engines.control import Control, Stop, Word
from tianji.programs.program import Program, Role

PROGRAM = Program(
    roles=(
        Role("actor-0", "actor", 0, "actor-0"),
        Role("buffer", "buffer", 0, "learner"),
        Role("learner", "learner", 0, "learner"),
    ),
    wires=(),
)


def both():
    """The supervisor's view, and that of a worker that inherited the descriptor."""
    control = Control.create(PROGRAM)
    other = Control(PROGRAM, Segment.attach(os.dup(control.segment.fd)))
    for bell in other.bells.values():
        bell.arm()
    return control, other


def test_two_processes_see_the_same_words_and_gauges():
    one, other = both()
    one.words[Word.WALL_BEFORE_NS] = 7
    one.gauges.rows["learner"][Gauge.UPDATES] = 9
    assert other.words[Word.WALL_BEFORE_NS] == 7
    assert other.gauges.rows["learner"][Gauge.UPDATES] == 9
    assert other.gauges.rows["buffer"].tolist() == [0] * GAUGE_WORDS


def test_there_is_a_bell_for_every_worker_not_for_every_role():
    one, other = both()
    assert set(one.bells) == {"actor-0", "learner"}
    one.bells["learner"].ring()
    assert not other.bells["actor-0"].wait(0.0)
    assert other.bells["learner"].wait(0.0)


def test_words_gauges_and_bells_do_not_overlap():
    control, _ = both()
    for bell in control.bells.values():
        bell.ring()
    for row in control.gauges.rows.values():
        for gauge in Gauge:
            row[gauge] = -1
    assert control.words.tolist() == [0] * 8
    assert all(bell.wait(0.0) for bell in control.bells.values())
    assert control.segment.nbytes == 8 * 8 + 3 * 8 * GAUGE_WORDS + 2 * BELL_BYTES


def test_a_stop_reaches_every_worker_and_wakes_it():
    one, other = both()
    assert not other.is_stopping()
    one.stop(Stop.FINISH)
    assert other.is_stopping()
    assert all(bell.wait(0.0) for bell in other.bells.values())


def test_a_stop_only_becomes_more_urgent():
    control, _ = both()
    control.stop(Stop.NOW)
    control.stop(Stop.FINISH)
    assert control.words[Word.STOP] == Stop.NOW
