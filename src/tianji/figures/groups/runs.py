"""The runs behind figures 4 (c), 4 (d) and 6 (c): one to several groups on one machine, for real,
and more machines of its kind, simulated.

Runs are `tianji train` in processes of their own, each for the same time: rates are those from the
first third on, and the time to the target is read from the curve. Step sizes do not fall meanwhile.
Unconnected copies (separate commands at the same time, each on the cores of one group) show what
the connection costs. Numbers of groups that fit on the machine together run at the same time, each
on cores of its own; contestants take turns, so that other load meets all alike.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from tianji.algorithms.registry import load_algorithm
from tianji.config.machine import Machine, read_machine
from tianji.config.overrides import make_config
from tianji.config.run import Combine, RunConfig
from tianji.costs.profile import Profile
from tianji.errors import TianjiError, UsageError
from tianji.figures.commands import CommandRun, only_on, train_on
from tianji.figures.files import Data, Point
from tianji.planning.groups import divide
from tianji.records import Metrics, roles_of
from tianji.wording import listed

Way: TypeAlias = Combine | Literal["copies"]
COMBINES: tuple[Combine, ...] = ("average", "gossip", "gradients")
COPIES: Way = "copies"
PRESETS = ("cartpole-ppo", "cartpole-dqn")
WIDE = "cartpole-ppo, wide"
"""PPO with a network whose updates take 5 ms or more."""
TASKS: dict[str, tuple[str, ...]] = {
    **{preset: (preset,) for preset in PRESETS},
    WIDE: ("cartpole-ppo", "--hidden", "384,384", "--minibatch-size", "512"),
}
"""The words of `tianji train` for each task."""
TARGET = 300.0
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SETTLED_SHARE = 1 / 3
START_S = 120.0
"""Longest time for starting and ending a run."""


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """What is run. cores: of each group."""

    tasks: Sequence[str] = (*PRESETS, WIDE)
    groups: Sequence[int] = (1, 2, 4, 7)
    cores: int = 2
    combines: Sequence[Combine] = COMBINES
    seeds: Sequence[int] = (1, 2, 3, 4, 5)
    seconds: float = 12.0

    def ways(self, task: str, seed: int) -> list[Way]:
        """Return the contestants of a task: the wide network is there for `gradients` alone. Every
        second turn has them in the other order, so that none is always the first."""
        combines = self.combines if task in PRESETS else ("gradients",)
        ways = [COPIES, *(way for way in self.combines if way in combines)]
        return ways if seed % 2 else ways[::-1]


def measure() -> Data:
    """Run as many groups of two cores as this machine has; one and two groups if it is small."""
    cores = len(read_machine().cores)
    groups = [n for n in (1, 2, 4, 7) if 2 * n <= cores]
    if len(groups) == 1:
        return run_groups(GroupRuns(groups=(1, 2), cores=max(1, cores // 2)))
    return run_groups(GroupRuns(groups=groups))


def run_groups(
    asked: GroupRuns,
    keep: Callable[[Data], None] = lambda data: None,
    before: Data | None = None,
) -> Data:
    """Make all runs and simulations. keep: is told after each. before: what an earlier call has
    kept; its runs are not made again."""
    facts: dict[str, Any] = {
        "cores_per_group": asked.cores,
        "target": TARGET,
        **{name: [] for name in ("points", "copies", "simulated", "simulated_here")},
        **(before or {}),
    }
    rated = [p for p in (*facts["points"], *facts["copies"]) if "rates" in p]
    if other := {p["seconds"] for p in rated} - {asked.seconds}:
        raise UsageError(
            f"The runs that were kept take {listed([f'{s:g}' for s in sorted(other)])} s, and not "
            f"{asked.seconds:g}: their figures cannot be compared. Ask for the same, or keep these "
            "runs elsewhere."
        )
    made = {(p["preset"], p["combine"], p["seed"]) for p in rated}
    simulated = {(p["preset"], p["combine"], p["seed"]) for p in facts["simulated_here"]}
    for seed, task in itertools.product(asked.seeds, asked.tasks):
        missing = [way for way in asked.combines if (task, way, seed) not in simulated]
        if task in PRESETS and missing:
            turn = simulate(task, replace(asked, combines=missing), seed)
            facts |= {name: [*facts[name], *rows] for name, rows in turn.items()}
            keep(facts)
        for way in asked.ways(task, seed):
            if (task, way, seed) not in made:
                found = [
                    p for wave in waves(asked) for p in _run_wave(task, wave, way, seed, asked)
                ]
                facts["copies" if way == COPIES else "points"] += found
                keep(facts)
    return facts


def waves(asked: GroupRuns) -> list[list[tuple[int, list[tuple[int, ...]]]]]:
    """Return the numbers of groups that run at the same time, each with the cores of its groups;
    whole cores where the machine has hyper-threads."""
    machine = read_machine()
    possible = len(machine.cores) // asked.cores
    if max(asked.groups) > possible:
        raise UsageError(
            f"{max(asked.groups)} groups of {asked.cores} cores need more than this machine has, "
            f"which is {len(machine.cores)}."
        )
    shares = [share.cores for share in divide(machine, possible)]
    found: list[list[tuple[int, list[tuple[int, ...]]]]] = []
    left = 0
    for count in sorted(asked.groups):
        if count > left:
            found.append([])
            left = possible
        first = possible - left
        found[-1].append((count, shares[first : first + count]))
        left -= count
    return found


def _run_wave(
    task: str,
    wave: Sequence[tuple[int, Sequence[tuple[int, ...]]]],
    way: Way,
    seed: int,
    asked: GroupRuns,
) -> list[Point]:
    with ThreadPoolExecutor(len(wave)) as pool:
        runs = [pool.submit(_run, task, shares, way, seed, asked) for _, shares in wave]
        return [run.result() for run in runs]


def _run(
    task: str, shares: Sequence[tuple[int, ...]], way: Way, seed: int, asked: GroupRuns
) -> Point:
    """Run groups, or copies, on these shares of the cores."""
    sys.stderr.write(f"{task}, {len(shares)} groups, {way}, seed {seed} ...\n")
    words = [*TASKS[task], "--plan.source", "rule", "--target-return", "none"]
    words += ["--max-env-steps", str(10**9), "--max-wall-s", str(asked.seconds)]
    words += ["--observe.period-s", "0.25"]
    count, limit_s = len(shares), asked.seconds + START_S
    if way == COPIES:
        with ThreadPoolExecutor(count) as pool:
            runs = [
                pool.submit(train_on, share, [*words, "--seed", str(seed + place)], limit_s)
                for place, share in enumerate(shares)
            ]
            return _point(task, way, seed, asked.seconds, [run.result() for run in runs])
    if count > 1:
        words += ["--num-groups", str(count), "--combine", way]
    cores = [core for share in shares for core in share]
    run = train_on(cores, [*words, "--seed", str(seed)], limit_s)
    return {**_point(task, way, seed, asked.seconds, [run]), "groups": count}


def _point(task: str, way: Way, seed: int, seconds: float, runs: Sequence[CommandRun]) -> Point:
    """Return the figures of runs that were made at the same time; their rates add up."""
    rates = [settled(run.records, seconds) for run in runs]
    shown = curve(runs[0].records)
    return {
        "preset": task,
        "groups": len(runs),
        "combine": way,
        "seed": seed,
        "seconds": seconds,
        "rates": {name: sum(rate[name] for rate in rates) for name in rates[0]},
        "lag_versions": runs[0].summary["lag_versions"]["mean"],
        "updates": sum(run.summary["updates"] for run in runs),
        "learners": learners(runs),
        "time_to_target_s": reached(shown),
        "env_steps": runs[0].summary["env_steps"],
        "curve": shown,
    }


def learners(runs: Sequence[CommandRun]) -> dict[str, float]:
    """Return what the learners of these runs did with their time, as means over them: the share of
    it in which they worked, the share in which they had no free core, and milliseconds of work for
    an update, mixing and publishing included."""
    busy_s = no_core_s = lived_s = 0.0
    for run in runs:
        names = roles_of(cast("Metrics", run.records[-1]), "learner")
        busy_s += sum(run.summary["busy_s"][name] for name in names)
        no_core_s += sum(run.summary["waited_s"][name]["core"] for name in names)
        lived_s += len(names) * run.summary["wall_s"]
    return {
        "busy_share": busy_s / lived_s,
        "no_core_share": no_core_s / lived_s,
        "update_ms": 1e3 * busy_s / sum(run.summary["updates"] for run in runs),
    }


def reached(shown: Mapping[str, Sequence[float]]) -> float | None:
    """Return the time at which a curve first reaches the target; None if it does not."""
    pairs = zip(shown["seconds"], shown["return"], strict=True)
    return next((seconds for seconds, value in pairs if value >= TARGET), None)


def settled(records: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, float]:
    """Return received and trained steps per second from the first third of a run to its time limit.

    received is counted between two records; trained is the mean of the rates that the records have,
    which reach back some seconds. After the limit a run ends, which takes several groups a quarter
    of a second: they finish what they have begun, and save."""
    late = [r for r in records if SETTLED_SHARE * seconds < r["wall_s"] <= seconds]
    if len(late) < 2:
        raise TianjiError(f"A run of {seconds:g} s has no two records in its last two thirds.")
    first, last = late[0], late[-1]
    span_s = last["wall_s"] - first["wall_s"]
    trained = (r["rates_per_s"]["trained"] for r in late[1:])
    spans = (after["wall_s"] - before["wall_s"] for before, after in itertools.pairwise(late))
    weighed = sum(rate * span for rate, span in zip(trained, spans, strict=True))
    return {
        "received": (last["env_steps"] - first["env_steps"]) / span_s,
        "trained": weighed / span_s,
    }


def curve(records: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the mean return over time and steps, from the first finished episode on."""
    known = [record for record in records if record.get("mean_return_100") is not None]
    return {
        "seconds": [round(record["wall_s"], 3) for record in known],
        "steps": [record["env_steps"] for record in known],
        "return": [round(record["mean_return_100"], 2) for record in known],
    }


