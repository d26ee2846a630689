"""Durations without waits for a core, and figures from them."""

import pytest

from tianji.planning.measure import durations as module
from tianji.planning.measure.durations import (
    CoreWait,
    Durations,
    Piece,
    figure_of,
    unevenness,
)


class Rig:
    """Durations on a clock, and waits for a core, that the test moves."""

    def __init__(self):
        self.now_s, self.waited = 0.0, (0.0, 0.0)
        self.durations = Durations(self)

    def read(self):
        return self.waited

    def spend(self, seconds, main_s=0.0, others_s=0.0, **more):
        self.now_s += seconds
        self.waited = self.waited[0] + main_s, self.waited[1] + main_s + others_s
        self.durations.add(Piece(seconds, **more))

    def seconds(self, **how):
        return self.durations.rows(**how)[:, 0].tolist()


@pytest.fixture
def rig(monkeypatch):
    rig = Rig()
    monkeypatch.setattr(module.time, "monotonic", lambda: rig.now_s)
    rig.durations.clear()
    return rig


def test_a_stretch_with_a_wait_for_a_core_is_left_out(rig):
    rig.spend(0.002)
    rig.spend(0.012, main_s=0.010)
    rig.spend(0.003)
    rig.spend(0.012, others_s=0.010)
    assert rig.seconds() == [0.002, 0.003]


def test_short_ones_share_a_stretch_and_its_fate(rig):
    for main_s in (0.0, 0.0, 0.0002, 0.0, 0.0):
        rig.spend(0.0004, main_s)
    assert rig.seconds() == [0.0004] * 2
    assert len(rig.durations) == 5


def test_a_wait_is_taken_off_the_longest_of_its_stretch(rig):
    rig.spend(0.0004)
    rig.spend(0.0104, main_s=0.010, part_s=0.0052, is_special=True)
    rig.spend(0.0004)
    assert rig.seconds(is_waiting=True) == pytest.approx([0.0004] * 3)
    seconds, part_s, is_special = rig.durations.rows(is_waiting=True)[1]
    assert (part_s / seconds, is_special) == (pytest.approx(0.5), 1.0)


def test_the_last_one_is_kept_and_rare_ones_are_stretches_of_their_own(rig):
    for seconds in (0.0001, 0.0002, 0.0003):
        rig.durations.begin()
        rig.now_s += seconds
        rig.durations.add(Piece(seconds))
    assert rig.durations.figure().median_s == 0.0002
    rig.durations.clear(keep=1)
    assert rig.seconds() == [0.0003]


def test_a_wait_that_does_not_fit_lay_elsewhere(rig):
    rig.spend(0.002, main_s=0.5)
    assert rig.seconds(is_waiting=True) == [0.002]


def test_what_was_waited_before_is_not_held_against_it(rig):
    rig.waited = 0.001, 5.0
    rig.durations.begin()
    rig.spend(0.002)
    assert rig.seconds() == [0.002]


def test_the_system_tells_how_long_this_process_waited():
    core_wait = CoreWait()
    assert core_wait.read() == (0.0, 0.0)
    core_wait.refresh()
    assert 0.0 <= core_wait.read()[0] < 3600.0
    first_s = core_wait.free_s()
    assert core_wait.free_s() >= first_s - 0.01
    core_wait.close()


def test_where_every_stretch_was_disturbed_all_count_without_their_waits(rig):
    rig.spend(0.012, main_s=0.010)
    assert rig.seconds() == pytest.approx([0.002])


def test_the_figure_of_equal_durations_is_their_sum_without_noise():
    figure = figure_of([0.002] * 640, per_piece=8)
    assert figure.median_s == pytest.approx(0.016)
    assert figure.noise == pytest.approx(0.0, abs=1e-9)
    assert figure.is_stable


def test_a_rare_slow_step_counts_by_its_share():
    durations = ([0.001] * 9 + [0.011]) * 64
    assert figure_of(durations, per_piece=10).median_s == pytest.approx(0.020)


def test_a_moment_in_which_the_machine_was_busy_elsewhere_is_forgiven():
    durations = [0.001] * 640
    durations[100:110] = [0.5] * 10
    assert figure_of(durations, per_piece=10).median_s == pytest.approx(0.010)


def test_less_than_one_piece_is_scaled_up():
    assert figure_of([0.25] * 3, per_piece=100).median_s == pytest.approx(25.0)
    assert not figure_of([0.25] * 3, per_piece=100).is_stable


def test_blocks_that_differ_are_not_stable():
    figure = figure_of([0.001] * 80 + [0.003] * 80, per_piece=10)
    assert figure.noise == pytest.approx(0.5)
    assert not figure.is_stable


def test_the_noise_of_a_median_shrinks_with_the_number_of_blocks():
    few = figure_of([1.0, 1.08, 1.0, 1.08], per_piece=1)
    many = figure_of([1.0, 1.08] * 8, per_piece=1)
    assert few.noise == pytest.approx(many.noise)
    assert many.is_stable
    assert not few.is_stable


def test_unevenness_is_the_slowest_hundredth_over_the_median():
    assert unevenness([0.001] * 97 + [0.02] * 3) == pytest.approx(20.0)
    assert unevenness([0.001] * 100) == pytest.approx(1.0)
    assert unevenness([]) == 1.0


def test_rare_sleeps_count_although_most_blocks_have_none():
    ticks = ([10e-6] * 999 + [0.2]) * 5
    assert figure_of(ticks, 32).median_s < 1e-3, "more than half of the blocks have no sleep"
    assert figure_of(ticks, 32, is_waiting=True).median_s == pytest.approx(32 * 2.1e-4, rel=0.01)
