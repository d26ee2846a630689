"""One run from its first line to its last: resolve, start an engine, watch, sum up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tianji.checkpoint.durable import replace_json
from tianji.checkpoint.load import list_checkpoints
from tianji.config.changes import with_changes
from tianji.config.files import load_config, save_config
from tianji.config.machine import read_machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.runs import CONFIG_FILE, new_run_dir
from tianji.engines.interface import Engine, Outcome
from tianji.engines.signals import catch_signals
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSource, probe
from tianji.errors import UsageError
from tianji.observe.observer import RunObserver
from tianji.observe.summary import build_summary, write_summary
from tianji.programs.program import Program, tianji
from tianji.programs.resolve import resolve

PLAN_FILE = "plan.json"
Summary = dict[str, Any]


def train_config(
    config: RunConfig, env: EnvSource | None = None, started_ns: int | None = None
) -> Summary:
    """Train as configured, in a new run folder. `env` may be a callable in place of config.env;
    `started_ns` is when the person asked (CLOCK_MONOTONIC), for the start-up time."""
    started_ns = started_ns or time.monotonic_ns()
    spec = _resolve(config, env or config.env, run_dir=None)
    return _run(spec, resume=False, started_ns=started_ns)


def resume_run(
    run_dir: Path,
    changes: Mapping[str, Any],
    env: EnvSource | None = None,
    started_ns: int | None = None,
) -> Summary:
    """Continue a run from its newest sound checkpoint; `changes` are new limits and the like."""
    started_ns = started_ns or time.monotonic_ns()
    if not list_checkpoints(run_dir):
        raise UsageError(f"Run {run_dir} has no checkpoint to continue from.")
    old = load_config(run_dir / CONFIG_FILE)
    config = with_changes(old, changes)
    spec = _resolve(config, env or config.env, run_dir, _read_plan(run_dir))
    return _run(spec, resume=True, started_ns=started_ns)


def _read_plan(run_dir: Path) -> RunPlan:
    try:
        return RunPlan.model_validate_json((run_dir / PLAN_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"Run {run_dir} has no readable {PLAN_FILE}: {error}") from error


def _save_plan(folder: Path, plan: RunPlan) -> None:
    replace_json(folder / PLAN_FILE, plan.model_dump(mode="json"))


def _resolve(
    config: RunConfig, env: EnvSource, run_dir: Path | None, before: RunPlan | None = None
) -> RunSpec:
    """Everything that can be wrong with a run is found here, before anything starts.

    before: the plan of a run that is resumed. What was saved fits its actors and its threads, so
    they stay, whatever machine this is.
    """
    found = probe(env, config.env_kwargs)
    fixed = config
    if before is not None:
        same = {"num_actors": before.num_actors, "learner_threads": before.learner_threads}
        fixed = config.model_copy(update=same)
    plan = resolve(fixed, read_machine(), found)
    folder = run_dir or new_run_dir(config)
    save_config(config, folder / CONFIG_FILE)
    _save_plan(folder, plan)
    return RunSpec(config, plan, found.spaces, env, folder)


def _run(spec: RunSpec, resume: bool, started_ns: int) -> Summary:
    program = tianji(spec.config, spec.plan)

    def complete_plan(built: dict[str, Any]) -> None:
        _save_plan(spec.run_dir, spec.plan.model_copy(update=built))

    observer = RunObserver(spec.config, spec.run_dir, complete_plan)
    observer.start()
    try:
        with catch_signals() as stop:
            engine = _ENGINES[spec.config.engine](spec, program, observer)
            outcome = engine.run(stop, resume)
        facts = _facts(outcome, observer, started_ns)
    finally:
        observer.close()
    return _sum_up(spec, outcome, facts)


def _facts(outcome: Outcome, observer: RunObserver, started_ns: int) -> dict[str, Any]:
    record = {k: v for k, v in outcome["record"].items() if k not in ("learner", "paced_share")}
    first_ns = observer.first_step_ns()
    return {
        **record,
        "stopped_because": outcome["because"],
        "start_up_s": (first_ns - started_ns) / 1e9 if first_ns else None,
        "restarts": outcome["restarts"],
    }


def _sum_up(spec: RunSpec, outcome: Outcome, facts: dict[str, Any]) -> Summary:
    saved = list_checkpoints(spec.run_dir)
    facts["checkpoint"] = str(saved[-1]) if saved else None
    summary = build_summary(spec.config, spec.run_dir, facts, outcome["first_cause"])
    write_summary(spec.run_dir, summary)
    if summary["env_steps"]:
        from tianji.observe.curve import draw_curve

        draw_curve(spec.run_dir)
    return summary


def _inline(spec: RunSpec, program: Program, observer: RunObserver) -> Engine:
    from tianji.engines.inline import InlineEngine

    return InlineEngine(spec, program, observer)


def _local(spec: RunSpec, program: Program, observer: RunObserver) -> Engine:
    from tianji.engines.local import LocalEngine

    return LocalEngine(spec, program, observer)


_ENGINES: dict[str, Callable[[RunSpec, Program, RunObserver], Engine]] = {
    "inline": _inline,
    "local": _local,
}
