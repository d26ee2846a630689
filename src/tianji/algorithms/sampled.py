"""Transitions that were drawn from a replay store, as tensors on the learner's device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from tianji.models.tensors import CPU, Tensors, to_tensor, to_tensors
from tianji.types import NEXT_OBS, OBS, Array, leaf_name


class Sampled(NamedTuple):
    """U: updates of a batch, B: transitions of an update; all are [U, B, ...].

    discount: of the value of next_obs, 0 after the end of an episode.
    """

    obs: Tensors
    next_obs: Tensors
    action: Tensor
    reward: Tensor
    discount: Tensor


def read_sampled(
    arrays: Mapping[str, Array], keys: Iterable[str], device: torch.device = CPU
) -> Sampled:
    """Move a batch to the device. keys: of the parts of an observation."""
    obs, next_obs = (
        to_tensors({key: arrays[leaf_name(prefix, key)] for key in keys}, device)
        for prefix in (OBS, NEXT_OBS)
    )
    names = ("action", "reward", "discount")
    return Sampled(obs, next_obs, *(to_tensor(arrays[name], device) for name in names))
