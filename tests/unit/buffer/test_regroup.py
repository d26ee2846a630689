"""Saved unrolls for another number of actors: columns of environments, put together anew."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tianji.buffer.regroup import regrouped

ROWS = 3
AXES = {"reward": 1, "obs": 1, "state": 0, "row_ns": None}


def saved(num_held, envs, num_actors, rounds=None):
    """Every column says which one it is: 0 is the oldest unroll's first environment."""
    column = np.arange(num_held * envs).reshape(num_held, envs)
    row = np.arange(ROWS + 1)[None, :, None]
    used = (column[:, None, :] + np.arange(ROWS)[None, :, None]) % 2 == 0
    store = {
        "rng": {"state": 7},
        "items": {
            "reward": column[:, None, :] + 1000 * row[:, :ROWS],
            "obs": np.stack([column[:, None, :] + 1000 * row] * 2, axis=-1),
            "state": column,
            "row_ns": np.arange(num_held)[:, None] * np.ones(ROWS, int),
        },
        "oldest_version": np.arange(num_held),
        "used": used.reshape(num_held, ROWS * envs),
    }
    return {"rounds": rounds or [5] * num_actors, "items_put": 9, "store": store}


def columns_of(state):
    return state["store"]["items"]["state"].reshape(-1).tolist()


counts = st.sampled_from([1, 2, 3, 4, 6, 12])


@given(before=counts, after=counts, num_held=st.integers(0, 20), capacity=st.integers(1, 60))
def test_the_newest_columns_stay_whole_and_in_order(before, after, num_held, capacity):
    state = saved(num_held, 12 // before, before)
    envs = 12 // after
    new = regrouped(state, after, envs, AXES, capacity)
    if before == after:
        assert new == state
        return
    kept = columns_of(new)
    count = min(capacity, num_held * (12 // before) // envs)
    newest = columns_of(state)[len(columns_of(state)) - count * envs :]
    assert kept == newest
    column = np.array(kept, int).reshape(count, envs)
    items = new["store"]["items"]
    for t in range(ROWS):
        assert (items["reward"][:, t] == column + 1000 * t).all()
        assert (
            new["store"]["used"].reshape(count, ROWS, envs)[:, t] == ((column + t) % 2 == 0)
        ).all()
    assert (items["obs"][:, ROWS, :, 1] == column + 1000 * ROWS).all()
    made_in = column // (12 // before)
    assert (new["store"]["oldest_version"] == made_in.min(axis=1, initial=99)).all()
    assert items["row_ns"].shape == (count, ROWS)


def test_no_actor_makes_a_round_again():
    new = regrouped(saved(2, 2, 3, rounds=[4, 7, 6]), 2, 3, AXES, 10)
    assert new["rounds"] == [7, 7]
    assert new["items_put"] == 9
    assert new["store"]["rng"] == {"state": 7}


def test_a_store_that_keeps_nothing_has_nothing_to_regroup():
    state = {"rounds": [3, 3], "store": {}}
    assert regrouped(state, 4, 2, AXES, 0) == {"rounds": [3] * 4, "store": {}}
