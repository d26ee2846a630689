"""Convolutions in parts give the same features and gradients as the torso itself."""

import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

from tianji.models.networks.encoder import ImageTorso
from tianji.models.networks.parts import LEAST_ROWS, ROWS_AT_ONCE, in_parts, threads_of_parts

SHAPE = (3, 12, 12)


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def two_threads(set_threads):
    set_threads(2)


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


@pytest.mark.parametrize(
    ("num_threads", "num_rows", "expected"),
    [
        (1, 1024, (1,)),
        (5, 1024, (2, 1, 1, 1)),
        (6, 1024, (2, 2, 1, 1)),
        (7, 1024, (2, 2, 2, 1)),
        (8, 1024, (2, 2, 2, 2)),
        (11, 1024, (3, 3, 3, 2)),
        (4, 3 * LEAST_ROWS, (2, 2)),
        (5, 4 * LEAST_ROWS, (3, 2)),
        (4, LEAST_ROWS, (4,)),
    ],
)
def test_parts_have_all_threads_and_enough_rows(num_threads, num_rows, expected):
    assert threads_of_parts(num_threads, num_rows) == expected


def test_a_part_has_rows_in_proportion_to_its_threads(set_threads, torso):
    set_threads(5)
    rows = images(5 * LEAST_ROWS)
    for _ in range(3):
        watched = Watched(torso)
        found = gradients(watched, lambda some, torso=watched: in_parts(torso, some), rows)
        calls = sorted((count, threads) for _, count, threads in watched.calls)
        assert calls == [(LEAST_ROWS, 1)] * 3 + [(2 * LEAST_ROWS, 2)]
    for one, other in zip(found, gradients(torso, torso, rows), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_features_are_computed_by_all_threads(set_threads, torso):
    set_threads(5)
    watched = Watched(torso)
    rows = images(5 * ROWS_AT_ONCE)
    with torch.no_grad():
        torch.testing.assert_close(in_parts(watched, rows), torso(rows), rtol=1e-4, atol=1e-5)
    assert sorted(threads for _, _, threads in watched.calls) == [1, 1, 1, 2, 2]


def test_a_new_thread_keeps_the_number_of_the_process(set_threads, torso):
    set_threads(3)
    in_parts(torso, images(3 * LEAST_ROWS))
    numbers = []
    thread = threading.Thread(target=lambda: numbers.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert numbers == [3]


FORK = """
import os, signal, torch
from torch import nn
from tianji.models.networks.parts import LEAST_ROWS, in_parts

torso = nn.Linear(2, 2)
torch.set_num_threads(2)
rows = torch.ones(2 * LEAST_ROWS, 2)
in_parts(torso, rows).sum().backward()
child = os.fork()
if child == 0:
    signal.alarm(60)
    in_parts(torso, rows).sum().backward()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_has_threads_of_its_own():
    subprocess.run([sys.executable, "-c", FORK], check=True)


@pytest.mark.parametrize("loss", [torch.sum, torch.norm])
def test_a_second_derivative_is_refused(two_threads, torso, loss):
    features = in_parts(torso, images(2 * LEAST_ROWS))
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(loss(features), list(torso.parameters()), create_graph=True)


def test_a_second_backward_pass_is_refused(two_threads, torso):
    loss = in_parts(torso, images(2 * LEAST_ROWS)).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only one backward pass"):
        loss.backward()


def test_a_frozen_parameter_has_no_gradient(two_threads, torso):
    frozen, *others = torso.parameters()
    frozen.requires_grad_(False)
    in_parts(torso, images(2 * LEAST_ROWS)).sum().backward()
    assert frozen.grad is None
    assert all(parameter.grad is not None for parameter in others)
