"""One run from start to end: plan, start an engine, observe, write the summary."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.schema import folder_name
from tianji.checkpoint.sets import (
    SavedGroups,
    group_folder,
    has_groups,
    main_folder,
)
from tianji.config.files import load_config, save_config
from tianji.config.machine import Machine, read_machine
from tianji.config.overrides import with_changes
from tianji.config.plan import IN_STEP, RunPlan
from tianji.config.run import RunConfig
from tianji.display.display import Display
from tianji.display.stream import tell_progress
from tianji.engines.agents.hosts import Hosts, host_figures, open_hosts
from tianji.engines.interface import ENGINES, GROUP_ENGINES, Outcome
from tianji.engines.signals import StopRequest, catch_signals
from tianji.engines.spec import RunSpec
from tianji.envs.build import EnvSources
from tianji.envs.masks import mask_in_words
from tianji.errors import UsageError
from tianji.explain.explain import speed_facts
from tianji.learner.resumable import check_fits, check_not_over, check_spaces, newest_saved
from tianji.observe.callbacks.calling import needs_episodes
from tianji.observe.callbacks.load import GivenCallback, NamedCallback, load_callbacks
from tianji.observe.observer import RunObserver
from tianji.observe.summary import (
    build_summary,
    read_summary,
    this_host,
    write_summary,
)
from tianji.planning.groups import PlannedGroups, check_groups, plan_groups
from tianji.planning.planned import Planned
from tianji.planning.planner import gathers, plan_again, plan_run, probe_tasks
from tianji.planning.resolve.resolve import check_network
from tianji.programs.one_group import program_for
from tianji.raised import error_in_words
from tianji.records import GatherRule, Summary, SummaryFacts
from tianji.reports import Event
from tianji.run_folder.folder import PlanFile, RunFolder, read_plan
from tianji.run_folder.paths import CONFIG_FILE, RUNS, check_name_is_free, new_run_dir
from tianji.trace.spans import SPANS_FOLDER

if TYPE_CHECKING:
    from tianji.planning.replan import Replanner

REPLAN: Final = "replan"
"""Why an engine ended where the run continues with another plan."""
NO_COSTS = (
    "plan.replan has no effect: cores are shared by rule on a GPU and with a server for inference."
)
NO_BALANCE = (
    "plan.replan has no effect: actors do not wait for the learner, so there is nothing to balance."
)
NO_REPLAN_OF_GROUPS = "plan.replan has no effect: the plan of several groups does not change."
NO_STEP = "The time limit was reached without a single step to train on."
NO_POLICY = "The run has ended, and no policy of it is saved."
NO_REPLAN = (
    "plan.replan has no effect: there is no profile of this run. Measure one with `tianji plan` "
    "and the same settings."
)


def train_config(
    config: RunConfig,
    env: EnvSources | None = None,
    started_ns: int | None = None,
    base: Path = RUNS,
    callbacks: Sequence[GivenCallback] = (),
    reasons: Sequence[str] = (),
    expectation: str = "",
) -> Summary:
    """Train as configured, in a new run folder under `base`.

    env: a callable in place of config.env, or a tuple in place of config.envs. started_ns: when the
    person asked (CLOCK_MONOTONIC), for the start-up time. callbacks: beside those of config.
    reasons: why the settings were chosen, in sentences that the run shows when it starts.
    expectation: what to expect of it, which it shows then too.
    """
    started_ns = started_ns or time.monotonic_ns()
    source = env or config.envs or config.env
    check_groups(config)
    check_name_is_free(config, base)
    called = load_callbacks(config.callbacks, callbacks)
    with open_hosts(config) as hosts:
        machine, agents_each = _place_of(hosts)
        with tell_progress(config.observe.display) as tell:
            groups = plan_groups(
                config, machine, lambda one, share: plan_run(one, source, share, tell), agents_each
            )
        _check_network(groups)
        run_dir = new_run_dir(groups.planned.config, base)
        with RunFolder(run_dir) as folder:
            run = _Run(
                groups, source, machine, folder, run_dir, started_ns, hosts=hosts, callbacks=called
            )
            return run.to_end(resume=False, reasons=reasons, expectation=expectation)


def resume_run(
    run_dir: Path,
    changes: Mapping[str, Any],
    env: EnvSources | None = None,
    started_ns: int | None = None,
) -> Summary:
    """Continue a run from its newest sound checkpoint; `changes` are new limits and the like.

    Every obstacle is found before anything in the folder is changed.
    """
    started_ns = started_ns or time.monotonic_ns()
    if not list_checkpoints(main_folder(run_dir)):
        raise UsageError(f"Run {run_dir} has no checkpoint to continue from.")
    loaded = load_config(run_dir / CONFIG_FILE)
    config = with_changes(loaded, changes)
    called = load_callbacks(config.callbacks)
    with open_hosts(config) as hosts, RunFolder(run_dir) as folder:
        check_groups(config, had_groups=has_groups(run_dir))
        saved = newest_saved(run_dir)
        check_not_over(config, run_dir, saved.found.env_steps)
        source, before = env or config.envs or config.env, read_plan(run_dir)
        check_spaces(run_dir, before, config, probe_tasks(config, source).spaces)
        machine, agents_each = _place_of(hosts)
        with tell_progress(config.observe.display) as tell:

            def plan(one: RunConfig, share: Machine) -> Planned:
                if config.num_learners != loaded.num_learners:  # each has another share now
                    return plan_run(one, source, share, tell)
                return plan_again(one, changes, source, share, before, tell)

            groups = plan_groups(config, machine, plan, agents_each)
        _check_network(groups)
        planned = groups.planned
        check_fits(saved.paths[0], planned.config, planned.probe.spaces)
        run = _Run(groups, source, machine, folder, run_dir, started_ns, saved, hosts, called)
        return run.to_end(resume=True)


def _place_of(hosts: Hosts | None) -> tuple[Machine, int | None]:
    """Return the machine that the run is planned for, and how many agents share one."""
    return (read_machine(), None) if hosts is None else (hosts.machine, hosts.agents_each)


def _check_network(groups: PlannedGroups) -> None:
    """Check the memory that a network of the person's own needs, before anything starts."""
    planned, machine = groups.planned, groups.shares[0]
    config, spaces = planned.config, planned.probe.spaces
    if config.model.factory is not None:  # only then is torch worth waiting for here
        model = load_algorithm(config.algorithm.name).build_model(spaces, config)
        num_parameters = sum(parameter.numel() for parameter in model.parameters())
        check_network(config, machine, planned.probe, planned.plan, num_parameters)


