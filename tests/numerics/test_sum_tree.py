"""Both sum trees: exact frequencies, rounding borders, duplicates, drift."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tianji.ops.sum_tree import SumTree
from tianji.ops.tensor_sum_tree import TensorSumTree

some = settings(max_examples=60, deadline=None)
shapes = st.tuples(st.integers(2, 17), st.sampled_from([1, 3, 4096]))
whole = st.lists(st.integers(0, 9), min_size=1, max_size=70).filter(any)
real = st.lists(
    st.sampled_from([0.0]) | st.floats(1e-12, 1e12) | st.floats(0.5, 1.0), min_size=1, max_size=70
).filter(any)


class OnTensors:
    """TensorSumTree with the arguments and results of SumTree."""

    def __init__(self, capacity, fan_out=2, max_top_nodes=1, device="cpu"):
        self._tree, self._device = TensorSumTree(capacity, fan_out, device), device

    def __getattr__(self, name):
        return float(getattr(self._tree, name))

    def set(self, index_B, priority_B):
        self._tree.set(self._tensor(index_B), self._tensor(priority_B))

    def get(self, index_B):
        return self._tree.get(self._tensor(index_B)).cpu().numpy()

    def draw(self, u_B):
        return self._tree.draw(self._tensor(u_B)).cpu().numpy()

    def importance_weight(self, index_B, beta):
        return self._tree.importance_weight(self._tensor(index_B), beta).cpu().numpy()

    def _tensor(self, array):
        return torch.from_numpy(np.asarray(array)).to(self._device)


both = pytest.mark.parametrize("make", [SumTree, OnTensors])


def filled(make, priorities, fan_out=2, max_top_nodes=1):
    tree = make(len(priorities), fan_out, max_top_nodes)
    tree.set(np.arange(len(priorities)), np.array(priorities, np.float64))
    return tree


@both
@given(whole, shapes)
@some
def test_each_leaf_gets_exactly_its_share_of_evenly_spaced_draws(make, priorities, shape):
    tree, total = filled(make, priorities, *shape), sum(priorities)
    index_B = tree.draw((np.arange(total) + 0.5) / total)
    assert index_B.tolist() == np.repeat(np.arange(len(priorities)), priorities).tolist()
    assert tree.total == total


@both
@given(whole, shapes, st.randoms(use_true_random=False))
@some
def test_borders_between_leaves_belong_to_the_leaf_above(make, priorities, shape, random):
    """With a power of two as the total, u * total is exact on the borders themselves."""
    padding = 2 ** int(np.ceil(np.log2(sum(priorities)))) - sum(priorities)
    priorities = [*priorities, padding]
    random.shuffle(priorities)
    tree, total = filled(make, priorities, *shape), sum(priorities)
    index_B = tree.draw(np.arange(total) / total)
    assert index_B.tolist() == np.repeat(np.arange(len(priorities)), priorities).tolist()


@both
@given(real, shapes)
@some
def test_priority_zero_is_never_drawn_at_rounding_borders(make, priorities, shape):
    tree = filled(make, priorities, *shape)
    border_B = np.cumsum(priorities) / np.sum(priorities)
    u_B = np.concatenate(
        [[0.0, 1.0], border_B, np.nextafter(border_B, 0.0), np.nextafter(border_B, 2.0)]
    )
    index_B = tree.draw(np.minimum(u_B, 1.0))
    assert (index_B < len(priorities)).all()
    assert (tree.get(index_B) > 0.0).all()


@both
@given(real, shapes)
@some
def test_draws_agree_with_the_flat_cumulative_sum_away_from_borders(make, priorities, shape):
    tree = filled(make, priorities, *shape)
    border_B = np.cumsum(priorities) / np.sum(priorities)
    u_B = np.linspace(0.0, 1.0, 200, endpoint=False)
    away_B = np.abs(u_B[:, None] - border_B).min(1) > 1e-12
    expected_B = border_B.searchsorted(u_B, side="right")
    assert (tree.draw(u_B) == expected_B)[away_B].all()


@both
@pytest.mark.parametrize("index", [0, 1, 15, 16, 4095, 4999])
def test_the_only_positive_leaf_is_always_drawn(make, index):
    tree = make(5000, 16, 16)
    tree.set(np.array([index]), np.array([3.0]))
    assert tree.draw(np.array([0.0, 0.3, 1.0 - 2.0**-53, 1.0])).tolist() == [index] * 4
    assert (tree.total, tree.min_priority, tree.max_priority) == (3.0, 3.0, 3.0)
    tree.set(np.array([index, 7]), np.array([0.0, 1.0]))
    assert tree.draw(np.array([0.0, 0.5])).tolist() == [7, 7]


@both
@given(
    st.integers(1, 60),
    st.lists(st.lists(st.tuples(st.integers(0, 59), st.integers(0, 9)), max_size=80), max_size=4),
    shapes,
)
@some
def test_the_last_of_several_equal_indices_counts(make, capacity, calls, shape):
    """A plain list as the model; `set` must also keep the bounds of all leaves."""
    tree, model = make(capacity, *shape), [0] * capacity
    for call in calls:
        pairs = [(index % capacity, priority) for index, priority in call]
        for index, priority in pairs:
            model[index] = priority
        array = np.array(pairs, np.int64).reshape(-1, 2)
        tree.set(array[:, 0], array[:, 1].astype(np.float32))
    assert tree.get(np.arange(capacity)).tolist() == model
    assert tree.total == sum(model)
    assert tree.max_priority == max(model)
    assert tree.min_priority == min(filter(None, model), default=np.inf)


@both
def test_a_million_updates_leave_the_sums_of_a_tree_built_anew(make):
    rng, capacity = np.random.default_rng(1), 3000
    tree = make(capacity, 16, 16)
    for _ in range(2000):
        priority_B = 10.0 ** rng.uniform(-9, 9, 512) * (rng.random(512) < 0.9)
        tree.set(rng.integers(0, capacity, 512), priority_B)
    tree.set(np.arange(capacity), 1e-9 * rng.random(capacity))
    rebuilt = filled(make, tree.get(np.arange(capacity)), 16, 16)
    assert tree.total == pytest.approx(rebuilt.total, rel=1e-14)
    assert tree.min_priority == rebuilt.min_priority
    u_B = rng.random(5000)
    assert (tree.draw(u_B) == rebuilt.draw(u_B)).mean() > 0.999


@both
@given(real, st.floats(0.0, 1.0))
@some
def test_importance_weights_follow_the_papers_formula(make, priorities, beta):
    tree, p = filled(make, priorities), np.array(priorities)
    weight = (len(p) * p[p > 0] / p.sum()) ** -beta
    found = tree.importance_weight(np.flatnonzero(p), beta)
    np.testing.assert_allclose(found, weight / weight.max(), rtol=1e-9)


def test_a_tree_of_zeros_cannot_be_drawn_from():
    tree = SumTree(10)
    with pytest.raises(ValueError, match="all 10 priorities of the sum tree are 0"):
        tree.draw(np.array([0.5]))
    tree.set(np.arange(10), 1e-310)
    with pytest.raises(ValueError, match="all 10 priorities"):
        tree.draw(np.array([0.5]))


def test_tensors_without_a_positive_priority_give_a_leaf_that_exists():
    tree = TensorSumTree(10, 4, "cpu")
    assert tree.draw(torch.tensor([0.0, 0.9], dtype=torch.float64)).tolist() == [0, 0]


@pytest.mark.parametrize("priority", [-1.0, np.nan, np.inf])
def test_a_priority_that_cannot_be_one_is_refused_and_changes_nothing(priority):
    tree = filled(SumTree, [1.0, 2.0])
    with pytest.raises(ValueError, match="priorities must be between"):
        tree.set(np.array([0, 1]), np.array([5.0, priority]))
    assert tree.get(np.array([0, 1])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("index", [-1, 2, 15])
def test_a_leaf_that_does_not_exist_is_refused(index):
    with pytest.raises(IndexError, match="leaves are numbered 0 to 1"):
        SumTree(2).set(np.array([index]), 1.0)


@pytest.mark.parametrize("arguments", [(0,), (5, 1), (5, 256), (5, 2, 0)])
def test_shapes_that_make_no_tree_are_refused(arguments):
    with pytest.raises(ValueError, match="a sum tree needs"):
        SumTree(*arguments)


@both
def test_float32_draws_are_multiplied_in_float64(make):
    """0.5 * total lies in the second leaf; rounded to float32 it would lie in the first."""
    tree = filled(make, [2.0**30 + 1.0, 2.0**30 + 3.0])
    assert tree.draw(np.array([0.5], np.float32)).tolist() == [1]


@both
def test_sums_added_in_another_order_do_not_lead_past_the_last_child(make):
    """NumPy adds the children of a single node in another order than those of many nodes."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        tree = make(40, 16, 1)
        for index in rng.permutation(40):
            tree.set(np.array([index]), rng.random(1) * (index % 16 < 14))
        border_B = np.cumsum(tree.get(np.arange(40))) / tree.total
        u_B = np.concatenate([border_B, np.nextafter(border_B, 0.0), np.nextafter(border_B, 2.0)])
        index_B = tree.draw(np.minimum(u_B, 1.0))
        assert (index_B < 40).all()
        assert (tree.get(index_B) > 0.0).all()


