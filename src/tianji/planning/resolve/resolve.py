"""Turn a config into a plan: derive every number of a run, and refuse a run that cannot work.

The shares of the machine come from the planner's solution, from the person, or from a simple rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tianji.algorithms.interface import Gather, QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.channels.board import NUM_COPIES
from tianji.config.advice import advise
from tianji.config.machine import Machine
from tianji.config.plan import IN_STEP, RunPlan
from tianji.config.run import RunConfig
from tianji.config.settings import ALGORITHM_NAME
from tianji.errors import UsageError
from tianji.models.sizes import most_parameters
from tianji.planning.resolve.check_balance import check_balance
from tianji.planning.resolve.check_times import check_times
from tianji.planning.resolve.gpu_memory import estimate_gpu_memory
from tianji.planning.resolve.limiter import limiter_warning
from tianji.planning.resolve.places import Places, check_gpu_replay, choose_places
from tianji.planning.resolve.shares import (
    choose_actors,
    keep_core_for_server,
    needs_all_cores,
    pin_cores,
    uneven_note,
)
from tianji.planning.resolve.slots import (
    Processes,
    Run,
    Slots,
    count_processes,
    estimated_memory,
    lead_note,
    plan_slots,
)
from tianji.planning.solve.demand import Demand, RunMemory
from tianji.wording import counted

if TYPE_CHECKING:
    from tianji.algorithms.interface import Cadence
    from tianji.config.schema import Auto
    from tianji.envs.build import Probe
    from tianji.planning.solve.solve import Solution

MOST_LEARNER_THREADS = 4  # more only wait for each other at the sizes of these networks
SERVED_ACTORS_PER_CORE = 2  # while one waits for its actions, another one steps
FAR_MORE = 10  # times max_env_steps: nobody asked for a first version of this length


@dataclass(frozen=True, slots=True)
class _Shares:
    num_actors: int
    learner_threads: int
    actor_threads: int
    places: Places

    @property
    def actors_per_worker(self) -> int:
        return self.places.actors_per_worker(self.num_actors)

    @property
    def processes(self) -> Processes:
        places = self.places
        return count_processes(
            places.inference, places.device, self.num_actors, self.actors_per_worker
        )


def resolve(
    config: RunConfig,
    machine: Machine,
    probe: Probe,
    solution: Solution | None = None,
    memory: RunMemory | None = None,
) -> RunPlan:
    """Return the plan of this run on this machine; raise UsageError if it cannot work.

    solution: the planner's shares, used where the person set none. Without it, a rule decides.
    memory: the measured memory of the run with the shares in the config; else it is the
        solution's, or estimated.
    """
    _check_algorithm(config, probe)
    places = choose_places(config, machine, probe)
    run = Run(config, probe, most_parameters(probe.spaces, config), places.device)
    shares, cadence = _shares(run, machine, places, solution), run.cadence
    check_balance(config, cadence)
    check_times(config, cadence, shares.num_actors)
    if _overfills_gpu(run, shares):
        run = replace(run, keeps_replay_on_host=True)
        shares = _shares(run, machine, places, solution)
    slots = plan_slots(run, shares.num_actors)
    _check_length(config, cadence, slots)
    if slots.replay is not None and not slots.replay.has_observations:
        check_gpu_replay(config, places.device, slots.replay.observation_bytes)
    gpu = estimate_gpu_memory(run, slots, places, shares.num_actors)
    if gpu is not None:
        gpu.check(config, places.device)
    if solution is not None:
        memory = solution.chosen.memory
    _check_memory(memory or estimated_memory(run, shares.num_actors, shares.processes), machine)
    return RunPlan(
        num_actors=shares.num_actors,
        envs_per_actor=config.num_envs // shares.num_actors,
        learner_threads=shares.learner_threads,
        actor_threads=shares.actor_threads,
        actors_per_worker=shares.actors_per_worker,
        emulator_threads=places.emulator_threads,
        device=places.device,
        inference=places.inference,
        num_cores=len(machine.cores),
        shares_cores=_shares_cores(config, machine, shares),
        cores=_cores(config, machine, shares),
        unroll_length=cadence.unroll_length,
        lookahead=cadence.lookahead,
        num_rows=slots.layout.num_rows,
        keeps_final=probe.keeps_final,
        layout=slots.layout.to_json(),
        spaces=probe.spaces.in_words,
        slot_bytes=slots.layout.slot_bytes,
        num_slots=slots.num_slots,
        replay_rows=0 if slots.replay is None else slots.replay.capacity,
        replay_on_gpu=slots.replay is not None and not slots.replay.has_observations,
        unrolls_per_version=slots.per_version,
        warmup_unrolls=slots.warmup_unrolls,
        lag_target=slots.lag_target,
        max_lag=config.max_lag,
        balance=config.balance,
        queue_size=slots.queue_size,
        limiter=slots.limiter,
        ratio=cadence.ratio,
        shared_memory_bytes=slots.shared.total,
        gpu_bytes={} if gpu is None else gpu.parts,
        source="rule" if solution is None else "measured",
        prediction=solution.chosen.prediction if solution is not None else None,
        notes=_notes(run, machine, shares, slots, solution),
    )


def _overfills_gpu(run: Run, shares: _Shares) -> bool:
    """Return whether the GPU is too small for the run only if the replay store, which may be in
    main memory, is there too."""
    cadence, places = run.cadence, shares.places
    if not isinstance(cadence, ReplayCadence) or cadence.memory != "auto":
        return False
    slots = plan_slots(run, shares.num_actors)
    if slots.replay is None or slots.replay.has_observations:
        return False
    gpu = estimate_gpu_memory(run, slots, places, shares.num_actors)
    return gpu is not None and not gpu.fits(places.device)


def check_network(
    config: RunConfig, machine: Machine, probe: Probe, plan: RunPlan, num_parameters: int
) -> None:
    """Raise UsageError if a person's own network, built only now, makes the run too large."""
    run = Run(config, probe, num_parameters, plan.device, not plan.replay_on_gpu)
    if plan.source == "rule":  # else the memory was measured with this network
        _check_memory(estimated_memory(run, plan.num_actors, _processes(plan)), machine)
    placed = config.model_copy(update={"inference": plan.inference})
    places, slots = choose_places(placed, machine, probe), plan_slots(run, plan.num_actors)
    if (gpu := estimate_gpu_memory(run, slots, places, plan.num_actors)) is not None:
        gpu.check(config, places.device)


