import copy

import numpy as np
import pytest
import torch
from torch import nn

from tianji.errors import UsageError
from tianji.models.tensors import Snapshot, flatten, take_rows


class Mixed(nn.Module):
    """Parameters, and buffers of several types."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 2)
        self.second = nn.Linear(2, 1)
        self.register_buffer("count", torch.tensor(5, dtype=torch.int64))
        self.register_buffer("flags", torch.tensor([True, False, True]))
        self.register_buffer("moments", torch.rand(3, dtype=torch.float64))


def test_parameters_and_gradients_are_views_of_two_vectors():
    module = nn.Linear(3, 2)
    before = [parameter.detach().clone() for parameter in module.parameters()]
    flat = flatten(module)
    assert flat.vector_P.shape == flat.gradient_P.shape == (8,)
    torch.testing.assert_close([p.detach() for p in module.parameters()], before, rtol=0, atol=0)
    flat.vector_P.fill_(1.0)
    assert module(torch.ones(1, 3)).tolist() == [[4.0, 4.0]]
    module(torch.ones(1, 3)).sum().backward()
    assert flat.gradient_P.tolist() == [1.0] * 8


def test_backward_adds_into_the_flat_gradient_in_place():
    module = nn.Linear(3, 2)
    flat = flatten(module)
    for _ in range(2):
        module(torch.ones(1, 3)).sum().backward()
    assert flat.gradient_P.tolist() == [2.0] * 8


@pytest.mark.parametrize("make", [lambda module: module, copy.deepcopy])
def test_flattening_again_finds_the_same_memory(make):
    module = nn.Linear(3, 2)
    flatten(module)
    module = make(module)
    first, second = flatten(module), flatten(module)
    assert first.vector_P.data_ptr() == second.vector_P.data_ptr()
    assert first.gradient_P.data_ptr() == second.gradient_P.data_ptr()
    first.vector_P.fill_(3.0)
    assert module.bias.tolist() == [3.0, 3.0]


def test_modules_in_another_order_get_a_vector_of_their_own():
    first, second = nn.Linear(2, 1), nn.Linear(3, 1)
    flatten(nn.ModuleList([first, second]))
    flat = flatten(nn.ModuleList([second, first]))
    parameters = [second.weight, second.bias, first.weight, first.bias]
    torch.testing.assert_close(flat.vector_P, torch.cat([p.detach().view(-1) for p in parameters]))
    flat.vector_P.zero_()
    assert not any(parameter.any() for parameter in parameters)


def test_a_copy_has_its_own_memory():
    module = nn.Linear(3, 2)
    flat = flatten(module)
    other = flatten(copy.deepcopy(module))
    other.vector_P.zero_()
    assert flat.vector_P.any()


def test_tied_parameters_stay_tied():
    module = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    module["b"].weight = module["a"].weight
    flat = flatten(module)
    assert len(flat.vector_P) == 4 + 2 + 2
    assert module["a"].weight.data_ptr() == module["b"].weight.data_ptr()


def test_frozen_parameters_are_published_and_never_moved():
    module = nn.Linear(3, 2)
    module.weight.requires_grad_(False)
    flat = flatten(module)
    module(torch.ones(1, 3)).sum().backward()
    assert flat.gradient_P.tolist() == [0.0] * 6 + [1.0] * 2


def test_parameters_of_another_type_are_refused_by_name():
    with pytest.raises(UsageError, match=r"'weight'.*float64.*float32"):
        flatten(nn.Linear(2, 2, dtype=torch.float64))


@pytest.mark.parametrize("is_read_only", [False, True])
def test_a_snapshot_carries_parameters_and_every_buffer_exactly(is_read_only):
    torch.manual_seed(0)
    source, target = Mixed(), Mixed()
    source.count += 2**40
    source.flags.logical_not_()
    writer, reader = Snapshot(source), Snapshot(target)
    assert writer.nbytes == reader.nbytes == 4 * 11 + 8 + 3 + 8 * 3
    buffer = np.zeros(writer.nbytes, np.uint8)
    writer.write_to(buffer)
    buffer.flags.writeable = not is_read_only
    reader.read_from(buffer)
    torch.testing.assert_close(target.state_dict(), source.state_dict(), rtol=0, atol=0)


def test_a_snapshot_reads_into_the_modules_own_memory():
    module = Mixed()
    snapshot, weight = Snapshot(module), module.first.weight.detach()
    snapshot.read_from(np.zeros(snapshot.nbytes, np.uint8))
    assert not weight.any()


def test_a_buffer_of_another_size_is_refused():
    snapshot = Snapshot(Mixed())
    with pytest.raises(ValueError, match="79 bytes, buffer of 80"):
        snapshot.write_to(np.zeros(80, np.uint8))


def test_rows_of_images_keep_the_order_of_their_channels():
    images = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)
    last = images.contiguous(memory_format=torch.channels_last)
    index = torch.tensor([1, 0, 1])
    for given in (images, last):
        taken = take_rows(given, index)
        assert torch.equal(taken, images[index])
        assert taken.stride()[1:] == given.stride()[1:]


def test_a_part_of_a_flat_module_keeps_its_place_in_the_vectors():
    first, second = nn.Linear(2, 1), nn.Linear(3, 1)
    whole = flatten(nn.ModuleList([first, second]))
    part = flatten(second)
    assert torch.equal(part.vector_P, whole.vector_P[3:])
    part.vector_P.fill_(5.0)
    part.gradient_P.fill_(7.0)
    assert whole.vector_P[3:].tolist() == [5.0] * 4 and whole.vector_P[:3].max() < 5.0
    assert whole.gradient_P.tolist() == [0.0] * 3 + [7.0] * 4
    assert flatten(nn.ModuleList([first, second])).vector_P.data_ptr() == whole.vector_P.data_ptr()
