"""Config to plan: every derived number of a run, and the arithmetic where one does not fit.

The shares of the machine come from the planner's solution, from the person, or from a simple rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tianji.algorithms.registry import load_algorithm
from tianji.balance.demand import Demand
from tianji.balance.memory import SAFE_MEMORY_SHARE
from tianji.channels.board import NUM_COPIES
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.errors import UsageError
from tianji.programs.given_times import check_times
from tianji.programs.pinning import pin_cores
from tianji.programs.slots import Slots, lag_target, plan_slots

if TYPE_CHECKING:
    from tianji.algorithms.interface import Cadence
    from tianji.balance.solve import Solution
    from tianji.config.schema import Auto
    from tianji.envs.build import Probe

MOST_LEARNER_THREADS = 4  # more only wait for each other at the sizes of these networks


@dataclass(frozen=True, slots=True)
class _Shares:
    """Who gets how much of the machine."""

    num_actors: int
    learner_threads: int
    actor_threads: int


def resolve(
    config: RunConfig, machine: Machine, probe: Probe, solution: Solution | None = None
) -> RunPlan:
    """The plan for this run on this machine; UsageError where it cannot work.

    solution: the planner's shares; what the person has fixed stays fixed. Without one, a rule.
    """
    algorithm = load_algorithm(config.algorithm.name)
    algorithm.check(probe.spaces, config)
    cadence = algorithm.cadence(config)
    gathers = cadence.gather is not None
    shares = _solved(config, solution) if solution else _rule(config, machine, gathers)
    check_times(config, cadence, shares.num_actors)
    slots = plan_slots(config, algorithm, cadence, probe, shares.num_actors)
    _check_memory(slots, machine)
    return RunPlan(
        num_actors=shares.num_actors,
        envs_per_actor=config.num_envs // shares.num_actors,
        learner_threads=shares.learner_threads,
        actor_threads=shares.actor_threads,
        shares_cores=_shares_cores(config, machine, shares),
        cores=_cores(config, machine, shares),
        unroll_length=cadence.unroll_length,
        lookahead=cadence.lookahead,
        num_rows=slots.layout.num_rows,
        keeps_final=probe.keeps_final,
        layout=slots.layout.to_json(),
        slot_bytes=slots.layout.slot_bytes,
        num_slots=slots.num_slots,
        replay_unrolls=slots.replay_unrolls,
        unrolls_per_version=slots.per_version,
        warmup_unrolls=slots.warmup_unrolls,
        lag_target=0 if gathers else lag_target(config),  # rounds are closed, nobody is paced
        max_lag=config.max_lag,
        ratio=cadence.ratio,
        shared_memory_bytes=slots.shared.total,
        source="rule" if solution is None else "measured",
        prediction=solution.prediction if solution is not None else None,
        notes=_notes(machine, shares, config, probe, solution),
    )


def demand_of(config: RunConfig, probe: Probe) -> Demand:
    """What the planner has to know about this run; UsageError where it cannot work."""
    algorithm = load_algorithm(config.algorithm.name)
    algorithm.check(probe.spaces, config)
    cadence = algorithm.cadence(config)
    fixed = _asked(config.num_actors)
    counts = [_checked(config, fixed)] if fixed else _even_counts(config, cadence)
    return Demand(
        num_envs=config.num_envs,
        unroll_length=cadence.unroll_length,
        steps_per_version=cadence.steps_per_version,
        trained_steps_per_version=cadence.trained_steps_per_version,
        ratio=cadence.ratio,
        staleness=staleness(cadence),
        lag_target=lag_target(config),
        max_lag=config.max_lag,
        shared={
            count: plan_slots(config, algorithm, cadence, probe, count).shared for count in counts
        },
        policy_copies=NUM_COPIES,
        num_actors=fixed,
        learner_threads=_asked(config.learner_threads),
        actor_threads=_asked(config.actor_threads),
        has_evaluator=config.evaluate.period_s > 0,
    )


def staleness(cadence: Cadence) -> float:
    """P = B_s / N_s, equation 2 of the TianJi paper: a batch over what it is drawn from."""
    if cadence.store == "queue":
        return 1 / cadence.pool_batches
    return cadence.trained_steps_per_version / cadence.num_updates / cadence.capacity_steps


def _asked(value: int | Auto) -> int | None:
    return None if value == "auto" else value


def _even_counts(config: RunConfig, cadence: Cadence) -> list[int]:
    """Numbers of actors that share the environments, and a version's steps, evenly."""
    steps = cadence.steps_per_version
    return [
        count
        for count in range(1, config.num_envs + 1)
        if config.num_envs % count == 0
        and steps % (cadence.unroll_length * (config.num_envs // count)) == 0
    ]


def _rule(config: RunConfig, machine: Machine, gathers: bool) -> _Shares:
    num_actors = _num_actors(config, machine, gathers)
    left = max(1, len(machine.cores) - num_actors)
    return _Shares(
        num_actors,
        _asked(config.learner_threads) or min(MOST_LEARNER_THREADS, left),
        _asked(config.actor_threads) or 1,
    )


def _solved(config: RunConfig, solution: Solution) -> _Shares:
    fixed = _asked(config.num_actors)
    return _Shares(
        _checked(config, fixed) if fixed else solution.num_actors,
        _asked(config.learner_threads) or solution.learner_threads,
        _asked(config.actor_threads) or solution.actor_threads,
    )


def _num_actors(config: RunConfig, machine: Machine, gathers: bool) -> int:
    fixed = _asked(config.num_actors)
    if fixed is not None:
        return _checked(config, fixed)
    # One core is the learner's, unless the actors compute the gradients: then it has little to do.
    most = max(1, len(machine.cores) - (not gathers))
    num_tasks = len(config.tasks)
    even = (n for n in range(num_tasks, most + 1, num_tasks) if config.num_envs % n == 0)
    return max(even, default=_checked(config, num_tasks))


def _checked(config: RunConfig, num_actors: int) -> int:
    if config.num_envs % num_actors:
        raise UsageError(
            f"num_envs = {config.num_envs} cannot be shared evenly by num_actors = "
            f"{num_actors}. Use a multiple, such as num_envs = "
            f"{num_actors * max(1, round(config.num_envs / num_actors))}."
        )
    return num_actors


def _shares_cores(config: RunConfig, machine: Machine, shares: _Shares) -> bool:
    evaluators = int(config.evaluate.period_s > 0)
    threads = shares.num_actors * shares.actor_threads + shares.learner_threads + evaluators
    return config.engine == "local" and threads > len(machine.cores)


def _cores(config: RunConfig, machine: Machine, shares: _Shares) -> dict[str, tuple[int, ...]]:
    if config.engine != "local" or config.evaluate.period_s > 0 or not config.plan.pin:
        return {}
    return pin_cores(machine, shares.num_actors, shares.actor_threads, shares.learner_threads)


def _check_memory(slots: Slots, machine: Machine) -> None:
    shared = slots.shared.total
    if shared <= machine.memory_bytes * SAFE_MEMORY_SHARE:
        return
    raise UsageError(
        f"This run does not fit: {slots.num_slots} slots x {slots.layout.slot_bytes / 2**20:.2f} "
        f"MiB = {shared / 2**30:.2f} GiB of shared memory, and "
        f"{machine.memory_bytes / 2**30:.2f} GiB are free (at most {SAFE_MEMORY_SHARE:.0%} of that "
        "is used). Use a smaller replay_size, fewer environments or shorter unrolls."
    )


def _notes(
    machine: Machine,
    shares: _Shares,
    config: RunConfig,
    probe: Probe,
    solution: Solution | None,
) -> tuple[str, ...]:
    threads = f" of {shares.actor_threads} threads" if shares.actor_threads > 1 else ""
    return (
        f"{len(machine.cores)} usable cores: {shares.num_actors} actor(s){threads} with "
        f"{config.num_envs // shares.num_actors} environments each, 1 learner with "
        f"{shares.learner_threads} thread(s), which also holds the buffer.",
        f"Environments: {probe.vectorised}.",
        *(solution.reasons if solution is not None else ()),
    )
