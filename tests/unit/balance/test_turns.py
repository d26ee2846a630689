"""Turns: a table of situations says who may start the next unrolls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.balance.turns import Turns


def turns_of(outstanding, rounds, is_serial=False, active=None, at_once=1):
    """Turns in the middle of a run."""
    turns = Turns(len(rounds), is_serial, at_once)
    turns.load([made - held for made, held in zip(rounds, outstanding, strict=True)])
    for actor, held in enumerate(outstanding):
        for _ in range(held):
            turns.give(actor, 1)
    turns.active = len(rounds) if active is None else active
    return turns


TABLE = [
    ("at the start everybody in turn", turns_of((0, 0), (0, 0)), 4, [0, 1, 0, 1]),
    ("who holds least comes first", turns_of((2, 0), (2, 7)), 1, [1]),
    ("of those who hold as much, who was given least", turns_of((0, 0), (5, 4)), 3, [1, 0, 1]),
    ("serial: only rounds count", turns_of((0, 1), (3, 2), is_serial=True), 2, [1, 0]),
    ("serial: whoever has not begun catches up",
     turns_of((0, 0), (3, 0), is_serial=True), 3, [1, 1, 1]),
    ("no budget", turns_of((0, 0), (0, 0)), 0, []),
    ("a negative budget, after a discard", turns_of((0, 0), (0, 0)), -2, []),
    ("parked: only so many at work", turns_of((0, 0, 0), (0, 0, 0), active=2), 6, [0, 1]),
    ("parked: those at work get no more", turns_of((1, 0, 0), (1, 0, 0), active=1), 6, []),
    ("parked: a place goes to who was given least",
     turns_of((0, 1, 0), (4, 4, 3), active=2), 6, [2]),
    ("parked: an actor gets its whole share of a version",
     turns_of((0, 0), (0, 0), active=1, at_once=3), 8, [0, 0, 0]),
    ("parked: no more than the budget", turns_of((0, 0), (0, 0), active=1, at_once=3), 2, [0, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "turns", "budget", "dealt"), TABLE)
def test_situation(name, turns, budget, dealt):
    assert turns.deal(budget) == dealt, name


def arrive(turns, actor):
    """The actor delivers the next of the rounds that it holds."""
    assert turns.arrived(actor, turns.rounds[actor] - turns.outstanding[actor])


def test_an_unroll_of_a_lost_lane_that_comes_late_is_not_counted_twice():
    turns = turns_of((2, 2), (2, 2))
    turns.lost(0)
    assert not turns.arrived(0, 0), "nobody holds this round"
    turns.back(0)
    assert turns.deal(2) == [0, 0]
    assert turns.arrived(0, 0), "the round was made again"
    assert not turns.arrived(0, 0), "this is the one that was lost"
    assert (turns.num_outstanding, turns.outstanding) == (3, [1, 2])


def test_what_a_dead_actor_held_and_its_turns_go_to_the_others_at_once():
    turns = turns_of((2, 2), (2, 2))
    turns.lost(0)
    assert (turns.num_outstanding, turns.num_at_work, turns.rounds) == (2, 1, [0, 2])
    assert turns.deal(2) == [1, 1]


def test_a_successor_gets_the_next_turns():
    turns = turns_of((2, 2), (2, 2))
    turns.lost(0)
    turns.back(0)
    assert turns.deal(2) == [0, 0]
    assert turns.rounds == [2, 2], "the rounds of the dead are made again"


def test_serial_training_waits_for_the_successor():
    turns = turns_of((1, 1), (1, 1), is_serial=True)
    turns.lost(0)
    assert turns.deal(1) == [0]


def test_who_was_given_up_gets_nothing_in_serial_training_either():
    turns = turns_of((0, 0), (0, 0), is_serial=True)
    turns.gave_up(0)
    assert turns.deal(2) == [1, 1]
    turns.gave_up(1)
    assert turns.deal(2) == []


def test_parked_actors_take_turns_so_that_all_contribute_alike():
    turns = turns_of((0,) * 5, (0,) * 5, active=2)
    for _ in range(50):
        for actor in turns.deal(10):
            assert turns.num_at_work <= 2
            arrive(turns, actor)
    assert max(turns.rounds) - min(turns.rounds) <= 1


CHANGES = st.lists(
    st.tuples(st.sampled_from(["deal", "arrived", "lost", "back"]), st.integers(0, 3)),
    max_size=300,
)


@given(CHANGES, st.integers(1, 4), st.booleans())
def test_the_heap_always_agrees_with_a_look_at_everybody(changes, active, is_serial):
    turns = Turns(4, is_serial)
    turns.active = active
    is_out = [False] * 4
    for change, number in changes:
        if change == "deal":
            for _ in range(number):
                expected = by_looking(turns, is_out, is_serial)
                assert turns.deal(1) == ([] if expected is None else [expected])
        elif change == "arrived" and turns.outstanding[number]:
            arrive(turns, number)
        elif change == "lost":
            turns.lost(number)
            is_out[number] = not is_serial
        elif change == "back":
            turns.back(number)
            is_out[number] = False
        assert turns.num_outstanding == sum(turns.outstanding)
        assert turns.num_at_work == sum(map(bool, turns.outstanding))
        assert len(turns._heap) <= 4 * 4 + 16, "untrue entries pile up"


def by_looking(turns, is_out, is_serial):
    """The slow way to find whose turn it is."""
    able = [actor for actor in range(4) if not is_out[actor]]
    if not able:
        return None
    held = [0] * 4 if is_serial else turns.outstanding
    first = min(able, key=lambda actor: (held[actor], turns.rounds[actor], actor))
    if turns.active < 4 and (turns.num_at_work >= turns.active or turns.outstanding[first]):
        return None
    return first
