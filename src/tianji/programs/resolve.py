"""Config to plan: every derived number of a run, and the arithmetic where one does not fit.

The shares of the machine come from the planner's solution, from the person, or from a simple rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Gather, QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.balance.demand import Demand
from tianji.balance.memory import fits, refuse
from tianji.channels.board import NUM_COPIES
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.display.numbers import counted
from tianji.errors import UsageError
from tianji.models.sizes import most_parameters
from tianji.programs.given_times import check_times
from tianji.programs.memory import estimated_memory
from tianji.programs.pinning import pin_cores
from tianji.programs.rule import choose_actors, uneven_note
from tianji.programs.slots import Slots, lag_target, plan_slots

if TYPE_CHECKING:
    from tianji.algorithms.interface import Algorithm, Cadence
    from tianji.balance.solve import Solution
    from tianji.config.schema import Auto
    from tianji.envs.build import Probe

MOST_LEARNER_THREADS = 4  # more only wait for each other at the sizes of these networks
FAR_MORE = 10
"""A first version of so many times max_env_steps is no run that somebody asked for."""


@dataclass(frozen=True, slots=True)
class _Shares:
    """Who gets how much of the machine."""

    num_actors: int
    learner_threads: int
    actor_threads: int


def resolve(
    config: RunConfig,
    machine: Machine,
    probe: Probe,
    solution: Solution | None = None,
    memory_bytes: Mapping[str, int] | None = None,
) -> RunPlan:
    """The plan for this run on this machine; UsageError where it cannot work.

    solution: the planner's shares; what the person has fixed stays fixed. Without one, a rule.
    memory_bytes: what the run takes with the shares that are fixed in the config, where that was
    measured; else it is the solution's, or estimated.
    """
    algorithm = load_algorithm(config.algorithm.name)
    algorithm.check(probe.spaces, config)
    cadence = algorithm.cadence(config)
    gathers = isinstance(cadence, Gather)
    num_parameters = most_parameters(probe.spaces, config)
    run = _Run(config, machine, probe, algorithm, cadence, num_parameters)
    shares = _solved(config, solution) if solution else _rule(run)
    check_times(config, cadence, shares.num_actors)
    slots = run.slots(shares.num_actors)
    _check_length(config, cadence, slots)
    measured = solution.memory_bytes if solution is not None else memory_bytes
    _check_memory(measured or run.memory(shares.num_actors), shares.num_actors, machine)
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
        notes=_notes(run, shares, slots, solution),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """What is known before the shares are."""

    config: RunConfig
    machine: Machine
    probe: Probe
    algorithm: Algorithm
    cadence: Cadence
    num_parameters: int

    def slots(self, num_actors: int) -> Slots:
        return plan_slots(self.config, self.algorithm, self.cadence, self.probe, num_actors)

    def memory(self, num_actors: int) -> dict[str, int]:
        """By estimate."""
        slots = self.slots(num_actors)
        parts = self.config, self.probe, self.cadence, slots, num_actors, self.num_parameters
        return estimated_memory(*parts)


def _check_memory(parts: Mapping[str, int], num_actors: int, machine: Machine) -> None:
    """UsageError, with the arithmetic, where the run takes more than the machine has."""
    if not fits(parts, machine.memory_bytes):
        raise refuse(parts, num_actors, machine.memory_bytes)


def check_network(
    config: RunConfig, machine: Machine, probe: Probe, plan: RunPlan, num_parameters: int
) -> None:
    """UsageError where a network of the person's own, built only now, makes the run too large."""
    if plan.source == "measured":
        return  # with this very network
    algorithm = load_algorithm(config.algorithm.name)
    run = _Run(config, machine, probe, algorithm, algorithm.cadence(config), num_parameters)
    _check_memory(run.memory(plan.num_actors), plan.num_actors, machine)


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
    if isinstance(cadence, QueueCadence):
        return 1 / cadence.pool_batches
    assert isinstance(cadence, ReplayCadence), "gradients are not drawn from a store"
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


def _rule(run: _Run) -> _Shares:
    config, num_cores = run.config, len(run.machine.cores)
    num_actors = _num_actors(run)
    left = max(1, num_cores - num_actors)
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


def _num_actors(run: _Run) -> int:
    config = run.config
    fixed = _asked(config.num_actors)
    if fixed is not None:
        return _checked(config, fixed)
    possible = _possible_counts(run)
    if not possible:
        return _checked(config, len(config.tasks))
    fitting = [n for n in possible if fits(run.memory(n), run.machine.memory_bytes)]
    counts = fitting or possible[:1]
    if (
        not isinstance(run.cadence, Gather)
        and run.probe.times is not None
        and config.engine == "local"
    ):
        shared = config, run.machine, run.probe, run.cadence
        return choose_actors(*shared, counts, run.num_parameters)
    # One core is the learner's, unless the actors compute the gradients: then it has little to do.
    most = max(1, len(run.machine.cores) - (not isinstance(run.cadence, Gather)))
    return max((n for n in counts if n <= most), default=counts[0])


def _possible_counts(run: _Run) -> list[int]:
    """Numbers of actors that share environments, tasks and versions evenly, the smallest first."""
    config, num_tasks = run.config, len(run.config.tasks)
    if not isinstance(run.cadence, Gather):
        return _even_counts(config, run.cadence)
    most = max(num_tasks, len(run.machine.cores))
    return [n for n in range(num_tasks, most + 1, num_tasks) if config.num_envs % n == 0]


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


def _check_length(config: RunConfig, cadence: Cadence, slots: Slots) -> None:
    """A run ends between two versions: the first one must not be far longer than the run."""
    # A gradient ends with its episodes, which may be far shorter than its unroll.
    least_length = cadence.unroll_length if not isinstance(cadence, Gather) else 1
    steps_per_unroll = least_length * slots.layout.num_envs
    version, warmup = slots.per_version * steps_per_unroll, slots.warmup_unrolls * steps_per_unroll
    first, asked = version + warmup, config.max_env_steps
    if first <= FAR_MORE * asked:
        return
    after = f" after {warmup:,} steps of warm-up" if warmup else ""
    raise UsageError(
        f"This run would make at least {first:,} environment steps, {first / asked:,.0f} times "
        f"max_env_steps = {asked:,}: a run ends after a whole version, and one version takes "
        f"{version:,} steps{after} (num_envs = {config.num_envs:,}, unrolls of "
        f"{cadence.unroll_length} steps). Use --max-env-steps {first} or more, fewer environments "
        "(--num-envs), or shorter unrolls."
    )


def _notes(run: _Run, shares: _Shares, slots: Slots, solution: Solution | None) -> tuple[str, ...]:
    config, num_envs = run.config, slots.layout.num_envs
    threads = f" of {shares.actor_threads} threads" if shares.actor_threads > 1 else ""
    steps_per_version = slots.per_version * run.cadence.unroll_length * num_envs
    uneven = uneven_note(run.probe.times, config, steps_per_version)
    return (
        f"{counted(len(run.machine.cores), 'usable core')}: "
        f"{counted(shares.num_actors, 'actor')}{threads} with "
        f"{counted(num_envs, 'environment')} each, 1 learner with "
        f"{counted(shares.learner_threads, 'thread')}, which also holds the buffer.",
        f"Environments: {run.probe.vectorised}.",
        *((uneven,) if uneven else ()),
        *(solution.reasons if solution is not None else ()),
    )
