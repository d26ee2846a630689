"""The contract of a board of orders, in one process and on shared memory."""

import os

import pytest

from tests.fakes.roles import TWO_ACTORS
from tianji.channels.memory import Segment
from tianji.channels.orders import ORDER_WORDS, Control, Order, Orders


def inproc():
    orders = Orders(TWO_ACTORS)
    return orders, orders


def shared():
    control = Control.create(TWO_ACTORS, ("one",))
    attached = Control(TWO_ACTORS, ("one",), Segment.attach(os.dup(control.segment.fd)))
    return control.supervision, attached.supervision


@pytest.fixture(params=[inproc, shared])
def ends(request):
    """The writer's end and a reader's."""
    return request.param()


def test_every_order_has_a_word_of_its_own_and_fits():
    assert sorted(Order) == list(range(len(Order)))
    assert len(Order) <= ORDER_WORDS


def test_nothing_is_wanted_at_first(ends):
    _, reader = ends
    assert all(row.tolist() == [0] * ORDER_WORDS for row in reader.rows.values())


def test_a_reader_finds_what_is_wanted_and_sees_that_it_is_new(ends):
    writer, reader = ends
    row = reader.rows["actor-1"]
    writer.post("actor-1", Order.RESETS, 3)
    assert (row[Order.NUMBER], row[Order.RESETS]) == (1, 3)
    writer.post("actor-1", Order.GIVEN_UP, 1)
    assert (row[Order.NUMBER], row[Order.RESETS], row[Order.GIVEN_UP]) == (2, 3, 1)


def test_the_same_order_twice_is_one_order(ends):
    writer, reader = ends
    for _ in range(2):
        writer.post("actor-0", Order.RESETS, 3)
    assert reader.rows["actor-0"][Order.NUMBER] == 1


def test_a_reader_that_comes_late_finds_the_newest(ends):
    writer, reader = ends
    for resets in range(1, 5):
        writer.post("actor-0", Order.RESETS, resets)
    assert reader.rows["actor-0"][Order.RESETS] == 4


def test_an_order_to_one_role_is_none_to_others(ends):
    writer, reader = ends
    writer.post("actor-0", Order.RESETS, 3)
    others = [row for name, row in reader.rows.items() if name != "actor-0"]
    assert all(row.tolist() == [0] * ORDER_WORDS for row in others)
