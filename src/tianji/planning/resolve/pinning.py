"""Choose the cores that each worker is pinned to. Pure functions of the machine and the shares."""

from __future__ import annotations

from collections.abc import Sequence

from tianji.config.machine import Machine


def pin_cores(
    machine: Machine, num_actors: int, actor_threads: int, learner_threads: int
) -> dict[str, tuple[int, ...]]:
    """Return the cores of each worker; empty if workers are not pinned.

    Workers are pinned only if the run takes all usable cores, or one hyper-thread of each, and
    every thread has its own: two workers on one core, or two runs on the same cores, are worse than
    no pinning.
    """
    order = _core_order(machine)
    wanted = num_actors * actor_threads + learner_threads
    if machine.is_shared or wanted not in (len(machine.cores), len(_firsts(machine))):
        return {}
    cores = {"learner": _learner_cores(machine, order, learner_threads)}
    free = [core for core in order if core not in cores["learner"]]
    for index in range(num_actors):
        mine = free[index * actor_threads : (index + 1) * actor_threads]
        cores[f"actor-{index}"] = tuple(mine)
    return cores


def _learner_cores(machine: Machine, order: Sequence[int], threads: int) -> tuple[int, ...]:
    """Return cores of one memory node if it has enough, hyper-threads last."""
    home = set(_nodes(machine)[0])
    near = [core for core in order if core in home]
    return tuple((near if len(near) >= threads else order)[:threads])


def _core_order(machine: Machine) -> list[int]:
    """Return one hyper-thread of every core, node by node, then the others.

    Neighbours in this list share a node's memory; two threads share a core only if all are taken.
    """
    firsts = set(_firsts(machine))
    by_node = [core for node in _nodes(machine) for core in node]
    return sorted(by_node, key=lambda core: core not in firsts)  # sorting keeps the order


def _nodes(machine: Machine) -> list[tuple[int, ...]]:
    """Return the memory nodes, the largest first: the learner and most actors are placed there."""
    firsts = set(_firsts(machine))
    nodes = machine.nodes or (machine.cores,)
    return sorted(nodes, key=lambda node: -len(firsts.intersection(node)))


def _firsts(machine: Machine) -> list[int]:
    """Return one hyper-thread of each core."""
    later = {core for group in machine.siblings for core in group[1:]}
    return [core for core in machine.cores if core not in later]
