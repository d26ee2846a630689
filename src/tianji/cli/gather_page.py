"""The plan of a run that gathers gradients, as people and as scripts read it: what a round is, who
makes its gradients, and what that takes. Nothing of it was measured but a few steps."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.cli.plan_page import plan_title, roles_table, sentences_table
from tianji.config.machine import Machine
from tianji.display.numbers import to_percent, to_value
from tianji.planning.planner import Planned

_ROUNDS = {
    "first": "the first {m} gradients, from any actor",
    "harmonic": "gradients from every actor until their harmonic count reaches {m}",
    "barrier": "one gradient from every actor",
    "every": "every gradient makes a version (AFedPG in our reconstruction)",
}


def gather_page(planned: Planned, machine: Machine) -> RenderableType:
    """The whole page; no wider than the terminal."""
    plan, gather = planned.plan, _gather_of(planned)
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("round", _round(gather))
    table.add_row("gradient", _gradient(planned))
    if (most := _most_dropped(gather, plan.num_actors)) is not None:
        share = f"at most {to_percent(most)} of the gradients"
        words = f"{share}: up to {plan.num_actors} are unfinished when a round closes"
        table.add_row("dropped", words)
    shared = f"{plan.shared_memory_bytes / 2**20:,.1f} MiB shared"
    table.add_row(
        "memory", f"{shared}: {plan.num_slots} slots of {plan.slot_bytes / 2**10:,.0f} KiB"
    )
    for index, task in enumerate(planned.config.envs):
        table.add_row("tasks" if index == 0 else "", f"actor-{index}: {task}")
    return Group(
        plan_title(planned.config, machine),
        "",
        roles_table(_roles(planned), plan.envs_per_actor),
        "",
        table,
        "",
        Text("Why", style="bold"),
        sentences_table((planned.note, *plan.notes, *_advice(planned, machine))),
    )


def gather_report(planned: Planned, machine: Machine) -> dict[str, Any]:
    """What scripts read."""
    plan, gather = planned.plan, _gather_of(planned)
    return {
        "num_actors": plan.num_actors,
        "envs_per_actor": plan.envs_per_actor,
        "actor_threads": plan.actor_threads,
        "learner_threads": plan.learner_threads,
        "roles": _roles(planned),
        "rule": gather.rule,
        "num_gradients": gather.num_gradients,
        "first_num_gradients": gather.first_num_gradients,
        "steps_per_gradient": plan.steps_per_unroll,
        "gradient_s": _gradient_s(planned),
        "most_discarded_share": _most_dropped(gather, plan.num_actors),
        "envs": list(planned.config.tasks),
        "memory_bytes": plan.shared_memory_bytes,
        "reasons": [planned.note, *plan.notes, *_advice(planned, machine)],
    }


def _gather_of(planned: Planned) -> Gather:
    gather = load_algorithm(planned.config.algorithm.name).cadence(planned.config).gather
    assert gather is not None, "only of plans of algorithms that gather"
    return gather


def _roles(planned: Planned) -> dict[str, dict[str, float]]:
    plan = planned.plan
    return {
        "actor": {"processes": plan.num_actors, "threads": plan.actor_threads},
        "learner": {"processes": 1, "threads": plan.learner_threads},
        "evaluator": {"processes": int(planned.config.evaluate.period_s > 0), "threads": 1},
    }


def _round(gather: Gather) -> str:
    words = _ROUNDS[gather.rule].format(m=gather.num_gradients)
    if gather.rule == "first" and gather.num_gradients == 1:
        words = "the first gradient, from any actor"
    if gather.rule in ("first", "harmonic") and gather.first_num_gradients != gather.num_gradients:
        words += f"; {gather.first_num_gradients} in the first"
    return words


def _gradient(planned: Planned) -> str:
    plan, taken_s = planned.plan, _gradient_s(planned)
    what = "environment" if plan.envs_per_actor == 1 else "environments"
    words = f"{plan.unroll_length} rows of {plan.envs_per_actor} {what}"
    if taken_s is None:
        return words
    return f"{words}, at most {to_value(1000 * taken_s)} ms of stepping"


def _gradient_s(planned: Planned) -> float | None:
    """Seconds that its environment steps take; where episodes are short it may be less."""
    step_s = planned.probe.step_s
    return None if step_s is None else step_s * planned.plan.steps_per_unroll


def _most_dropped(gather: Gather, num_actors: int) -> float | None:
    """The largest share of gradients that rounds can leave unfinished; None where a rule drops
    none, because whoever has delivered has nothing in work."""
    if gather.rule not in ("first", "harmonic"):
        return None
    return num_actors / (gather.num_gradients + num_actors)


def _advice(planned: Planned, machine: Machine) -> tuple[str, ...]:
    num_actors, num_cores = planned.plan.num_actors, len(machine.cores)
    told = []
    if num_actors > num_cores and planned.config.times.law == "none":
        told.append(
            f"{num_actors} actors share {num_cores} cores: each gets a part of a core, so all are "
            "about equally fast."
        )
    told.append(
        f"`tianji simulate {planned.config.algorithm.name} --times 1,3,7` shows the rounds of "
        "actors that take unequal times."
    )
    return tuple(told)