class WritesInReverse(TorchDispatchMode):
    """Copies the last index first: a GPU may take any order."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.index_copy_.default:
            self_N, dim, index_B, source_B = args
            args = self_N, dim, index_B.flip(0), source_B.flip(0)
        return func(*args, **(kwargs or {}))


def test_the_last_of_several_equal_indices_counts_in_any_order_of_writing():
    tree = TensorSumTree(10, 4, "cpu")
    with WritesInReverse():
        tree.set(torch.tensor([3, 5, 3, 9, 3]), torch.tensor([7.0, 1.0, 8.0, 2.0, 4.0]))
    assert tree.get(torch.tensor([3, 5, 9])).tolist() == [4.0, 1.0, 2.0]
    assert (float(tree.total), float(tree.max_priority)) == (7.0, 4.0)


class NoValueOnTheHost(TorchDispatchMode):
    """Fails on operations that a CUDA graph cannot hold."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert torch.Tag.data_dependent_output not in func.tags, func
        assert torch.Tag.dynamic_output_shape not in func.tags, func
        return func(*args, **(kwargs or {}))


def test_tensors_need_no_value_on_the_host():
    tree, index_B = TensorSumTree(5000, 16, "cpu"), torch.arange(512)
    with NoValueOnTheHost():
        tree.set(index_B, torch.ones(512))
        tree.set(tree.draw(torch.rand(512, dtype=torch.float64)), torch.ones(512))
        tree.importance_weight(index_B, 0.4)
        assert tree.total.shape == tree.min_priority.shape == tree.max_priority.shape == ()
    with NoValueOnTheHost(), pytest.raises(AssertionError):
        float(tree.total)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
