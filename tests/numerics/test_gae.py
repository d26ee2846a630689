"""GAE against the double loop of the paper, episode by episode."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.experience import STEP_FIELDS, empty_unroll, random_episodes
from tianji.ops.returns import gae, gae_tensors


def literal_gae(r, v, next_v, terminated, truncated, valid, gamma, lam):
    """A_t = sum_l (gamma lambda)^l delta_t+l, up to the end of t's episode or of the data."""
    T, N = r.shape
    advantage = np.zeros((T, N))
    for n in range(N):
        for t in range(T):
            factor = 1.0
            for k in range(t, T):
                if not valid[k, n]:
                    break
                bootstrap = 0.0 if terminated[k, n] else gamma * next_v[k, n]
                advantage[t, n] += factor * (r[k, n] + bootstrap - v[k, n])
                factor *= gamma * lam
                if terminated[k, n] or truncated[k, n]:
                    break
    return advantage


def episodes(seed, num_rows=12, num_envs=3):
    """Random ones, of worlds with reset rows (odd seeds) and of worlds without."""
    unroll = empty_unroll(STEP_FIELDS, num_rows, num_envs)
    random_episodes(unroll, seed, has_reset_rows=bool(seed % 2))
    value, next_value = np.random.default_rng(seed).standard_normal(
        (2, num_rows, num_envs), np.float32
    )
    return unroll, value, next_value


@given(seed=st.integers(0, 10_000), gamma=st.floats(0.0, 1.0), lam=st.floats(0.0, 1.0))
def test_gae_is_the_papers_sum(seed, gamma, lam):
    u, value, next_value = episodes(seed)
    args = (u["reward"], value, next_value, u["terminated"], u["truncated"], u["valid"])
    np.testing.assert_allclose(
        gae(*args, gamma, lam), literal_gae(*args, gamma, lam), rtol=1e-4, atol=1e-4
    )


@given(seed=st.integers(0, 10_000), num_parts=st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_unrolls_that_are_cut_have_the_advantages_of_the_whole(seed, num_parts):
    """Long columns in pieces, which lie side by side in any order."""
    u, value, next_value = episodes(seed)
    args = (u["reward"], value, next_value, u["terminated"], u["truncated"], u["valid"])
    num_envs, length = value.shape[1], len(value) // num_parts
    place = np.random.default_rng(seed).permutation(num_parts * num_envs)
    next_N = np.full(num_parts * num_envs, -1)
    next_N[place[:-num_envs]] = place[num_envs:]

    def cut(whole):
        pieces = whole.reshape(num_parts, length, num_envs).swapaxes(0, 1).reshape(length, -1)
        laid = np.empty_like(pieces)
        laid[:, place] = pieces
        return laid

    expected = cut(gae(*args, 0.9, 0.8))
    pieces = [cut(array) for array in args]
    found = gae(*pieces, 0.9, 0.8, next_N)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    tensors = map(torch.as_tensor, pieces)
    by_torch = gae_tensors(*tensors, 0.9, 0.8, torch.as_tensor(next_N))
    np.testing.assert_allclose(by_torch, expected, rtol=1e-4, atol=1e-5)


def test_rows_that_are_not_valid_may_hold_anything():
    u, value, next_value = episodes(3)
    clean = gae(
        u["reward"], value, next_value, u["terminated"], u["truncated"], u["valid"], 0.9, 0.9
    )
    bad = ~u["valid"]
    assert bad.any()
    for array in (u["reward"], value, next_value):
        array[bad] = np.nan
    u["terminated"][bad] = u["truncated"][bad] = True
    dirty = gae(
        u["reward"], value, next_value, u["terminated"], u["truncated"], u["valid"], 0.9, 0.9
    )
    np.testing.assert_array_equal(dirty, clean)
    assert not dirty[bad].any()


@pytest.mark.parametrize(("end", "expected"), [("terminated", 1.0), ("truncated", 1.0 + 0.5 * 8.0)])
def test_truncation_bootstraps_and_termination_does_not(end, expected):
    flags = {"terminated": np.zeros((1, 1), bool), "truncated": np.zeros((1, 1), bool)}
    flags[end][:] = True
    one, valid = np.ones((1, 1), np.float32), np.ones((1, 1), bool)
    advantage = gae(one, 0 * one, 8 * one, **_named(flags), valid_TN=valid, gamma=0.5, gae_lambda=1)
    assert advantage[0, 0] == expected


def _named(flags):
    return {f"{name}_TN": array for name, array in flags.items()}