def memory_of(config: RunConfig, probe: Probe, plan: RunPlan) -> RunMemory:
    """Return the main memory that a run is estimated to take."""
    num_parameters = most_parameters(probe.spaces, config)
    run = Run(config, probe, num_parameters, plan.device, not plan.replay_on_gpu)
    return estimated_memory(run, plan.num_actors, _processes(plan))


def _processes(plan: RunPlan) -> Processes:
    return count_processes(plan.inference, plan.device, plan.num_actors, plan.actors_per_worker)


def demand_of(config: RunConfig, probe: Probe) -> Demand:
    """Return what the planner needs to know about this run; raise UsageError if it cannot work."""
    _check_algorithm(config, probe)
    run = Run(config, probe)
    cadence, fixed = run.cadence, _set_actors(run)
    counts = [fixed] if fixed else _even_counts(run)
    slots = {count: plan_slots(run, count) for count in counts}
    return Demand(
        num_envs=config.num_envs,
        unroll_length=cadence.unroll_length,
        steps_per_version=cadence.steps_per_version,
        trained_steps_per_version=cadence.trained_steps_per_version,
        ratio=cadence.ratio,
        staleness=staleness(cadence),
        lag_target=slots[counts[0]].lag_target,
        max_lag=config.max_lag,
        shared={count: found.shared for count, found in slots.items()},
        policy_copies=NUM_COPIES,
        num_actors=fixed,
        learner_threads=_set(config.learner_threads),
        actor_threads=_set(config.actor_threads),
        has_evaluator=config.evaluate.period_s > 0,
    )


def staleness(cadence: Cadence) -> float:
    """Return P = B_s / N_s, equation 2 of the TianJi paper: a batch over what it is drawn from."""
    if isinstance(cadence, QueueCadence):
        return 1 / cadence.pool_batches
    assert isinstance(cadence, ReplayCadence), "gradients are not drawn from a store"
    return cadence.trained_steps_per_version / cadence.num_updates / cadence.capacity_steps


