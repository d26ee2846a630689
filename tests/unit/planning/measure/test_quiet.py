"""Durations without what was waited for a core."""

import pytest

from tianji.planning.measure import quiet
from tianji.planning.measure.quiet import CoreWait, Durations, Piece, Waited, median_s


class Rig:
    """Durations on a clock, and waits for a core, that the test moves."""

    def __init__(self):
        self.now_s, self.waited = 0.0, Waited(0.0, 0.0)
        self.durations = Durations(self)

    def read(self):
        return self.waited

    def spend(self, seconds, main_s=0.0, others_s=0.0, **more):
        self.now_s += seconds
        self.waited = Waited(self.waited.main_s + main_s, self.waited.others_s + others_s)
        self.durations.add(Piece(seconds, **more))

    def seconds(self, how):
        return getattr(self.durations, how)()[:, 0].tolist()


@pytest.fixture
def rig(monkeypatch):
    rig = Rig()
    monkeypatch.setattr(quiet.time, "monotonic", lambda: rig.now_s)
    rig.durations.clear()
    return rig


def test_a_stretch_with_a_wait_for_a_core_is_left_out(rig):
    rig.spend(0.002)
    rig.spend(0.012, main_s=0.010)
    rig.spend(0.003)
    rig.spend(0.012, others_s=0.010)
    assert rig.seconds("quiet") == [0.002, 0.003]


def test_short_ones_share_a_stretch_and_its_fate(rig):
    for main_s in (0.0, 0.0, 0.0002, 0.0, 0.0):
        rig.spend(0.0004, main_s)
    assert rig.seconds("quiet") == [0.0004] * 2
    assert len(rig.durations) == 5


def test_a_wait_is_taken_off_the_longest_of_its_stretch(rig):
    rig.spend(0.0004)
    rig.spend(0.0104, main_s=0.010, part_s=0.0052, is_special=True)
    rig.spend(0.0004)
    assert rig.seconds("cleaned") == pytest.approx([0.0004] * 3)
    seconds, part_s, is_special = rig.durations.cleaned()[1]
    assert (part_s / seconds, is_special) == (pytest.approx(0.5), 1.0)
    assert rig.seconds("raw") == [0.0004, 0.0104, 0.0004]


def test_the_last_one_is_kept_and_rare_ones_are_stretches_of_their_own(rig):
    for seconds in (0.0001, 0.0002, 0.0003):
        rig.durations.begin()
        rig.now_s += seconds
        rig.durations.end(Piece(seconds))
    assert median_s(rig.durations) == 0.0002
    rig.durations.keep_last()
    assert rig.seconds("quiet") == [0.0003]


def test_a_wait_that_does_not_fit_lay_elsewhere(rig):
    rig.spend(0.002, main_s=0.5)
    assert rig.seconds("cleaned") == [0.002]


def test_what_was_waited_before_is_not_held_against_it(rig):
    rig.waited = Waited(0.001, 5.0)
    rig.durations.begin()
    rig.spend(0.002)
    assert rig.seconds("quiet") == [0.002]


def test_the_system_tells_how_long_this_process_waited():
    core_wait = CoreWait()
    assert core_wait.read() == (0.0, 0.0)
    core_wait.refresh()
    assert 0.0 <= core_wait.read().main_s < 3600.0
    first_s = core_wait.free_s()
    assert core_wait.free_s() >= first_s - 0.01
    core_wait.close()
