"""Writes and reads tensors and arrays as safetensors files.

The safetensors library reads them. This module writes them, a JSON header and the raw bytes, so
that one pass writes and hashes without a copy, a full disk raises its own error number, and tensors
may be views of one vector.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tianji.checkpoint.durable import Stored, write_file
from tianji.errors import CheckpointError

RESERVED = "__metadata__"
_CODES = {"bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64", "bfloat16": "BF16"}
_CODES |= {f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)}
_CODES |= {f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)}


class Leaf(NamedTuple):
    """The bytes and type of one tensor: Leaf("F32", (64, 4), 4, data)."""

    code: str
    shape: tuple[int, ...]
    item_bytes: int
    data: memoryview
    raw_dtype: str = ""
    """The real type, if the format does not have it; the bytes are then stored as U8."""


def is_tensor(value: Any) -> bool:
    """Return whether a value is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_leaf(value: Any, name: str) -> Leaf:
    """Return an array or tensor as a leaf; contiguous values in main memory are not copied."""
    return _tensor_leaf(value) if is_tensor(value) else _array_leaf(np.asarray(value), name)


def _array_leaf(array: np.ndarray[Any, Any], name: str) -> Leaf:
    if array.dtype.hasobject or array.dtype.fields is not None:
        raise CheckpointError(
            f"State '{name}' is an array of {array.dtype}, which a checkpoint cannot store. "
            "Use arrays of numbers, booleans or text, one per field."
        )
    array = np.asarray(array, order="C")
    data = array.reshape(-1).view(np.uint8).data
    code = _CODES.get(array.dtype.name) if array.dtype.isnative else None
    if code is None:
        return Leaf("U8", (len(data),), 1, data, array.dtype.str)
    return Leaf(code, array.shape, array.dtype.itemsize, data)


def _tensor_leaf(tensor: Any) -> Leaf:
    import torch

    tensor = tensor.detach().cpu().contiguous()
    data = tensor.reshape(-1).view(torch.uint8).numpy().data
    dtype = str(tensor.dtype).removeprefix("torch.")
    code = _CODES.get(dtype)
    if code is None:
        return Leaf("U8", (len(data),), 1, data, dtype)
    return Leaf(code, tuple(tensor.shape), tensor.element_size(), data)


def write_tensors(path: Path, leaves: Mapping[str, Leaf]) -> Stored:
    """Write one safetensors file."""
    # Wide types first: every tensor is aligned, as readers that map the file need it.
    ordered = sorted(leaves.items(), key=lambda entry: (-entry[1].item_bytes, entry[0]))
    return write_file(path, _pieces(ordered))


def _pieces(ordered: list[tuple[str, Leaf]]) -> Iterator[bytes | memoryview]:
    header: dict[str, Any] = {}
    end = 0
    for name, leaf in ordered:
        begin, end = end, end + len(leaf.data)
        header[name] = {"dtype": leaf.code, "shape": leaf.shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little")
    yield text
    for _, leaf in ordered:
        yield leaf.data


def read_tensors(path: Path) -> dict[str, Any]:
    """Return all tensors of a file as torch tensors with their own memory."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of a file without reading the tensors."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


class TensorReader:
    """Reads single tensors of a file by name, with their original types."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, Any] = {}

    def array(self, name: str, raw_dtype: str = "", shape: tuple[int, ...] = ()) -> Any:
        found = np.array(self._open("np").get_tensor(name))
        return found.view(np.dtype(raw_dtype)).reshape(shape) if raw_dtype else found

    def tensor(self, name: str, raw_dtype: str = "", shape: tuple[int, ...] = ()) -> Any:
        found = self._open("pt").get_tensor(name).clone()
        if not raw_dtype:
            return found
        import torch

        dtype = getattr(torch, raw_dtype)
        # An empty tensor cannot be viewed as another type.
        empty = math.prod(shape) == 0
        return torch.empty(shape, dtype=dtype) if empty else found.view(dtype).reshape(shape)

    def _open(self, framework: str) -> Any:
        from safetensors import safe_open

        if framework not in self._files:
            self._files[framework] = safe_open(self._path, framework=framework)
        return self._files[framework]
