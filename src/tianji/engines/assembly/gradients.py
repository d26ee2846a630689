"""Sums of gradients: builds what computes and adds them up, and the times that they take.

In the all-reduce realisation actors take the learner's steps themselves. In one process they take
them with the total that the learner's side added up; between processes a collective gives it to
each of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from tianji.actor.rank import OwnPolicy, Rank
from tianji.algorithms.interface import Estimator, Gather, Update
from tianji.algorithms.registry import load_algorithm
from tianji.algorithms.whole import WholeSnapshot
from tianji.balance.given_times import Times, Timing
from tianji.buffer.gather.adding import Adding
from tianji.buffer.gather.rules import GatherRule, build_rule
from tianji.buffer.stores.own_replay import ReplayedEstimator
from tianji.buffer.stores.ring_layout import own_layout
from tianji.buffer.stores.rings import Rings
from tianji.channels.contributions import ContributionWriter
from tianji.channels.interface import BoardReader, Totals
from tianji.channels.layout import Layout
from tianji.channels.orders import ActorRows
from tianji.channels.reduce import GlooReduce
from tianji.config.seeding import seed_for
from tianji.engines.assembly.model import build_model
from tianji.engines.spec import RunSpec
from tianji.models.sizes import reward_clip
from tianji.models.tensors import Snapshot, flatten
from tianji.virtual.costs import costs_of

OpenContributions = Callable[[int], ContributionWriter]
"""Opens an actor's end, for this number of parameters."""
MakeAdding = Callable[[GatherRule, int], Adding]
"""Makes the adder for a rule and a number of parameters."""


def gather_of(spec: RunSpec) -> Gather | None:
    """Return how this run gathers gradients; None where its items are unrolls."""
    cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
    return cadence if isinstance(cadence, Gather) else None


def is_all_reduce(gather: Gather | None) -> bool:
    return gather is not None and gather.realisation == "all-reduce"


def num_parameters(model: torch.nn.Module) -> int:
    return len(flatten(model).vector_P)


def times_of(spec: RunSpec, num_parameters: int) -> Times | None:
    """Return the times that gradients shall take; None where they take as long as they need.

    Under the virtual clock there must be some: without a law every actor takes what its rows cost
    by the table of that engine.
    """
    config, plan = spec.config.times, spec.plan
    if config.law == "none" and spec.config.engine != "virtual":
        return None
    if config.law == "none":
        gradient_s = costs_of(plan, None).row.alone_s * plan.num_rows
        config = config.model_copy(update={"unit_s": gradient_s})
    return Times(config, plan.num_actors, num_parameters, spec.config.seed)


def timing_of(spec: RunSpec, gather: Gather, actor: int, num_parameters: int) -> Timing | None:
    times = times_of(spec, num_parameters)
    return None if times is None else Timing(times, actor, gather.rule)


def published(spec: RunSpec, model: nn.Module, update: Update) -> Snapshot | WholeSnapshot:
    """Return what the learner posts: for actors that take its steps, all that the next step
    needs."""
    return WholeSnapshot(model, update) if is_all_reduce(gather_of(spec)) else Snapshot(model)


def build_estimator(spec: RunSpec, gather: Gather, model: nn.Module, index: int) -> Estimator:
    """Build what computes the gradients of an actor, with a replay memory of its own if it samples
    from one."""
    build = load_algorithm(spec.config.algorithm.name).build_estimator
    assert build is not None, "an algorithm that gathers has an estimator"
    estimator: Estimator = build(model, spec.spaces, spec.config)
    if gather.memory is None:
        return estimator
    plan, seed = spec.plan, seed_for(spec.config.seed, "store", spec.number_of(index))
    layout = own_layout(Layout.from_json(plan.layout), gather.memory, plan.num_actors)
    rings = Rings(
        layout, np.zeros(layout.nbytes, np.uint8), None, reward_clip(spec.spaces, spec.config)
    )
    gamma = spec.config.algorithm.gamma
    return ReplayedEstimator(estimator, rings, gather.memory, plan.num_actors, gamma, seed)


def own_policy(
    spec: RunSpec, board: BoardReader, totals: Totals, gauges: memoryview[int]
) -> OwnPolicy:
    """Return the policy of an actor that takes the learner's steps itself."""
    model = build_model(spec)
    algorithm = load_algorithm(spec.config.algorithm.name)
    update = algorithm.build_update(model, spec.spaces, spec.config)
    return OwnPolicy(model, update, board, totals, _weigh(spec), gauges)


def build_rank(
    spec: RunSpec,
    index: int,
    reduce: GlooReduce,
    open_contributions: OpenContributions,
    rows: ActorRows,
) -> Rank:
    """Build an actor's end of the all-reduce between processes."""
    size = num_parameters(build_model(spec))
    contributions = open_contributions(size)
    num_actors = spec.plan.num_actors
    return Rank(index, num_actors, size, reduce, contributions, _weigh(spec), rows)


def _weigh(spec: RunSpec) -> Callable[[int], tuple[float, float]]:
    gather = gather_of(spec)
    assert gather is not None, "only sums of gradients are weighed"
    return build_rule(gather, spec.plan.num_actors).weigh
