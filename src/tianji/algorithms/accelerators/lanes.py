"""Networks evaluated for several actors at once, on rows of the slots that they share.

    lanes.evaluate([(lane, slot, row), ...], outputs_LNA)

L: actors, S: slots, R: rows of a slot, N: environments of an actor, G: rows of one evaluation,
C: facts about a row, K: frames of a stack, A: outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import torch
from torch import Tensor

from tianji.algorithms.accelerators.gpu import Forward
from tianji.algorithms.accelerators.inference import HostRows, RowNetwork
from tianji.devices.graphs import recorded
from tianji.devices.staging import Staging
from tianji.devices.twins import TWINS
from tianji.devices.waits import make_event
from tianji.envs.spaces import Leaf, observation_leaves
from tianji.models.tensors import device_of
from tianji.ops.frames import hide_unseen
from tianji.ops.returns import Floats
from tianji.types import AGE, OBS, Array, leaf_name

Request: TypeAlias = tuple[int, int, int]
"""Lane, slot, row."""

SLOT, ROW, FIRST_AGE = 0, 1, 2
"""Columns of the facts about a row; after them come the ages of its environments, leaf by leaf."""

LAST, FACTS = "last", "facts"
"""What is staged before the rows: the place of the last request, and the facts."""


class LaneInference(Protocol):
    """A network that evaluates rows of slots."""

    @property
    def uploaded_bytes(self) -> int:
        """Bytes copied to a GPU so far."""

    def evaluate(self, requests: Sequence[Request], outputs_LNA: Floats) -> None:
        """Evaluate these rows; write the outputs of each lane."""
        ...


class HostLanes:
    """Evaluates one lane after the other on the CPU. The outputs are those that the actor would
    have computed, bit for bit, whichever lanes come together."""

    uploaded_bytes = 0

    def __init__(
        self, network: RowNetwork, space: gym.Space[Any], slots: Mapping[str, Array]
    ) -> None:
        """slots: the fields of all slots [S, ...]."""
        self._rows = HostRows(network.inference(), space)
        self._slots = slots

    def evaluate(self, requests: Sequence[Request], outputs_LNA: Floats) -> None:
        for lane, slot, row in requests:
            unroll = {name: array[slot] for name, array in self._slots.items()}
            self._rows.begin(unroll)
            self._rows.submit(unroll, row)
            self._rows.collect(outputs_LNA[lane])


class GpuLanes:
    """Evaluates all rows that wait at once, by a CUDA graph on the stream of its thread.

    Each row is uploaded once, to the twin of its slot, where a learner in this process finds it.
    An evaluation is three calls of the driver: one copy of all rows and of what there is to know
    about them, one graph, and one copy of the outputs.
    """

    def __init__(
        self,
        network: RowNetwork,
        space: gym.Space[Any],
        slots: Mapping[str, Array],
        num_lanes: int,
        device: torch.device,
    ) -> None:
        self._forward: Forward = network.forward
        self._device = device
        most = 1 << (num_lanes - 1).bit_length()
        num_columns = FIRST_AGE
        self._leaves: list[_SlotsOfLeaf] = []
        for leaf in observation_leaves(space):
            self._leaves.append(_SlotsOfLeaf(leaf, slots, num_columns, device))
            num_columns = self._leaves[-1].ages.stop
        self._leaves.sort(key=lambda leaf: leaf.row_bytes)
        self._largest = self._leaves[-1].name
        """The last one in memory, of which only the rows that were asked for are copied."""
        rows = {leaf.name: ((most, *leaf.row_shape), leaf.dtype) for leaf in self._leaves}
        kinds = {LAST: ((1,), "int64"), FACTS: ((most, num_columns), "int64"), **rows}
        self._staging = Staging(kinds, device)
        self._last = self._staging.host[LAST]
        self._facts_GC = self._staging.host[FACTS]
        for each in self._leaves:
            each.staged_G = self._staging.host[each.name]
        self._graphs: dict[int, Callable[[], Tensor]] = {}
        self._outputs: dict[int, tuple[Tensor, Floats]] = {}
        self._arrived = make_event() if device.type == "cuda" else None
        self._stream: torch.cuda.Stream | None = None
        self._at = dict.fromkeys(range(num_lanes), (-1, -1))
        """Slot and row that each lane asked for last."""
        self._uploaded_bytes = 0
        self._record_all(most)

    @property
    def uploaded_bytes(self) -> int:
        return self._uploaded_bytes + sum(leaf.uploaded_bytes for leaf in self._leaves)

    def _record_all(self, most: int) -> None:
        """Evaluate something of every size, so that graphs are recorded before they are needed."""
        size = 1
        while size <= most:
            self._graphs[size] = recorded(self._device, partial(self._evaluate, size))
            found = self._graphs[size]()
            host = _host_tensor(tuple(found.shape), found.dtype, self._device)
            self._outputs[size] = host, host.numpy().reshape(size, -1, found.shape[-1])
            size *= 2
        if self._device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    @torch.no_grad()
    def _evaluate(self, size: int) -> Tensor:
        """Evaluate as many rows; those after the last one that was asked for repeat it."""
        staged = self._staging.device
        place_G = torch.arange(size, device=self._device).minimum(staged[LAST])
        facts_GC = staged[FACTS][place_G]
        obs = {leaf.key: leaf.take(facts_GC, staged[leaf.name][place_G]) for leaf in self._leaves}
        return self._forward(obs)

    def evaluate(self, requests: Sequence[Request], outputs_LNA: Floats) -> None:
        count = len(requests)
        size = 1 << (count - 1).bit_length()  # few sizes, because each has a graph of its own
        self._stage(requests)
        self._uploaded_bytes += self._staging.upload_beginning(self._largest, count)
        outputs, out_GNA = self._outputs[size]
        outputs.copy_(self._graphs[size](), non_blocking=True)
        self._wait()
        for leaf in self._leaves:
            leaf.note_arrival(requests)
        outputs_LNA[[lane for lane, _, _ in requests]] = out_GNA[:count]

    def _stage(self, requests: Sequence[Request]) -> None:
        self._last[0] = len(requests) - 1
        for place, (lane, slot, row) in enumerate(requests):
            facts_C = self._facts_GC[place]
            facts_C[SLOT] = slot
            facts_C[ROW] = row
            goes_on = self._at[lane] == (slot, row - 1)
            self._at[lane] = slot, row
            for leaf in self._leaves:
                leaf.stage(facts_C, place, slot, row, goes_on)

    def _wait(self) -> None:
        """Sleep until the outputs are here. The thread keeps its stream: asking for it takes as
        long as a launch."""
        if self._arrived is not None:
            self._stream = self._stream or torch.cuda.current_stream()
            self._arrived.record(self._stream)
            self._arrived.synchronize()


class _SlotsOfLeaf:
    """One leaf of the observations, in all slots, and its twin on the device."""

    def __init__(
        self, leaf: Leaf, slots: Mapping[str, Array], first_column: int, device: torch.device
    ) -> None:
        """first_column: where ages are among the facts."""
        self.key = leaf.key
        self.name = leaf_name(OBS, leaf.key)
        self._num_frames = leaf.num_frames
        self._history = max(0, leaf.num_frames - 1)
        array = slots[self.name]
        self._array, self._host = array, torch.from_numpy(array)
        found = TWINS.of(array[0])
        self._twin = found[0] if found else TWINS.add(array, device)
        num_slots, self._num_rows, num_envs = array.shape[:3]
        self.row_shape, self.dtype = array.shape[2:], array.dtype.name
        self.row_bytes = array.itemsize * math.prod(self.row_shape)
        self._flat = self._twin.tensor.view(num_slots * self._num_rows, *self.row_shape)
        self.staged_G: Array = array[:0, 0]
        """Memory for the newest rows, from which they are uploaded."""
        self.uploaded_bytes = 0
        """Bytes that were copied beside those rows."""
        self.ages = slice(first_column, first_column)
        if leaf.num_frames:
            self._age_SRN = slots[leaf_name(AGE, leaf.key)]
            self.ages = slice(first_column, first_column + num_envs)

    def stage(self, facts_C: Array, place: int, slot: int, row: int, goes_on: bool) -> None:
        """Stage the newest row; upload those before it, unless the last request was for them."""
        newest = self._history + row
        self.staged_G[place] = self._array[slot, newest]
        if not goes_on and newest:
            rows = self._host[slot, :newest]
            self._twin.tensor[slot, :newest].copy_(rows, non_blocking=True)
            self.uploaded_bytes += rows.nbytes
        if self._num_frames:
            facts_C[self.ages] = self._age_SRN[slot, row]

    def take(self, facts_GC: Tensor, newest_G: Tensor) -> Tensor:
        """Write the newest rows to the twin, inside the graph; return the observations
        [G x N, ...]."""
        first_G = facts_GC[:, SLOT] * self._num_rows + facts_GC[:, ROW]
        self._flat.index_copy_(0, first_G + self._history, newest_G)
        if not self._num_frames:
            return newest_G.flatten(0, 1)
        frame_K = torch.arange(self._num_frames, device=first_G.device)
        frames_GKN = self._flat[first_G[:, None] + frame_K]
        stacks = frames_GKN.transpose(1, 2).flatten(0, 1)
        return hide_unseen(stacks, facts_GC[:, self.ages].flatten())

    def note_arrival(self, requests: Sequence[Request]) -> None:
        """Tell readers of the twin which rows it has."""
        ready, num_rows = self._twin.ready, self._twin.num_rows
        for _, slot, row in requests:
            num_rows[slot] = self._history + row + 1
            ready[slot] = None


def _host_tensor(shape: tuple[int, ...], kind: torch.dtype, device: torch.device) -> Tensor:
    return torch.zeros(shape, dtype=kind, pin_memory=device.type == "cuda")


def build_lanes(
    network: RowNetwork, space: gym.Space[Any], slots: Mapping[str, Array], num_lanes: int
) -> LaneInference:
    """Return the fastest evaluation of many actors' rows on the device of the network."""
    device = device_of(network.net)
    if device.type == "cpu":
        return HostLanes(network, space, slots)
    return GpuLanes(network, space, slots, num_lanes, device)
