"""What others do instead of an array tree: a tree in plain Python, and one flat cumulative sum."""

from __future__ import annotations

import numpy as np

from tianji.ops.sum_tree import Doubles, Indices


class PerItemTree:
    """A binary sum tree in a Python list, walked once per item.

    This is the method of OpenAI Baselines and of libraries that took it over, written here in its
    shortest form: without their second tree for the minimum, the weights are divided by the largest
    of the batch.
    """

    def __init__(self, priority_N: Doubles) -> None:
        self._size = 1 << (len(priority_N) - 1).bit_length()
        self._nodes = [0.0] * (2 * self._size)
        self._nodes[self._size : self._size + len(priority_N)] = priority_N.tolist()
        for node in range(self._size - 1, 0, -1):
            self._nodes[node] = self._nodes[2 * node] + self._nodes[2 * node + 1]

    def draw(self, u_B: Doubles) -> Indices:
        return np.array([self._draw_one(u) for u in (u_B * self._nodes[1]).tolist()])

    def set(self, index_B: Indices, priority_B: Doubles) -> None:
        for index, priority in zip(index_B.tolist(), priority_B.tolist(), strict=True):
            self._set_one(index, priority)

    def importance_weight(self, index_B: Indices, beta: float) -> Doubles:
        priority_B = np.array([self._nodes[self._size + index] for index in index_B.tolist()])
        return weights_of_a_batch(priority_B, beta)

    def _draw_one(self, rest: float) -> int:
        node, nodes = 1, self._nodes
        while node < self._size:
            node *= 2
            if rest >= nodes[node]:
                rest -= nodes[node]
                node += 1
        return node - self._size

    def _set_one(self, index: int, priority: float) -> None:
        nodes, node = self._nodes, index + self._size
        nodes[node] = priority
        while node > 1:
            node //= 2
            nodes[node] = nodes[2 * node] + nodes[2 * node + 1]


class FlatSum:
    """No tree: the cumulative sum of all leaves at each draw, and a binary search in it."""

    def __init__(self, priority_N: Doubles) -> None:
        self._priority_N = priority_N.copy()
        self._cumulative_N = np.empty_like(priority_N)

    def draw(self, u_B: Doubles) -> Indices:
        np.cumsum(self._priority_N, out=self._cumulative_N)
        target_B = u_B * self._cumulative_N[-1]
        index_B: Indices = self._cumulative_N.searchsorted(target_B, side="right")
        return index_B

    def set(self, index_B: Indices, priority_B: Doubles) -> None:
        self._priority_N[index_B] = priority_B

    def importance_weight(self, index_B: Indices, beta: float) -> Doubles:
        return weights_of_a_batch(self._priority_N[index_B], beta)


def weights_of_a_batch(priority_B: Doubles, beta: float) -> Doubles:
    weight_B: Doubles = (priority_B.min() / priority_B) ** beta
    return weight_B
