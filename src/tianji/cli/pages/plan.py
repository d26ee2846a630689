"""A plan as people and as scripts read it: shares of the machine, expected rates, and why.

A plan that was solved from a profile has rates and a bottleneck. A plan of a run that gathers
gradients follows a rule: its page describes a round and its cost. ruled_plan.py has the page of
other plans by rule, with the rates of each place of inference where these were measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.cli.pages.memory import memory_report, memory_text, sizes_text
from tianji.cli.pages.resolved import resolved_settings, settings_list
from tianji.cli.pages.ruled_plan import (
    ruled_facts,
    ruled_origin,
    ruled_reasons,
    ruled_report,
    ruled_roles,
)
from tianji.cli.pages.tables import fact_list, sentence_list
from tianji.config.machine import Machine
from tianji.costs.profile import RATES
from tianji.costs.work import largest_noise
from tianji.explain.explain import LIMITS
from tianji.explain.rounds import round_in_words
from tianji.planning.keep import key_of
from tianji.planning.planned import Planned, Solved
from tianji.planning.planner import gathers
from tianji.wording import counted, to_count, to_percent, to_value

Roles = Mapping[str, Mapping[str, Any]]
"""Processes, threads of each and, where they were shared out, cores, by kind of role."""


def plan_page(planned: Planned, machine: Machine, chosen: Sequence[str] = ()) -> RenderableType:
    """Return the whole page; no wider than the terminal. chosen: why rules chose its settings."""
    plan, solved = planned.plan, planned.solved
    ending: list[RenderableType] = []
    roles: Roles = ruled_roles(planned)
    reasons = ruled_reasons(planned)
    if solved is None and gathers(planned.config):
        facts, roles = _round_facts(planned), _roles_by_rule(planned)
        reasons = _reasons_by_rule(planned, machine)
    elif solved is None:
        facts = ruled_facts(planned)
        ending = ["", Text(text, style="dim")] if (text := ruled_origin(planned)) else []
    else:
        solution = solved.solution
        facts, roles = _rate_facts(planned, solved), solution.roles()
        reasons, origin = list(solution.reasons), Text(_origin(planned, solved), style="dim")
        heading = Text("\nWhat would help, and warnings", style="bold")
        ending = [heading, sentence_list(solution.advice), "", origin]
    config, num_cores = planned.config, len(machine.cores)
    sizes = counted(config.num_envs, "environment"), counted(num_cores, "core")
    title = " · ".join((config.env_name, config.algorithm.name, *sizes))
    return Group(
        Text(title, style="bold"),
        "",
        _roles_table(roles, plan.envs_per_actor * plan.actors_per_worker),
        "",
        fact_list(facts),
        Text("\nSettings", style="bold"),
        settings_list(planned),
        Text("\nWhy", style="bold"),
        sentence_list([*chosen, *reasons]),
        *ending,
    )


def plan_report(planned: Planned, machine: Machine, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Return what scripts read."""
    plan, solved = planned.plan, planned.solved
    report = {
        "algorithm": planned.config.algorithm.name,
        "chosen_because": list(chosen),
        "resolved": resolved_settings(planned),
        "num_actors": plan.num_actors,
        "envs_per_actor": plan.envs_per_actor,
        "actor_threads": plan.actor_threads,
        "learner_threads": plan.learner_threads,
        "device": plan.device,
        "inference": plan.inference,
    }
    if solved is None:
        is_gathered = gathers(planned.config)
        ruled = _round_report if is_gathered else ruled_report
        return report | ruled(planned, machine)
    return report | _solved_report(planned, solved, machine)


def _roles_table(roles: Roles, envs_per_process: int) -> Table:
    has_cores = any("cores" in share for share in roles.values())
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("role", style="cyan", no_wrap=True)
    for name in ("processes", *(["cores"] if has_cores else []), "threads each", "envs each"):
        table.add_column(name, justify="right")
    for role, share in roles.items():
        if not share["processes"]:
            continue
        envs = {"actor": envs_per_process, "evaluator": 1}.get(role)
        table.add_row(
            _with_others(role, roles),
            str(share["processes"]),
            *([f"{share['cores']:g}"] if has_cores else []),
            str(share["threads"]),
            "" if envs is None else str(envs),
        )
    return table


def _with_others(role: str, roles: Roles) -> str:
    """Name the roles that live in the learner's process."""
    if role != "learner":
        return role
    names = {"buffer": "the buffer", "inference": "inference", "actor": "the actors"}
    no_process = {"processes": 0}
    others = [
        name
        for kind, name in names.items()
        if (kind in roles or kind == "buffer") and not roles.get(kind, no_process)["processes"]
    ]
    return f"learner, with {' and '.join(others)}" if others else role


def _rate_facts(planned: Planned, solved: Solved) -> dict[str, RenderableType]:
    chosen, demand = solved.solution.chosen, solved.solution.demand
    promise = chosen.prediction
    rates = (f"{name} {to_count(getattr(promise, name))}" for name in RATES)
    bound = f"of at most {planned.config.max_lag} versions"
    if planned.plan.balance != "paced":
        bound = f"versions, with a queue of {planned.plan.queue_size} unrolls"
    lag = f"{to_value(promise.lag_versions)} {bound}"
    facts: dict[str, RenderableType] = {
        "steps/s": "  ".join(rates),
        "lag": f"{lag}  ratio {demand.ratio:g}  P {to_value(demand.staleness)}",
        "memory": memory_text(chosen.memory),
    }
    if gpu_bytes := planned.plan.gpu_bytes:
        facts["GPU memory"] = sizes_text(gpu_bytes)
    if solved.settings:
        facts["chosen"] = "  ".join(f"{path} {value}" for path, value in solved.settings.items())
    facts["bottleneck"] = Text(f"{promise.bottleneck}: {LIMITS[promise.bottleneck]}", style="bold")
    return facts


