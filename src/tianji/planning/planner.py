"""From what was asked to what will run: a profile that was kept or is measured, the solver, a plan.

    planned = plan_run(config, env, read_machine(), tell)        # as much measuring as it is worth
    planned = measured_plan(config, env, read_machine(), tell)   # `tianji plan`

Nothing here imports torch; the workers that measure do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tianji.config.machine import Machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.display.waiting import tell_while_slow
from tianji.envs.build import EnvSources, Probe
from tianji.errors import TianjiError, UsageError
from tianji.planning.resolve.resolve import demand_of, resolve
from tianji.planning.tasks import gathers, probe_tasks

if TYPE_CHECKING:
    from tianji.costs.profile import Profile
    from tianji.planning.profiles import Tell
    from tianji.planning.solve.solve import Solution

SHARES = ("num_actors", "learner_threads", "actor_threads")
"""Settings that share the machine among the roles."""
PAYS_ABOVE_S = 60.0
"""A measurement takes a quarter of a minute: too much for a run that may be shorter than this."""

GATHERS = (
    "The plan follows a rule: actors that compute gradients themselves need no balance with the "
    "learner, and their number is part of the method."
)


@dataclass(frozen=True, slots=True)
class Solved:
    """What a plan was solved from, and the solution."""

    profile: Profile
    solution: Solution
    from_cache: bool
    """Everything had been measured at an earlier time."""
    settings: Mapping[str, int]
    """What was chosen for settings that were left open, by their path."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and how it came about."""

    config: RunConfig
    """What was asked, with numbers for everything that was left open."""
    plan: RunPlan
    probe: Probe
    note: str
    """Where the plan comes from, in words; empty where there was nothing to decide."""
    solved: Solved | None = None
    """None for a plan by rule."""
    planning_s: float = 0.0


def plan_run(config: RunConfig, env: EnvSources, machine: Machine, tell: Tell) -> Planned:
    """The plan of a run that is about to start: measured where it pays, else by rule."""
    note = _nothing_to_measure(config)
    if note is not None:
        is_open = config.engine == "local" and config.num_actors == "auto"
        return _by_rule(config, machine, _probe(config, env, tell, timed=is_open), note)
    from tianji.planning.kept import is_kept

    is_open = config.plan.source == "auto" and not is_kept(config, env, machine)
    found = _probe(config, env, tell, timed=is_open)
    note = _too_short(config, machine, found) if is_open else None
    if note is not None:
        return _by_rule(config, machine, found, note)
    try:
        return _solve(config, env, machine, found, tell)
    except UsageError:
        raise  # it does not fit, whoever plans
    except TianjiError as error:
        if not is_open:
            raise
        return _by_rule(config, machine, found, f"Cores are shared by rule: {error}")


def plan_again(
    config: RunConfig,
    changes: Mapping[str, Any],
    env: EnvSources,
    machine: Machine,
    before: RunPlan,
    tell: Tell,
) -> Planned:
    """The plan of a run that is resumed: as it was, whatever machine this is, but for the shares
    that are among the changes."""
    is_asked = "source" in changes.get("plan", {})  # how to plan was said: so plan
    same = {n: getattr(before, n) for n in SHARES if n not in changes and not is_asked}
    fixed = config.model_copy(update=same)
    if len(same) < len(SHARES):
        return replace(plan_run(fixed, env, machine, tell), config=config)
    found = _probe(config, env, tell)
    kept = {name: getattr(before, name) for name in ("source", "prediction", "notes")}
    return Planned(config, resolve(fixed, machine, found).model_copy(update=kept), found, note="")


def measured_plan(
    config: RunConfig, env: EnvSources, machine: Machine, tell: Tell, fresh: bool = False
) -> Planned:
    """The plan by a profile: one that was kept, unless it must be fresh, or measured now. By rule
    where there is nothing that a profile could balance."""
    if gathers(config):
        return _by_rule(config, machine, _probe(config, env, tell, timed=True), GATHERS)
    if config.engine != "local":
        raise UsageError(
            f"engine = {config.engine}: it runs in one process, so there are no cores to share. "
            "`tianji plan` needs --engine local."
        )
    return _solve(config, env, machine, _probe(config, env, tell), tell, fresh)


def _probe(config: RunConfig, env: EnvSources, tell: Tell, timed: bool = False) -> Probe:
    """Try out the environments; people are told where they take long, or hang."""
    with tell_while_slow(tell, f"Trying out {config.env_name}"):
        return probe_tasks(config, env, timed)


def _reservations(profile: Profile) -> tuple[str, ...]:
    if not profile.is_disturbed:
        return ()
    return (
        "Other programs used the machine during the measurement; `tianji plan --fresh` measures "
        "again.",
    )


def _nothing_to_measure(config: RunConfig) -> str | None:
    """Why the rule is good enough, whatever was kept; None where a profile would help."""
    if config.engine != "local":
        return ""
    if gathers(config):
        return GATHERS
    if config.plan.source == "rule":
        return "Cores are shared by rule (plan.source = rule)."
    if "auto" not in (config.num_actors, config.learner_threads) and not config.plan.choose:
        return "You set num_actors and learner_threads; there was nothing to plan."
    return None


def _too_short(config: RunConfig, machine: Machine, found: Probe) -> str | None:
    """Why a measurement would not pay; None where it would."""
    if found.step_s is None:
        return "Cores are shared by rule: the environment failed in a step."
    env_s = config.max_env_steps * found.step_s / len(machine.cores)
    if env_s <= PAYS_ABOVE_S:
        why = f"its environment steps need only about {max(1.0, env_s):.0f} s in all"
    elif config.max_wall_s is not None and config.max_wall_s <= PAYS_ABOVE_S:
        why = f"it ends after {config.max_wall_s:g} s (max_wall_s)"
    else:
        return None
    return (
        f"Cores are shared by rule: this run may be too short for a measurement, because {why}. "
        "`tianji plan` measures the best shares for this and later runs."
    )


def _by_rule(config: RunConfig, machine: Machine, found: Probe, note: str) -> Planned:
    if config.plan.choose:
        from tianji.planning.resolve.settle import settle

        note = f"{note} {', '.join(config.plan.choose)}: default, not measured.".strip()
        config = settle(config, {})
    return Planned(config, resolve(config, machine, found), found, note)


def _solve(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    found: Probe,
    tell: Tell,
    fresh: bool = False,
) -> Planned:
    from tianji.planning.kept import is_kept
    from tianji.planning.profiles import trials
    from tianji.planning.resolve.settle import choose, settle
    from tianji.planning.solve.solve import solve

    began = time.perf_counter()
    from_cache = not fresh and is_kept(config, env, machine)
    choice = choose(config, trials(config, env, machine, found, tell, fresh))
    settled = settle(config, choice.values)
    solution = solve(choice.profile, machine, demand_of(settled, found))
    taken_s = time.perf_counter() - began
    origin = (
        "The plan uses a saved profile of such a run on this machine."
        if from_cache
        else f"The plan uses a profile of this machine, measured in {taken_s:.0f} s."
    )
    return Planned(
        config=settled,
        plan=resolve(settled, machine, found, solution),
        probe=found,
        note=" ".join((origin, *choice.notes, *_reservations(choice.profile))),
        solved=Solved(choice.profile, solution, from_cache, dict(choice.values)),
        planning_s=taken_s,
    )
