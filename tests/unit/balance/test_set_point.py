"""The set-point: when a version is due and how far production may run ahead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.balance.set_point import SetPoint
from tianji.balance.turns import Turns

PPO = SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=1)
SERIAL = SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=0)
DQN = SetPoint(unrolls_per_version=1, warmup_unrolls=10, lag_target=1)

TABLE = [
    ("the first batch, and one ahead", PPO, 0, 2, 4),
    ("serial: only the first batch", SERIAL, 0, 2, 2),
    ("serial: the next version allows the next batch", SERIAL, 1, 4, 4),
    ("later versions need and allow as much more", PPO, 3, 8, 10),
    ("warm-up comes before the first version", DQN, 0, 11, 12),
]


@pytest.mark.parametrize(("name", "point", "versions", "due", "allowed"), TABLE)
def test_set_point(name, point, versions, due, allowed):
    assert (point.due(versions), point.allowed(versions)) == (due, allowed), name


@given(
    per_version=st.integers(1, 5),
    lag_target=st.integers(0, 3),
    warmup=st.integers(0, 7),
    active=st.integers(1, 3),
    arrivals=st.lists(st.integers(0, 2), min_size=30, max_size=200),
)
def test_ratio_and_lag_hold_whatever_the_order_of_arrival(
    per_version, lag_target, warmup, active, arrivals
):
    """In any order of arrival, and however many are parked: it never deadlocks, and production
    never runs further ahead of consumption than the set-point says."""
    point = SetPoint(per_version, warmup, lag_target)
    turns = Turns(3, is_serial=lag_target == 0)
    turns.active = active
    versions, kept = 0, 0
    for who in arrivals:
        turns.deal(point.allowed(versions) - kept - turns.num_outstanding)
        may_take = kept >= point.due(versions)
        versions += may_take
        assert turns.num_outstanding > 0 or may_take, "deadlock"
        ahead = kept + turns.num_outstanding - warmup - per_version * versions
        assert ahead <= per_version * (1 + lag_target)
        able = [actor for actor in (who, 0, 1, 2) if turns.outstanding[actor]]
        if able:
            turns.arrived(able[0], turns.rounds[able[0]] - turns.outstanding[able[0]])
            kept += 1
