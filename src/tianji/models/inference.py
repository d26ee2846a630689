"""Networks evaluated in an actor: one row of observations to outputs, without gradients.

    network.refresh()                                    # once for an unroll
    for t in ...:
        network({key: obs[t] ...}, outputs_RNA[t])

N: environments, A: outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from tianji.envs.spaces import observation_leaves
from tianji.models.tensors import to_tensors
from tianji.ops.gae import Floats
from tianji.types import OBS, Array, Unroll, leaf_name

Forward: TypeAlias = Callable[[Mapping[str, Tensor]], Tensor]
"""Observation tensors [N, ...] by leaf key to outputs [N, A]."""


class Inference(Protocol):
    """One network as an actor uses it."""

    def refresh(self) -> None:
        """Look up the parameters' memory again; changed values are seen without it."""
        ...

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        """Evaluate observation arrays [N, ...] by leaf key; write the outputs to out_NA."""
        ...


class TorchInference:
    """Evaluates any module."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward

    def refresh(self) -> None:
        """Do nothing: the module is called every time."""

    def __call__(self, arrays: Mapping[str, Array], out_NA: Floats) -> None:
        with torch.inference_mode():
            out_NA[:] = self._forward(to_tensors(arrays)).numpy()


class ObservationReader:
    """Finds the leaves of a space among named arrays: {"": obs[t]} or {"camera": ..., ...}."""

    def __init__(self, space: gym.Space[Any]) -> None:
        leaves = observation_leaves(space)
        self._leaves = [(leaf.key, leaf_name(OBS, leaf.key), leaf.dtype) for leaf in leaves]

    def row(self, unroll: Unroll, t: int) -> dict[str, Array]:
        """Return views of row t by leaf key."""
        return {key: unroll[name][t] for key, name, _ in self._leaves}

    def batch(self, obs: Mapping[str, Array]) -> dict[str, Array]:
        """Return observations from anywhere in the types that unrolls store, by leaf key."""
        return {key: np.ascontiguousarray(obs[name], dtype) for key, name, dtype in self._leaves}


def evaluate(
    inference: Inference, reader: ObservationReader, obs: Mapping[str, Array], num_outputs: int
) -> Floats:
    """Return the outputs [N, A] for a batch of observations from anywhere, by leaf name."""
    arrays = reader.batch(obs)
    outputs_NA = np.empty((len(next(iter(arrays.values()))), num_outputs), np.float32)
    inference.refresh()
    inference(arrays, outputs_NA)
    return outputs_NA
