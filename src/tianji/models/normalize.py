"""Normalisation of observations with statistics that are part of the published policy.

B: rows, V: numbers of one observation.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from tianji.ops.running import RunningMoments

EPSILON = 1e-8


class Normalizer(nn.Module):
    """Computes (x - mean) * inverse deviation, cut to [-clip, clip]; some numbers keep 0 and 1.

    >>> Normalizer(torch.tensor([True, True, False]), clip=10.0)
    """

    mean_V: Tensor
    inverse_V: Tensor

    def __init__(self, changes_V: Tensor, clip: float) -> None:
        super().__init__()
        self.changes_V = changes_V.numpy()
        self.clip = clip
        self.register_buffer("mean_V", torch.zeros(len(changes_V)))
        self.register_buffer("inverse_V", torch.ones(len(changes_V)))

    def forward(self, x_BV: Tensor) -> Tensor:
        return ((x_BV - self.mean_V) * self.inverse_V).clamp(-self.clip, self.clip)

    def load(self, moments: RunningMoments) -> None:
        """Take over the learner's moments, in place: views of the buffers stay valid."""
        inverse_V = 1.0 / np.sqrt(moments.variance_F + EPSILON)
        self.mean_V.copy_(torch.from_numpy(np.where(self.changes_V, moments.mean_F, 0.0)))
        self.inverse_V.copy_(torch.from_numpy(np.where(self.changes_V, inverse_V, 1.0)))
