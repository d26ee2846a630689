"""Rows of a batch, all that PPO's updates need of them, and how they are cut into minibatches.

B: rows, A: policy outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tianji.models.networks.gradient import Inputs
from tianji.ops.policy_gradient import Limits


class Columns(NamedTuple):
    """One number per row each."""

    log_prob_B: Tensor
    """Of the policy that the ratio is taken against."""
    pull_B: Tensor
    """Minus the advantage times the behaviour weight, divided by the rows of a minibatch."""
    lower_B: Tensor
    upper_B: Tensor
    """Limits of the ratio."""
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
    action_AB: Tensor
    """As the head prepared them."""
    columns: Columns

    @property
    def num_rows(self) -> int:
        return len(self.columns.pull_B)

    def select(self, index_B: Tensor) -> Rows:
        """These rows in this order, as copies."""
        columns_CB = torch.stack(self.columns).index_select(1, index_B)
        return Rows(
            {name: x.index_select(0, index_B) for name, x in self.inputs.items()},
            self.action_AB.index_select(1, index_B),
            Columns(*columns_CB.unbind(0)),
        )

    def split(self, sizes: list[int]) -> Iterator[Rows]:
        """Consecutive parts, as views."""
        if len(sizes) == 1:
            yield self
            return
        inputs = {name: torch.split(x, sizes) for name, x in self.inputs.items()}
        actions = torch.split(self.action_AB, sizes, 1)
        columns = zip(*(torch.split(column, sizes) for column in self.columns), strict=True)
        for i, parts in enumerate(columns):
            part_inputs = {name: split[i] for name, split in inputs.items()}
            yield Rows(part_inputs, actions[i], Columns(*parts))


def part_sizes(num_rows: int, num_parts: int) -> list[int]:
    """Sizes of nearly equal parts, largest first, none of them empty."""
    size, rest = divmod(num_rows, num_parts)
    return [size + 1] * rest + ([size] * (num_parts - rest) if size else [])
