"""Config to plan: every derived number of a run, and the arithmetic where one does not fit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tianji.algorithms.registry import load_algorithm
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.memory import to_pages
from tianji.channels.shm import lane_bytes
from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.spaces import observation_fields
from tianji.errors import UsageError

if TYPE_CHECKING:
    from tianji.algorithms.interface import Cadence
    from tianji.envs.build import Probe

CONTROL_BYTES_PER_ACTOR = 256  # a row of gauges and a bell
SPARE_SLOTS_PER_ACTOR = 1  # one may be out of use while a replaced actor attaches
SAFE_MEMORY_SHARE = 0.8
MOST_LEARNER_THREADS = 4  # more only wait for each other at the sizes of these networks


def resolve(config: RunConfig, machine: Machine, probe: Probe) -> RunPlan:
    """The plan for this run on this machine; UsageError where it cannot work."""
    algorithm = load_algorithm(config.algorithm.name)
    algorithm.check(probe.spaces, config)
    cadence = algorithm.cadence(config)
    num_actors = _num_actors(config, machine)
    envs_per_actor = config.num_envs // num_actors
    num_rows = cadence.unroll_length + cadence.lookahead - 1
    fields = (
        *observation_fields(probe.spaces.observation, probe.keeps_final),
        *algorithm.fields(probe.spaces),
        *STANDARD_FIELDS,
    )
    layout = Layout(fields, num_rows, envs_per_actor)
    steps_per_unroll = cadence.unroll_length * envs_per_actor
    per_version = _unrolls_per_version(cadence, steps_per_unroll)
    warmup = math.ceil(cadence.warmup_steps / steps_per_unroll)
    lag_target = min(1, config.max_lag)
    replay_unrolls = math.ceil(cadence.capacity_steps / steps_per_unroll)
    in_flight = per_version * (lag_target + 2) + num_actors * SPARE_SLOTS_PER_ACTOR
    num_slots = max(replay_unrolls, warmup) + in_flight
    control_bytes = to_pages(CONTROL_BYTES_PER_ACTOR * (num_actors + 3))  # all roles, and a bit
    shared = (
        sum(map(to_pages, (layout.slot_bytes * num_slots, lane_bytes(num_slots) * num_actors)))
        + control_bytes
    )
    _check_memory(shared, layout, num_slots, machine)
    return RunPlan(
        num_actors=num_actors,
        envs_per_actor=envs_per_actor,
        learner_threads=_learner_threads(config, machine, num_actors),
        actor_threads=1 if config.actor_threads == "auto" else config.actor_threads,
        cores=_cores(machine, num_actors, config),
        unroll_length=cadence.unroll_length,
        lookahead=cadence.lookahead,
        num_rows=num_rows,
        keeps_final=probe.keeps_final,
        layout=layout.to_json(),
        slot_bytes=layout.slot_bytes,
        num_slots=num_slots,
        replay_unrolls=replay_unrolls,
        unrolls_per_version=per_version,
        warmup_unrolls=warmup,
        lag_target=lag_target,
        max_lag=config.max_lag,
        ratio=cadence.ratio,
        shared_memory_bytes=shared,
        notes=_notes(config, machine, num_actors, envs_per_actor, probe),
    )


def _num_actors(config: RunConfig, machine: Machine) -> int:
    if config.num_actors != "auto":
        if config.num_envs % config.num_actors:
            raise UsageError(
                f"num_envs = {config.num_envs} cannot be shared evenly by num_actors = "
                f"{config.num_actors}. Use a multiple, such as num_envs = "
                f"{config.num_actors * max(1, round(config.num_envs / config.num_actors))}."
            )
        return config.num_actors
    most = max(1, len(machine.cores) - 1)  # one core is the learner's
    return max(n for n in range(1, most + 1) if config.num_envs % n == 0)


def _learner_threads(config: RunConfig, machine: Machine, num_actors: int) -> int:
    if config.learner_threads != "auto":
        return config.learner_threads
    return min(MOST_LEARNER_THREADS, max(1, len(machine.cores) - num_actors))


def _cores(machine: Machine, num_actors: int, config: RunConfig) -> dict[str, tuple[int, ...]]:
    """The learner has the first cores to itself, actors one each. Pinned only where the run takes
    all cores it may use and every worker gets its own: two workers on one core, or two runs on the
    same ones, are worse than no pinning."""
    threads = _learner_threads(config, machine, num_actors)
    takes_all = threads + num_actors == len(machine.cores) and config.evaluate.period_s == 0
    if config.engine == "inline" or machine.is_shared or not takes_all:
        return {}
    cores = {"learner": machine.cores[:threads]}
    for index in range(num_actors):
        cores[f"actor-{index}"] = (machine.cores[threads + index],)
    return cores


def _unrolls_per_version(cadence: Cadence, steps_per_unroll: int) -> int:
    if cadence.steps_per_version % steps_per_unroll:
        raise UsageError(
            f"A version takes {cadence.steps_per_version} steps, which is no multiple of the "
            f"{steps_per_unroll} steps of one unroll (unroll length {cadence.unroll_length} x "
            f"{steps_per_unroll // cadence.unroll_length} environments of an actor)."
        )
    return cadence.steps_per_version // steps_per_unroll


def _check_memory(shared: int, layout: Layout, num_slots: int, machine: Machine) -> None:
    if shared <= machine.memory_bytes * SAFE_MEMORY_SHARE:
        return
    raise UsageError(
        f"This run does not fit: {num_slots} slots x {layout.slot_bytes / 2**20:.2f} MiB = "
        f"{shared / 2**30:.2f} GiB of shared memory, and {machine.memory_bytes / 2**30:.2f} GiB "
        f"are free (at most {SAFE_MEMORY_SHARE:.0%} of that is used). Use a smaller replay_size, "
        "fewer environments or shorter unrolls."
    )


def _notes(
    config: RunConfig, machine: Machine, num_actors: int, envs_per_actor: int, probe: Probe
) -> tuple[str, ...]:
    return (
        f"{len(machine.cores)} usable cores: {num_actors} actor(s) with {envs_per_actor} "
        f"environments each, 1 learner with {_learner_threads(config, machine, num_actors)} "
        "thread(s), which also holds the buffer.",
        f"Environments: {probe.vectorised}.",
    )
