"""The collection-time model, against values worked out by hand."""

import doctest

import pytest

from tianji.bench import prediction
from tianji.bench.prediction import (
    Collecting,
    MessageCosts,
    actors_to_saturate,
    collection_as_printed_s,
    collection_s,
    critical_path,
    terms,
)

MS = 1e-3

# Costs (send, receive, processor), who collects (actors, sampling, of that on a processor, cores),
# seconds for 1000 messages, who holds it up.
SITUATIONS = {
    "one slow actor": ((1, 2, 3), (1, 9, 0, 8), 10.0, "actors"),
    "four slow actors": ((1, 2, 3), (4, 9, 0, 8), 2.5, "actors"),
    "a slow buffer": ((1, 2, 3), (8, 9, 0, 8), 2.0, "buffer"),
    "two cores for sending and receiving": ((1, 2, 6), (8, 9, 0, 2), 3.0, "processors"),
    "sampling that computes": ((1, 2, 3), (8, 9, 9, 2), 6.0, "processors"),
    "nobody samples": ((1, 0.5, 1.5), (1, 0, 0, 2), 1.0, "actors"),
}


def in_seconds(costs, collecting):
    actors, sample, sample_cpu, cores = collecting
    return MessageCosts(*(c * MS for c in costs)), Collecting(
        actors, sample * MS, sample_cpu * MS, cores
    )


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_slowest_side_decides(name):
    costs, collecting, seconds, side = SITUATIONS[name]
    costs, collecting = in_seconds(costs, collecting)
    assert collection_s(1000, costs, collecting) == pytest.approx(seconds)
    assert critical_path(costs, collecting) == side


def test_every_term_by_hand():
    costs, collecting = in_seconds((1, 2, 3), (5, 9, 7, 2))
    assert terms(costs, collecting) == pytest.approx(
        {"actors": 10 * MS / 5, "buffer": 2 * MS, "processors": 10 * MS / 2}
    )


@pytest.mark.parametrize("num_actors", [1, 2, 3, 16])
def test_sampling_and_sending_are_shared_by_the_actors(num_actors):
    costs, collecting = in_seconds((2, 0, 0), (num_actors, 4, 0, 1))
    assert collection_s(100, costs, collecting) == pytest.approx(0.6 / num_actors)


def test_of_equal_sides_the_first_on_the_way_of_the_data_holds_it_up():
    for first, costs in {
        "actors": (1, 1, 1),
        "buffer": (0.5, 1, 1),
        "processors": (0.5, 0.5, 1),
    }.items():
        assert critical_path(*in_seconds(costs, (1, 0, 0, 1))) == first


def test_the_equation_as_printed_forgets_the_number_of_actors():
    costs, four = in_seconds((1, 2, 9), (4, 9, 0, 1))
    assert collection_as_printed_s(1000, costs, four) == pytest.approx(10.0)
    assert collection_s(1000, costs, four) == pytest.approx(9.0), "it knows no cores either"
    costs, eight = in_seconds((1, 2, 3), (8, 9, 0, 1))
    assert collection_as_printed_s(1000, costs, eight) == pytest.approx(2.0), "the buffer's branch"


def test_with_one_actor_both_equations_agree():
    costs, alone = in_seconds((1, 2, 0), (1, 9, 0, 1))
    assert collection_as_printed_s(7, costs, alone) == collection_s(7, costs, alone)


@pytest.mark.parametrize(
    ("costs", "cores", "expected"),
    [((1, 2, 3), 8, 5.0), ((1, 2, 8), 2, 2.5), ((1, 2, 20), 2, 1.0)],
)
def test_actors_bring_something_until_another_side_is_as_slow(costs, cores, expected):
    for num_actors in (1, 3):
        costs_s, collecting = in_seconds(costs, (num_actors, 9, 0, cores))
        assert actors_to_saturate(costs_s, collecting) == pytest.approx(expected)


def test_where_the_actors_saturate_the_critical_path_changes_hands():
    for num_actors, side in ((4, "actors"), (5, "actors"), (6, "buffer")):
        assert critical_path(*in_seconds((1, 2, 0), (num_actors, 9, 0, 1))) == side


def test_where_only_the_actors_take_time_more_of_them_always_help():
    assert actors_to_saturate(*in_seconds((1, 0, 0), (1, 9, 0, 1))) == float("inf")


@pytest.mark.parametrize(
    ("sample_s", "expected"),
    [
        (0.0, (3.0, 4.0, 9.0)),  # every actor sends all the time
        (1.0, (2.0, 3.0, 6.0)),  # half of the time
        (3.0, (1.5, 2.5, 4.5)),
    ],
)
def test_the_load_of_a_full_machine_counts_for_the_time_that_actors_send(sample_s, expected):
    alone, loaded = MessageCosts(1.0, 2.0, 3.0), MessageCosts(3.0, 4.0, 9.0)
    found = alone.under_load(loaded, sample_s)
    assert (found.send_s, found.receive_s, found.cpu_s) == pytest.approx(expected)


def test_a_message_that_takes_no_time_can_be_asked_for_under_load():
    nothing = MessageCosts(0.0, 0.0, 0.0)
    assert nothing.under_load(MessageCosts(1.0, 1.0, 2.0), 0.0) == MessageCosts(1.0, 1.0, 2.0)


def test_the_example_of_the_docstring_holds():
    assert doctest.testmod(prediction) == doctest.TestResults(failed=0, attempted=2)
