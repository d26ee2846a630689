"""Rows of a batch, all that PPO's updates need of them, and how they are cut into minibatches.

B: rows, K: choices or numbers of one action, C: columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tianji.models.gradient import Inputs
from tianji.ops.policy_gradient import Limits


class Columns(NamedTuple):
    """One number per row each; [C, B] when stacked, so that each is contiguous."""

    log_prob_B: Tensor
    """Of the policy that the ratio is taken against."""
    pull_B: Tensor
    """Minus the advantage times the behaviour weight."""
    lower_B: Tensor
    upper_B: Tensor
    target_B: Tensor
    """What the value should be."""
    value_B: Tensor
    """What it was when the batch was taken."""

    @property
    def limits(self) -> Limits:
        return Limits(self.lower_B, self.upper_B)


class Rows(NamedTuple):
    """Some rows of a batch."""

    inputs: Inputs
    action_KB: Tensor
    columns_CB: Tensor

    @property
    def num_rows(self) -> int:
        return self.columns_CB.shape[1]

    def columns(self) -> Columns:
        return Columns(*self.columns_CB.unbind(0))

    def select(self, index_B: Tensor) -> Rows:
        return Rows(
            {name: x.index_select(0, index_B) for name, x in self.inputs.items()},
            self.action_KB.index_select(1, index_B),
            self.columns_CB.index_select(1, index_B),
        )

    def split(self, sizes: list[int]) -> Iterator[Rows]:
        """Consecutive parts, as views."""
        if len(sizes) == 1:
            yield self
            return
        inputs = {name: torch.split(x, sizes) for name, x in self.inputs.items()}
        actions = torch.split(self.action_KB, sizes, 1)
        columns = torch.split(self.columns_CB, sizes, 1)
        for i in range(len(sizes)):
            yield Rows({name: parts[i] for name, parts in inputs.items()}, actions[i], columns[i])


def part_sizes(num_rows: int, num_parts: int) -> list[int]:
    """Sizes of nearly equal parts, largest first, none of them empty."""
    size, rest = divmod(num_rows, num_parts)
    return [size + 1] * rest + ([size] * (num_parts - rest) if size else [])
