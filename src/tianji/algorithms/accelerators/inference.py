"""Networks evaluated in an actor: one row of observations to outputs, without gradients. Small
networks on a CPU run in NumPy.

    network.refresh()                                    # once for an unroll
    for t in ...:
        network({key: obs[t] ...}, outputs_RNA[t])

N: environments, F: features, H: width of a layer, A: outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from tianji.algorithms.accelerators.gpu import GpuRows
from tianji.algorithms.accelerators.network import IN_PLACE, has_closed_form
from tianji.envs.frames import ObservationReader
from tianji.models.masks import IMPOSSIBLE, masked
from tianji.models.networks.build import UserNet
from tianji.models.networks.stacked import StackedNet
from tianji.models.tensors import CPU, device_of, to_tensors
from tianji.ops.returns import Floats
from tianji.types import Array, Unroll

Forward: TypeAlias = Callable[[Mapping[str, Tensor]], Tensor]
"""Observation tensors [N, ...] by leaf key to outputs [N, A]."""


class Inference(Protocol):
    """One network as an actor uses it."""

    def refresh(self) -> None:
        """Look up the parameters' memory again; changed values are seen without it."""

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        """Evaluate observation arrays [N, ...] by leaf key; write the outputs to out_NA."""


class TorchInference:
    """Evaluates any module, on any device."""

    def __init__(self, forward: Forward, device: torch.device = CPU) -> None:
        self._forward = forward
        self._device = device

    def refresh(self) -> None:
        """Do nothing: the module is called every time."""

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        with torch.inference_mode():
            out_NA[:] = self._forward(to_tensors(arrays, self._device)).numpy(force=True)


def evaluate(
    inference: Inference, reader: ObservationReader, obs: Mapping[str, Array], num_outputs: int
) -> Floats:
    """Return the outputs [N, A] for a batch of observations from anywhere, by leaf name."""
    arrays = reader.batch(obs)
    outputs_NA = np.empty((len(next(iter(arrays.values()))), num_outputs), np.float32)
    inference.refresh()
    inference(arrays, outputs_NA)
    return outputs_NA


class NumpyInference:
    """Evaluates one network of a StackedNet.

    NumPy's calls cost a third of torch's: a 64-64 network on 8 observations takes 8 microseconds
    instead of 25, on 64 it takes 16 instead of 52 (its tanh is faster, too).
    """

    def __init__(self, net: StackedNet, index: int) -> None:
        self._net = net
        self._index = index
        self._activate = IN_PLACE[net.activation].on_array
        self._is_plain = net.encoder.is_plain
        self._hidden: list[tuple[Array, Array]] = []
        self._output: tuple[Array, Array] = (np.empty(0), np.empty(0))
        self._x_NH: list[Array] = []

    def refresh(self) -> None:
        layers = zip(self._net.weights, self._net.biases, strict=True)
        self._hidden = [
            (_array(weight_KIO[self._index]), _array(bias_K1O[self._index]))
            for weight_KIO, bias_K1O in layers
        ]
        output = cast(nn.Linear, self._net.outputs[self._index])
        self._output = (_array(output.weight).T, _array(output.bias))

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        x = self._features(arrays)
        if not self._x_NH or len(self._x_NH[0]) != len(x):
            widths = [weight.shape[1] for weight, _ in self._hidden]
            self._x_NH = [np.empty((len(x), width), np.float32) for width in widths]
        for (weight, bias), y in zip(self._hidden, self._x_NH, strict=True):
            np.matmul(x, weight, out=y)
            np.add(y, bias, out=y)
            self._activate(y)
            x = y
        weight, bias = self._output
        np.matmul(x, weight, out=out_NA)
        np.add(out_NA, bias, out=out_NA)

    def _features(self, arrays: Mapping[str, Array]) -> Array:
        if self._is_plain:
            (array,) = arrays.values()
            return array if array.ndim == 2 else array.reshape(len(array), -1)
        with torch.inference_mode():
            features: Array = self._net.encoder(to_tensors(arrays)).numpy()
            return features


class MaskedInference:
    """Leaves out the actions that a mask forbids, whatever evaluates the network."""

    def __init__(self, inference: Inference, mask: str) -> None:
        self._inference = inference
        self._mask = mask

    def refresh(self) -> None:
        self._inference.refresh()

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        seen = {key: array for key, array in arrays.items() if key != self._mask}
        self._inference(seen, out_NA)
        np.copyto(out_NA, IMPOSSIBLE, where=arrays[self._mask] == 0)


