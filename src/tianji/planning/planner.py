"""Plan a run: use a kept profile, measure one, or share the cores by rule. On a GPU, cores are
shared by rule, and test runs decide where inference runs.

    planned = plan_run(config, env, read_machine(), tell)        # measures only if that pays
    planned = measured_plan(config, env, read_machine(), tell)   # `tianji plan`

Nothing here imports torch; the processes that measure do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.config.machine import Machine, read_machine
from tianji.config.plan import IN_STEP, RunPlan
from tianji.config.run import RunConfig
from tianji.costs.profile import SHARES
from tianji.display.stream import tell_while_slow
from tianji.envs.build import EnvSources, Probe, probe_all
from tianji.errors import TianjiError, UsageError
from tianji.planning.keep import Tell, is_kept, trials
from tianji.planning.planned import Planned, Solved
from tianji.planning.resolve.places import choose_places
from tianji.planning.resolve.resolve import demand_of, resolve

if TYPE_CHECKING:
    from tianji.costs.profile import Profile
    from tianji.engines.spec import RunSpec

PAYS_ABOVE_S = 60.0  # a measurement takes 15 s: too much for a run that may be shorter than this

GATHERS = (
    "The plan follows a rule: actors that compute gradients need no balance with the learner, and "
    "their number is part of the method."
)

FREE = (
    "Cores are shared by rule: with balance '{balance}' actors do not wait for the learner, so "
    "there is nothing to balance."
)

ALL_SET = "You set num_actors and learner_threads; there was nothing to plan."

BY_RULE = "Cores are shared by rule, as in every run on a GPU or with a server for inference."


def plan_run(config: RunConfig, env: EnvSources, machine: Machine, tell: Tell) -> Planned:
    """Plan a run that is about to start: measure if that pays, else share the cores by rule.

    Test runs of the places of inference take a minute or more, so they are made only if the run
    asks for a measurement."""
    note = _nothing_to_measure(config)
    if note is not None:
        is_open = config.has_processes and config.num_actors == "auto"
        return _by_rule(config, machine, _probe(config, env, tell, timed=is_open), note)
    are_set = "auto" not in (config.num_actors, config.learner_threads) and not config.plan.choose
    is_free = config.balance not in IN_STEP
    is_unknown = not is_free and not is_kept(config, env, machine)
    is_open = not are_set and config.plan.source == "auto" and is_unknown
    probe = _probe(config, env, tell, timed=is_open or is_free)
    if not choose_places(config, machine, probe).has_costs:
        return _place(config, env, machine, probe, tell, config.plan.source == "measure")
    if is_free or are_set:
        return _by_rule(config, machine, probe, _free(config) if is_free else ALL_SET)
    note = _too_short(config, machine, probe) if is_open else None
    if note is not None:
        return _by_rule(config, machine, probe, note)
    try:
        return _solve(config, env, machine, probe, tell)
    except UsageError:
        raise  # the run does not fit under any plan
    except TianjiError as error:
        if not is_open:
            raise
        return _by_rule(config, machine, probe, f"Cores are shared by rule: {error}")


def _free(config: RunConfig) -> str:
    return FREE.format(balance=config.balance)


def plan_again(
    config: RunConfig,
    changes: Mapping[str, Any],
    env: EnvSources,
    machine: Machine,
    before: RunPlan,
    tell: Tell,
) -> Planned:
    """Plan a run that is resumed: keep its shares, except those among the changes.

    A run that moves between a CPU and a GPU is shared out anew, as far as the person set nothing:
    what is best on one is far from it on the other. Else inference stays where it was.
    """
    is_asked = "source" in changes.get("plan", {})
    same = {n: getattr(before, n) for n in SHARES if n not in changes and not is_asked}
    fixed = config.model_copy(update=same)
    if len(same) < len(SHARES):
        return replace(plan_run(fixed, env, machine, tell), config=config)
    probe = _probe(config, env, tell)
    is_same_device = choose_places(config, machine, probe).device == before.device
    if not is_same_device or config.inference not in ("auto", before.inference):
        planned = plan_run(config, env, machine, tell)
        return replace(planned, note=f"{_moved(before, planned.plan)} {planned.note}".strip())
    fixed = fixed.model_copy(update={"inference": before.inference})
    kept = {name: getattr(before, name) for name in ("source", "prediction", "notes")}
    return Planned(config, resolve(fixed, machine, probe).model_copy(update=kept), probe, note="")


def _moved(before: RunPlan, plan: RunPlan) -> str:
    return (
        f"The run was on {before.device} (inference: {before.inference}) and continues on "
        f"{plan.device} (inference: {plan.inference})."
    )


def measured_plan(
    config: RunConfig, env: EnvSources, machine: Machine, tell: Tell, fresh: bool = False
) -> Planned:
    """Plan by a profile, kept or measured now; fresh: always measure.

    On a GPU, test runs of the places of inference take the place of a profile. Algorithms that
    gather gradients and runs whose actors do not wait are planned by rule: there is nothing to
    balance.
    """
    if gathers(config):
        return _by_rule(config, machine, _probe(config, env, tell, timed=True), GATHERS)
    if not config.has_processes:
        raise UsageError(
            f"engine = {config.engine}: it runs in one process, so there are no cores to share. "
            "`tianji plan` needs --engine local."
        )
    probe = _probe(config, env, tell, timed=config.balance not in IN_STEP)
    if not choose_places(config, machine, probe).has_costs:
        return _place(config, env, machine, probe, tell, measures=True, fresh=fresh)
    if config.balance not in IN_STEP:
        return _by_rule(config, machine, probe, _free(config))
    return _solve(config, env, machine, probe, tell, fresh)


def virtual_costs(spec: RunSpec, tell: Tell) -> Profile | None:
    """Return the profile for the virtual engine, kept or measured now.

    None with plan.source `rule`: the engine then uses a table that is the same on every machine.
    None too for algorithms that gather gradients: their times are given (RunConfig.times).
    """
    config = spec.config
    if config.plan.source == "rule" or gathers(config):
        return None
    probe = probe_tasks(config, spec.env)
    return trials(config, spec.env, read_machine(), probe, tell)[0].profile


def probe_tasks(config: RunConfig, env: EnvSources, timed: bool = False) -> Probe:
    """Return what the environments are like; raise UsageError if one of them is unusable.

    timed: also make a few steps, to see how long one takes.
    """
    if config.envs:
        _check_list(config)
    return probe_all(env, config.env_kwargs, timed, config.action_mask)


def gathers(config: RunConfig) -> bool:
    """Return whether the actors compute gradients, so that each may have its own task."""
    return isinstance(load_algorithm(config.algorithm.name).cadence(config), Gather)


def _check_list(config: RunConfig) -> None:
    name, num_tasks = config.algorithm.name, len(config.envs)
    if not gathers(config):
        raise UsageError(
            f"envs names {num_tasks} environments, but {name} trains on one: use env. Algorithms "
            "that gather gradients can train on several: malenia-nigt, which gives all tasks the "
            "same weight, or rennala-nigt."
        )
    if config.num_actors != "auto" and config.num_actors < num_tasks:
        raise UsageError(
            f"envs names {num_tasks} environments, one for each actor, but num_actors = "
            f"{config.num_actors}: {num_tasks - config.num_actors} of them would never be trained "
            f"on. Use num_actors = {num_tasks} or more, or name fewer environments."
        )


def _probe(config: RunConfig, env: EnvSources, tell: Tell, timed: bool = False) -> Probe:
    with tell_while_slow(tell, f"Trying out {config.env_name}"):
        return probe_tasks(config, env, timed)


def _nothing_to_measure(config: RunConfig) -> str | None:
    """Return why a profile cannot help; None if it can."""
    if not config.has_processes:
        return ""
    if gathers(config):
        return GATHERS
    if config.plan.source == "rule":
        return "Cores are shared by rule (plan.source = rule)."
    if config.engine != "local":
        return "Cores are shared by rule: test runs on other hosts are not made."
    return None


def _too_short(config: RunConfig, machine: Machine, probe: Probe) -> str | None:
    """Return why a measurement does not pay; None if it does."""
    if probe.step_s is None:
        return "Cores are shared by rule: the environment failed in a step."
    env_s = config.max_env_steps * probe.step_s / len(machine.cores)
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


def _by_rule(config: RunConfig, machine: Machine, probe: Probe, note: str) -> Planned:
    config, note = _settle_by_default(config, note)
    return Planned(config, resolve(config, machine, probe), probe, note)


def _settle_by_default(config: RunConfig, note: str) -> tuple[RunConfig, str]:
    """Give settings that are `auto` their defaults, and say so in the note."""
    if not config.plan.choose:
        return config, note
    from tianji.planning.resolve.settle import settle

    told = f"{note} {', '.join(config.plan.choose)}: default, not measured.".strip()
    return settle(config, {}), told


def _place(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Tell,
    measures: bool,
    fresh: bool = False,
) -> Planned:
    """Share the cores by rule, with inference in the fastest place that is known.

    measures: find it by test runs if none were kept; else the rule decides.
    """
    from tianji.planning.placing import NOT_TRIED, known_places, place, try_all

    began = time.perf_counter()
    if probe.times is None:  # the rule needs them
        probe = _probe(config, env, tell, timed=True)
    asked, note = _settle_by_default(config, BY_RULE)
    known = None if fresh else known_places(asked, env, machine, probe)
    if known is None and not measures:
        note = f"{note} {NOT_TRIED}" if config.inference == "auto" else note
        return Planned(asked, resolve(asked, machine, probe), probe, note)
    placed = known or try_all(asked, env, machine, probe, tell)
    return Planned(
        config=asked,
        plan=place(asked, machine, probe, placed),
        probe=probe,
        note=f"{note} {placed.note}",
        placed=placed,
        planning_s=time.perf_counter() - began,
    )


def _solve(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Tell,
    fresh: bool = False,
) -> Planned:
    from tianji.planning.resolve.settle import choose, settle
    from tianji.planning.solve.solve import solve

    began = time.perf_counter()
    from_cache = not fresh and is_kept(config, env, machine)
    choice = choose(config, trials(config, env, machine, probe, tell, fresh))
    settled = settle(config, choice.values)
    solution = solve(choice.profile, machine, demand_of(settled, probe))
    taken_s = time.perf_counter() - began
    notes = [
        "The plan uses a saved profile of such a run on this machine."
        if from_cache
        else f"The plan uses a profile of this machine, measured in {taken_s:.0f} s.",
        *choice.notes,
    ]
    if choice.profile.is_disturbed:
        notes.append(
            "Other programs used the machine during the measurement; `tianji plan --fresh` "
            "measures again."
        )
    return Planned(
        config=settled,
        plan=resolve(settled, machine, probe, solution),
        probe=probe,
        note=" ".join(notes),
        solved=Solved(choice.profile, solution, from_cache, dict(choice.values)),
        planning_s=taken_s,
    )
