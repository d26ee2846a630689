"""Observations of several unrolls, joined in memory of their own on a device.

    joined = Joined(parts, device)
    joined.fill(parts)                    # joined.tensor [F, N, ...] has them, in stream order

Where inference has uploaded them already, one kernel joins all slots; their last rows, which nobody
has evaluated, cross in one copy.

F: rows, U: unrolls, N: environments of all unrolls, S: slots.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tianji.devices.staging import Staging
from tianji.devices.twins import TWINS, Twin
from tianji.devices.waits import WAITS
from tianji.types import Array, Observed, Parts

SLOTS, LAST = "slots", "last"


class _Views(NamedTuple):
    """How a twin is read and the memory is written, word by word."""

    twin: Twin
    from_FS: Tensor
    slots_U: Tensor
    to_FU: Tensor


class Joined:
    """Memory for unrolls side by side along their second axis, however many they are."""

    def __init__(self, like: Observed | Tensor, device: torch.device) -> None:
        """like: observations of the shape."""
        parts = (like,) if isinstance(like, Tensor) else _parts(like)
        first = parts[0]
        num_rows, num_envs, *shape = first.shape
        kind = first.dtype if isinstance(first, Tensor) else torch.from_numpy(first[:0]).dtype
        shape = [num_rows, num_envs * len(parts), *shape]
        self._device = device
        self.tensor = torch.zeros(shape, dtype=kind, device=device)
        self._last = self.tensor[-1]
        self._staging: Staging | None = None
        self._views: _Views | None = None

    def fill(self, given: Observed | Tensor) -> None:
        """Copy these unrolls; what the device has of them crosses no more."""
        if isinstance(given, Tensor):
            self.tensor.copy_(given, non_blocking=True)
            return
        parts = _parts(given)
        found = TWINS.find_all(parts, len(self.tensor) - 1)
        if found is None:
            self._upload(parts)
        else:
            self._gather(parts, *found)

    def _gather(self, parts: tuple[Array, ...], twin: Twin, slots: list[int]) -> None:
        """Join what the twin has of these slots with their last rows."""
        staging, num_envs = self._staging, parts[0].shape[1]
        if staging is None:
            last_kind = (tuple(self._last.shape), parts[0].dtype.name)
            kinds = {SLOTS: ((self.tensor.shape[1],), "int64"), LAST: last_kind}
            staging = self._staging = Staging(kinds, self._device)
        staging.settle()
        staging.host[SLOTS][: len(slots)] = slots
        last = staging.host[LAST]
        for index, part in enumerate(parts):
            last[index * num_envs : (index + 1) * num_envs] = part[-1]
        staging.upload()
        WAITS.uploaded_bytes += staging.nbytes
        views = self._views
        if views is None or views.twin is not twin or len(views.slots_U) != len(parts):
            views = self._views = self._view(twin, len(parts), staging.device[SLOTS])
        torch.index_select(views.from_FS, 1, views.slots_U, out=views.to_FU)
        self._last.copy_(staging.device[LAST])

    def _view(self, twin: Twin, num_parts: int, slots: Tensor) -> _Views:
        num_rows, _, *shape = self.tensor.shape
        return _Views(
            twin,
            _as_words(twin.tensor).transpose(0, 1),
            slots[:num_parts],
            _as_words(self.tensor.view(num_rows, num_parts, -1, *shape)),
        )

    def _upload(self, parts: tuple[Array, ...]) -> None:
        num_envs = parts[0].shape[1]
        for index, part in enumerate(parts):
            host = torch.from_numpy(part if part.flags.writeable else part.copy())
            WAITS.uploaded_bytes += part.nbytes
            # A whole slot crosses at once; the environments are put in their places there.
            there = host.to(self._device, non_blocking=True)
            self.tensor[:, index * num_envs : (index + 1) * num_envs].copy_(there)


def _parts(given: Observed) -> tuple[Array, ...]:
    if not isinstance(given, Parts):
        return (given,)
    assert given.axis == 1, "environments are the second axis of observations"
    return given.arrays


def _as_words(tensor: Tensor) -> Tensor:
    """Return a tensor [A, B, ...] as [A, B, words], the fewest: kernels copy one at a time."""
    flat = tensor.flatten(2)
    is_even = flat.shape[2] * flat.element_size() % 8 == 0
    return flat.view(torch.int64) if is_even else flat
