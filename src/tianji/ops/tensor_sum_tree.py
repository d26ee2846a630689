"""The sum tree of sum_tree.py in torch tensors, for a replay store whose steps lie on a GPU.

Ours keeps the steps in main memory, with only the observations on the GPU, and draws on the CPU;
benchmarks/priorities says why, and compares both.

B: indices of one call, R: nodes of a level, C: children of a node, N: leaves.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

FAN_OUT = 128


class TensorSumTree:
    """Priorities p_i >= 0 of `capacity` leaves; leaf i is drawn with probability p_i / sum p.

    A node holds the sum of its `fan_out` children; the top level is one node. Sums are float64 and
    always computed from the children anew: a call gathers fan_out numbers for each index and level.

    Every method may be captured in a CUDA graph: shapes depend on nothing but the number of
    indices, and nothing is read back by the host. Therefore priorities are not checked (a NaN
    spoils the sums above it), and a draw from a tree without a positive priority returns leaf 0.
    """

    def __init__(
        self, capacity: int, fan_out: int = FAN_OUT, device: torch.device | str = "cuda"
    ) -> None:
        self.capacity = capacity
        self._fan_out = fan_out
        self._levels_RC: list[Tensor] = []  # leaves first, padded with zeros to full rows
        num_nodes = capacity
        while not self._levels_RC or num_nodes > 1:
            num_nodes = math.ceil(num_nodes / fan_out)
            level_RC = torch.zeros(num_nodes, fan_out, dtype=torch.float64, device=device)
            self._levels_RC.append(level_RC)
        self._leaves = self._levels_RC[0].view(-1)
        self._min_R = torch.full_like(self._levels_RC[0][:, 0], math.inf)
        self._max_R = torch.zeros_like(self._min_R)
        self._last_N = torch.full((capacity,), -1, dtype=torch.int32, device=device)
        forward_C = torch.arange(fan_out, dtype=torch.int32, device=device)
        self._forward_C, self._backward_C = forward_C, 2 * fan_out - forward_C

    @property
    def total(self) -> Tensor:
        return self._levels_RC[-1].sum()

    @property
    def min_priority(self) -> Tensor:
        """Return the smallest priority above 0; infinity while all priorities are 0."""
        return self._min_R.amin()

    @property
    def max_priority(self) -> Tensor:
        return self._max_R.amax()

    def get(self, index_B: Tensor) -> Tensor:
        return self._leaves.index_select(0, index_B)

    def set(self, index_B: Tensor, priority_B: Tensor) -> None:
        """Set the priorities of some leaves; where an index occurs twice, the last one counts."""
        priority_B = priority_B.to(torch.float64)
        self._leaves.index_copy_(0, index_B, priority_B.index_select(0, self._last(index_B)))
        node_B = index_B // self._fan_out
        child_BC = self._levels_RC[0].index_select(0, node_B)
        self._max_R.index_copy_(0, node_B, child_BC.amax(1))
        positive_BC = child_BC.masked_fill(child_BC <= 0.0, math.inf)
        self._min_R.index_copy_(0, node_B, positive_BC.amin(1))
        for parent_RC in self._levels_RC[1:]:
            parent_RC.view(-1).index_copy_(0, node_B, child_BC.sum(1))
            node_B = node_B // self._fan_out
            child_BC = parent_RC.index_select(0, node_B)

    def draw(self, u_B: Tensor) -> Tensor:
        """Return for each u in [0, 1] the first leaf whose cumulative priority is above u * total.

        Uniform u in float64 draw in proportion to the priorities; float32 has too few digits for
        many leaves. Leaves with priority 0 are never returned.
        """
        rest_B = u_B.to(torch.float64) * self.total
        node_B = torch.zeros_like(u_B, dtype=torch.int64)
        for level_RC in reversed(self._levels_RC):
            child_BC = level_RC.index_select(0, node_B)
            cumulative_BC = child_BC.cumsum(1)
            # The first positive child above the rest, or else (after rounding) the last positive
            # child. A parallel sum may increase at a child that is 0, hence the mask.
            rank_BC = torch.where(
                cumulative_BC > rest_B[:, None], self._backward_C, self._forward_C
            ).masked_fill_(child_BC <= 0.0, -1)
            chosen_B1 = rank_BC.argmax(1, keepdim=True)
            before_B1 = cumulative_BC.gather(1, chosen_B1) - child_BC.gather(1, chosen_B1)
            rest_B = rest_B - before_B1[:, 0]
            node_B = node_B * self._fan_out + chosen_B1[:, 0]
        return node_B

    def importance_weight(self, index_B: Tensor, beta: float) -> Tensor:
        """Return what SumTree.importance_weight returns: (min_j p_j / p_i)^beta."""
        return (self.min_priority / self.get(index_B)) ** beta

    def _last(self, index_B: Tensor) -> Tensor:
        """Return for each index the last place in index_B that holds the same index.

        Where an index occurs twice, torch leaves open which value index_copy_ writes.
        """
        place_B = torch.arange(len(index_B), dtype=torch.int32, device=index_B.device)
        self._last_N.scatter_reduce_(0, index_B, place_B, "amax")
        last_B = self._last_N.index_select(0, index_B)
        self._last_N.index_fill_(0, index_B, -1)
        return last_B
