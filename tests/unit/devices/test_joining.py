"""Unrolls side by side on a device, with and without twins. Staged arrays."""

import numpy as np
import pytest
import torch

from tianji.devices import joining
from tianji.devices.joining import Joined
from tianji.devices.staging import Staging
from tianji.devices.twins import Twins
from tianji.types import Parts

CPU = torch.device("cpu")
SLOTS, ROWS, ENVS = 6, 5, 2


@pytest.fixture
def twins(monkeypatch):
    monkeypatch.setattr(joining, "TWINS", made := Twins())
    return made


def slots_of(shape, dtype):
    rng = np.random.default_rng(0)
    return rng.integers(200, size=(SLOTS, ROWS, ENVS, *shape)).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 3), "uint8"), ((4, 4), "uint8"), ((), "int64"), ((3,), "float32")]
)
@pytest.mark.parametrize("chosen", [[4, 0, 3], [2]])
def test_unrolls_lie_side_by_side(twins, shape, dtype, chosen):
    """Rows that inference has uploaded come from the twin, the last one from the host."""
    slots = slots_of(shape, dtype)
    twin = twins.add(slots, CPU)
    parts = tuple(slots[slot] for slot in chosen)
    given = Parts(parts, 1) if len(parts) > 1 else parts[0]
    expected = torch.from_numpy(np.concatenate(parts, 1))
    joined = Joined(given, CPU)
    joined.fill(given)
    assert torch.equal(joined.tensor, expected), "nothing was uploaded before"
    joined.tensor.zero_()
    for slot in chosen:
        twin.tensor[slot, : ROWS - 1] = torch.from_numpy(slots[slot, : ROWS - 1])
        twin.num_rows[slot], twin.ready[slot] = ROWS - 1, None
    slots[:, : ROWS - 1] = 0  # so that rows which cross again are seen
    joined.fill(given)
    assert torch.equal(joined.tensor, expected)


def test_rows_that_a_short_unroll_has_not_uploaded_are_completed(twins):
    slots = slots_of((4, 4), "uint8")
    twin = twins.add(slots, CPU)
    for slot in range(SLOTS):
        twin.tensor[slot] = torch.from_numpy(slots[slot])
        twin.num_rows[slot], twin.ready[slot] = ROWS - 1, None
    twin.tensor[3, 2:] = 0
    twin.num_rows[3] = 2
    parts = (slots[1], slots[3])
    joined = Joined(Parts(parts, 1), CPU)
    joined.fill(Parts(parts, 1))
    assert torch.equal(joined.tensor, torch.from_numpy(np.concatenate(parts, 1)))


def test_what_is_on_the_device_is_copied_there(twins):
    given = torch.from_numpy(slots_of((4, 4), "uint8")[0])
    joined = Joined(given, CPU)
    joined.fill(given)
    assert torch.equal(joined.tensor, given)
    assert joined.tensor.data_ptr() != given.data_ptr()


def test_the_number_of_unrolls_may_change(twins):
    slots = slots_of((4, 4), "uint8")
    twin = twins.add(slots, CPU)
    twin.tensor.copy_(torch.from_numpy(slots))
    twin.ready.update(dict.fromkeys(range(SLOTS)))
    whole = np.concatenate(list(slots), 1)
    joined = Joined(whole, CPU)
    for given in (whole, Parts(tuple(slots), 1), torch.from_numpy(whole), whole):
        joined.tensor.zero_()
        joined.fill(given)
        assert torch.equal(joined.tensor, torch.from_numpy(whole))


def test_staged_arrays_cross_together_or_up_to_a_row():
    kinds = {"flag": ((3,), "bool"), "count": ((1,), "int64"), "rows": ((4, 2), "float32")}
    staging = Staging(kinds, CPU)
    staging.host["flag"][:] = [True, False, True]
    staging.host["count"][:] = 7
    staging.host["rows"][:] = np.arange(8).reshape(4, 2)
    staging.upload_beginning("rows", 3)
    assert staging.device["flag"].tolist() == [True, False, True]
    assert staging.device["count"].tolist() == [7]
    assert staging.device["rows"].tolist() == [[0, 1], [2, 3], [4, 5], [0, 0]]
    staging.settle()
    staging.upload()
    assert staging.device["rows"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
