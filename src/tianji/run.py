"""One run from its first line to its last: plan, start an engine, watch, sum up."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.algorithms.registry import load_algorithm
from tianji.channels.orders import Stop
from tianji.channels.reports import Report
from tianji.checkpoint.load import list_checkpoints, read_manifest
from tianji.checkpoint.schema import folder_name
from tianji.config.changes import with_changes
from tianji.config.files import load_config, save_config
from tianji.config.machine import Machine, read_machine
from tianji.config.run import RunConfig
from tianji.display.waiting import tell_progress
from tianji.engines.choose import ENGINES
from tianji.engines.interface import Outcome
from tianji.engines.signals import StopRequest, catch_signals
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources
from tianji.errors import UsageError
from tianji.learner.resumable import check_fits, newest_sound
from tianji.observe.observer import RunObserver
from tianji.observe.summary import build_summary, read_summary, write_summary
from tianji.planning.planner import Planned, plan_again, plan_run
from tianji.planning.resolve.resolve import check_network
from tianji.planning.tasks import gathers
from tianji.programs.program import program_for
from tianji.run_folder.folder import RunFolder
from tianji.run_folder.paths import CONFIG_FILE, RUNS, new_run_dir
from tianji.run_folder.plan_file import PlanFile, read_plan
from tianji.trace.spans import SPANS_FOLDER

if TYPE_CHECKING:
    from tianji.costs.profile import Profile
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
    _check_network(planned, machine)
    spec = _spec_of(planned, source, new_run_dir(planned.config, base))
    replanner = _replanner(planned, source, machine)
    with RunFolder(spec.run_dir) as folder:
        return _run(spec, folder, planned, replanner, resume=False, started_ns=started_ns)


def resume_run(
    run_dir: Path,
    changes: Mapping[str, Any],
    env: EnvSources | None = None,
    started_ns: int | None = None,
) -> Summary:
    """Continue a run from its newest sound checkpoint; `changes` are new limits and the like.

    Whatever speaks against it is found before anything in the folder is changed."""
    started_ns = started_ns or time.monotonic_ns()
    if not list_checkpoints(run_dir):
        raise UsageError(f"Run {run_dir} has no checkpoint to continue from.")
    with RunFolder(run_dir) as folder:
        config = with_changes(load_config(run_dir / CONFIG_FILE), changes)
        checkpoint = newest_sound(run_dir)
        _check_not_over(config, run_dir, read_manifest(checkpoint).facts.get("env_steps") or 0)
        source = env or config.envs or config.env
        machine, before = read_machine(), read_plan(run_dir)
        with tell_progress(config.observe.display) as tell:
            planned = plan_again(config, changes, source, machine, before, tell)
        _check_network(planned, machine)
        check_fits(checkpoint, before, planned.plan, planned.config, planned.probe.spaces)
        spec = _spec_of(planned, source, run_dir)
        replanner = _replanner(planned, source, machine)
        return _run(spec, folder, planned, replanner, resume=True, started_ns=started_ns)


def _check_not_over(config: RunConfig, run_dir: Path, done: int) -> None:
    """A run that is where it was asked to be has nothing to go on for. done: the environment steps
    of the checkpoint that it would continue from."""
    summary = read_summary(run_dir) or {}
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


def _check_network(planned: Planned, machine: Machine) -> None:
    """The last thing that can be wrong with a run is found here, before anything starts."""
    config, spaces = planned.config, planned.probe.spaces
    if config.model.factory is not None:  # only then is torch worth waiting for here
        model = load_algorithm(config.algorithm.name).build_model(spaces, config)
        num_parameters = sum(parameter.numel() for parameter in model.parameters())
        check_network(config, machine, planned.probe, planned.plan, num_parameters)


def _spec_of(planned: Planned, env: EnvSources, run_dir: Path) -> RunSpec:
    """What the engine is started from; its settings and its plan are in the folder from now on."""
    save_config(planned.config, run_dir / CONFIG_FILE)
    PlanFile(run_dir, planned.plan).save()
    return RunSpec(planned.config, planned.plan, planned.probe.spaces, env, run_dir)


def _replanner(planned: Planned, env: EnvSources, machine: Machine) -> Replanner | None:
    """Whoever changes the plan of this run on the way, if that is wanted."""
    if not planned.config.plan.replan or planned.config.engine != "local":
        return None
    from tianji.planning.replan import replanner_for

    return replanner_for(planned, env, machine)


def _run(
    spec: RunSpec,
    folder: RunFolder,
    planned: Planned,
    replanner: Replanner | None,
    resume: bool,
    started_ns: int,
) -> Summary:
    before = read_summary(spec.run_dir) if resume else None
    plan_file = PlanFile(spec.run_dir, spec.plan)
    look = partial(folder.look, spec.config, plan_file)
    observer = RunObserver(spec.config, spec.plan, spec.run_dir, plan_file.complete, look)
    observer.start()
    for remark in planned.probe.remarks:
        observer.report(Report(kind="note", role="environment", text=remark))
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
            did_anything = bool(observer.last_record or outcome["record"])
            summary = _sum_up(spec, outcome, facts, None if did_anything else before)
            if folder.is_ours and (did_anything or before is None):
                _save_summary(spec.run_dir, summary)
    return summary


def _planner_notes(planned: Planned, replanner: Replanner | None) -> list[str]:
    notes = [planned.note] if planned.note else []
    config = planned.config
    may_replan = config.plan.replan and config.engine == "local" and not gathers(config)
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
        from tianji.planning.profiles import virtual_costs

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


def _sum_up(
    spec: RunSpec, outcome: Outcome, facts: dict[str, Any], before: Summary | None
) -> Summary:
    """before: the summary that the run had, where this session added nothing to it."""
    if before is not None:
        facts = {**before, "stopped_because": outcome["because"]}
        return build_summary(spec.config, spec.run_dir, facts, outcome["first_cause"])
    saved = list_checkpoints(spec.run_dir)
    facts["checkpoint"] = str(saved[-1]) if saved else None
    return build_summary(spec.config, spec.run_dir, facts, outcome["first_cause"])


def _save_summary(run_dir: Path, summary: Summary) -> None:
    try:
        write_summary(run_dir, summary)
        if summary["env_steps"]:
            from tianji.observe.curve import draw_curve

            draw_curve(run_dir)
    except OSError as error:  # a full disk must not hide what was reached
        logging.getLogger("tianji").warning("The summary is not on disk: %s", error)


NO_REPLAN = (
    "plan.replan has no effect: there is no profile of this run. Measure one with `tianji plan` "
    "and the same settings."
)
