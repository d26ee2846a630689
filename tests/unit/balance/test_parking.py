"""Parking: fewer actors while production is ahead, more at once when the learner waits."""

import pytest

from tianji.balance.turns import (
    FIRST_PATIENCE,
    MOST_PATIENCE,
    ParkingState,
    after_version,
    after_wait,
)


def after_calm(state, versions):
    for _ in range(versions):
        state = after_version(state, is_ahead=True)
    return state


def test_one_actor_is_parked_after_several_versions_that_did_not_wait():
    state = after_calm(ParkingState(8, 8), FIRST_PATIENCE - 1)
    assert state.active == 8
    assert after_version(state, is_ahead=True).active == 7


def test_versions_in_a_row_are_what_counts():
    state = after_calm(ParkingState(8, 8), FIRST_PATIENCE - 1)
    state = after_version(state, is_ahead=False)
    assert after_calm(state, FIRST_PATIENCE - 1).active == 8


def test_the_last_one_is_never_parked():
    assert after_calm(ParkingState(3, 3), 1000).active == 1


@pytest.mark.parametrize(("active", "woken"), [(1, 2), (3, 6), (5, 8), (8, 8)])
def test_a_learner_that_waits_wakes_twice_as_many(active, woken):
    assert after_wait(ParkingState(8, active)).active == woken


def test_what_was_too_few_is_tried_again_later_and_later():
    state, tries = ParkingState(2, 2), []
    for _ in range(3):
        count = 0
        while state.active == 2:
            state, count = after_version(state, is_ahead=True), count + 1
        tries.append(count)
        state = after_wait(state)
    assert tries == [FIRST_PATIENCE, 2 * FIRST_PATIENCE, 4 * FIRST_PATIENCE]


def test_patience_has_an_end():
    state = ParkingState(2, 1)
    for _ in range(20):
        state = after_wait(ParkingState(2, 1, patience=state.patience))
    assert state.patience == MOST_PATIENCE


def test_waiting_with_everybody_at_work_says_nothing_against_parking():
    state = after_wait(ParkingState(4, 4, calm=3))
    assert state == ParkingState(4, 4, calm=0)
