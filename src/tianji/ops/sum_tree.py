"""A sum tree in NumPy arrays: the arithmetic of prioritised replay (Schaul et al. 2016).

B: indices of one call, R: nodes of a level, C: children of a node, K: nodes of the top level.
tensor_sum_tree.py has the same in torch, for a GPU.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

FAN_OUT = 8
MAX_TOP_NODES = 4096
"""The fastest pair at 1,000,000 leaves (benchmarks/priorities); 16 and 4096 come close."""

SMALLEST, LARGEST = 1e-300, 1e300
BELOW_ONE = 1.0 - 2.0**-53
"""x * BELOW_ONE is the next number below x, for every x >= SMALLEST."""


class SumTree:
    """Priorities p_i >= 0 of `capacity` leaves; leaf i is drawn with probability p_i / sum p.

    A node holds the sum of its `fan_out` children. Levels are added until at most `max_top_nodes`
    nodes are left; a draw adds these up. Sums are float64 and always computed from the children
    anew, never changed by a difference, so that rounding errors do not pile up. All leaves start
    with priority 0. Priorities below 1e-300 count as 0.
    """

    def __init__(
        self, capacity: int, fan_out: int = FAN_OUT, max_top_nodes: int = MAX_TOP_NODES
    ) -> None:
        if capacity < 1 or not 2 <= fan_out <= 255 or max_top_nodes < 1:
            raise ValueError(
                "a sum tree needs capacity >= 1, 2 <= fan_out <= 255 and max_top_nodes >= 1, "
                f"not {capacity}, {fan_out} and {max_top_nodes}"
            )
        self.capacity = capacity
        self._fan_out = fan_out
        self._levels_RC: list[Doubles] = []  # leaves first, padded with zeros to full rows
        num_nodes = capacity
        while not self._levels_RC or num_nodes > max_top_nodes:
            num_nodes = -(-num_nodes // fan_out)
            self._levels_RC.append(np.zeros((num_nodes, fan_out)))
        self._leaves = self._levels_RC[0].reshape(-1)
        self._top_K = np.zeros(num_nodes)
        self._parents = [level_RC.reshape(-1) for level_RC in self._levels_RC[1:]] + [self._top_K]
        self._min_R = np.full(len(self._levels_RC[0]), np.inf)  # of the positive leaves of a node
        self._max_R = np.zeros(len(self._levels_RC[0]))

    @property
    def total(self) -> float:
        return float(self._top_K.sum())

    @property
    def min_priority(self) -> float:
        """Return the smallest priority above 0; infinity while all priorities are 0."""
        return float(self._min_R.min())

    @property
    def max_priority(self) -> float:
        return float(self._max_R.max())

    def get(self, index_B: Indices) -> Doubles:
        return self._leaves.take(index_B)

    def set(self, index_B: Indices, priority_B: ArrayLike) -> None:
        """Set the priorities of some leaves; where an index occurs twice, the last one counts."""
        if not len(index_B):
            return
        priority_B = np.asarray(priority_B, np.float64)
        smallest = priority_B.min()
        if not (smallest >= 0.0 and priority_B.max() <= LARGEST):  # NaN fails both
            raise ValueError(f"priorities must be between 0 and {LARGEST}: {priority_B}")
        if index_B.min() < 0 or index_B.max() >= self.capacity:
            raise IndexError(f"leaves are numbered 0 to {self.capacity - 1}: {index_B}")
        if smallest < SMALLEST:
            priority_B = np.where(priority_B < SMALLEST, 0.0, priority_B)
        self._leaves[index_B] = priority_B
        node_B = index_B
        for level_RC, parents in zip(self._levels_RC, self._parents, strict=True):
            node_B = node_B // self._fan_out
            if len(node_B) > len(level_RC):
                node_B = np.arange(len(level_RC))
            # Reductions over the first axis are vectorised: the minimum of 512 x 16 takes 9 us with
            # this copy, 69 us over the last axis.
            child_CB = np.ascontiguousarray(level_RC.take(node_B, axis=0).T)
            parents[node_B] = np.add.reduce(child_CB)
            if level_RC is self._levels_RC[0]:
                self._max_R[node_B] = child_CB.max(0)
                np.putmask(child_CB, child_CB <= 0.0, np.inf)
                self._min_R[node_B] = child_CB.min(0)

    def draw(self, u_B: NDArray[np.floating]) -> Indices:
        """Return for each u in [0, 1] the first leaf whose cumulative priority is above u * total.

        Uniform u draw in proportion to the priorities; 1, to which (i + u) / B can round, draws the
        last leaf. Leaves with priority 0 are never returned, whatever is rounded: a node is entered
        only if adding its sum increases the cumulative sum.
        """
        cumulative_K = np.zeros(len(self._top_K) + 1)
        np.cumsum(self._top_K, out=cumulative_K[1:])
        if not cumulative_K[-1] > 0.0:
            raise ValueError(
                f"nothing can be drawn: all {self.capacity} priorities of the sum tree are 0"
            )
        rest_B = np.multiply(u_B, cumulative_K[-1], dtype=np.float64)
        np.minimum(rest_B, cumulative_K[-1] * BELOW_ONE, out=rest_B)
        node_B: Indices = cumulative_K[1:].searchsorted(rest_B, side="right")
        rest_B -= cumulative_K.take(node_B)
        for level_RC in reversed(self._levels_RC):
            node_B = _descend(level_RC, node_B, rest_B)
        return node_B

    def importance_weight(self, index_B: Indices, beta: float) -> Doubles:
        """Return w_i / max_j w_j with w_i = (N P_i)^-beta (section 3.4); j: all positive leaves.

        N and the total cancel: (min_j p_j / p_i)^beta, between 0 and 1. p_i must be positive.
        """
        weight_B: Doubles = (self.min_priority / self.get(index_B)) ** beta
        return weight_B


def _descend(level_RC: Doubles, node_B: Indices, rest_B: Doubles) -> Indices:
    """Return the child of each node in which rest_B lies; rest_B becomes what is left of it there.

    The sum of each node must be positive.
    """
    child_BC = level_RC.take(node_B, axis=0)
    size, fan_out = child_BC.shape
    # One addition per child over all nodes: twice as fast as np.cumsum.
    cumulative_CB = np.zeros((fan_out + 1, size))
    cumulative_CB[1:] = child_BC.T
    for before_B, here_B in pairwise(cumulative_CB[1:]):
        np.add(before_B, here_B, out=here_B)
    # Rounding may have left more than the node has.
    np.minimum(rest_B, cumulative_CB[-1] * BELOW_ONE, out=rest_B)
    is_before_CB = cumulative_CB[1:] <= rest_B
    chosen_B: Indices = np.add.reduce(is_before_CB.view(np.uint8), dtype=np.uint8).astype(np.int64)
    rest_B -= cumulative_CB.take(chosen_B * size + np.arange(size))
    chosen_B += node_B * fan_out
    return chosen_B
