"""n-step returns against a walk through the store, step by step."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.experience import STEP_FIELDS, empty_unroll, random_episodes
from tianji.ops.returns import n_step_return


def literal(u, slot, row, env, n, gamma):
    total, discount, at = 0.0, 1.0, row
    for _ in range(n):
        if not u["valid"][slot, at, env]:
            break
        total += discount * u["reward"][slot, at, env]
        discount *= gamma
        at += 1
        if u["terminated"][slot, at - 1, env]:
            return total, 0.0, at, True
        if u["truncated"][slot, at - 1, env]:
            return total, discount, at, True
    return total, discount, at, False


def store(seed, num_slots=3, num_rows=8, num_envs=2):
    slots = []
    for s in range(num_slots):
        unroll = empty_unroll(STEP_FIELDS, num_rows, num_envs)
        random_episodes(unroll, seed + s, has_reset_rows=bool(seed % 2))
        slots.append(unroll)
    return {name: np.stack([u[name] for u in slots]) for name in slots[0]}


@given(seed=st.integers(0, 10_000), n=st.integers(1, 5), gamma=st.floats(0.0, 1.0))
def test_every_item_is_what_a_walk_finds(seed, n, gamma):
    u = store(seed)
    slot, row, env = (x for x in np.nonzero(u["valid"][:, : 8 - n + 1]))
    got = n_step_return(
        u["reward"], u["terminated"], u["truncated"], u["valid"], slot, row, env, n, gamma
    )
    expected = [literal(u, *at, n, gamma) for at in zip(slot, row, env, strict=True)]
    for found, wanted in zip(got, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_row_that_is_not_valid_ends_the_sum_whatever_it_holds():
    reward = np.array([[[1.0], [2.0], [np.nan]]], np.float32)
    no, valid = np.zeros((1, 3, 1), bool), np.array([[[True], [True], [False]]])
    zero = np.array([0])
    got = n_step_return(reward, no, no, valid, zero, zero, zero, 3, 0.5)
    assert (got.reward_B[0], got.discount_B[0], got.next_row_B[0], got.ended_B[0]) == (
        2.0, 0.25, 2, False,
    )  # fmt: skip


def test_one_step_gives_plain_transitions():
    u = store(1)
    slot, row, env = np.nonzero(u["valid"])
    got = n_step_return(
        u["reward"], u["terminated"], u["truncated"], u["valid"], slot, row, env, 1, 0.9
    )
    np.testing.assert_array_equal(got.reward_B, u["reward"][slot, row, env])
    np.testing.assert_array_equal(got.next_row_B, row + 1)
    np.testing.assert_allclose(got.discount_B, np.where(u["terminated"][slot, row, env], 0, 0.9))
