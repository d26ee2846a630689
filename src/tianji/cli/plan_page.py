"""A plan as people read it: who gets what, what to expect, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.work import largest_noise
from tianji.display.numbers import to_count, to_percent, to_value
from tianji.planning.planner import Planned, Solved
from tianji.planning.solve.run_memory import mib
from tianji.planning.solve.solve import Solution

RATES = ("produced", "received", "trained")
LIMITS = {
    "sampling": "sampling: the actors",
    "training": "training: the learner",
    "communication": "communication: the buffer that receives",
    "processors": "processors: all cores are busy",
}


def plan_page(planned: Planned, machine: Machine) -> RenderableType:
    """The whole page; no wider than the terminal."""
    assert planned.solved is not None, "a plan by rule promises nothing"
    solved = planned.solved
    solution = solved.solution
    return Group(
        plan_title(planned.config, machine),
        "",
        roles_table(solution.roles(), solution.chosen.envs_per_actor),
        "",
        _figures(planned, solution, solved.settings),
        "",
        Text("Why", style="bold"),
        sentences_table(solution.reasons),
        "",
        Text("What would help, and warnings", style="bold"),
        sentences_table(solution.advice),
        "",
        Text(_origin(planned, solved), style="dim"),
    )


def plan_title(config: RunConfig, machine: Machine) -> Text:
    facts = (
        config.env_name,
        config.algorithm.name,
        f"{config.num_envs} environments",
        f"{len(machine.cores)} cores",
    )
    return Text(" · ".join(facts), style="bold")


def roles_table(roles: Mapping[str, Mapping[str, Any]], envs_per_actor: int) -> Table:
    """roles: processes, threads of each and, where they were shared out, cores."""
    has_cores = any("cores" in share for share in roles.values())
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("role", style="cyan", no_wrap=True)
    for name in ("processes", *(["cores"] if has_cores else []), "threads each", "envs each"):
        table.add_column(name, justify="right")
    for role, share in roles.items():
        if not share["processes"]:
            continue
        envs = {"actor": envs_per_actor, "evaluator": 1}.get(role)
        table.add_row(
            "learner, with the buffer" if role == "learner" else role,
            str(share["processes"]),
            *([f"{share['cores']:g}"] if has_cores else []),
            str(share["threads"]),
            "" if envs is None else str(envs),
        )
    return table


def _figures(planned: Planned, solution: Solution, chosen: Mapping[str, int]) -> Table:
    promise, demand = solution.chosen.prediction, solution.demand
    table = Table(box=None, show_header=False, padding=(0, 3, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rates = (f"{name} {to_count(getattr(promise, name))}" for name in RATES)
    table.add_row("steps/s", "  ".join(rates))
    lag = f"{to_value(promise.lag_versions)} of at most {planned.config.max_lag} versions"
    table.add_row("lag", f"{lag}  ratio {demand.ratio:g}  P {to_value(demand.staleness)}")
    table.add_row("memory", _memory(solution))
    if chosen:
        table.add_row("chosen", "  ".join(f"{path} {value}" for path, value in chosen.items()))
    table.add_row("bottleneck", Text(LIMITS[promise.bottleneck], style="bold"))
    return table


def _memory(solution: Solution) -> str:
    memory = solution.chosen.memory
    shown = ((name, size) for name, size in memory.parts.items() if size >= 2**20)
    terms = ", ".join(f"{name.replace('_', ' ')} {mib(size)}" for name, size in shown)
    return f"{mib(memory.total)} MiB: {terms}"


def sentences_table(sentences: Iterable[str]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for sentence in sentences:
        table.add_row("-", Text(sentence))
    return table


def _origin(planned: Planned, solved: Solved) -> str:
    noise = f"noise up to {to_percent(largest_noise(solved.profile))}"
    if solved.from_cache:
        return f"The plan uses a saved profile ({noise}); --fresh measures again."
    return (
        f"Measured and solved in {planned.planning_s:.0f} s ({noise}). `tianji train` with the "
        "same settings uses it."
    )