def build_inference(net: StackedNet | UserNet, index: int) -> Inference:
    """Return the fastest inference that network `index` of a stack allows."""
    if has_closed_form(net):
        return NumpyInference(cast(StackedNet, net), index)
    return TorchInference(lambda obs: net.one(obs, index), device_of(net))


class RowNetwork(Protocol):
    """The network whose outputs choose actions."""

    @property
    def net(self) -> nn.Module:
        """What holds its parameters."""

    @property
    def num_outputs(self) -> int: ...

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return the outputs [N, A], on any device."""
        ...

    def inference(self) -> Inference:
        """Return the fastest inference on a CPU."""
        ...


class Network(NamedTuple):
    """One network of a stack."""

    net: StackedNet | UserNet
    number: int
    """Its place in the stack."""
    num_outputs: int
    mask: str | None = None
    """The leaf of the observations that says which outputs are legal; None: all."""

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        return masked(self.net.one(obs, self.number), obs, self.mask)

    def inference(self) -> Inference:
        inference = build_inference(self.net, self.number)
        return inference if self.mask is None else MaskedInference(inference, self.mask)


class RowInference(Protocol):
    """A network that evaluates an unroll row by row, in two phases.

    rows.begin(unroll)
    for t in ...:
        rows.submit(unroll, t)
        if rows.is_ready(): ...                  # else collect() may wait
        rows.collect(outputs_RNA[t])
    rows.finish(unroll, end)
    """

    runs_alone: bool
    """It runs by itself between submit() and collect()."""

    @property
    def uploaded_bytes(self) -> int:
        """Bytes copied to a GPU so far."""

    def begin(self, unroll: Unroll) -> None: ...

    def submit(self, unroll: Unroll, t: int) -> None:
        """Start the evaluation of row t."""
        ...

    def is_ready(self) -> bool:
        """Return whether to collect now; False where another process still works on it."""
        ...

    def collect(self, out_NA: Floats) -> None:
        """Wait for it and write the outputs."""
        ...

    def finish(self, unroll: Unroll, end: int) -> None:
        """The unroll ends before row `end`, whose observation is there too."""
        ...


class HostRows:
    """Evaluates rows where they lie, on the CPU."""

    runs_alone = False
    uploaded_bytes = 0

    def __init__(self, inference: Inference, space: gym.Space[Any]) -> None:
        self._inference = inference
        self._reader = ObservationReader(space)
        self._row: dict[str, Array] = {}

    def begin(self, unroll: Unroll) -> None:
        self._inference.refresh()

    def submit(self, unroll: Unroll, t: int) -> None:
        self._row = self._reader.row(unroll, t)

    def is_ready(self) -> bool:
        return True

    def collect(self, out_NA: Floats) -> None:
        self._inference(self._row, out_NA)

    def finish(self, unroll: Unroll, end: int) -> None:
        """Do nothing: nothing is kept of an unroll."""


def build_rows(network: RowNetwork, space: gym.Space[Any]) -> RowInference:
    """Return the fastest evaluation of rows on the device of the network."""
    device = device_of(network.net)
    if device.type == "cpu":
        return HostRows(network.inference(), space)
    return GpuRows(network.forward, space, device)


class RowActing:
    """The part of an acting side that evaluates its network row by row."""

    reads_parameters = False
    """It reads parameters of the model beside the outputs of the network."""

    def __init__(self, network: RowNetwork, space: gym.Space[Any]) -> None:
        self.network = network
        self.rows = build_rows(network, space)
        """Whoever evaluates the network elsewhere replaces it."""
        self._inference = network.inference()
        self._reader = ObservationReader(space)

    @property
    def runs_alone(self) -> bool:
        """Return whether inference runs by itself between submit() and collect()."""
        return self.rows.runs_alone

    @property
    def uploaded_bytes(self) -> int:
        """Return the bytes that inference has copied to a GPU."""
        return self.rows.uploaded_bytes

    def is_ready(self) -> bool:
        """Return whether collect() would not wait for another process."""
        return self.rows.is_ready()

    def evaluate(self, obs: Mapping[str, Array]) -> Floats:
        """Return the outputs [N, A] for a batch of observations from anywhere, by leaf name."""
        return evaluate(self._inference, self._reader, obs, self.network.num_outputs)


def _array(tensor: Tensor) -> Array:
    array: Array = tensor.detach().numpy()
    return array
