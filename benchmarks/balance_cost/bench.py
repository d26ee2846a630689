"""What gauges and controller cost: their own CPU time against the CPU time of one unroll.

python -m benchmarks.balance_cost.bench            5 rounds, about 2 minutes
python -m benchmarks.balance_cost.bench --quick
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from benchmarks.balance_cost.pieces import controller_us, look_us, unit_costs
from benchmarks.harness import Report, median, parser, say, spread
from benchmarks.trace_cost.bench import CASES, Case, measure
from tianji.algorithms.registry import load_algorithm
from tianji.config.files import load_preset
from tianji.config.machine import read_machine
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.build import probe
from tianji.planning.resolve.resolve import resolve

BOUND = 0.01
PRESETS = ("cartpole-ppo", "cartpole-dqn")


class Uses(NamedTuple):
    """How often a piece is used for one unroll."""

    piece: str
    times: float


def uses_of(plan: RunPlan, num_updates: int) -> list[Uses]:
    """Counted in the code: actor/role.py, buffer/role.py, learner/role.py, engines/loop.py."""
    rows, per_version = plan.num_rows, plan.unrolls_per_version
    ticks = (num_updates + 2) / per_version
    """Of the learner's side: every update, the publication, and a look that finds nothing."""
    return [
        Uses("timed tick", rows + 2 * ticks),
        Uses("add", 2 * rows + 9 + (2 * num_updates + 6) / per_version),
        Uses("read", 3 * rows + 2),
        Uses("clock", rows + 1 + 4 / per_version),
    ]


def plan_of(preset: str) -> tuple[RunPlan, int]:
    """Its plan, and the updates of a version."""
    config = RunConfig.model_validate(load_preset(preset).config)
    plan = resolve(config, read_machine(), probe(config.env, config.env_kwargs))
    steps = load_algorithm(config.algorithm.name).cadence(config).trained_steps_per_version
    numbers = config.algorithm.model_dump()
    return plan, steps // (numbers.get("minibatch_size") or numbers["batch_size"])


def compare(report: Report, case: Case, rounds: int) -> None:
    plan, num_updates = plan_of(case.preset)
    cpu_us = []
    for seed in range(1, rounds + 1):
        found = measure(case, seed, trace=False)["cpu_us_per_unroll"]
        cpu_us.append(found)
        report.add(case.name, seed, {"cpu_us_per_unroll": found})
        say(f"{case.name}: {found:.0f} us per unroll")
    costs = [unit_costs() for _ in range(rounds)]
    each = {piece: median([cost[piece] for cost in costs]) or 0.0 for piece in costs[0]}
    parts = {uses.piece: uses.times * each[uses.piece] for uses in uses_of(plan, num_updates)}
    parts["controller"] = median([controller_us(plan) for _ in range(rounds)]) or 0.0
    whole_us = median(list(cpu_us)) or 0.0
    look_share = (median([look_us(plan) for _ in range(rounds)]) or 0.0) / 1e6
    """Of a core: once a second, whatever is done meanwhile."""
    rows = [["whole unroll", spread(list(cpu_us), 0), "1"]]
    rows += [[name, f"{us:.2f}", f"{us / whole_us:.5f}"] for name, us in parts.items()]
    rows += [["look at the balance", "once a second", f"{look_share:.5f} of a core"]]
    report.table(f"{case.name}: us of CPU time per unroll", ["part", "us", "share"], rows)
    report.note(**{f"{case.preset}_parts_us": parts, "unit_costs_us": each})
    share = sum(parts.values()) / whole_us + look_share
    report.check(f"{case.name}: gauges and controller / CPU time", share, "<=", BOUND)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=5)
    args = made.parse_args()
    report = Report("balance_cost", args)
    for case in CASES:
        if case.preset in PRESETS and case.engine == "local":
            compare(report, case, 1 if args.quick else args.rounds)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
