"""The evaluator alone: whole episodes of a world with known returns, on a clock of our own."""

import numpy as np
import pytest

from tests.fakes.scripted import (
    PAYLOAD_BYTES,
    ScriptedActing,
    ScriptedWorld,
    gauge_row,
    write_version,
)
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.inproc import InprocBoard
from tianji.config.run import EvaluateConfig
from tianji.errors import EnvironmentFailed
from tianji.evaluator.role import Evaluator


class Rig:
    def __init__(self, episodes=2, period_s=10.0, world=None, tasks=None, **more):
        self.now_ns = 10**9
        self.world = world or ScriptedWorld(lengths=(3,))
        self.acting = ScriptedActing()
        self.board = InprocBoard(PAYLOAD_BYTES)
        self.gauges = gauge_row()
        self.results, self.failures = [], []
        self.evaluator = Evaluator(
            EvaluateConfig(period_s=period_s, episodes=episodes, **more), 17,
            tasks or {"scripted": self.world}, self.acting,
            self.acting.read_policy, self.board, self.gauges, self.results.append,
            self.failures.append, lambda: self.now_ns,
        )  # fmt: skip

    def publish(self, version):
        self.board.post(version, write_version(version))

    def play(self):
        """Tick until there is nothing to do; how many ticks did something."""
        count = 0
        while self.evaluator.tick():
            count += 1
        return count


@pytest.fixture
def rig():
    return Rig()


def test_it_waits_for_the_first_policy(rig):
    assert not rig.evaluator.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.WAITING
    rig.publish(0)
    assert rig.evaluator.tick()
    assert rig.gauges[Gauge.ACTIVITY] == Activity.EVALUATING


def test_it_plays_the_episodes_it_was_asked_for_and_reports_them(rig):
    rig.publish(4)
    assert rig.play() == 3 + 1 + 3, "a tick is one step; one more is the reset between the two"
    (result,) = rig.results
    assert result == {
        "version": 4, "episodes": 2, "mean_return": (6 + 15) / 2, "std_return": 4.5,
        "min_return": 6.0, "max_return": 15.0, "cut_episodes": 0,
    }  # fmt: skip


@pytest.mark.parametrize("end", ["terminated", "truncated"])
@pytest.mark.parametrize("keeps_final", [False, True])
def test_however_episodes_end_their_returns_are_whole(end, keeps_final):
    world = ScriptedWorld(lengths=(3,), end=end, keeps_final=keeps_final)
    rig = Rig(episodes=3, world=world)
    rig.publish(0)
    rig.play()
    assert rig.results[0]["mean_return"] == pytest.approx((6 + 15 + 24) / 3)


def test_it_acts_greedily_on_the_observation_before_it(rig):
    seen = []

    def greedy(obs):
        seen.append(obs["obs"][0, 1:].tolist())
        return np.zeros(1, np.int64)

    rig.acting.greedy = greedy
    rig.publish(0)
    rig.play()
    assert seen[:5] == [[0, 0], [1, 1], [2, 2], [3, 3], [3, 0]]


def test_the_version_that_began_an_evaluation_plays_all_of_it(rig):
    rig.publish(1)
    rig.evaluator.tick()
    rig.publish(2)
    rig.play()
    assert (rig.results[0]["version"], rig.acting.version) == (1, 1)


def test_the_next_evaluation_waits_for_its_time_and_for_a_new_version(rig):
    rig.publish(1)
    rig.play()
    rig.now_ns += 20 * 10**9
    assert rig.play() == 0, "the same version was evaluated twice"
    rig.publish(2)
    assert rig.play() > 0
    rig.publish(3)
    rig.now_ns += 10 * 10**9 - 1
    assert rig.play() == 0, "evaluated before its time"
    rig.now_ns += 1
    assert rig.play() > 0
    assert [result["version"] for result in rig.results] == [1, 2, 3]


def test_every_evaluation_plays_the_same_episodes(rig):
    for version in (1, 2):
        rig.publish(version)
        rig.play()
        rig.now_ns += 10 * 10**9
    assert rig.world.seeds == [17, 17]
    assert rig.results[1]["episodes"] == 2, "an evaluation starts with no episodes"


def test_closing_it_closes_its_world(rig):
    rig.evaluator.close()
    assert rig.world.is_closed


def test_several_tasks_are_played_one_after_the_other_and_count_the_same():
    easy, hard = ScriptedWorld(lengths=(3,)), ScriptedWorld(lengths=(2,), keeps_final=True)
    rig = Rig(episodes=2, tasks={"easy": easy, "hard": hard})
    rig.publish(4)
    rig.play()
    (result,) = rig.results
    assert result["episodes"] == 4
    assert result["returns_by_env"] == {"easy": (6 + 15) / 2, "hard": (3 + 7) / 2}
    assert result["mean_return"] == pytest.approx((6 + 15 + 3 + 7) / 4)
    assert easy.seeds == hard.seeds == [17]
    rig.publish(5)
    rig.now_ns += 10 * 10**9
    rig.play()
    assert set(rig.results[1]["returns_by_env"]) == {"easy", "hard"}
    rig.evaluator.close()
    assert easy.is_closed and hard.is_closed


def test_an_episode_that_never_ends_is_cut_and_the_evaluation_does_end():
    endless, short = ScriptedWorld(lengths=(10**9,)), ScriptedWorld(lengths=(4,))
    rig = Rig(episodes=2, tasks={"endless": endless, "short": short}, cut_after_steps=4)
    rig.publish(1)
    assert rig.play() == 4 + 4 + 4 + 1 + 4, "after a cut, the next episode begins without a tick"
    (result,) = rig.results
    assert result["cut_episodes"] == 2, "an episode that ends at the limit is whole"
    assert result["returns_by_env"] == {"endless": (10 + 26) / 2, "short": (10 + 26) / 2}
    assert endless.seeds == [17, 18] and short.seeds == [17]
    rig.publish(2)
    rig.now_ns += 10 * 10**9
    rig.play()
    assert rig.results[1]["cut_episodes"] == 2 and endless.seeds[2:] == [17, 18]


def test_an_environment_without_agents_is_told_once_and_training_goes_on(rig):
    def fail(seed, unroll):
        raise EnvironmentFailed("there is nobody to act.")

    rig.world.reset = fail
    for version in (1, 2):
        rig.publish(version)
        rig.play()
        rig.now_ns += 10 * 10**9
    assert rig.failures == ["There is no evaluation: there is nobody to act."]
    assert not rig.results
