"""One run from its first line to its last: plan, start an engine, watch, sum up."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.algorithms.registry import load_algorithm
from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.schema import folder_name
from tianji.config.changes import with_changes
from tianji.config.files import load_config, save_config
from tianji.config.machine import Machine, read_machine
from tianji.config.plan_file import PlanFile, read_plan
from tianji.config.run import RunConfig
from tianji.config.runs import CONFIG_FILE, LOCK_FILE, RUNS, new_run_dir
from tianji.display.waiting import tell_progress
from tianji.engines.choose import ENGINES
from tianji.engines.control import Stop
from tianji.engines.interface import Outcome, Report
from tianji.engines.signals import StopRequest, catch_signals
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources
from tianji.errors import UsageError
from tianji.observe.observer import RunObserver
from tianji.observe.summary import build_summary, read_summary, write_summary
from tianji.planning.plan import GATHERS, Planned, plan_again, plan_run
from tianji.programs.program import program_for
from tianji.trace.spans import SPANS_FOLDER

if TYPE_CHECKING:
    from tianji.balance.profile import Profile
    from tianji.planning.replan import Replanner

REPLAN = "replan"
"""Why an engine ended that goes on with another plan."""
Summary = dict[str, Any]


def train_config(
    config: RunConfig,
    env: EnvSources | None = None,
    started_ns: int | None = None,
    base: Path = RUNS,
) -> Summary:
    """Train as configured, in a new run folder under `base`. `env` may be a callable in place of
    config.env, or a tuple in place of config.envs; `started_ns` is when the person asked
    (CLOCK_MONOTONIC), for the start-up time."""
    started_ns = started_ns or time.monotonic_ns()
    source = env or config.envs or config.env
    machine = read_machine()
    with tell_progress(config.observe.display) as tell:
        planned = plan_run(config, source, machine, tell)
    spec = _spec_of(planned, source, lambda: new_run_dir(planned.config, base))
    replanner = _replanner(planned, source, machine)
    with _only_one(spec.run_dir):
        return _run(spec, planned, replanner, resume=False, started_ns=started_ns)


def resume_run(
    run_dir: Path,
    changes: Mapping[str, Any],
    env: EnvSources | None = None,
    started_ns: int | None = None,
) -> Summary:
    """Continue a run from its newest sound checkpoint; `changes` are new limits and the like."""
    started_ns = started_ns or time.monotonic_ns()
    if not list_checkpoints(run_dir):
        raise UsageError(f"Run {run_dir} has no checkpoint to continue from.")
    with _only_one(run_dir):
        config = with_changes(load_config(run_dir / CONFIG_FILE), changes)
        _check_not_over(config, run_dir)
        source = env or config.envs or config.env
        machine = read_machine()
        with tell_progress(config.observe.display) as tell:
            planned = plan_again(config, changes, source, machine, read_plan(run_dir), tell)
        spec = _spec_of(planned, source, lambda: run_dir)
        replanner = _replanner(planned, source, machine)
        return _run(spec, planned, replanner, resume=True, started_ns=started_ns)


def _check_not_over(config: RunConfig, run_dir: Path) -> None:
    """A run that is where it was asked to be has nothing to go on for."""
    summary = read_summary(run_dir) or {}
    done = summary.get("env_steps") or 0
    if done >= config.max_env_steps:
        raise UsageError(
            f"Run {run_dir} has done {done:,} of max_env_steps = {config.max_env_steps:,} steps. "
            f"Raise the limit: --max-env-steps {2 * done}"
        )
    reached = summary.get("stopped_because") == "target_reached"
    if reached and config.target_return == summary.get("target_return"):
        raise UsageError(
            f"Run {run_dir} has reached target_return = {config.target_return:g}. Set a higher "
            "--target-return, or start a new run."
        )


def _spec_of(planned: Planned, env: EnvSources, run_dir: Callable[[], Path]) -> RunSpec:
    """The last thing that can be wrong with a run is found here, before anything starts.

    run_dir: finds or makes the run's folder.
    """
    config, spaces = planned.config, planned.probe.spaces
    if config.model.factory is not None:  # only then is torch worth waiting for here
        load_algorithm(config.algorithm.name).build_model(spaces, config)
    folder = run_dir()
    save_config(config, folder / CONFIG_FILE)
    spec = RunSpec(config, planned.plan, spaces, env, folder)
    PlanFile(folder, planned.plan).save()
    return spec


def _replanner(planned: Planned, env: EnvSources, machine: Machine) -> Replanner | None:
    """Whoever changes the plan of this run on the way, if that is wanted."""
    if not planned.config.plan.replan or planned.config.engine != "local":
        return None
    from tianji.planning.replan import replanner_for

    return replanner_for(planned, env, machine)


@contextlib.contextmanager
def _only_one(run_dir: Path) -> Iterator[None]:
    """Two processes in one run folder would delete each other's checkpoints."""
    with (run_dir / LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"Run {run_dir} is running already.") from None
        yield


