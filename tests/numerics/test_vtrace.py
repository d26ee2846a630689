"""V-trace against equation 1 of the paper, written out as its double sum."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.numerics.test_gae import episodes
from tianji.ops.returns import gae, vtrace, vtrace_tensors


def literal_vtrace(log_ratio, r, v, next_v, terminated, truncated, valid, gamma, lam, clips):
    """v_s = V_s + sum_t gamma^(t-s) (prod c_i) rho_t (r_t + gamma V_t+1 - V_t)."""
    clip_rho, clip_c, clip_pg = clips
    T, N = r.shape
    target, advantage = np.zeros((T, N)), np.zeros((T, N))
    ratio = np.exp(log_ratio.astype(np.float64))

    def correction(s, n):
        total, trace = 0.0, 1.0
        for t in range(s, T):
            if not valid[t, n]:
                break
            bootstrap = 0.0 if terminated[t, n] else gamma * next_v[t, n]
            total += trace * min(clip_rho, ratio[t, n]) * (r[t, n] + bootstrap - v[t, n])
            trace *= gamma * lam * min(clip_c, ratio[t, n])
            if terminated[t, n] or truncated[t, n]:
                break
        return total

    for n in range(N):
        for s in range(T):
            if not valid[s, n]:
                continue
            target[s, n] = v[s, n] + correction(s, n)
            ended = terminated[s, n] or truncated[s, n]
            v_next = next_v[s, n]
            if not ended and s + 1 < T and valid[s + 1, n]:
                v_next += correction(s + 1, n)
            bootstrap = 0.0 if terminated[s, n] else gamma * v_next
            advantage[s, n] = min(clip_pg, ratio[s, n]) * (r[s, n] + bootstrap - v[s, n])
    return target, advantage


def arguments(seed):
    u, value, next_value = episodes(seed)
    log_ratio = np.random.default_rng(seed + 1).standard_normal(value.shape, np.float32)
    steps = (u["reward"], value, next_value, u["terminated"], u["truncated"], u["valid"])
    return log_ratio, steps


@given(seed=st.integers(0, 10_000), lam=st.floats(0.0, 1.0), clip=st.floats(0.1, 3.0))
def test_vtrace_is_the_papers_sum(seed, lam, clip):
    log_ratio, steps = arguments(seed)
    clips = (clip, 1.0, 0.7 * clip)
    got = vtrace(log_ratio, *steps, 0.9, lam, *clips)
    target, advantage = literal_vtrace(log_ratio, *steps, 0.9, lam, clips)
    np.testing.assert_allclose(got.target_TN, target, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got.advantage_TN, advantage, rtol=1e-4, atol=1e-4)


def test_on_policy_the_target_is_the_lambda_return():
    _, steps = arguments(1)
    value, valid = steps[1], steps[5]
    got = vtrace(np.zeros_like(value), *steps, 0.9, 0.8)
    expected = np.where(valid, value + gae(*steps, 0.9, 0.8), 0)
    np.testing.assert_allclose(got.target_TN, expected, rtol=1e-5, atol=1e-5)


def test_rows_that_are_not_valid_may_hold_anything():
    log_ratio, steps = arguments(5)
    clean = vtrace(log_ratio, *steps, 0.9)
    bad = ~steps[5]
    assert bad.any()
    for array in (log_ratio, *steps[:3]):
        array[bad] = np.nan
    steps[3][bad] = steps[4][bad] = True
    for dirty, expected in zip(vtrace(log_ratio, *steps, 0.9), clean, strict=True):
        np.testing.assert_array_equal(dirty, expected)


@pytest.mark.parametrize("seed", range(5))
def test_tensors_give_what_arrays_give_with_each_clip_in_its_place(seed):
    log_ratio, steps = arguments(seed)
    clips = (0.8, 0.9, 1.3)
    tensors = (torch.from_numpy(np.ascontiguousarray(x)) for x in (log_ratio, *steps))
    got = vtrace_tensors(*tensors, 0.9, 0.7, *clips)
    expected = vtrace(log_ratio, *steps, 0.9, 0.7, *clips)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-5)
