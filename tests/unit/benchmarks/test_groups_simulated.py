"""Groups, simulated and real: when a run is steady, and what is compared."""

import pytest

from benchmarks.groups_simulated import bench
from benchmarks.groups_simulated.bench import Setting, local_settings
from benchmarks.groups_simulated.steady import steady_rate
from benchmarks.groups_simulated.tasks import group_words
from tianji.config.machine import Machine


def record(wall_s, *steps):
    return {
        "wall_s": wall_s, "env_steps": sum(steps), "groups": [{"env_steps": n} for n in steps],
    }  # fmt: skip


def test_a_run_is_steady_when_its_slowest_group_works():
    """The second group begins after 4 s; from 6.5 s on both make 100 steps/s."""
    records = [record(s, 100 * s, max(0, 100 * (s - 4))) for s in range(20)]
    assert steady_rate(records, num_groups=2, steps_per_version=32) == pytest.approx(200)
    assert steady_rate(records[:10], num_groups=1, steps_per_version=32) > 100


def test_groups_that_are_not_told_of_have_not_begun():
    records = [record(s, 100 * s) for s in range(9)] + [record(9, 900, 100)]
    with pytest.raises(ValueError, match="too short to be steady"):
        steady_rate(records, num_groups=2, steps_per_version=10)
    with pytest.raises(ValueError, match="not all groups have begun"):
        steady_rate(records[:9], num_groups=2, steps_per_version=10)


def test_one_group_is_not_combined_with_anything():
    found = local_settings([1, 2], ["average", "gradients"])
    assert found == [Setting(1, "average"), Setting(2, "average"), Setting(2, "gradients")]
    assert group_words(1, "average") == ()
    assert group_words(2, "gossip") == ("--num-groups", "2", "--combine", "gossip")


def test_groups_share_cores_where_there_are_too_few(monkeypatch):
    monkeypatch.setattr(bench, "read_machine", lambda: Machine(tuple(range(4)), 64 << 30))
    assert bench.cores_of(1, 2) == (0, 1)
    assert bench.cores_of(3, 2) == (0, 1, 2, 3)
