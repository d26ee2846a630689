"""Convolutions in parts give the same features and gradients as the torso itself."""

import threading

import pytest
import torch
from torch import nn

from tianji.models.networks.encoder import ImageTorso
from tianji.models.networks.parts import LEAST_ROWS, ROWS_AT_ONCE, in_parts

SHAPE = (3, 12, 12)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def torso():
    torch.manual_seed(0)
    return ImageTorso(SHAPE, 1 / 255)


def images(num_rows):
    return torch.randint(256, (num_rows, *SHAPE), dtype=torch.uint8)


class Watched(nn.Module):
    """Notes the thread, the rows and the modes of each call."""

    def __init__(self, torso):
        super().__init__()
        self.torso = torso
        self.calls = []

    def forward(self, rows):
        thread = threading.current_thread().name
        self.calls.append((thread, len(rows), torch.get_num_threads()))
        return self.torso(rows)


def gradients(torso, compute, rows):
    torso.zero_grad()
    compute(rows).square().sum().backward()
    return [parameter.grad.clone() for parameter in torso.parameters()]


@pytest.mark.parametrize("num_rows", [2 * LEAST_ROWS, 2 * LEAST_ROWS + 3])
def test_gradients_are_those_of_the_torso(two_threads, torso, num_rows):
    rows = images(num_rows)
    watched = Watched(torso)
    found = gradients(watched, lambda some: in_parts(watched, some), rows)
    expected = gradients(torso, torso, rows)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert sorted(count for _, count, _ in watched.calls) == [num_rows // 2, -(-num_rows // 2)]
    assert all(name.startswith("part") for name, _, _ in watched.calls)
    assert {threads for _, _, threads in watched.calls} == {1}
    assert torch.get_num_threads() == 2


def test_gradients_are_the_same_bits_every_time(two_threads, torso):
    rows = images(4 * LEAST_ROWS)
    one, other = (gradients(torso, lambda some: in_parts(torso, some), rows) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


def test_features_are_those_of_the_torso(two_threads, torso):
    rows = images(2 * ROWS_AT_ONCE + 5)
    watched = Watched(torso)
    with torch.no_grad():
        torch.testing.assert_close(in_parts(watched, rows), torso(rows), rtol=1e-4, atol=1e-5)
    assert [count for _, count, _ in watched.calls].count(ROWS_AT_ONCE) == 2


def test_parts_compute_in_the_precision_of_the_caller(two_threads, torso):
    rows = images(2 * LEAST_ROWS)
    with torch.autocast("cpu", torch.bfloat16):
        features = in_parts(torso, rows)
    assert features.dtype == torch.bfloat16
    features.float().sum().backward()
    assert all(parameter.grad is not None for parameter in torso.parameters())


def test_few_rows_and_one_thread_have_no_parts(torso):
    torso = Watched(torso)
    assert torch.get_num_threads() == 1
    in_parts(torso, images(4 * LEAST_ROWS))
    torch.set_num_threads(2)
    in_parts(torso, images(2 * LEAST_ROWS - 1))
    torch.set_num_threads(1)
    assert [name for name, _, _ in torso.calls] == ["MainThread", "MainThread"]


def test_an_error_in_a_part_is_raised(two_threads):
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, rows):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        in_parts(Broken(), images(2 * LEAST_ROWS))
