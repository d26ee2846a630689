"""A first glance at how long a step takes."""

from tianji.envs import timing
from tianji.envs.build import probe

COUNTING, FLAKY = "tianji.envs.worlds:Counting", "tianji.envs.worlds:Flaky"


def test_a_probe_times_steps_only_when_it_is_asked_to():
    assert probe(COUNTING, {}).step_s is None
    assert 0 < probe(COUNTING, {}, timed=True).step_s < 1


def test_a_world_that_fails_in_a_step_is_not_refused():
    assert probe(FLAKY, {"at_step": 5}, timed=True).step_s is None


def test_a_slow_world_is_left_alone_soon(monkeypatch):
    steps = []
    monkeypatch.setattr(timing, "GLANCE_S", -1.0)

    class Slow:
        num_envs, spaces = 2, probe(COUNTING, {}).spaces

        def step(self, actions, rows, t):
            steps.append(actions)

    assert timing.glance_at_step(Slow(), {}) > 0
    assert len(steps) == 1
