"""Converts a state tree to JSON and named tensors and back, without loss.

Values that JSON does not have become an object with the key `$`, which names the kind:

    {"$": "tensor", "name": "optimiser.moment"}      also "array", "scalar" (numpy), "bytes"
    {"$": "float", "text": "nan"}                    numbers that are not finite
    {"$": "tuple", "items": [...]}                   and "pairs" for keys that are not text
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tianji.checkpoint.tensors import RESERVED, Leaf, TensorReader, is_tensor, to_leaf
from tianji.errors import CheckpointError
from tianji.wording import kind_of

KIND = "$"


def flatten(state: Mapping[str, Any]) -> tuple[Any, dict[str, Leaf]]:
    """Return the tree as JSON values, and the tensors that it refers to by name."""
    leaves: dict[str, Leaf] = {}
    return _encode(state, "", leaves), leaves


def _encode(value: Any, name: str, leaves: dict[str, Leaf]) -> Any:
    kind = _leaf_kind(value)
    if kind:
        return _reference(kind, value, name, leaves)
    if isinstance(value, Mapping):
        return _encode_mapping(value, name, leaves)
    if isinstance(value, list | tuple):
        items = [_encode(entry, f"{name}.{i}", leaves) for i, entry in enumerate(value)]
        return items if isinstance(value, list) else {KIND: "tuple", "items": items}
    if isinstance(value, float) and not math.isfinite(value):
        return {KIND: "float", "text": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CheckpointError(
        f"State '{name}' is {kind_of(value)}, which a checkpoint cannot store. Use "
        "numbers, text, None, bytes, numpy arrays, torch tensors, and dicts, lists or tuples of "
        "them."
    )


def _leaf_kind(value: Any) -> str:
    if is_tensor(value):
        return "tensor"
    kinds = {np.ndarray: "array", np.generic: "scalar", bytes: "bytes", bytearray: "bytes"}
    return next((kind for type_, kind in kinds.items() if isinstance(value, type_)), "")


def _reference(kind: str, value: Any, name: str, leaves: dict[str, Leaf]) -> dict[str, Any]:
    while name in leaves or name in {RESERVED, ""}:
        name += "'"
    data = np.frombuffer(value, np.uint8) if kind == "bytes" else value
    leaf = to_leaf(data, name)
    leaves[name] = leaf
    reference: dict[str, Any] = {KIND: kind, "name": name}
    if leaf.raw_dtype:
        reference |= {"dtype": leaf.raw_dtype, "shape": list(data.shape)}
    return reference


def _encode_mapping(value: Mapping[Any, Any], name: str, leaves: dict[str, Leaf]) -> Any:
    prefix = f"{name}." if name else ""
    if KIND not in value and all(isinstance(key, str) for key in value):
        return {key: _encode(entry, f"{prefix}{key}", leaves) for key, entry in value.items()}
    pairs = [
        [_encode(key, f"{prefix}key", leaves), _encode(entry, f"{prefix}{key}", leaves)]
        for key, entry in value.items()
    ]
    return {KIND: "pairs", "items": pairs}


def unflatten(tree: Any, reader: TensorReader) -> Any:
    """Return the state that was given to flatten()."""
    if isinstance(tree, list):
        return [unflatten(entry, reader) for entry in tree]
    if not isinstance(tree, dict):
        return tree
    if KIND not in tree:
        return {key: unflatten(entry, reader) for key, entry in tree.items()}
    kind = tree[KIND]
    if kind == "tuple":
        return tuple(unflatten(entry, reader) for entry in tree["items"])
    if kind == "pairs":
        return {unflatten(k, reader): unflatten(v, reader) for k, v in tree["items"]}
    return _fetch(kind, tree, reader)


def _fetch(kind: str, reference: dict[str, Any], reader: TensorReader) -> Any:
    if kind == "float":
        return float(reference["text"])
    raw = (reference.get("dtype", ""), tuple(reference.get("shape", ())))
    if kind == "tensor":
        return reader.tensor(reference["name"], *raw)
    array = reader.array(reference["name"], *raw)
    if kind == "bytes":
        return array.tobytes()
    return array[()] if kind == "scalar" else array
