"""The runs behind figures 4 (c), 4 (d) and 6 (c): one to several groups on one machine, for real,
and more machines of its kind, simulated.

Two kinds of runs: some go on for a given time, and their rates count; others run until the mean
return reaches a target. They are `tianji train` in processes of their own, on as many cores as
their groups have. Runs of one seed follow each other in turns, so that other load meets all alike.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tianji.algorithms.registry import load_algorithm
from tianji.config.machine import Machine, read_machine
from tianji.config.overrides import make_config
from tianji.config.run import Combine, RunConfig
from tianji.costs.profile import Profile
from tianji.figures.commands import only_on, train_on
from tianji.figures.files import Data, Point
from tianji.planning.groups import divide

PRESETS = ("cartpole-ppo", "cartpole-dqn")
COMBINES: tuple[Combine, ...] = ("average", "gossip", "gradients")
TARGET = 300.0
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SETTLED_SHARE = 1 / 3
START_S = 120.0
"""Longest time for starting and ending a run."""
MOST_S = 120.0
"""Longest time of a run to its target; with a target that is not reached it counts as never."""


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """What is run. cores: of each group."""

    presets: Sequence[str] = PRESETS
    groups: Sequence[int] = (1, 2, 4, 7)
    cores: int = 2
    combines: Sequence[Combine] = COMBINES
    seeds: Sequence[int] = (1, 2, 3, 4, 5)
    seconds: float = 12.0


def measure() -> Data:
    """Run as many groups of two cores as this machine has; one and two groups if it is small."""
    cores = len(read_machine().cores)
    groups = [n for n in (1, 2, 4, 7) if 2 * n <= cores]
    if len(groups) == 1:
        return run_groups(GroupRuns(groups=(1, 2), cores=max(1, cores // 2)))
    return run_groups(GroupRuns(groups=groups))


def run_groups(asked: GroupRuns, keep: Callable[[Data], None] = lambda data: None) -> Data:
    """Make all runs and simulations. keep: is told after each."""
    points: list[Point] = []
    facts: dict[str, Any] = {"cores_per_group": asked.cores, "target": TARGET, "points": points}
    facts["simulated"] = [row for preset in asked.presets for row in simulate(preset, asked)]
    settings = [
        (preset, count, combine)
        for preset in asked.presets
        for count in asked.groups
        for combine in (asked.combines if count > 1 else asked.combines[:1])
    ]
    for seed, (preset, count, combine) in itertools.product(asked.seeds, settings):
        points.append(_run(preset, count, combine, seed, asked))
        keep(facts)
    return facts


def _run(preset: str, count: int, combine: Combine, seed: int, asked: GroupRuns) -> Point:
    """Make the two runs of one setting and seed."""
    sys.stderr.write(f"{preset}, {count} groups, {combine}, seed {seed} ...\n")
    cores = _cores(count, asked.cores)
    words = [preset, "--seed", str(seed), "--plan.source", "rule"]
    if count > 1:
        words += ["--num-groups", str(count), "--combine", combine]
    most = ["--target-return", "none", "--max-env-steps", str(10**9)]
    rated = train_on(
        cores, [*words, *most, "--max-wall-s", str(asked.seconds)], asked.seconds + START_S
    )
    # Every group may make as many steps as one alone.
    most_steps = count * make_config(preset).max_env_steps
    ends = ["--target-return", str(TARGET), "--max-env-steps", str(most_steps)]
    ends += ["--max-wall-s", str(MOST_S), "--observe.period-s", "0.1"]
    timed = train_on(cores, [*words, *ends], MOST_S + START_S)
    return {
        "preset": preset,
        "groups": count,
        "combine": combine,
        "seed": seed,
        "cores": len(cores),
        "rates": settled(rated.records),
        "lag_versions": rated.summary["lag_versions"]["mean"],
        "time_to_target_s": timed.summary["time_to_target_s"],
        "env_steps": timed.summary["env_steps"],
        "curve": curve(timed.records),
    }


def _cores(count: int, each: int) -> tuple[int, ...]:
    """Return the cores of so many groups; whole cores where the machine has hyper-threads."""
    machine = read_machine()
    shares = divide(machine, max(1, len(machine.cores) // each))
    return tuple(core for share in shares[:count] for core in share.cores)


def settled(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return received and trained steps per second after the first third of a run."""
    late = [r for r in records if r["wall_s"] > SETTLED_SHARE * records[-1]["wall_s"]]
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


def simulate(preset: str, asked: GroupRuns) -> list[Point]:
    """Simulate the largest number of groups that is run here on 1 to 256 machines like this one."""
    share = divide(read_machine(), max(1, len(read_machine().cores) // asked.cores))[0]
    config, profile = _profile(make_config(preset), share)
    return [
        _simulated(preset, config, profile, combine, nodes, asked)
        for combine in asked.combines
        for nodes in NODES
    ]


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
    asked: GroupRuns,
) -> Point:
    from tianji.virtual.sizes import Size, simulate_size

    assert config.num_actors != "auto" and config.learner_threads != "auto"
    each = max(asked.groups)
    size = Size(
        actors_per_node=config.num_actors,
        envs_per_actor=config.num_envs // config.num_actors,
        cores_per_node=each * asked.cores,
        learner_threads=config.learner_threads,
        num_groups=nodes * each,
        groups_per_node=each,
        combine=combine,
    )
    found = simulate_size(config, profile, size)
    return {
        "preset": preset,
        "nodes": nodes,
        "groups": nodes * each,
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
