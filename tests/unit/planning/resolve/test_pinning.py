"""Who is pinned where: memory nodes and hyper-threads respected."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.config.machine import Machine
from tianji.planning.resolve.shares import pin_cores

TWO_NODES = Machine(tuple(range(8)), 1, nodes=((0, 1, 2, 3), (4, 5, 6, 7)))
HYPER = Machine(tuple(range(4)), 1, nodes=((0, 1, 2, 3),), siblings=((0, 2), (1, 3)))
BOTH = Machine(
    tuple(range(8)),
    1,
    nodes=((0, 1, 4, 5), (2, 3, 6, 7)),
    siblings=((0, 4), (1, 5), (2, 6), (3, 7)),
)
UNEVEN = Machine((0, 4, 5, 6), 1, nodes=((0,), (4, 5, 6)))


@pytest.mark.parametrize(
    ("machine", "num_actors", "actor_threads", "learner_threads", "cores"),
    [
        (TWO_NODES, 6, 1, 2, [(0, 1), (2,), (3,), (4,), (5,), (6,), (7,)]),
        (TWO_NODES, 3, 2, 2, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        (TWO_NODES, 2, 1, 6, [(0, 1, 2, 3, 4, 5), (6,), (7,)]),
        (HYPER, 2, 1, 2, [(0, 1), (2,), (3,)]),
        (HYPER, 1, 1, 1, [(0,), (1,)]),
        (HYPER, 1, 1, 3, [(0, 1, 2), (3,)]),
        (BOTH, 2, 1, 2, [(0, 1), (2,), (3,)]),
        (BOTH, 5, 1, 3, [(0, 1, 4), (2,), (3,), (5,), (6,), (7,)]),
        (UNEVEN, 1, 1, 3, [(4, 5, 6), (0,)]),
        (UNEVEN, 2, 1, 2, [(4, 5), (6,), (0,)]),
    ],
    ids=[
        "near their learner first",
        "threads of an actor in a row",
        "a learner larger than a node",
        "the learner's threads on different cores",
        "one hyper-thread of each core",
        "a learner larger than its cores",
        "one hyper-thread of each core of both nodes",
        "a learner stays in its node before it takes hyper-threads of the next",
        "the learner at home in the larger node",
        "its actors near it",
    ],
)
def test_workers_lie_near_each_other_and_share_a_core_last(
    machine, num_actors, actor_threads, learner_threads, cores
):
    found = pin_cores(machine, num_actors, actor_threads, learner_threads)
    names = ["learner", *(f"actor-{index}" for index in range(num_actors))]
    assert found == dict(zip(names, cores, strict=True))


@pytest.mark.parametrize(
    ("machine", "num_actors", "learner_threads"),
    [
        (TWO_NODES, 2, 2),
        (TWO_NODES, 8, 1),
        (HYPER, 2, 1),
        (replace(TWO_NODES, is_shared=True), 6, 2),
    ],
    ids=["cores left over", "more workers than cores", "some hyper-threads", "cores of others"],
)
def test_nobody_is_pinned_where_cores_are_not_the_runs_own(machine, num_actors, learner_threads):
    assert pin_cores(machine, num_actors, 1, learner_threads) == {}


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 8), st.sampled_from([1, 2, 4]))
def test_no_core_is_given_twice_and_every_thread_has_one(actors, per_actor, threads, num_nodes):
    cores = tuple(range(actors * per_actor + threads))
    nodes = tuple(cores[index::num_nodes] for index in range(num_nodes))
    machine = Machine(cores, 1, nodes=tuple(node for node in nodes if node))
    found = pin_cores(machine, actors, per_actor, threads)
    assert sorted(core for mine in found.values() for core in mine) == list(cores)
    assert len(found["learner"]) == threads
    assert all(len(found[f"actor-{index}"]) == per_actor for index in range(actors))
