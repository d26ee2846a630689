"""Networks evaluated for several actors at once, on rows of the slots that they share.

    lanes.evaluate([(lane, slot, row), ...], outputs_LNA)

L: actors, S: slots, N: environments of an actor, G: rows of one evaluation, K: frames of a stack,
A: outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import torch
from torch import Tensor

from tianji.algorithms.accelerators.gpu import Forward
from tianji.algorithms.accelerators.inference import HostRows, Network, build_inference
from tianji.devices.graphs import recorded
from tianji.devices.twins import TWINS
from tianji.devices.waits import WAITS
from tianji.envs.spaces import Leaf, observation_leaves
from tianji.models.tensors import device_of
from tianji.ops.frames import hide_unseen
from tianji.ops.returns import Floats
from tianji.types import AGE, OBS, Array, leaf_name

Request: TypeAlias = tuple[int, int, int]
"""Lane, slot, row."""


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

    def __init__(self, network: Network, space: gym.Space[Any], slots: Mapping[str, Array]) -> None:
        """slots: the fields of all slots [S, ...]."""
        self._rows = HostRows(build_inference(network.net, network.number), space)
        self._slots = slots

    def evaluate(self, requests: Sequence[Request], outputs_LNA: Floats) -> None:
        for lane, slot, row in requests:
            unroll = {name: array[slot] for name, array in self._slots.items()}
            self._rows.begin(unroll)
            self._rows.submit(unroll, row)
            self._rows.collect(outputs_LNA[lane])


class GpuLanes:
    """Evaluates all rows that wait at once, by a CUDA graph on a stream of its own.

    Each row is uploaded once, to the twin of its slot, where a learner in this process finds it.
    """

    def __init__(
        self,
        network: Network,
        space: gym.Space[Any],
        slots: Mapping[str, Array],
        num_lanes: int,
        device: torch.device,
    ) -> None:
        self._forward: Forward = network.forward
        self._device = device
        most = 1 << (num_lanes - 1).bit_length()
        leaves = observation_leaves(space)
        self._leaves = [_SlotsOfLeaf(leaf, slots, most, device) for leaf in leaves]
        self._graph = recorded(device, self._evaluate)
        self._stream: Any = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
        self._host = _host_tensor((most, 2), torch.int64, device)
        self._asked_G2: Array = self._host.numpy()
        self._outputs: dict[int, Tensor] = {}
        self._at = {lane: (-1, -1) for lane in range(num_lanes)}
        """Slot and row that each lane asked for last."""
        self._record_all(most)

    @property
    def uploaded_bytes(self) -> int:
        return sum(leaf.uploaded_bytes for leaf in self._leaves)

    def _record_all(self, most: int) -> None:
        """Evaluate something of every size, so that graphs are recorded before they are needed."""
        size = 1
        while size <= most:
            self._launch(size)
            size *= 2
        self._wait()

    @torch.no_grad()
    def _evaluate(self, asked_G2: Tensor, ages: dict[str, Tensor]) -> Tensor:
        slot_G, row_G = asked_G2.unbind(1)
        return self._forward(
            {
                leaf.key: leaf.observations(slot_G, row_G, ages.get(leaf.key))
                for leaf in self._leaves
            }
        )

    def evaluate(self, requests: Sequence[Request], outputs_LNA: Floats) -> None:
        count = len(requests)
        size = 1 << (count - 1).bit_length()  # few sizes, because each has a graph of its own
        with torch.cuda.stream(self._stream):
            for place, (lane, slot, row) in enumerate(requests):
                self._asked_G2[place] = slot, row
                goes_on = self._at[lane] == (slot, row - 1)
                self._at[lane] = slot, row
                for leaf in self._leaves:
                    leaf.upload(place, slot, row, goes_on)
            for leaf in self._leaves:
                leaf.mark([slot for _, slot, _ in requests])
        outputs = self._launch(size)
        self._wait()
        found_GNA = outputs.numpy().reshape(size, *outputs_LNA.shape[1:])
        outputs_LNA[[lane for lane, _, _ in requests]] = found_GNA[:count]

    def _launch(self, size: int) -> Tensor:
        """Start the evaluation of the first rows that were asked for; return where the outputs
        will be."""
        if self._stream is not None:  # new parameters are copied on the thread's own stream
            self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            ages = {leaf.key: leaf.ages(size) for leaf in self._leaves if leaf.num_frames}
            found = self._graph(self._host[:size].to(self._device, non_blocking=True), ages)
            if size not in self._outputs:
                self._outputs[size] = _host_tensor(tuple(found.shape), found.dtype, self._device)
            return self._outputs[size].copy_(found, non_blocking=True)

    def _wait(self) -> None:
        if self._stream is not None:
            with torch.cuda.stream(self._stream):
                WAITS.wait()


class _SlotsOfLeaf:
    """One leaf of the observations, in all slots, and its twin on the device."""

    def __init__(
        self, leaf: Leaf, slots: Mapping[str, Array], most: int, device: torch.device
    ) -> None:
        """most: rows of one evaluation, at most."""
        self.key = leaf.key
        self.num_frames = leaf.num_frames
        self._device = device
        self._history = max(0, leaf.num_frames - 1)
        array = slots[leaf_name(OBS, leaf.key)]
        self._host = torch.from_numpy(array)
        found = TWINS.of(array[0])
        self._twin = found[0] if found else TWINS.add(array, device)
        num_slots, self._num_rows, num_envs = array.shape[:3]
        self._flat = self._twin.tensor.view(num_slots * self._num_rows, *array.shape[2:])
        self.uploaded_bytes = 0
        if leaf.num_frames:
            self._age_SRN = slots[leaf_name(AGE, leaf.key)]
            self._age = _host_tensor((most, num_envs), torch.uint8, device)
            self._age_GN: Array = self._age.numpy()

    def upload(self, place: int, slot: int, row: int, goes_on: bool) -> None:
        """Copy what is new up to this row: one row if the last request was for the one before."""
        end = self._history + row + 1
        begin = end - 1 if goes_on else 0
        rows = self._host[slot, begin:end]
        self._twin.tensor[slot, begin:end].copy_(rows, non_blocking=True)
        self._twin.num_rows[slot] = end
        self.uploaded_bytes += rows.nbytes
        if self.num_frames:
            self._age_GN[place] = self._age_SRN[slot, row]

    def mark(self, slots: Sequence[int]) -> None:
        """Note when the rows of these slots will have arrived, for whoever reads the twin."""
        if self._device.type == "cuda":
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            event.record()
            self._twin.ready.update(dict.fromkeys(slots, event))

    def ages(self, size: int) -> Tensor:
        return self._age[:size].to(self._device, non_blocking=True)

    def observations(self, slot_G: Tensor, row_G: Tensor, age_GN: Tensor | None) -> Tensor:
        """Return the observations [G x N, ...], inside the graph."""
        first_G = slot_G * self._num_rows + row_G
        if age_GN is None:
            return self._flat[first_G].flatten(0, 1)
        back_K = torch.arange(self.num_frames, device=first_G.device)
        frames_GKN = self._flat[first_G[:, None] + back_K]
        stacks = frames_GKN.transpose(1, 2).flatten(0, 1)
        return hide_unseen(stacks, age_GN.flatten())


def _host_tensor(shape: tuple[int, ...], kind: torch.dtype, device: torch.device) -> Tensor:
    return torch.zeros(shape, dtype=kind, pin_memory=device.type == "cuda")


def build_lanes(
    network: Network, space: gym.Space[Any], slots: Mapping[str, Array], num_lanes: int
) -> LaneInference:
    """Return the fastest evaluation of many actors' rows on the device of the network."""
    device = device_of(network.net)
    if device.type == "cpu":
        return HostLanes(network, space, slots)
    return GpuLanes(network, space, slots, num_lanes, device)
