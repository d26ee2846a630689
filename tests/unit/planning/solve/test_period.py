"""How long a version takes, in cases that can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.costs.work import Work
from tianji.planning.solve.period import Sides, period


def sides(unroll_s, version_s, num_actors=1, num_cores=64, **values):
    return Sides(
        **{
            "num_actors": num_actors,
            "unrolls_per_version": num_actors,
            "unroll": Work(unroll_s, unroll_s, 1.0),
            "version": Work(version_s, version_s, 1.0),
            "receive_s": 0.0,
            "num_cores": num_cores,
            "is_serial": False,
            **values,
        }
    )


@pytest.mark.parametrize(
    ("given", "seconds", "bottleneck"),
    [
        (sides(4.0, 1.0), 4.0, "sampling"),
        (sides(4.0, 1.0, num_actors=4, unrolls_per_version=8), 8.0, "sampling"),
        (sides(1.0, 3.0), 3.0, "training"),
        (sides(1.0, 3.0, receive_s=2.0), 3.0, "communication"),
        (sides(1.0, 3.0, receive_s=1.0), 3.0, "training"),
        (sides(1.0, 3.0, num_actors=2, receive_s=2.0), 4.0, "communication"),
        (sides(2.0, 2.0, num_cores=1), 4.0, "processors"),
        (sides(2.0, 3.0, num_actors=2, num_cores=2), 4.0, "processors"),
    ],
)
def test_the_slowest_side_sets_the_pace(given, seconds, bottleneck):
    found = period(given)
    assert found.seconds == pytest.approx(seconds)
    assert found.bottleneck == bottleneck


def test_actors_that_share_the_learners_cores_delay_it_although_cores_are_free_later():
    """Two actors of 0.2 s and a learner of 1 s on two cores: for 0.3 s three share two cores."""
    found = period(sides(0.2, 1.0, num_actors=2, num_cores=2))
    assert found.seconds == pytest.approx(1.1)
    assert found.bottleneck == "training"


def test_serial_training_takes_both_sides_one_after_the_other():
    assert period(sides(2.0, 3.0, is_serial=True)).seconds == pytest.approx(5.0)
    crowded = sides(2.0, 3.0, num_actors=4, num_cores=2, is_serial=True)
    assert period(crowded).seconds == pytest.approx(2 * 2.0 + 3.0)


def test_actors_that_wait_leave_their_core_to_others():
    waiting = Work(1.0, 0.1, 1.0)
    found = period(sides(1.0, 0.5, num_actors=8, num_cores=2, unroll=waiting))
    assert found.seconds == pytest.approx(1.0)


def test_an_actor_beside_a_learner_that_never_rests_has_its_loaded_cost():
    found = period(sides(1.0, 4.0, num_cores=2, unroll=Work(1.0, 1.0, 1.5)))
    assert found.terms["sampling"] == pytest.approx(1.5)


def test_a_learner_is_slower_only_while_its_actor_works():
    """Of each version the actor works 1 s, in which the learner does two thirds of a second's
    work: the third that is missing comes on top."""
    found = period(sides(1.0, 4.0, num_cores=2, version=Work(4.0, 4.0, 1.5)))
    assert found.seconds == pytest.approx(4.0 + 1 / 3, rel=1e-4)


def test_threads_that_wait_for_each_other_go_at_the_pace_of_the_one_that_shares_its_core():
    """A learner of two threads and an actor on two cores: while the actor works (1 s of its own,
    1.5 s as three share two cores), the learner does half of its work; the rest it does alone."""
    found = period(sides(1.0, 4.0, num_cores=2, version=Work(4.0, 8.0, 1.0)))
    assert found.seconds == pytest.approx(1.5 + (4.0 - 0.75))


SECONDS = st.floats(1e-6, 10.0)
STRAIN = st.floats(1.0, 3.0)


@given(
    SECONDS, SECONDS, SECONDS, STRAIN, STRAIN, st.integers(1, 40), st.integers(1, 20), st.booleans()
)
def test_no_version_is_faster_than_any_bound_or_slower_than_everything_in_a_row(
    unroll_s, version_s, receive_s, strain, other_strain, num_actors, num_cores, is_serial
):
    receive_s = min(receive_s, version_s / num_actors)
    asked = sides(
        unroll_s,
        version_s,
        num_actors,
        num_cores,
        unroll=Work(unroll_s, unroll_s, strain),
        version=Work(version_s, version_s, other_strain),
        receive_s=receive_s,
        is_serial=is_serial,
    )
    found = period(asked)
    assert found.seconds >= max(found.terms.values()) * (1 - 1e-6)
    in_a_row = num_actors * unroll_s * strain + version_s * other_strain
    assert found.seconds <= in_a_row * (1 + 1e-6)
