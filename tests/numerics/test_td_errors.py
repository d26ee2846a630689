"""TD errors of whole unrolls against one item at a time, written as the formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.ops.returns import n_step_return
from tianji.ops.td_errors import n_step_td_error

GAMMA = 0.9


def made_up(seed, num_rows, num_envs=3, keeps_final=False):
    """Rows with episodes that end in both ways, and after each end a row that only resets."""
    rng = np.random.default_rng(seed)
    shape = num_rows, num_envs
    rows = {
        name: rng.standard_normal(shape).astype(np.float32) for name in ("q", "value", "reward")
    }
    rows |= {name: np.zeros(shape, bool) for name in ("terminated", "truncated")}
    rows["valid"] = rng.random(shape) > 0.05  # environments fail, too
    for t, n in np.ndindex(shape):
        ended = t and (rows["terminated"][t - 1, n] or rows["truncated"][t - 1, n])
        if ended and not keeps_final:
            rows["valid"][t, n] = False
        elif rows["valid"][t, n] and rng.random() < 0.3:
            rows[rng.choice(["terminated", "truncated"])][t, n] = True
    rows["reward"][~rows["valid"]] = np.nan
    return rows


def error_of_one(rows, t, env, n, keeps_final):
    """The formula, for one item."""
    total, discount = 0.0, 1.0
    for k in range(n):
        if not rows["valid"][t + k, env]:
            return total + discount * rows["value"][t + k, env] - rows["q"][t, env]
        total += discount * rows["reward"][t + k, env]
        discount *= GAMMA
        if rows["terminated"][t + k, env]:
            return total - rows["q"][t, env]
        if rows["truncated"][t + k, env]:
            known = t + k if keeps_final else t + k + 1
            return total + discount * rows["value"][known, env] - rows["q"][t, env]
    return total + discount * rows["value"][t + n, env] - rows["q"][t, env]


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 4), items=st.integers(1, 9), keeps=st.booleans()
)
def test_all_items_at_once_are_what_each_is_alone(seed, n, items, keeps):
    rows = made_up(seed, items + n, keeps_final=keeps)
    found = n_step_td_error(*rows.values(), n, GAMMA, keeps)
    assert found.shape == (items, 3)
    for t, env in np.ndindex(found.shape):
        expected = error_of_one(rows, t, env, n, keeps) if rows["valid"][t, env] else 0.0
        assert found[t, env] == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_returns_are_those_of_the_replay_store():
    """Where all Q values are 0, the error is the sum of the rewards."""
    rows = made_up(3, 40)
    zeros = np.zeros((40, 3), np.float32)
    reward = np.nan_to_num(rows["reward"])
    ends = rows["terminated"], rows["truncated"], rows["valid"]
    found = n_step_td_error(zeros, zeros, reward, *ends, 3, GAMMA)
    t, env = np.nonzero(rows["valid"][:37])
    lanes = [array[None] for array in (reward, *ends)]
    stored = n_step_return(*lanes, np.zeros(len(t), int), t, env, 3, GAMMA)
    np.testing.assert_allclose(found[t, env], stored.reward_B, rtol=1e-5, atol=1e-6)
