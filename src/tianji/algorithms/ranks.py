"""Figures of the batches of all ranks, from those of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from tianji.channels.peers.interface import Peers, total
from tianji.models.moments import RunningMoments
from tianji.models.statistics import merged


def means_over_ranks(
    peers: Peers, figures: Mapping[str, float], names: Sequence[str], num_rows: float
) -> dict[str, float]:
    """Return the means over the rows of all ranks of those figures that are means over rows.

    num_rows: the rows of this rank; without any, its figures do not count.
    """
    mine = [num_rows * figures[name] if num_rows else 0.0 for name in names]
    count, *sums = total(peers, [num_rows, *mine])
    return {name: each / max(count, 1.0) for name, each in zip(names, sums, strict=True)}


def moments_of(x_QR: Tensor, weight_R: Tensor | None) -> Tensor:
    """Return the number of rows, and mean and sum of squared deviations of some quantities, [3, Q]
    in float64, on their device. weight_R: 0 for rows that do not count; None if all do."""
    weight_R = torch.ones_like(x_QR[0]) if weight_R is None else weight_R
    x_QR, weight_R = x_QR.double(), weight_R.double()
    num_rows = weight_R.sum()
    mean_Q = (x_QR * weight_R).sum(1) / num_rows.clamp(min=1.0)
    m2_Q = ((x_QR - mean_Q[:, None]).square() * weight_R).sum(1)
    return torch.stack([num_rows.expand(len(x_QR)), mean_Q, m2_Q])


def merged_moments(peers: Peers, moments_3Q: Tensor) -> RunningMoments:
    """Return the moments of the rows of all ranks from the moments_of() of each."""
    count_Q, mean_Q, m2_Q = moments_3Q.numpy(force=True)
    (whole,) = merged(peers, [RunningMoments(float(count_Q[0]), mean_Q, m2_Q)])
    return whole
