"""The same run with several seeds, which share the machine.

    train_seeds(config, num_seeds=5, show=show)     # runs/NAME/seed-1, seed-2, ...

Every seed is a run of its own, in its own process and on its own cores: a failure of one does not
touch the others. As many run at the same time as cores and memory allow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tianji.checkpoint.durable import replace_json
from tianji.config.machine import Machine, read_machine
from tianji.config.run import SEED_LIMIT, RunConfig
from tianji.display.stream import tell_progress
from tianji.errors import UsageError
from tianji.planning.planner import plan_run
from tianji.run_folder.paths import RUNS, SEED_PREFIX, new_seeds_dir
from tianji.seeds.one import ChildRun
from tianji.seeds.run_all import Screen, Shares, run_all
from tianji.seeds.summary import SUMMARY_FILE, SeedsSummary, sum_up


def share_cores(
    cores: Sequence[int], num_runs: int, cores_wanted: int
) -> tuple[tuple[int, ...], ...]:
    """Return the cores of every run that goes on at the same time; no core is shared.

    As many runs go on as get `cores_wanted` cores each, but at least one. If they cannot all go on
    at once, they are spread evenly over as few turns as possible.

    >>> share_cores(range(8), num_runs=5, cores_wanted=2)
    ((0, 1), (2, 3), (4, 5))
    """
    most = max(1, min(num_runs, len(cores) // cores_wanted))
    turns = -(-num_runs // most)
    at_once = -(-num_runs // turns)
    each = len(cores) // at_once
    return tuple(tuple(cores[i * each : (i + 1) * each]) for i in range(at_once))


def cores_wanted(config: RunConfig) -> int:
    """Return one core for every process and thread that a run needs at least."""
    if config.engine != "local":
        return 1
    actors, threads = config.num_actors, config.learner_threads
    return (1 if actors == "auto" else actors) + (1 if threads == "auto" else threads)


def train_seeds(
    config: RunConfig,
    num_seeds: int,
    screen: Screen,
    base: Path = RUNS,
    on_accepted: Callable[[], None] = lambda: None,
) -> SeedsSummary:
    """Train with the seeds config.seed, config.seed + 1, ...; return what all of them did.

    on_accepted: called when the settings fit, before the first run starts."""
    began_s = time.monotonic()
    if config.seed + num_seeds > SEED_LIMIT:
        raise UsageError(
            f"{num_seeds} seeds from {config.seed}: the last one must be below {SEED_LIMIT}. "
            "Use a smaller --seed."
        )
    shares = shares_of(config, num_seeds, read_machine())
    on_accepted()
    config = planned_by_rule(config) if len(shares) > 1 else config
    folder = new_seeds_dir(config, num_seeds, base)
    seeds = range(config.seed, config.seed + num_seeds)
    changes = ({"seed": seed, "run": f"{SEED_PREFIX}{seed}"} for seed in seeds)
    runs = [
        ChildRun(config.model_copy(update=change), folder, f"seed {change['seed']}")
        for change in changes
    ]
    run_all(runs, shares, screen, _title(config, num_seeds, len(shares)), folder)
    started = [run for run in runs if run.is_started]
    if not started:
        folder.rmdir()
        raise KeyboardInterrupt
    left = [run.config.seed for run in runs if not run.is_started]
    total_s = time.monotonic() - began_s
    report = sum_up([run.summary() for run in started], left, folder, total_s)
    from tianji.display.curve import draw_seeds

    picture = draw_seeds(config, [run.folder for run in started])
    report["picture"] = None if picture is None else str(picture)
    replace_json(folder / SUMMARY_FILE, report)
    return report


def _title(config: RunConfig, num_seeds: int, at_once: int) -> str:
    how = "" if at_once == num_seeds else f", {at_once} at a time"
    facts = (config.env_name, config.algorithm.name, config.engine)
    return " · ".join((*facts, f"{num_seeds} seeds{how}"))


def shares_of(config: RunConfig, num_runs: int, machine: Machine) -> Shares:
    """Return the cores of the runs that go on at the same time: fewer runs where cores or memory
    are short. Raises UsageError where not even one run fits, before any process starts."""
    wanted = cores_wanted(config)
    while True:
        shares = share_cores(machine.cores, num_runs, wanted)
        try:
            _check(config, machine, shares)
            return shares
        except UsageError:
            if len(shares) == 1:
                raise
            wanted = 2 * len(shares[0])  # half as many at the same time


def _check(config: RunConfig, machine: Machine, shares: Shares) -> None:
    memory_bytes = machine.memory_bytes // len(shares)
    share = Machine(shares[0], memory_bytes, machine.is_shared)
    with tell_progress(config.observe.display) as tell:
        plan_run(planned_by_rule(config), config.envs or config.env, share, tell)


def planned_by_rule(config: RunConfig) -> RunConfig:
    """Plan by rule: runs that measure at the same time would disturb each other."""
    if config.plan.source != "auto":
        return config
    plan = config.plan.model_copy(update={"source": "rule"})
    return config.model_copy(update={"plan": plan})
