"""Networks evaluated for several actors at once, on rows of the slots that they share.

    lanes.evaluate([(lane, slot, row), ...], outputs_LNA)

L: actors, S: slots, R: rows of a slot, N: environments of an actor, G: rows of one evaluation,
C: facts about a row, K: frames of a stack, A: outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import torch
from torch import Tensor

from tianji.algorithms.accelerators.gpu import Forward
from tianji.algorithms.accelerators.inference import HostRows, RowNetwork
from tianji.devices.graphs import recorded
from tianji.devices.twins import TWINS
from tianji.devices.waits import Waits
from tianji.envs.spaces import Leaf, observation_leaves
from tianji.models.tensors import device_of
from tianji.ops.frames import hide_unseen
from tianji.ops.returns import Floats
from tianji.types import AGE, OBS, Array, leaf_name

Request: TypeAlias = tuple[int, int, int]
"""Lane, slot, row."""

SLOT, ROW, FIRST_AGE = 0, 1, 2
"""Columns of the facts about a row; after them come the ages of its environments, leaf by leaf."""


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
    What an evaluation needs to know crosses in one copy, and so do the newest rows of each leaf.
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
        self._leaves = []
        num_columns = FIRST_AGE
        for leaf in observation_leaves(space):
            self._leaves.append(_SlotsOfLeaf(leaf, slots, most, num_columns, device))
            num_columns = self._leaves[-1].ages.stop
        self._host = _host_tensor((most, num_columns), torch.int64, device)
        self._facts_GC: Array = self._host.numpy()
        self._facts = self._host.to(device)
        self._graphs: dict[int, Callable[[], Tensor]] = {}
        self._outputs: dict[int, Tensor] = {}
        self._waits = Waits()
        self._at = dict.fromkeys(range(num_lanes), (-1, -1))
        """Slot and row that each lane asked for last."""
        self._record_all(most)

    @property
    def uploaded_bytes(self) -> int:
        return sum(leaf.uploaded_bytes for leaf in self._leaves)

    def _record_all(self, most: int) -> None:
        """Evaluate something of every size, so that graphs are recorded before they are needed."""
        size = 1
        while size <= most:
            self._graphs[size] = recorded(self._device, partial(self._evaluate, size))
            found = self._graphs[size]()
            self._outputs[size] = _host_tensor(tuple(found.shape), found.dtype, self._device)
            size *= 2
        self._wait()

    @torch.no_grad()
    def _evaluate(self, size: int) -> Tensor:
        facts_GC = self._facts[:size]
        return self._forward({leaf.key: leaf.observations(facts_GC) for leaf in self._leaves})

    def evaluate(self, requests: Sequence[Request], outputs_LNA: Floats) -> None:
        count = len(requests)
        size = 1 << (count - 1).bit_length()  # few sizes, because each has a graph of its own
        self._upload(requests)
        outputs = self._outputs[size].copy_(self._graphs[size](), non_blocking=True)
        self._wait()
        found_GNA = outputs.numpy().reshape(size, *outputs_LNA.shape[1:])
        outputs_LNA[[lane for lane, _, _ in requests]] = found_GNA[:count]

    def _upload(self, requests: Sequence[Request]) -> None:
        facts_GC, count = self._facts_GC, len(requests)
        for place, (lane, slot, row) in enumerate(requests):
            facts_GC[place, SLOT] = slot
            facts_GC[place, ROW] = row
            goes_on = self._at[lane] == (slot, row - 1)
            self._at[lane] = slot, row
            for leaf in self._leaves:
                leaf.prepare(facts_GC[place], place, slot, row, goes_on)
        self._facts[:count].copy_(self._host[:count], non_blocking=True)
        slots = [slot for _, slot, _ in requests]
        for leaf in self._leaves:
            leaf.upload(self._facts[:count], slots)

    def _wait(self) -> None:
        if self._device.type == "cuda":
            self._waits.wait()


class _SlotsOfLeaf:
    """One leaf of the observations, in all slots, and its twin on the device."""

    def __init__(
        self,
        leaf: Leaf,
        slots: Mapping[str, Array],
        most: int,
        first_column: int,
        device: torch.device,
    ) -> None:
        """most: rows of one evaluation, at most. first_column: where ages are among the facts."""
        self.key = leaf.key
        self._num_frames = leaf.num_frames
        self._device = device
        self._history = max(0, leaf.num_frames - 1)
        array = slots[leaf_name(OBS, leaf.key)]
        self._array, self._host = array, torch.from_numpy(array)
        found = TWINS.of(array[0])
        self._twin = found[0] if found else TWINS.add(array, device)
        num_slots, self._num_rows, num_envs = array.shape[:3]
        self._flat = self._twin.tensor.view(num_slots * self._num_rows, *array.shape[2:])
        self._staged = _host_tensor((most, *array.shape[2:]), self._host.dtype, device)
        self._staged_G: Array = self._staged.numpy()
        self.uploaded_bytes = 0
        self.ages = slice(first_column, first_column)
        if leaf.num_frames:
            self._age_SRN = slots[leaf_name(AGE, leaf.key)]
            self.ages = slice(first_column, first_column + num_envs)

    def prepare(self, facts_C: Array, place: int, slot: int, row: int, goes_on: bool) -> None:
        """Stage the newest row; upload those before it, unless the last request was for them."""
        end = self._history + row + 1
        self._staged_G[place] = self._array[slot, end - 1]
        if not goes_on and end > 1:
            rows = self._host[slot, : end - 1]
            self._twin.tensor[slot, : end - 1].copy_(rows, non_blocking=True)
            self.uploaded_bytes += rows.nbytes
        self._twin.num_rows[slot] = end
        if self._num_frames:
            facts_C[self.ages] = self._age_SRN[slot, row]

    def upload(self, facts_GC: Tensor, slots: Sequence[int]) -> None:
        """Upload what was staged, and note when it will have arrived, for readers of the twin."""
        staged_G = self._staged[: len(slots)]
        self._flat.index_copy_(
            0,
            facts_GC[:, SLOT] * self._num_rows + facts_GC[:, ROW] + self._history,
            staged_G.to(self._device, non_blocking=True),
        )
        self.uploaded_bytes += staged_G.nbytes
        if self._device.type == "cuda":
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            self._twin.ready.update(dict.fromkeys(slots, event))

    def observations(self, facts_GC: Tensor) -> Tensor:
        """Return the observations [G x N, ...], inside the graph."""
        first_G = facts_GC[:, SLOT] * self._num_rows + facts_GC[:, ROW]
        if not self._num_frames:
            return self._flat[first_G].flatten(0, 1)
        frame_K = torch.arange(self._num_frames, device=first_G.device)
        frames_GKN = self._flat[first_G[:, None] + frame_K]
        stacks = frames_GKN.transpose(1, 2).flatten(0, 1)
        return hide_unseen(stacks, facts_GC[:, self.ages].flatten())


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
