"""Episode statistics are exact, however the unrolls cut the episodes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tianji.actor.role import EpisodeLedger


def literal(rewards, ended, valid):
    """The plain loop over steps: (row, env, return, length) of every finished episode."""
    found = []
    for env in range(rewards.shape[1]):
        total, length = 0.0, 0
        for row in range(len(rewards)):
            if not valid[row, env]:
                total, length = 0.0, 0  # the environment failed, or was reset after an end
                continue
            total, length = total + float(rewards[row, env]), length + 1
            if ended[row, env]:
                found.append((row, env, total, length))
                total, length = 0.0, 0
    return sorted(found)


@given(
    seed=st.integers(0, 10_000),
    num_envs=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
)
def test_ledger_equals_the_literal_loop(seed, num_envs, lengths):
    rng = np.random.default_rng(seed)
    shape = (sum(lengths), num_envs)
    rewards = rng.integers(-5, 6, shape).astype(np.float32)
    valid = rng.random(shape) > 0.1
    terminated = (rng.random(shape) < 0.15) & valid
    truncated = (rng.random(shape) < 0.1) & valid & ~terminated
    ledger, start, found = EpisodeLedger(num_envs), 0, []
    for length in lengths:
        rows = slice(start, start + length)
        unroll = {
            "reward": rewards[rows],
            "valid": valid[rows],
            "terminated": terminated[rows],
            "truncated": truncated[rows],
            "episode_return": np.full((length, num_envs), np.nan, np.float32),
            "episode_length": np.full((length, num_envs), -1, np.int32),
        }
        ledger.close_unroll(unroll, 0, length)
        for row, env in np.argwhere(unroll["episode_length"] > 0):
            found.append((
                start + row, env,
                float(unroll["episode_return"][row, env]),
                int(unroll["episode_length"][row, env]),
            ))  # fmt: skip
        assert not np.isnan(unroll["episode_return"]).any()
        start += length
    assert sorted(found) == literal(rewards, terminated | truncated, valid)


def test_rows_that_are_not_valid_may_hold_anything():
    ledger = EpisodeLedger(1)
    unroll = {
        "reward": np.array([[1.0], [np.nan], [2.0]], np.float32),
        "valid": np.array([[True], [False], [True]]),
        "terminated": np.array([[False], [True], [True]]),
        "truncated": np.zeros((3, 1), bool),
        "episode_return": np.zeros((3, 1), np.float32),
        "episode_length": np.zeros((3, 1), np.int32),
    }
    ledger.close_unroll(unroll, 0, 3)
    assert unroll["episode_return"][:, 0].tolist() == [0.0, 0.0, 2.0]
    assert unroll["episode_length"][:, 0].tolist() == [0, 0, 1]


def test_rows_that_were_not_made_cut_no_episode():
    ledger = EpisodeLedger(1)
    unroll = {
        "reward": np.ones((3, 1), np.float32),
        "valid": np.array([[True], [False], [False]]),
        "terminated": np.zeros((3, 1), bool),
        "truncated": np.zeros((3, 1), bool),
        "episode_return": np.full((3, 1), np.nan, np.float32),
        "episode_length": np.zeros((3, 1), np.int32),
    }
    for end in (1, 0):
        ledger.close_unroll(unroll, 0, end)
        assert unroll["episode_return"][:, 0].tolist() == [0.0, 0.0, 0.0]
    unroll["valid"][:] = True
    unroll["terminated"][2] = True
    ledger.close_unroll(unroll, 0, 3)
    assert unroll["episode_length"][:, 0].tolist() == [0, 0, 4]


def test_state_round_trip_continues_running_episodes():
    ledger, other = EpisodeLedger(2), EpisodeLedger(2)
    unroll = {
        "reward": np.ones((3, 2), np.float32),
        "valid": np.ones((3, 2), bool),
        "terminated": np.zeros((3, 2), bool),
        "truncated": np.zeros((3, 2), bool),
        "episode_return": np.zeros((3, 2), np.float32),
        "episode_length": np.zeros((3, 2), np.int32),
    }
    ledger.close_unroll(unroll, 0, 3)
    other.load_state(ledger.state())
    unroll["terminated"][-1] = True
    other.close_unroll(unroll, 0, 3)
    assert unroll["episode_length"][-1].tolist() == [6, 6]
