"""The rows of a batch as PPO's loss takes them: inputs, actions, and one number of each kind a row.

B: rows of a minibatch, C: columns, K: choices or numbers of an action.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from tianji.models.networks.recurrent import STATE
from tianji.models.tensors import Tensors, take_rows


class Columns(NamedTuple):
    """One number for each row, from before the first update.

    log_prob_B:           log pi_old(a|s), of the policy that the ratio is taken against
    weighted_advantage_B: w A
    target_B:             R, what the value should be
    value_B:              V_old
    """

    log_prob_B: Tensor
    weighted_advantage_B: Tensor
    target_B: Tensor
    value_B: Tensor

    @property
    def weights(self) -> Tensor | None:
        """Return None: every row counts."""
        return None


class PaddedColumns(NamedTuple):
    """Columns of a fixed number of rows: weight_B is 0 for those that only fill it up."""

    log_prob_B: Tensor
    weighted_advantage_B: Tensor
    target_B: Tensor
    value_B: Tensor
    weight_B: Tensor

    @property
    def weights(self) -> Tensor | None:
        return self.weight_B


AnyColumns: TypeAlias = Columns | PaddedColumns
C = TypeVar("C", bound=tuple[Any, ...])
"""A NamedTuple of tensors [B]: Columns, or what a closed form computes of them."""


class EvaluatedBatch(NamedTuple, Generic[C]):
    """Some rows of a batch. Inputs have the rows first, [B, ...]; actions have them last."""

    inputs: Tensors
    action_KB: Tensor
    columns: C

    @property
    def num_rows(self) -> int:
        return self.action_KB.shape[1]

    def rows_of(self, index: Tensor) -> Tensor:
        """Return the rows of these items: one each, or all of a sequence, time first."""
        if STATE not in self.inputs:
            return index
        num_sequences = len(self.inputs[STATE])
        first_T = torch.arange(0, self.num_rows, num_sequences, device=index.device)
        return (first_T[:, None] + index).flatten()

    def select(self, index: Tensor) -> EvaluatedBatch[C]:
        """Return these rows, or with a memory these sequences, in this order, as copies."""
        index_B = self.rows_of(index)
        columns_CB = torch.stack(self.columns).index_select(1, index_B)
        return EvaluatedBatch(
            {
                name: take_rows(x, index if name == STATE else index_B)
                for name, x in self.inputs.items()
            },
            self.action_KB.index_select(1, index_B),
            type(self.columns)(*columns_CB.unbind(0)),
        )

    def split(self, sizes: list[int]) -> Iterator[EvaluatedBatch[C]]:
        """Yield consecutive parts, as views."""
        inputs = {name: torch.split(x, sizes) for name, x in self.inputs.items()}
        actions = torch.split(self.action_KB, sizes, 1)
        columns = zip(*(torch.split(column, sizes) for column in self.columns), strict=True)
        for i, parts in enumerate(columns):
            part_inputs = {name: split[i] for name, split in inputs.items()}
            yield EvaluatedBatch(part_inputs, actions[i], type(self.columns)(*parts))


def part_sizes(num_rows: int, num_parts: int) -> list[int]:
    """Return the sizes of nearly equal parts, largest first, none of them empty."""
    size, rest = divmod(num_rows, num_parts)
    return [size + 1] * rest + ([size] * (num_parts - rest) if size else [])
