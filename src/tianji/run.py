"""One run from its first line to its last: resolve, start an engine, watch, sum up."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tianji.algorithms.registry import load_algorithm
from tianji.checkpoint.durable import replace_json
from tianji.checkpoint.load import list_checkpoints
from tianji.config.changes import with_changes
from tianji.config.files import load_config, save_config
from tianji.config.machine import read_machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.config.runs import CONFIG_FILE, new_run_dir
from tianji.engines.interface import Engine, Outcome, Report
from tianji.engines.signals import catch_signals
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSource, probe
from tianji.errors import UsageError
from tianji.observe.observer import RunObserver
from tianji.observe.summary import build_summary, read_summary, write_summary
from tianji.programs.program import Program, tianji
from tianji.programs.resolve import resolve
from tianji.trace.spans import SPANS_FOLDER

PLAN_FILE = "plan.json"
LOCK_FILE = ".lock"
Summary = dict[str, Any]


def train_config(
    config: RunConfig, env: EnvSource | None = None, started_ns: int | None = None
) -> Summary:
    """Train as configured, in a new run folder. `env` may be a callable in place of config.env;
    `started_ns` is when the person asked (CLOCK_MONOTONIC), for the start-up time."""
    started_ns = started_ns or time.monotonic_ns()
    spec = _resolve(config, env or config.env, run_dir=None)
    with _only_one(spec.run_dir):
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
    with _only_one(run_dir):
        config = with_changes(load_config(run_dir / CONFIG_FILE), changes)
        _check_not_over(config, run_dir)
        spec = _resolve(config, env or config.env, run_dir, _read_plan(run_dir))
        return _run(spec, resume=True, started_ns=started_ns)


def _check_not_over(config: RunConfig, run_dir: Path) -> None:
    """A run that is where it was asked to be has nothing to go on for."""
    summary = read_summary(run_dir) or {}
    done = summary.get("env_steps") or 0
    if done >= config.max_env_steps:
        raise UsageError(
            f"Run {run_dir} has made {done:,} of max_env_steps = {config.max_env_steps:,} steps. "
            f"Give it more: --max-env-steps {2 * done}"
        )
    reached = summary.get("stopped_because") == "target_reached"
    if reached and config.target_return == summary.get("target_return"):
        raise UsageError(
            f"Run {run_dir} has reached target_return = {config.target_return:g}. Give it a higher "
            "one with --target-return, or train another run."
        )


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
    if config.model.factory is not None:  # only then is torch worth waiting for here
        load_algorithm(config.algorithm.name).build_model(found.spaces, config)
    folder = run_dir or new_run_dir(config)
    save_config(config, folder / CONFIG_FILE)
    _save_plan(folder, plan)
    return RunSpec(config, plan, found.spaces, env, folder)


@contextlib.contextmanager
def _only_one(run_dir: Path) -> Iterator[None]:
    """Two processes in one run folder would delete each other's checkpoints."""
    with (run_dir / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"Run {run_dir} is running already.") from None
        yield


def _run(spec: RunSpec, resume: bool, started_ns: int) -> Summary:
    program = tianji(spec.config, spec.plan)

    def complete_plan(built: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a full disk: the plan stays as it was
            _save_plan(spec.run_dir, spec.plan.model_copy(update=built))

    observer = RunObserver(spec.config, spec.run_dir, complete_plan)
    observer.start()
    _merge_trace(spec.run_dir, observer)  # what a supervisor that was killed has left
    outcome = Outcome(because="interrupted", record={}, restarts=0, first_cause=None)
    with catch_signals() as stop:
        try:
            engine = _ENGINES[spec.config.engine](spec, program, observer)
            outcome = engine.run(stop, resume)
        except Exception as error:
            outcome = _failure(error)
            raise
        finally:
            _merge_trace(spec.run_dir, observer)
            observer.close()
            summary = _sum_up(spec, outcome, _facts(outcome, observer, started_ns))
    return summary


def _merge_trace(run_dir: Path, observer: RunObserver) -> None:
    """The spans of all roles become one file, however the run ended."""
    if not (run_dir / SPANS_FOLDER).is_dir():
        return
    from tianji.trace.merge import merge_in_words

    observer.report(Report(kind="note", role="supervisor", text=merge_in_words(run_dir)))


def _failure(error: Exception) -> Outcome:
    """An engine that could not go on itself: the summary says why, and the error goes on."""
    cause = f"{type(error).__name__}: {error}"
    return Outcome(because="failed", record={}, restarts=0, first_cause=cause)


def _facts(outcome: Outcome, observer: RunObserver, started_ns: int) -> dict[str, Any]:
    known = {**observer.last_record, **outcome["record"]}
    record = {k: v for k, v in known.items() if k not in ("learner", "paced_share", "evaluation")}
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
    try:
        write_summary(spec.run_dir, summary)
        if summary["env_steps"]:
            from tianji.observe.curve import draw_curve

            draw_curve(spec.run_dir)
    except OSError as error:  # a full disk must not hide what was reached
        logging.getLogger("tianji").warning("The summary is not on disk: %s", error)
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
