"""The limit of an update of SAC: its matrix products alone, into memory that is there already, with
the library that is faster for each.

    B: rows, I and O: inputs and outputs of a layer, K: networks of the same shape

An update evaluates the policy in s and s', the target critics for s', and the critics for (s, a)
and for (s, b), where b is the policy's own action. It differentiates the policy by its weights, the
critics for (s, a) by their weights, and the critics for (s, b) by b.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from benchmarks.sac.plain_sac import Sizes
from tianji.algorithms.accelerators.products import multiply

POLICIES, CRITICS = 1, 2
Product = tuple[Tensor, Tensor, Tensor]
"""Two factors, and where the result goes."""


class Products:
    """`run` makes the products of so many updates."""

    def __init__(self, sizes: Sizes, device: str) -> None:
        rated = (sizes.num_obs + sizes.num_numbers, *sizes.hidden, 1)
        policy = (sizes.num_obs, *sizes.hidden, 2 * sizes.num_numbers)
        rows = sizes.batch_size
        self._products = [
            product
            for widths, count, evaluations, by_weights, by_inputs in (
                (policy, POLICIES, 2, True, False),
                (rated, CRITICS, 1, False, False),  # targets
                (rated, CRITICS, 1, True, False),
                (rated, CRITICS, 1, False, True),
            )
            for product in _products(count, rows, widths, evaluations, by_weights, by_inputs)
        ]
        self._products = [
            (one.to(device), other.to(device), out.to(device)) for one, other, out in self._products
        ]

    def run(self, num_updates: int) -> None:
        for _ in range(num_updates):
            for one, other, out in self._products:
                multiply(one, other, out)


def _products(
    count: int,
    rows: int,
    widths: tuple[int, ...],
    evaluations: int,
    by_weights: bool,
    by_inputs: bool,
) -> Iterator[Product]:
    """Yield the products of some passes through networks of one shape.

    by_weights, by_inputs: what they are differentiated by; both pass back through the layers. The
    factors never change: products of products would overflow."""
    for layer, (num_in, num_out) in enumerate(pairwise(widths)):
        x_KBI = torch.randn(count, rows, num_in)
        weight_KIO = torch.randn(count, num_in, num_out)
        y_KBO = torch.randn(count, rows, num_out)
        for _ in range(evaluations):
            yield x_KBI, weight_KIO, torch.empty_like(y_KBO)
        if by_weights:
            yield x_KBI.transpose(1, 2), y_KBO, torch.empty_like(weight_KIO)
        if by_inputs or (by_weights and layer > 0):
            yield y_KBO, weight_KIO.transpose(1, 2), torch.empty_like(x_KBI)