class _Run:
    """A planned run in its folder: one engine, or one after the other when the plan changes."""

    def __init__(
        self,
        groups: PlannedGroups,
        env: EnvSources,
        machine: Machine,
        folder: RunFolder,
        run_dir: Path,
        started_ns: int,
        saved: SavedGroups | None = None,
        hosts: Hosts | None = None,
        callbacks: Sequence[NamedCallback] = (),
    ) -> None:
        """saved: where the run continues; None: it is new."""
        planned = groups.planned
        config, plan = planned.config, planned.plan
        save_config(config, run_dir / CONFIG_FILE)
        self._plan_file = PlanFile(run_dir, plan)
        self._plan_file.save()
        self._planned = planned
        self._groups = groups
        self._saved = saved
        self._has_groups = config.num_learners > 1 or has_groups(run_dir)
        self._machine = machine
        self._folder = folder
        self._started_ns = started_ns
        self._hosts = hosts
        self._spec = RunSpec(
            config,
            plan,
            planned.probe.spaces,
            env,
            run_dir,
            reports_episodes=needs_episodes(callbacks),
        )
        self._replanner: Replanner | None = None
        if _may_replan(config) and not self._has_groups:
            from tianji.planning.replan import replanner_for

            self._replanner = replanner_for(planned, env, machine)
        self._display = Display(config, groups.for_run, config.observe.display)
        self._observer = RunObserver(
            config,
            run_dir,
            self._display,
            _gather_rule(config),
            self._plan_file.complete,
            self._count_cores,
            partial(folder.look, config, self._plan_file),
            planned.plan,
            callbacks,
        )

    def _count_cores(self) -> int:
        """Return the cores of all hosts that agents run on; they are taken to be alike."""
        num_hosts = 1 if self._hosts is None else len(set(self._hosts.places.values()))
        return num_hosts * len(self._machine.cores)

    def to_end(self, resume: bool, reasons: Sequence[str] = (), expectation: str = "") -> Summary:
        run_dir = self._spec.run_dir
        before = read_summary(run_dir) if resume else None
        self._observer.start()
        for reason in reasons:
            self._note("defaults", reason)
        if expectation:
            self._note("zoo", expectation)
        for remark in self._planned.probe.remarks:
            self._note("environment", remark)
        if masks := mask_in_words(self._planned.probe.spaces):
            self._note("environment", masks)
        if self._planned.note:
            self._note("planner", self._planned.note)
        if self._replanner is None and _may_replan(self._spec.config):
            why = NO_REPLAN_OF_GROUPS if self._has_groups else _why_no_replan(self._spec.plan)
            self._note("planner", why)
        self._merge_trace()  # what a supervisor that was killed has left
        outcome = Outcome(because="interrupted", record=None, restarts=0, first_cause=None)
        try:
            extra = self._extra()  # while Ctrl-C still breaks off a measurement
        except BaseException:
            self._observer.finish()
            self._observer.close()
            raise
        with catch_signals() as stop:
            self._observer.callbacks.run.ask_to_stop = stop.hang_up
            try:
                outcome = self._run_engines(extra, stop, resume)
                outcome = failed_without_steps(outcome, self._observer, before)
                outcome = failed_without_policy(outcome, self._observer, run_dir)
            except Exception as error:
                cause = error_in_words(error)
                outcome = Outcome(because="failed", record=None, restarts=0, first_cause=cause)
                raise
            finally:
                self._merge_trace()
                self._observer.finish()
                try:
                    summary = self._end(outcome, before)
                finally:
                    self._observer.close()
        return summary

    def _end(self, outcome: Outcome, before: Summary | None) -> Summary:
        """Write the summary, and tell the callbacks. before: the summary that the run had."""
        did_anything = bool(self._observer.last_record or outcome["record"])
        summary = self._sum_up(outcome, None if did_anything else before)
        if self._folder.is_ours and (did_anything or before is None):
            _save_summary(self._spec.run_dir, summary)
        self._observer.callbacks.end(summary)
        return summary

    def _note(self, role: str, text: str) -> None:
        self._observer.report(Event(kind="note", role=role, text=text))

    def _run_engines(self, extra: Mapping[str, Any], stop: StopRequest, resume: bool) -> Outcome:
        if self._has_groups:
            build = GROUP_ENGINES[self._spec.config.engine]
            groups = build(self._spec, self._groups.plans, self._saved, self._observer, **extra)
            return groups.run(stop, resume)
        restarts = 0
        while True:
            spec = self._spec
            program = program_for(spec.config, spec.plan)
            engine = ENGINES[spec.config.engine](spec, program, self._observer, **extra)
            outcome = engine.run(stop, resume)
            outcome["restarts"] = restarts = restarts + outcome["restarts"]
            if outcome["because"] != REPLAN:
                return outcome
            if stop.level > Stop.NO:
                return {**outcome, "because": "interrupted"}
            self._change_plan(outcome)
            resume = True

    def _change_plan(self, outcome: Outcome) -> None:
        assert self._replanner is not None, "only a replanner ends an engine for a new plan"
        saved = [path.name for path in list_checkpoints(self._spec.run_dir)]
        version = outcome["record"]["version"] if outcome["record"] is not None else 0
        if folder_name(version) not in saved:  # what was learned since then is lost
            since = saved[-1] if saved else "its beginning"
            text = f"Version {version} could not be saved; the run goes on from {since}."
            self._observer.report(Event(kind="checkpoint_failed", role="planner", text=text))
        plan = self._replanner.take()
        self._plan_file.update(plan)
        self._display.plan = plan
        self._note("planner", self._replanner.note)
        self._spec = replace(self._spec, plan=plan)

    def _extra(self) -> dict[str, Any]:
        """Return what the engine gets beside the spec, the program and the observer."""
        if self._hosts is not None:
            return {"start_agent": self._hosts.start}
        if self._spec.config.engine == "virtual":
            from tianji.planning.planner import virtual_costs

            return {"profile": virtual_costs(self._spec, partial(self._note, "planner"))}
        return {} if self._replanner is None else {"replan": self._replanner}

    def _merge_trace(self) -> None:
        """Join the spans of all roles in one file, one for each group, however the run ended."""
        run_dir = self._spec.run_dir
        for folder in (
            run_dir,
            *(group_folder(run_dir, n) for n in range(self._spec.config.num_learners)),
        ):
            if (folder / SPANS_FOLDER).is_dir():
                from tianji.trace.merge import merge_in_words

                self._note("supervisor", merge_in_words(folder))

    def _sum_up(self, outcome: Outcome, before: Summary | None) -> Summary:
        """before: the summary that the run had, where this session added nothing to it."""
        spec, planned, first_ns = self._spec, self._planned, self._observer.first_step_ns()
        assert outcome["because"] != REPLAN, "the run continues"
        facts: SummaryFacts = {"stopped_because": outcome["because"]}
        if outcome["first_cause"] is not None:
            facts["first_cause"] = outcome["first_cause"]
        callbacks = self._observer.callbacks
        if outcome["because"] == "interrupted" and callbacks.run.stop_reason is not None:
            facts["stop_reason"] = callbacks.run.stop_reason
        if before is not None:
            return build_summary(spec.config, spec.run_dir, facts, before)
        saved = list_checkpoints(main_folder(spec.run_dir))
        run_plan = self._groups.for_run if self._has_groups else spec.plan
        facts |= speed_facts(self._observer.whole_run(), run_plan, spec.config.engine)
        facts |= {
            "planning_s": planned.planning_s,
            "start_up_s": (first_ns - self._started_ns) / 1e9 if first_ns else None,
            "restarts": outcome["restarts"],
            "replans": self._replanner.changes if self._replanner is not None else 0,
            "checkpoint": str(saved[-1]) if saved else None,
            "can_be_filmed": planned.probe.can_be_filmed,
            "callback_errors": callbacks.num_errors,
        }
        record = outcome["record"] or self._observer.last_record
        facts["hosts"] = (
            [this_host(spec.config.num_groups, len(self._machine.cores))]
            if self._hosts is None
            else host_figures(self._hosts, spec.config, outcome.get("links", {}))
        )
        return build_summary(spec.config, spec.run_dir, facts, record)