def simulate(task: str, asked: GroupRuns, seed: int) -> dict[str, list[Point]]:
    """Simulate all numbers of groups on this machine, and the largest on 1 to 256 like it.

    Each turn has a simulation of its own, from a profile that is taken right before its runs,
    because the speed of a shared machine changes.
    """
    sys.stderr.write(f"{task}, profile and simulation, seed {seed} ...\n")
    share = divide(read_machine(), max(1, len(read_machine().cores) // asked.cores))[0]
    config, profile = _profile(make_config(task), share)
    sizes = {
        "simulated_here": [(1, count) for count in asked.groups],
        "simulated": [(nodes, max(asked.groups)) for nodes in NODES],
    }
    return {
        name: [
            {**_simulated(task, config, profile, combine, *size, asked.cores), "seed": seed}
            for combine in asked.combines
            for size in some
        ]
        for name, some in sizes.items()
    }


def _profile(config: RunConfig, share: Machine) -> tuple[RunConfig, Profile]:
    """Share the cores of one group by rule, as the runs do, and measure its parts."""
    from tianji.envs.build import probe
    from tianji.planning.measure.measure import measure as measure_parts
    from tianji.planning.resolve.resolve import resolve

    share = replace(share, is_shared=False)
    found = probe(config.env, config.env_kwargs, timed=True)
    plan = resolve(config, share, found)
    names = ("num_actors", "learner_threads", "actor_threads")
    fixed = config.model_copy(update={name: getattr(plan, name) for name in names})
    with only_on(share.cores):
        return fixed, measure_parts(fixed, fixed.env, share, found, lambda text: None)


def _simulated(
    preset: str,
    config: RunConfig,
    profile: Profile,
    combine: Combine,
    nodes: int,
    groups_per_node: int,
    cores_per_group: int,
) -> Point:
    from tianji.virtual.sizes import Size, simulate_size

    assert config.num_actors != "auto" and config.learner_threads != "auto"
    size = Size(
        actors_per_node=config.num_actors,
        envs_per_actor=config.num_envs // config.num_actors,
        cores_per_node=groups_per_node * cores_per_group,
        learner_threads=config.learner_threads,
        num_groups=nodes * groups_per_node,
        groups_per_node=groups_per_node,
        combine=combine,
    )
    found = simulate_size(config, profile, size)
    return {
        "preset": preset,
        "nodes": nodes,
        "groups": nodes * groups_per_node,
        "combine": combine,
        "received": found.received,
        "trained": found.trained,
        "lag_versions": found.lag_versions,
        "bottleneck": found.bottleneck,
        "mix_period_s": found.mix_period_s,
    }


def trained_per_step(preset: str) -> float:
    """Return how often the preset trains on a step that was received."""
    config = make_config(preset)
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    return cadence.trained_steps_per_version / cadence.steps_per_version