def _check_algorithm(config: RunConfig, probe: Probe) -> None:
    algorithm = load_algorithm(config.algorithm.name)
    if config.model.memory != "none" and not algorithm.remembers:
        ways = {"model.memory": "none"}, {ALGORITHM_NAME: "ppo"}, {ALGORITHM_NAME: "impala"}
        raise UsageError(
            f"model.memory is '{config.model.memory}', and {algorithm.name} does not learn from "
            f"whole sequences (Algorithm.remembers). {advise(config, *ways)}"
        )
    algorithm.check(probe.spaces, config)


def _set(value: int | Auto) -> int | None:
    """Return the number that the person set; None for `auto`."""
    return None if value == "auto" else value


def _set_actors(run: Run) -> int | None:
    num_actors = _set(run.config.num_actors)
    return None if num_actors is None else _checked(run, num_actors)


def _checked(run: Run, num_actors: int) -> int:
    num_envs, num_agents = run.config.num_envs, run.probe.num_agents
    at_least = num_actors * num_agents
    if num_envs % at_least:
        agents = f" in whole environments of {num_agents} agents" if num_agents > 1 else ""
        raise UsageError(
            f"num_envs = {num_envs} cannot be shared evenly by num_actors = {num_actors}{agents}. "
            f"Use a multiple, such as num_envs = {at_least * max(1, round(num_envs / at_least))}."
        )
    return num_actors