def failed_without_steps(
    outcome: Outcome, observer: RunObserver, before: Summary | None
) -> Outcome:
    """Return the outcome as that of a failed run if its time was over before the learner got a
    single step, and environments have failed. before: the summary of earlier sessions."""
    done = outcome["record"] or observer.last_record or before
    has_steps = done is not None and done["env_steps"] > 0
    if has_steps or outcome["because"] != "max_wall" or observer.first_env_failure is None:
        return outcome
    cause = f"{NO_STEP} {observer.first_env_failure}".removesuffix(".")
    return {**outcome, "because": "failed", "first_cause": cause}


def failed_without_policy(outcome: Outcome, observer: RunObserver, run_dir: Path) -> Outcome:
    """Return the outcome as that of a failed run if no checkpoint of it could be written. A person
    who breaks a run off may not want one; a callback that stops it does."""
    told, run = observer.last_failed_checkpoint, observer.callbacks.run
    is_broken_off = outcome["because"] == "interrupted" and run.stop_reason is None
    if told is None or is_broken_off or outcome["because"] == "failed":
        return outcome
    if list_checkpoints(main_folder(run_dir)):
        return outcome
    cause = f"{NO_POLICY} {told}".removesuffix(".")
    return {**outcome, "because": "failed", "first_cause": cause}


def _gather_rule(config: RunConfig) -> GatherRule | None:
    gather = load_algorithm(config.algorithm.name).cadence(config)
    if not isinstance(gather, Gather):
        return None
    return GatherRule(
        rule=gather.rule,
        num_gradients=gather.num_gradients,
        times=config.times.law,
        network=config.times.network,
    )


def _why_no_replan(plan: RunPlan) -> str:
    if plan.balance not in IN_STEP:
        return NO_BALANCE
    return NO_REPLAN if plan.has_costs else NO_COSTS


def _may_replan(config: RunConfig) -> bool:
    return config.plan.replan and config.engine == "local" and not gathers(config)


def _save_summary(run_dir: Path, summary: Summary) -> None:
    with _full_disk_told("The summary is not on disk"):
        write_summary(run_dir, summary)
    if summary["env_steps"]:
        from tianji.display.curve import draw_curve

        with _full_disk_told("The picture of the learning curve is not on disk"):
            draw_curve(run_dir)


@contextmanager
def _full_disk_told(what: str) -> Iterator[None]:
    """Say what is missing where a file cannot be written: that must not hide what was reached."""
    try:
        yield
    except OSError as error:
        logging.getLogger("tianji").warning("%s: %s", what, error)
