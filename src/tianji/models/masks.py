"""Network outputs without the actions that a mask forbids.

B: rows, A: outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

IMPOSSIBLE = -1e9
"""Logit or Q value of an option that cannot be chosen: its probability is exactly 0, and it is
still finite in an entropy, also in bfloat16, where the smallest float32 is not. Q values of legal
actions must lie above it: rewards of such a size are to be scaled or clipped."""


def masked(outputs_BA: Tensor, obs: Mapping[str, Tensor], mask: str | None) -> Tensor:
    """Return logits or Q values with those of illegal actions replaced.

    mask: the leaf of the observations that says which are legal; None: all.
    """
    return outputs_BA if mask is None else legal_only(outputs_BA, obs[mask].bool())


def legal_only(outputs: Tensor, is_legal: Tensor) -> Tensor:
    return torch.where(is_legal, outputs, IMPOSSIBLE)
