"""Policies with a memory, evaluated in an actor: its states are in the unroll that it makes.

N: environments, A: outputs, S: numbers of a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import torch

from tianji.algorithms.memory import forget_ended
from tianji.envs.frames import ObservationReader
from tianji.models.masks import masked
from tianji.models.networks.recurrent import RecurrentNet
from tianji.models.tensors import device_of, to_tensor, to_tensors
from tianji.ops.returns import Floats
from tianji.types import MEMORY, NEXT_MEMORY, Array, Unroll


class MemoryStep:
    """One step of one network of a RecurrentNet, on the device of its parameters."""

    def __init__(self, net: RecurrentNet, number: int, mask: str | None = None) -> None:
        """mask: the leaf of the observations that says which outputs are legal; None: all."""
        self._net = net
        self._number = number
        self._mask = mask
        self.state_size = net.memory.state_size

    def __call__(self, arrays: Mapping[str, Array], state_NS: Array) -> tuple[Floats, Floats]:
        """Return the outputs [N, A] for observations by leaf key, and the states after them."""
        device = device_of(self._net)
        with torch.inference_mode():
            obs, state = to_tensors(arrays, device), to_tensor(state_NS, device)
            output_NA, after_NS = self._net.step(obs, state, self._number)
            output_NA = masked(output_NA, obs, self._mask)
            return output_NA.numpy(force=True), after_NS.numpy(force=True)


class MemoryRows:
    """See RowInference."""

    runs_alone = False
    uploaded_bytes = 0

    def __init__(self, step: MemoryStep, space: gym.Space[Any]) -> None:
        self._step = step
        self._reader = ObservationReader(space)
        self._unroll: Unroll = {}
        self._row = 0

    def begin(self, unroll: Unroll) -> None:
        unroll[NEXT_MEMORY][:] = unroll[MEMORY]

    def submit(self, unroll: Unroll, t: int) -> None:
        self._unroll, self._row = unroll, t

    def is_ready(self) -> bool:
        return True

    def collect(self, out_NA: Floats) -> None:
        unroll, row = self._unroll, self._row
        state_NS = unroll[NEXT_MEMORY]
        if row:
            forget_ended(unroll, row - 1, state_NS)
        out_NA[:], state_NS[:] = self._step(self._reader.row(unroll, row), state_NS)

    def finish(self, unroll: Unroll, end: int) -> None:
        """Do nothing: the states are in the unroll."""
