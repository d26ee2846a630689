"""Networks evaluated on a GPU, row by row: each frame crosses once.

The rows of an unroll are uploaded as the environments make them, and stay: a learner in the same
process finds them there (devices/twins.py). The network is a CUDA graph on a stream of its own.

N: environments, K: frames of a stack, A: outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import gymnasium as gym
import torch
from torch import Tensor

from tianji.devices.graphs import recorded
from tianji.devices.twins import TWINS, Twin
from tianji.devices.waits import Waits
from tianji.envs.spaces import Leaf, observation_leaves
from tianji.ops.frames import hide_unseen
from tianji.ops.returns import Floats
from tianji.types import AGE, OBS, Unroll, leaf_name

Forward: TypeAlias = Callable[[Mapping[str, Tensor]], Tensor]


class GpuRows:
    """See RowInference."""

    runs_alone = True

    def __init__(self, forward: Forward, space: gym.Space[Any], device: torch.device) -> None:
        self._forward = forward
        self._device = device
        self._leaves = [_RowsOfLeaf(leaf, device) for leaf in observation_leaves(space)]
        self._graph = recorded(device, self._evaluate)
        self._stream: Any = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
        self._outputs: Tensor | None = None
        self._waits = Waits()

    @property
    def uploaded_bytes(self) -> int:
        return sum(leaf.uploaded_bytes for leaf in self._leaves)

    @torch.no_grad()
    def _evaluate(self, rows: dict[str, tuple[Tensor, ...]]) -> Tensor:
        obs = {leaf.key: leaf.observation(*rows[leaf.key]) for leaf in self._leaves}
        return self._forward(obs)

    def record(self, unroll: Unroll) -> None:
        """Evaluate a row of an unroll that nobody uses, so that the graph is recorded."""
        self.begin(unroll)
        self.submit(unroll, 0)
        self._wait()
        for leaf in self._leaves:
            leaf.forget()

    def begin(self, unroll: Unroll) -> None:
        for leaf in self._leaves:
            leaf.begin(unroll)

    def submit(self, unroll: Unroll, t: int) -> None:
        if self._stream is not None:  # new parameters are copied on the thread's own stream
            self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            found = self._graph({leaf.key: leaf.upload(unroll, t) for leaf in self._leaves})
            if self._outputs is None or self._outputs.shape != found.shape:
                is_gpu = self._device.type == "cuda"
                self._outputs = torch.empty(found.shape, pin_memory=is_gpu)
            self._outputs.copy_(found, non_blocking=True)

    def is_ready(self) -> bool:
        return True  # collect() waits for less than a millisecond

    def collect(self, out_NA: Floats) -> None:
        assert self._outputs is not None, "submit() comes first"
        self._wait()
        out_NA[:] = self._outputs.numpy()

    def _wait(self) -> None:
        if self._stream is not None:
            with torch.cuda.stream(self._stream):
                self._waits.wait()

    def finish(self, unroll: Unroll, end: int) -> None:
        with torch.cuda.stream(self._stream):
            for leaf in self._leaves:
                leaf.finish(unroll, end)


class _RowsOfLeaf:
    """One leaf of the observations, in the unroll that is being made."""

    def __init__(self, leaf: Leaf, device: torch.device) -> None:
        self.key = leaf.key
        self._device = device
        self._name = leaf_name(OBS, leaf.key)
        self._age_name = leaf_name(AGE, leaf.key)
        self._num_frames = leaf.num_frames
        self._history = max(0, leaf.num_frames - 1)
        self._own: Tensor | None = None
        self._twin: tuple[Twin, int] | None = None
        self._rows: Tensor = torch.empty(0)
        self._num_uploaded = 0
        self.uploaded_bytes = 0

    def begin(self, unroll: Unroll) -> None:
        """Upload into the twin of this slot, or else into memory of this object."""
        array = unroll[self._name]
        self._twin = TWINS.of(array)
        if self._twin is not None:
            twin, slot = self._twin
            self._rows = twin.tensor[slot]
        else:
            if self._own is None or self._own.shape != array.shape:
                kind = torch.from_numpy(array[:0]).dtype
                self._own = torch.zeros(array.shape, dtype=kind, device=self._device)
            self._rows = self._own
        self._num_uploaded = 0

    def forget(self) -> None:
        """Let go of the unroll, and of the memory that was made for it."""
        self._own, self._twin, self._rows = None, None, torch.empty(0)
        self._num_uploaded = self.uploaded_bytes = 0

    def upload(self, unroll: Unroll, t: int) -> tuple[Tensor, ...]:
        """Upload what is new up to row t; return row t, or the frames of its stacks and ages."""
        self._upload_to(unroll, t)
        if not self._num_frames:
            return (self._rows[t],)
        age_N = torch.from_numpy(unroll[self._age_name][t]).to(self._device, non_blocking=True)
        return self._rows[t : t + self._num_frames], age_N

    def _upload_to(self, unroll: Unroll, t: int) -> None:
        begin, end = self._num_uploaded, self._history + t + 1
        if begin < end:
            rows = torch.from_numpy(unroll[self._name][begin:end])
            self._rows[begin:end].copy_(rows, non_blocking=True)
            self.uploaded_bytes += rows.nbytes
            self._num_uploaded = end

    def observation(self, rows: Tensor, age_N: Tensor | None = None) -> Tensor:
        """Return the observations [N, ...], inside the graph."""
        if age_N is None:
            return rows
        return hide_unseen(rows.transpose(0, 1), age_N)

    def finish(self, unroll: Unroll, end: int) -> None:
        """Complete the twin, which the learner reads."""
        if self._twin is None:
            return
        self._upload_to(unroll, end)
        twin, slot = self._twin
        twin.ready[slot] = event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
