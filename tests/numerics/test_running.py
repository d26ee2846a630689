import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tianji.models.moments import RunningMoments


@given(seed=st.integers(0, 1000), sizes=st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_merged_batches_have_the_moments_of_all_values(seed, sizes):
    rng = np.random.default_rng(seed)
    batches = [rng.normal(1e4, 1e-2, (size, 3)) for size in sizes]
    moments = RunningMoments.zeros(3)
    for batch in batches:
        moments.update(batch)
    everything = np.concatenate(batches)
    assert moments.count == len(everything)
    if len(everything):
        np.testing.assert_allclose(moments.mean_F, everything.mean(0))
        np.testing.assert_allclose(moments.variance_F, everything.var(0), rtol=1e-6, atol=1e-12)


def test_variance_is_one_before_the_first_value():
    assert RunningMoments.zeros(2).variance_F.tolist() == [1.0, 1.0]


def test_small_spread_far_from_zero_survives_float32_input():
    values = np.full((1000, 1), 1e6, np.float32)
    values[::2] += 1.0
    moments = RunningMoments.zeros(1)
    for part in np.split(values, 10):
        moments.update(part)
    np.testing.assert_allclose(moments.variance_F, 0.25)
