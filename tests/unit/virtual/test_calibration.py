"""What the parts do not explain is taken from rehearsals of sizes that are as crowded."""

import pytest

from tests.unit.virtual.test_sizes import PPO, profile, size
from tianji.costs.profile import Rehearsal
from tianji.virtual.sizes import crowd, scenario_of, simulate_size, slowdown, slowed


def tried(num_actors, produced, learner_threads=1):
    return Rehearsal(
        num_actors=num_actors,
        learner_threads=learner_threads,
        actor_threads=1,
        produced=produced,
        received=produced,
        trained=produced,
        lag_versions=1.0,
    )


def found(rehearsals, crowded, learner_threads=1, num_cores=2):
    return slowdown(rehearsals, learner_threads, crowded, num_cores, lambda _: 120.0)


def test_a_size_is_crowded_by_threads_that_have_no_core():
    assert (crowd(2, 4), crowd(4, 4), crowd(6, 4)) == (1.0, 1.0, 1.5)


def test_the_rehearsal_that_is_as_crowded_decides():
    both = [tried(1, 100.0), tried(3, 60.0)]  # two threads on two cores, and four
    assert found(both, crowded=1.0) == pytest.approx(1.2)
    assert found(both, crowded=1.1) == pytest.approx(1.2)
    assert found(both, crowded=2.0) == pytest.approx(2.0)
    assert found(both, crowded=9.0) == pytest.approx(2.0)


def test_repeats_of_one_size_count_as_their_mean():
    assert found([tried(1, 100.0), tried(1, 140.0)], crowded=1.0) == pytest.approx(1.0)


def test_without_a_rehearsal_of_its_kind_the_parts_must_do():
    assert found([], crowded=1.0) == 1.0
    assert found([tried(1, 100.0, learner_threads=2)], crowded=1.0) == 1.0
    assert found([tried(1, 100.0)], crowded=1.0, num_cores=0) == 1.0


def test_everything_but_the_network_takes_longer():
    before = scenario_of(PPO, profile(), size())
    after = slowed(before, 2.0)
    assert after.paces[0].unroll.alone_s == 2 * before.paces[0].unroll.alone_s
    assert after.paces[0].unroll.cpu_s == 2 * before.paces[0].unroll.cpu_s
    for name in ("receive_s", "update_s", "publish_s"):
        assert getattr(after.learner, name) == 2 * getattr(before.learner, name)
    assert after.machines == before.machines


def test_a_size_that_was_rehearsed_is_simulated_as_fast_as_it_was():
    wanted = size(actors_per_node=2, cores_per_node=4)
    parts = simulate_size(PPO, profile(), wanted)
    real = 0.8 * parts.produced
    measured = profile().model_copy(update={"num_cores": 4, "rehearsals": (tried(2, real),)})
    calibrated = simulate_size(PPO, measured, wanted)
    assert calibrated.produced == pytest.approx(real, rel=0.02)
    assert calibrated.slowdown == pytest.approx(1.25, rel=0.02)