def _even_counts(run: Run) -> list[int]:
    """Return the numbers of actors that divide the environments and a version's steps evenly;
    UsageError if not even one does."""
    config, cadence = run.config, run.cadence
    _checked(run, 1)
    return [
        count
        for count in range(1, config.num_envs + 1)
        if config.num_envs % (count * run.probe.num_agents) == 0
        and cadence.steps_per_version % (cadence.unroll_length * (config.num_envs // count)) == 0
    ]


def _shares(run: Run, machine: Machine, places: Places, solution: Solution | None) -> _Shares:
    """Return what the person set; the rest from the solution, or by rule."""
    config = run.config
    num_actors = _set_actors(run)
    if num_actors is None and (places.is_together or places.inference == "served"):
        together = _checked(run, places.asked_per_worker or 1)
        most = 2 if places.is_together else SERVED_ACTORS_PER_CORE * len(machine.cores)
        num_actors = _groups(_possible_counts(run, len(machine.cores)), most, together)
    threads, actor_threads = _set(config.learner_threads), _set(config.actor_threads)
    if solution is not None:
        found = solution.chosen
        rest = found.num_actors, found.learner_threads, found.actor_threads
    else:
        by_rule = num_actors or _actors_by_rule(run, machine, places)
        rest = by_rule, _learner_threads(run, len(machine.cores), by_rule, places), 1
    return _Shares(num_actors or rest[0], threads or rest[1], actor_threads or rest[2], places)


def _learner_threads(run: Run, num_cores: int, num_actors: int, places: Places) -> int:
    """Return the cores that the actors leave. Where training takes several times as long as acting
    and threads divide it well, the actors mostly wait, unless their balance lets them run ahead:
    then the learner has a thread for each core, for convolutions on the CPU, or for up to four.

    num_cores: of all hosts of the group. The learner has those of one; the links to the actors of
    other hosts need a core there too."""
    config = run.config
    on_host, in_step = num_cores // (1 + config.actor_hosts), config.balance in IN_STEP
    if places.trains_images_on_cpu and in_step:
        return on_host
    if places.device != "cpu":
        return 1  # it launches kernels
    most = on_host - 1 if config.actor_hosts else MOST_LEARNER_THREADS
    left = num_cores if in_step and needs_all_cores(run) else num_cores - num_actors
    return max(1, min(MOST_LEARNER_THREADS, most, left))


def _groups(possible: list[int], most: int, together: int) -> int:
    """Return the largest even number of groups of environments, where they divide evenly: half of
    them step while the others are inferred. together: groups that each process has."""
    each = max(2, together)
    return max((n for n in possible if n <= max(most, each) and n % each == 0), default=together)


def _actors_by_rule(run: Run, machine: Machine, places: Places) -> int:
    config, gathers = run.config, isinstance(run.cadence, Gather)
    num_cores = len(machine.cores)
    possible = _possible_counts(run, num_cores)
    if not possible:
        return _checked(run, len(config.tasks))
    memory = (estimated_memory(run, n, _Shares(n, 1, 1, places).processes) for n in possible)
    fitting = [found.num_actors for found in memory if found.fits(machine.memory_bytes)]
    # A host that was asked for has something to do.
    counts = [n for n in fitting if n >= config.actor_hosts] or fitting or possible[:1]
    if not gathers and run.probe.times is not None and config.has_processes:
        return choose_actors(run, num_cores, counts)
    # The learner has one core, unless the actors compute the gradients: then it has little to do.
    most = max(1, num_cores - (not gathers))
    return max((n for n in counts if n <= most), default=counts[0])


def _possible_counts(run: Run, num_cores: int) -> list[int]:
    """Return the numbers of actors that divide environments, tasks and versions evenly."""
    config, num_tasks = run.config, len(run.config.tasks)
    if not isinstance(run.cadence, Gather):
        return _even_counts(run)
    most = max(num_tasks, num_cores)
    agents = run.probe.num_agents
    counts = range(num_tasks, most + 1, num_tasks)
    return [n for n in counts if config.num_envs % (n * agents) == 0]


def _shares_cores(config: RunConfig, machine: Machine, shares: _Shares) -> bool:
    if shares.places.inference == "served" and _cores(config, machine, shares):
        return False  # the learner has a core that no actor uses
    evaluators = int(config.evaluate.period_s > 0)
    buffers = int(config.plan.buffer_worker == "buffer")
    servers = int(shares.places.inference == "served")
    others = evaluators + buffers + servers
    threads = shares.processes.actors * shares.actor_threads + shares.learner_threads + others
    return config.has_processes and threads > len(machine.cores)


def _cores(config: RunConfig, machine: Machine, shares: _Shares) -> dict[str, tuple[int, ...]]:
    has_others = config.evaluate.period_s > 0 or config.plan.buffer_worker == "buffer"
    if not config.has_processes or has_others or not config.plan.pin:
        return {}
    if shares.places.inference == "served":
        return (
            {}
            if shares.places.device == "cpu"
            else keep_core_for_server(machine, shares.num_actors, shares.learner_threads)
        )
    if shares.places.emulator_threads > 1:
        return {}  # emulators spread their threads themselves
    return pin_cores(machine, shares.num_actors, shares.actor_threads, shares.learner_threads)


def _check_memory(memory: RunMemory, machine: Machine) -> None:
    if not memory.fits(machine.memory_bytes):
        raise memory.refusal(machine.memory_bytes)


def _check_length(config: RunConfig, cadence: Cadence, slots: Slots) -> None:
    """Refuse a run whose first version is far longer than max_env_steps."""
    # A gradient ends with its episodes, which may be far shorter than its unroll.
    least_length = 1 if isinstance(cadence, Gather) else cadence.unroll_length
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


def _notes(
    run: Run, machine: Machine, shares: _Shares, slots: Slots, solution: Solution | None
) -> tuple[str, ...]:
    num_envs = slots.layout.num_envs
    threads = f" of {shares.actor_threads} threads" if shares.actor_threads > 1 else ""
    steps_per_version = slots.per_version * run.cadence.unroll_length * num_envs
    uneven = uneven_note(run.probe.times, run.config, steps_per_version)
    warning = None if slots.limiter is None else limiter_warning(slots.limiter)
    lead = lead_note(slots, run.config)
    return (
        f"{counted(len(machine.cores), 'usable core')}: "
        f"{counted(shares.num_actors, 'actor')}{threads} with "
        f"{counted(num_envs, 'environment')} each, 1 learner with "
        f"{counted(shares.learner_threads, 'thread')}, which also holds the buffer.",
        f"Environments: {run.probe.vectorised}.",
        *((uneven,) if uneven else ()),
        *((warning,) if warning else ()),
        *((lead,) if lead else ()),
        *((shares.places.reason,) if shares.places.reason else ()),
        *(solution.reasons if solution is not None else ()),
    )
