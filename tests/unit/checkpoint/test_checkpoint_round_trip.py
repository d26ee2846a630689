"""What goes into a checkpoint comes out the same, bit for bit and type for type."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tianji.checkpoint.load import read_checkpoint, read_manifest
from tianji.checkpoint.save import write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.errors import CheckpointError

TORCH_TYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.uint16, torch.complex64, torch.float8_e5m2,
]  # fmt: skip
NUMPY_TYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">f8", "c16",
               "M8[ns]", "U5"]  # fmt: skip


def round_trip(folder: Path, state: dict[str, object]) -> dict[str, object]:
    return dict(read_checkpoint(write_checkpoint(folder, Snapshot(1, {}, state))).state)


def assert_same(found: object, given: object) -> None:
    """Equal, and of the same type all the way down."""
    assert type(found) is type(given)
    if isinstance(given, dict):
        assert list(found) == list(given)
        for key in given:
            assert_same(found[key], given[key])
    elif isinstance(given, list | tuple):
        assert len(found) == len(given)
        for one, other in zip(found, given, strict=True):
            assert_same(one, other)
    elif isinstance(given, np.ndarray):
        assert (found.dtype, found.shape) == (given.dtype, given.shape)
        assert found.tobytes() == given.tobytes() and found.flags.writeable
    elif isinstance(given, torch.Tensor):
        assert (found.dtype, found.shape) == (given.dtype, given.shape)
        one, other = (t.reshape(-1).view(torch.uint8).tolist() for t in (found, given))
        assert one == other
    else:
        assert repr(found) == repr(given)  # tells -0.0 from 0.0, and one nan from a number


@pytest.mark.parametrize("dtype", TORCH_TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_tensors_of_every_type_and_shape_survive(tmp_path, dtype, shape):
    tensor = (torch.arange(6).reshape(2, 3) if shape == (2, 3) else torch.ones(shape)).to(dtype)
    assert_same(round_trip(tmp_path, {"value": tensor}), {"value": tensor})


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_arrays_of_every_type_and_shape_survive(tmp_path, dtype, shape):
    array = np.arange(6).reshape(2, 3).astype(dtype) if shape == (2, 3) else np.zeros(shape, dtype)
    assert_same(round_trip(tmp_path, {"value": array}), {"value": array})


def test_arrays_and_tensors_that_are_not_contiguous_survive(tmp_path):
    state = {
        "columns": np.arange(12.0).reshape(3, 4)[:, ::2],
        "turned": torch.arange(12).reshape(3, 4).T,
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    }
    assert_same(round_trip(tmp_path, state), state)


def test_random_states_survive_and_go_on_the_same(tmp_path):
    generator, mersenne = np.random.default_rng(3), random.Random(3)
    state = {
        "pcg": generator.bit_generator.state,
        "python": mersenne.getstate(),
        "torch": torch.get_rng_state(),
    }
    found = round_trip(tmp_path, state)
    assert_same(found, state)
    restored = np.random.default_rng()
    restored.bit_generator.state = found["pcg"]
    assert restored.random() == generator.random()


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
    | st.sampled_from([np.float32(0.1), np.int64(-3), np.bool_(True)])
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.just("$") | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=TREES)
def test_any_tree_survives(tmp_path, tree):
    assert_same(round_trip(tmp_path, {"tree": tree}), {"tree": tree})


def test_two_names_that_read_alike_are_kept_apart(tmp_path):
    state = {"a": {"b": np.array([1])}, "a.b": np.array([2]), "__metadata__": np.array([3])}
    assert_same(round_trip(tmp_path, state), state)


def test_weights_that_are_views_into_one_vector_open_in_any_safetensors_reader(tmp_path):
    flat = torch.arange(10, dtype=torch.float32)
    weights = {
        "layer.weight": flat[:6].view(2, 3),
        "layer.bias": flat[6:],
        "count": torch.tensor(3),
        "half": torch.ones(3, dtype=torch.bfloat16),
    }
    path = write_checkpoint(tmp_path, Snapshot(7, weights))
    assert_same(dict(read_checkpoint(path).weights), dict(sorted(weights.items())))
    found = safetensors.torch.load_file(path / "weights.safetensors")
    assert_same(dict(sorted(found.items())), dict(sorted(weights.items())))


def test_every_tensor_lies_aligned_in_its_file(tmp_path):
    weights = {"a": torch.ones(3, dtype=torch.uint8), "b": torch.ones(2, dtype=torch.float64)}
    data = (write_checkpoint(tmp_path, Snapshot(1, weights)) / "weights.safetensors").read_bytes()
    header_bytes = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_bytes])
    assert header_bytes % 8 == 0
    assert header["b"]["data_offsets"][0] % 8 == 0


def test_the_manifest_tells_facts_and_origin_as_valid_json(tmp_path):
    facts = {"env_steps": np.int64(41_000), "mean_return_100": float("nan"), "note": "ab"}
    path = write_checkpoint(tmp_path, Snapshot(160, {}, {}, facts))
    assert path == tmp_path / "checkpoints" / "v00000160"
    content = json.loads((path / "manifest.json").read_text(), parse_constant=pytest.fail)
    assert content["facts"] == {"env_steps": 41_000, "mean_return_100": None, "note": "ab"}
    assert set(content["made_with"]) == {"tianji", "torch", "numpy"}
    assert read_manifest(path).version == 160
    assert read_checkpoint(path).facts == content["facts"]


def test_the_state_can_be_left_unread(tmp_path):
    path = write_checkpoint(tmp_path, Snapshot(1, {"w": torch.ones(2)}, {"replay": np.ones(3)}))
    (path / "state.safetensors").unlink()
    assert read_checkpoint(path, weights_only=True).state == {}


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array([object()])], ids=["object", "set", "array"]
)
def test_what_cannot_be_kept_is_named_and_nothing_is_left_behind(tmp_path, value):
    with pytest.raises(CheckpointError, match=r"State 'outer\.inner' is"):
        write_checkpoint(tmp_path, Snapshot(1, {}, {"outer": {"inner": value}}))
    assert list((tmp_path / "checkpoints").iterdir()) == []