class TestOnCuda:
    def test_a_captured_graph_draws_and_writes_as_numpy_does(self):
        """Small whole priorities: all sums are exact, whatever their order."""
        rng, capacity, size = np.random.default_rng(1), 5000, 256
        start_N = rng.integers(0, 9, capacity).astype(np.float64)
        trees = [filled(SumTree, start_N, 16, 16), TensorSumTree(capacity, 16, "cuda")]
        trees[1].set(torch.arange(capacity, device="cuda"), torch.from_numpy(start_N).cuda())
        u_B = torch.zeros(size, dtype=torch.float64, device="cuda")
        index_B = torch.zeros(size, dtype=torch.int64, device="cuda")
        priority_B = torch.zeros(size, device="cuda")
        trees[1].draw(u_B)
        trees[1].set(index_B, trees[1].get(index_B))
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            drawn_B = trees[1].draw(u_B)
            trees[1].set(index_B, priority_B)
        for _ in range(20):
            u, index = rng.random(size), rng.integers(0, 300, size)  # with duplicates
            priority = rng.integers(0, 9, size).astype(np.float32)
            u_B.copy_(torch.from_numpy(u))
            index_B.copy_(torch.from_numpy(index))
            priority_B.copy_(torch.from_numpy(priority))
            graph.replay()
            assert drawn_B.tolist() == trees[0].draw(u).tolist()
            trees[0].set(index, priority)
        every_N = np.arange(capacity)
        left = trees[1].get(torch.from_numpy(every_N).cuda()).cpu().numpy()
        assert (left == trees[0].get(every_N)).all()

    def test_nothing_waits_for_the_device(self):
        tree = TensorSumTree(5000, 16, "cuda")
        index_B = torch.arange(512, device="cuda")
        u_B, priority_B = torch.rand(2, 512, dtype=torch.float64, device="cuda")
        torch.cuda.set_sync_debug_mode("error")
        try:
            tree.set(index_B, priority_B)
            tree.set(tree.draw(u_B), priority_B)
            tree.importance_weight(index_B, 0.4)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert float(tree.total) > 0.0