def _origin(planned: Planned, solved: Solved) -> str:
    noise = f"noise up to {to_percent(largest_noise(solved.profile))}"
    if solved.from_cache:
        return f"The plan uses a saved profile ({noise}); --fresh measures again."
    return (
        f"Measured and solved in {planned.planning_s:.0f} s ({noise}). `tianji train` with the "
        "same settings uses it."
    )


def _solved_report(planned: Planned, solved: Solved, machine: Machine) -> dict[str, Any]:
    solution, chosen = solved.solution, solved.solution.chosen
    promise, demand = chosen.prediction, solution.demand
    return {
        "planning_s": planned.planning_s,
        "bottleneck": promise.bottleneck,
        "predicted": {name: getattr(promise, name) for name in RATES},
        "lag_versions": promise.lag_versions,
        "ratio": demand.ratio,
        "staleness": demand.staleness,
        "roles": solution.roles(),
        "memory_bytes": chosen.memory.total,
        "memory": memory_report(planned, chosen.memory),
        "reasons": list(solution.reasons),
        "advice": list(solution.advice),
        "warnings": list(solved.profile.warnings),
        "noise": largest_noise(solved.profile),
        "settings": dict(solved.settings),
        "from_cache": solved.from_cache,
        "profile_key": key_of(planned.config, machine),
    }


def _round_report(planned: Planned, machine: Machine) -> dict[str, Any]:
    plan, gather = planned.plan, _gather_of(planned)
    return {
        "roles": _roles_by_rule(planned),
        "rule": gather.rule,
        "num_gradients": gather.num_gradients,
        "first_num_gradients": gather.first_num_gradients,
        "steps_per_gradient": plan.steps_per_unroll,
        "gradient_s": _gradient_s(planned),
        "most_discarded_share": _most_dropped(gather, plan.num_actors),
        "envs": list(planned.config.tasks),
        "memory_bytes": plan.shared_memory_bytes,
        "reasons": list(_reasons_by_rule(planned, machine)),
    }


def _gather_of(planned: Planned) -> Gather:
    gather = load_algorithm(planned.config.algorithm.name).cadence(planned.config)
    assert isinstance(gather, Gather), "the others have pages of their own"
    return gather


def _roles_by_rule(planned: Planned) -> Roles:
    plan = planned.plan
    return {
        "actor": {"processes": plan.num_actors, "threads": plan.actor_threads},
        "learner": {"processes": 1, "threads": plan.learner_threads},
        "evaluator": {"processes": int(planned.config.evaluate.period_s > 0), "threads": 1},
    }


def _round_facts(planned: Planned) -> dict[str, RenderableType]:
    plan, gather = planned.plan, _gather_of(planned)
    gradient = f"{plan.unroll_length} rows of {counted(plan.envs_per_actor, 'environment')}"
    if (taken_s := _gradient_s(planned)) is not None:
        gradient += f", at most {to_value(1000 * taken_s)} ms of stepping"
    facts: dict[str, RenderableType] = {"round": round_in_words(gather), "gradient": gradient}
    if (most := _most_dropped(gather, plan.num_actors)) is not None:
        share = f"at most {to_percent(most)} of the gradients"
        facts["dropped"] = f"{share}: up to {plan.num_actors} are unfinished when a round closes"
    slots = f"{plan.num_slots} slots of {plan.slot_bytes / 2**10:,.0f} KiB"
    facts["memory"] = f"{plan.shared_memory_bytes / 2**20:,.1f} MiB shared: {slots}"
    if tasks := planned.config.envs:
        facts["tasks"] = "\n".join(f"actor-{index}: {task}" for index, task in enumerate(tasks))
    return facts


def _gradient_s(planned: Planned) -> float | None:
    """Return the seconds that its environment steps take; short episodes may need less."""
    step_s = planned.probe.step_s
    return None if step_s is None else step_s * planned.plan.steps_per_unroll


def _most_dropped(gather: Gather, num_actors: int) -> float | None:
    """Return the largest share of gradients that rounds can leave unfinished; None where a rule
    drops none, because an actor that has delivered waits for the next version."""
    if gather.rule not in ("first", "harmonic"):
        return None
    return num_actors / (gather.num_gradients + num_actors)


def _reasons_by_rule(planned: Planned, machine: Machine) -> list[str]:
    num_actors, num_cores = planned.plan.num_actors, len(machine.cores)
    told = [planned.note, *planned.plan.notes]
    if num_actors > num_cores and planned.config.times.law == "none":
        told.append(
            f"{num_actors} actors share {num_cores} cores: each gets a part of a core, so all are "
            "about equally fast."
        )
    told.append(
        f"`tianji simulate --algorithm {planned.config.algorithm.name} --times 1,3,7` shows the "
        "rounds of actors that take unequal times."
    )
    return told
