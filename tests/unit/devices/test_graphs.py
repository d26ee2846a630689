"""What tells recordings apart, and how they are made, on graphs that a CPU runs."""

import gc
from typing import NamedTuple

import pytest
import torch

from tests.fakes.graphs import use_fake_graphs
from tianji.devices.graphs import Recorded, without_collection


class Pair(NamedTuple):
    one: torch.Tensor
    other: dict


@pytest.fixture(autouse=True)
def graphs(monkeypatch):
    use_fake_graphs(monkeypatch)


def test_inputs_are_found_in_tuples_and_dictionaries():
    add = Recorded(lambda pair, factor: pair.one + factor * pair.other["x"])
    for seed in range(3):
        one, x = torch.full((2,), float(seed)), torch.arange(2.0)
        assert torch.equal(add(Pair(one, {"x": x}), 2.0), one + 2.0 * x)
    assert len(add._recordings) == 1


def test_other_shapes_dtypes_constants_and_keys_are_recorded_apart():
    total = Recorded(lambda given, factor: factor * sum(x.sum() for x in given.values()))
    x = torch.ones(2)
    calls = [
        ({"x": x}, 1.0, 2.0),
        ({"x": torch.ones(3)}, 1.0, 3.0),
        ({"x": x.double()}, 1.0, 2.0),
        ({"x": x}, 5.0, 10.0),
        ({"y": x}, 1.0, 2.0),
        ({"x": x, "y": x}, 1.0, 4.0),
    ]
    for given, factor, expected in calls * 2:
        assert float(total(given, factor)) == expected
    assert len(total._recordings) == len(calls)


def test_a_recording_leaves_what_it_changes_as_it_was():
    count = torch.zeros(())
    add = Recorded(lambda: count.add_(1.0).clone(), lambda: [count])
    assert [float(add()) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_a_result_is_overwritten_by_the_next_launch():
    double = Recorded(lambda x: 2.0 * x)
    first = double(torch.tensor(1.0))
    double(torch.tensor(4.0))
    assert float(first) == 8.0


@pytest.mark.parametrize("is_on", [True, False])
def test_a_recording_leaves_the_garbage_collector_as_it_was(is_on):
    if not is_on:
        gc.disable()
    try:
        with pytest.raises(ValueError), without_collection():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() == is_on
    finally:
        gc.enable()
