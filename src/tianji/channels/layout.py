"""Schema to bytes: where each array of an unroll lies in its slot."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tianji.types import GRADIENTS, PLACE, Array, Field

ALIGN = 64  # a cache line: two fields never share one


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of an unroll of `num_envs` environments and `num_rows` rows.

    >>> Layout((Field("reward", "float32"),), num_rows=32, num_envs=8).slot_bytes
    1024
    """

    fields: tuple[Field, ...]
    num_rows: int
    num_envs: int

    def shape(self, field: Field) -> tuple[int, ...]:
        return {
            "step": (self.num_rows, self.num_envs, *field.shape),
            "obs": (field.history + self.num_rows + 1, self.num_envs, *field.shape),
            "row": (self.num_rows, *field.shape),
            "unroll": (self.num_envs, *field.shape),
        }[field.per]

    def env_axes(self) -> dict[str, int | None]:
        """The axis of each field that counts environments; None for one value per row."""
        axes: dict[str, int | None] = {"step": 1, "obs": 1, "row": None, "unroll": 0}
        return {field.name: axes[field.per] for field in self.fields}

    def observed(self) -> dict[str, int]:
        """Return the fields with a row for each observation, and how far each looks back."""
        return {field.name: field.history for field in self.fields if field.per == "obs"}

    def row_names(self) -> tuple[str, ...]:
        """Return the fields with one entry for each row, other than the observations."""
        return tuple(field.name for field in self.fields if field.per in ("step", "row"))

    def offsets(self) -> dict[str, int]:
        names = (field.name for field in self.fields)
        return dict(zip(names, accumulate(self._sizes(), initial=0), strict=False))

    @property
    def slot_bytes(self) -> int:
        return sum(self._sizes())

    def _sizes(self) -> list[int]:
        """Return the bytes of each field in a slot, rounded up to whole cache lines."""
        sizes = (math.prod(self.shape(f)) * np.dtype(f.dtype).itemsize for f in self.fields)
        return [-(-size // ALIGN) * ALIGN for size in sizes]

    def arrays(self, memory: Any, num_slots: int) -> dict[str, Array]:
        """Views of every field over all slots: [num_slots, *shape]."""
        stride, offsets = self.slot_bytes, self.offsets()
        views: dict[str, Array] = {}
        for field in self.fields:
            inner = np.empty(self.shape(field), np.dtype(field.dtype)).strides
            views[field.name] = np.ndarray(
                (num_slots, *self.shape(field)),
                field.dtype,
                buffer=memory,
                offset=offsets[field.name],
                strides=(stride, *inner),
            )
        return views

    def fingerprint(self) -> int:
        """Equal for equal layouts: both ends of a stream compare it before they touch a slot."""
        return zlib.crc32(json.dumps(self.to_json()).encode())

    def to_json(self) -> dict[str, Any]:
        fields = [[f.name, f.dtype, list(f.shape), f.per, f.history] for f in self.fields]
        return {"fields": fields, "num_rows": self.num_rows, "num_envs": self.num_envs}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Layout:
        fields = tuple(Field(n, d, tuple(s), p, h) for n, d, s, p, h in data["fields"])
        return Layout(fields, data["num_rows"], data["num_envs"])


STANDARD_FIELDS: Sequence[Field] = (
    Field("reward", "float32"),
    Field("terminated", "bool"),
    Field("truncated", "bool"),
    Field("valid", "bool"),
    Field("episode_return", "float32"),
    Field("episode_length", "int32"),
    Field("row_ns", "int64", (), "row"),
    Field("row_version", "int64", (), "row"),
)
"""The fields of every unroll beside observations and the algorithm's own fields. `episode_length`
is 0 except in the row in which an episode ended; `row_ns` is when each row was finished, and
`row_version` the version of the policy that acted in it."""
PLACE_FIELD = Field(PLACE, "int64", (3,), "unroll")
"""A field of unrolls that go on from one to the next."""
GRADIENTS_FIELD = Field(GRADIENTS, "int64", (), "unroll")
"""A field of tokens of actors that train on memories of their own."""
