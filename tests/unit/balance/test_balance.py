"""The balance is a pure function: a table of situations says what it must allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.balance.balance import Allowance, SetPoint, Situation, balance

PPO = SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=1)
SERIAL = SetPoint(unrolls_per_version=2, warmup_unrolls=0, lag_target=0)
DQN = SetPoint(unrolls_per_version=1, warmup_unrolls=10, lag_target=1)


def situation(versions=0, kept=0, outstanding=(0, 0), granted=(0, 0), present=(True, True)):
    return Situation(versions, kept, outstanding, granted, present)


TABLE = [
    ("start: one batch and one ahead", PPO, situation(), (0, 1, 0, 1), False),
    ("serial start: one batch", SERIAL, situation(), (0, 1), False),
    ("serial: a full batch stops production", SERIAL, situation(kept=2), (), True),
    ("serial: the next version starts it again", SERIAL,
     situation(versions=1, kept=2, granted=(1, 1)), (0, 1), False),
    ("serial warm-up is dealt out evenly, even when one actor has not begun",
     SetPoint(unrolls_per_version=2, warmup_unrolls=4, lag_target=0),
     situation(kept=3, outstanding=(0, 0), granted=(3, 0)), (1, 1, 1), False),
    ("one arrived, one out: the rest of the budget", PPO,
     situation(kept=1, outstanding=(0, 1), granted=(1, 1)), (0, 1), False),
    ("a full queue and a batch in work: nobody starts", PPO,
     situation(kept=4, granted=(2, 2)), (), True),
    ("a slow actor keeps its grant, the other goes on", PPO,
     situation(versions=3, kept=7, outstanding=(2, 0), granted=(2, 7)), (1,), False),
    ("an actor that was given up gets nothing", PPO,
     situation(present=(False, True)), (1, 1, 1, 1), False),
    ("nobody left", PPO, situation(present=(False, False)), (), False),
    ("replay fills up first", DQN, situation(kept=10, granted=(5, 5)), (0, 1), False),
    ("replay may be sampled after warm-up and one more", DQN,
     situation(kept=11, granted=(6, 5)), (1,), True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point", "now", "grants", "may_take"), TABLE)
def test_situation(name, point, now, grants, may_take):
    assert balance(point, now) == Allowance(grants, may_take), name


@given(
    per_version=st.integers(1, 5),
    lag_target=st.integers(0, 3),
    warmup=st.integers(0, 7),
    arrivals=st.lists(st.integers(0, 2), min_size=30, max_size=200),
)
def test_ratio_and_lag_hold_whatever_the_order_of_arrival(
    per_version, lag_target, warmup, arrivals
):
    """Drive the function with any arrival order: it never deadlocks, and production never runs
    further ahead of consumption than the set-point says."""
    point = SetPoint(per_version, warmup, lag_target)
    versions, kept = 0, 0
    outstanding, granted = [0, 0, 0], [0, 0, 0]
    for who in arrivals:
        now = Situation(versions, kept, tuple(outstanding), tuple(granted), (True,) * 3)
        allowed = balance(point, now)
        for actor in allowed.grants:
            outstanding[actor] += 1
            granted[actor] += 1
        if allowed.may_take:
            versions += 1
        assert sum(outstanding) > 0 or allowed.may_take, "deadlock"
        ahead = kept + sum(outstanding) - warmup - per_version * versions
        assert ahead <= per_version * (1 + lag_target)
        able = [a for a in (who, 0, 1, 2) if outstanding[a]]
        if able:
            outstanding[able[0]] -= 1
            kept += 1
