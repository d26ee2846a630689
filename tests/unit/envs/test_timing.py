"""A first glance at how long a step takes."""

import pytest

from tianji.envs import timing
from tianji.envs.build import probe

COUNTING, FLAKY = "tianji.envs.worlds:Counting", "tianji.envs.worlds:Flaky"


def test_a_probe_times_steps_only_when_it_is_asked_to():
    assert probe(COUNTING, {}).step_s is None
    assert 0 < probe(COUNTING, {}, timed=True).step_s < 1


def test_a_world_that_fails_in_a_step_is_not_refused():
    assert probe(FLAKY, {"at_step": 5}, timed=True).step_s is None


class Fake:
    """A world whose steps take the times of a script, on a clock of its own."""

    num_envs, spaces = 1, probe(COUNTING, {}).spaces

    def __init__(self, monkeypatch, taken_s):
        self.now_s, self.cpu_s, self.queued_s, self.num_steps = 0.0, 0.0, 0.0, 0
        self._taken_s = taken_s
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(timing.time, "process_time", lambda: self.cpu_s)
        monkeypatch.setattr(timing, "_queued_s", lambda: self.queued_s)
        monkeypatch.setattr(timing, "_has_children", lambda: False)

    def step(self, actions, rows, t):
        self.now_s += self._taken_s[self.num_steps % len(self._taken_s)]
        self.cpu_s += 10e-6
        self.num_steps += 1


def test_rare_long_steps_are_seen_and_looked_at_for_longer(monkeypatch):
    world = Fake(monkeypatch, [10e-6] * 49 + [0.2])
    times = timing.look_at_steps(world, {})
    assert times.longest_s == pytest.approx(0.2)
    assert times.median_s == pytest.approx(10e-6)
    assert times.mean_s == pytest.approx(4e-3, rel=0.1)
    assert times.cpu_s == pytest.approx(10e-6)
    assert times.long_share == pytest.approx(0.02, rel=0.1)
    assert times.is_uneven
    assert timing.LONG_LOOK_S < world.now_s < timing.LONG_LOOK_S + 0.21


def test_steps_that_waited_for_a_core_are_not_long(monkeypatch):
    world = Fake(monkeypatch, [10e-6] * 49 + [0.2])
    plain_step = world.step

    def step(*given):
        before_s = world.now_s
        plain_step(*given)
        world.queued_s += max(0.0, world.now_s - before_s - 10e-6)

    monkeypatch.setattr(world, "step", step)
    times = timing.look_at_steps(world, {})
    assert times.longest_s == pytest.approx(10e-6)
    assert not times.is_uneven


def test_a_fast_world_is_looked_at_for_a_moment(monkeypatch):
    world = Fake(monkeypatch, [100e-6])
    times = timing.look_at_steps(world, {})
    assert not times.is_uneven
    assert world.now_s == pytest.approx(timing.LOOK_S, rel=0.02)


def test_a_slow_world_is_left_alone_soon(monkeypatch):
    world = Fake(monkeypatch, [3.0])
    assert timing.look_at_steps(world, {}).mean_s == pytest.approx(3.0)
    assert world.num_steps == 1
