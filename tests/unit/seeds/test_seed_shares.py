"""How several runs share the cores of a machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.config.overrides import make_config
from tianji.seeds.train import cores_wanted, share_cores


@pytest.mark.parametrize(
    ("num_cores", "num_runs", "wanted", "sizes"),
    [
        (2, 5, 2, [2]),
        (1, 5, 2, [1]),
        (8, 5, 2, [2, 2, 2]),
        (16, 5, 2, [3] * 5),
        (16, 3, 2, [5] * 3),
        (4, 8, 1, [1] * 4),
        (4, 1, 2, [4]),
        (4, 3, 9, [4]),
    ],
)
def test_runs_go_on_at_once_as_far_as_the_cores_allow(num_cores, num_runs, wanted, sizes):
    assert [len(share) for share in share_cores(range(num_cores), num_runs, wanted)] == sizes


@given(st.integers(1, 64), st.integers(1, 20), st.integers(1, 9))
def test_no_core_is_shared_and_no_run_is_without_one(num_cores, num_runs, wanted):
    shares = share_cores(range(num_cores), num_runs, wanted)
    used = [core for share in shares for core in share]
    assert len(used) == len(set(used)) and set(used) <= set(range(num_cores))
    assert all(shares) and len(shares) <= num_runs


def test_what_a_run_needs_at_least():
    assert cores_wanted(make_config(None)) == 2
    assert cores_wanted(make_config(None, num_actors=3, learner_threads=2)) == 5
    assert cores_wanted(make_config(None, engine="inline")) == 1