def _run(
    spec: RunSpec, planned: Planned, replanner: Replanner | None, resume: bool, started_ns: int
) -> Summary:
    plan_file = PlanFile(spec.run_dir, spec.plan)
    observer = RunObserver(spec.config, spec.plan, spec.run_dir, plan_file.complete)
    observer.start()
    for note in _planner_notes(planned, replanner):
        observer.report(Report(kind="note", role="planner", text=note))
    _merge_trace(spec.run_dir, observer)  # what a supervisor that was killed has left
    outcome = Outcome(because="interrupted", record={}, restarts=0, first_cause=None)
    try:
        extra = _extra(spec, observer, replanner)  # while Ctrl-C still breaks off what measures
    except BaseException:
        observer.close()
        raise
    with catch_signals() as stop:
        try:
            outcome = _run_engines(spec, observer, plan_file, extra, stop, resume)
        except Exception as error:
            outcome = _failure(error)
            raise
        finally:
            _merge_trace(spec.run_dir, observer)
            observer.close()
            facts = _facts(outcome, observer, started_ns) | {
                "planning_s": planned.planning_s,
                "can_be_filmed": planned.probe.can_be_filmed,
                "replans": replanner.changes if replanner is not None else 0,
            }
            summary = _sum_up(spec, outcome, facts)
    return summary


def _planner_notes(planned: Planned, replanner: Replanner | None) -> list[str]:
    notes = [planned.note] if planned.note else []
    config = planned.config
    may_replan = config.plan.replan and config.engine == "local" and planned.note != GATHERS
    if may_replan and replanner is None:
        notes.append(NO_REPLAN)
    return notes


def _run_engines(
    spec: RunSpec,
    observer: RunObserver,
    plan_file: PlanFile,
    extra: Mapping[str, Any],
    stop: StopRequest,
    resume: bool,
) -> Outcome:
    """One engine, or, when the plan changes on the way, one after the other."""
    restarts = 0
    while True:
        program = program_for(spec.config, spec.plan)
        engine = ENGINES[spec.config.engine](spec, program, observer, **extra)
        outcome = engine.run(stop, resume)
        outcome["restarts"] = restarts = restarts + outcome["restarts"]
        if outcome["because"] != REPLAN:
            return outcome
        if stop.level > Stop.NO:
            return Outcome(**{**outcome, "because": "interrupted"})
        replanner: Replanner = extra["replan"]  # nobody else asks an engine to end for a new plan
        _tell_if_unsaved(spec, outcome, observer)
        plan = replanner.take()
        plan_file.update(plan)
        observer.use_plan(plan)
        observer.report(Report(kind="note", role="planner", text=replanner.note))
        spec, resume = replace(spec, plan=plan), True


def _tell_if_unsaved(spec: RunSpec, outcome: Outcome, observer: RunObserver) -> None:
    """What was learned since the last sound checkpoint is lost when the engine ends."""
    saved = [path.name for path in list_checkpoints(spec.run_dir)]
    version = outcome["record"].get("version", 0)
    if folder_name(version) not in saved:
        since = saved[-1] if saved else "its beginning"
        text = f"Version {version} could not be saved; the run goes on from {since}."
        observer.report(Report(kind="checkpoint_failed", role="planner", text=text))


def _extra(
    spec: RunSpec, observer: RunObserver, replanner: Replanner | None
) -> dict[str, Replanner | Profile | None]:
    """What the engine is given beside the spec, the program and the observer."""
    if spec.config.engine == "virtual":
        from tianji.planning.virtual_costs import virtual_costs

        def tell(text: str) -> None:
            observer.report(Report(kind="note", role="planner", text=text))

        return {"profile": virtual_costs(spec, tell)}
    return {} if replanner is None else {"replan": replanner}


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
        **observer.closing_facts(),
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


NO_REPLAN = (
    "plan.replan has no effect: there is no profile of this run. Measure one with `tianji plan` "
    "and the same settings."
)
