"""What an environment takes of memory, and what further ones of its actor add to a step."""

import gymnasium as gym
import pytest

from tianji.envs import build
from tianji.envs.build import probe
from tianji.envs.worlds import Counting

MIB = 1 << 20


class Hungry(Counting):
    """Holds 40 MiB."""

    num_made = 0

    def __init__(self):
        super().__init__()
        Hungry.num_made += 1


@pytest.fixture(autouse=True)
def resident_memory(monkeypatch):
    """A process that grows with every Hungry one; what this one has freed before may hide that."""
    monkeypatch.setattr(Hungry, "num_made", 0)
    monkeypatch.setattr(build, "_resident_bytes", lambda: (100 + 40 * Hungry.num_made) * MIB)


def test_the_memory_of_a_large_environment_is_seen_for_each_one():
    found = probe(Hungry, {})
    assert found.env_bytes == found.more_env_bytes == 40 * MIB


def test_a_small_environment_is_made_once():
    made = []

    def small():
        made.append(Counting())
        return made[-1]

    assert probe(small, {}, timed=True).more_env_bytes == 0
    assert len(made) == 1


def test_environments_one_by_one_add_a_step_each():
    found = probe(Counting, {}, timed=True)
    assert found.more_step_s == found.times.mean_s == found.step_s


def test_environments_that_are_stepped_at_once_are_timed_together():
    asked = []

    def many(num_envs):
        asked.append(num_envs)
        return gym.make_vec("CartPole-v1", num_envs, "vector_entry_point")

    assert probe(many, {}, timed=True).more_step_s >= 0
    assert asked == [1, 4]
    asked.clear()
    probe(many, {})
    assert asked == [1], "only where steps are timed"


def test_an_environment_of_which_there_can_be_only_one_is_accepted():
    made = []

    def only_one():
        if made:
            raise OSError("port 4711 is in use")
        made.append(Hungry())
        return made[-1]

    found = probe(only_one, {}, timed=True)
    assert found.more_env_bytes == found.env_bytes == 40 * MIB
    assert found.more_step_s == found.step_s


@pytest.mark.parametrize("timed", [False, True])
def test_whatever_was_made_is_closed(timed):
    closed = []

    class Closing(Hungry):
        def close(self):
            closed.append(self)

    probe(Closing, {}, timed=timed)
    assert len(closed) == 2
