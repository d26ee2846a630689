"""How much of the possible overlap is won: the local engine against the inline engine.

    python -m benchmarks.overlap.bench            5 rounds, about 6 minutes
    python -m benchmarks.overlap.bench --quick

Serial training takes collect + update seconds; two cores that never wait for each other take the
longer of the two. The bound (collect + update) / max(collect, update) comes from the inline run's
own busy times.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import OTHERS, ROOT, Report, alternate, median, parser, say, spread, train

WORKING = "benchmarks.overlap.working:make"
NEVER = "100000"  # no return is this high
SHARE_BOUND = 0.85
BALANCED_BOUND = 1.6
BALANCED_WITHIN = 0.10

Figures = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A name and the options that make it."""

    name: str
    options: tuple[str, ...]


def run(setting: Setting, engine: str, seed: int, max_env_steps: int) -> Figures:
    """One training run; busy seconds of both sides and trained steps per second."""
    summary = train(
        "cartpole-ppo",
        *setting.options,
        *("--engine", engine, "--seed", str(seed), "--target-return", NEVER),
        *("--max-env-steps", str(max_env_steps)),
        env={"PYTHONPATH": str(ROOT)},
    )
    busy_s = summary["busy_s"]
    minibatch = summary["config"]["algorithm"]["minibatch_size"]
    actors = [seconds for role, seconds in busy_s.items() if role.startswith("actor")]
    return {
        "setting": setting.name,
        "options": list(setting.options),
        "engine": engine,
        OTHERS: summary[OTHERS],
        # Counted from the first environment step to the last version, every epoch counted.
        "trained_per_s": summary["updates"] * minibatch / summary["wall_s"],
        "reported_rates_per_s": summary["rates_per_s"],
        "env_steps": summary["env_steps"],
        "wall_s": summary["wall_s"],
        "collect_s": sum(actors),
        "num_actors": len(actors),
        # The buffer shares the learner's process, so its work stands on the learner's side.
        "update_s": busy_s["learner"] + busy_s["buffer"],
        "busy_share": summary["busy_share"],
        "lag_versions": summary["lag_versions"],
    }


def bound(inline: Figures) -> float:
    """Actors share the collecting between them; with one actor this is the plain formula."""
    collect, update = inline["collect_s"], inline["update_s"]
    return float((collect + update) / max(collect / inline["num_actors"], update))


def imbalance(inline: Figures) -> float:
    """How far the two sides are apart, as a share of the larger."""
    sides = (inline["collect_s"] / inline["num_actors"], inline["update_s"])
    return float(1 - min(sides) / max(sides))


def find_balanced(max_env_steps: int, tries: int) -> Setting:
    """Give the simulator work until collecting takes as long as updating.

    The update side is left as the preset has it. Work per environment step shifts the collect side
    in proportion, so each try is one division; the runs that count check the result anyway.
    """
    work_us = 0.0
    setting = _working(work_us)
    for _ in range(tries):
        inline = run(setting, "inline", 1, max_env_steps)
        gap_s = inline["update_s"] - inline["collect_s"] / inline["num_actors"]
        say(f"work {work_us:.2f} us per step: sides differ by {imbalance(inline):.0%}")
        if imbalance(inline) < BALANCED_WITHIN / 3:
            break
        work_us = max(0.0, work_us + 1e6 * gap_s * inline["num_actors"] / inline["env_steps"])
        setting = _working(work_us)
    return setting


def _working(work_us: float) -> Setting:
    options = ("--env", WORKING, "--env-kwargs.work_us", f"{work_us:.3f}")
    return Setting("equal sides", options)


def bench(report: Report, setting: Setting, args: argparse.Namespace) -> dict[str, Any]:
    """Rounds of inline and local in turn; every round gives one ratio and one bound."""
    by_seed: dict[int, dict[str, Figures]] = {}
    for engine, seed in alternate(("inline", "local"), range(1, args.rounds + 1)):
        figures = run(setting, engine, seed, args.max_env_steps)
        report.add(f"{setting.name}, {engine}", seed, figures)
        by_seed.setdefault(seed, {})[engine] = figures
        say(f"{setting.name}, {engine}, {seed}: {figures['trained_per_s']:,.0f} trained/s")
    pairs = list(by_seed.values())
    gains = [pair["local"]["trained_per_s"] / pair["inline"]["trained_per_s"] for pair in pairs]
    bounds = [bound(pair["inline"]) for pair in pairs]
    return {
        "inline": [pair["inline"]["trained_per_s"] for pair in pairs],
        "local": [pair["local"]["trained_per_s"] for pair in pairs],
        "gain": gains,
        "bound": bounds,
        "share": [gain / limit for gain, limit in zip(gains, bounds, strict=True)],
        "imbalance": [imbalance(pair["inline"]) for pair in pairs],
        "collect_s": [pair["inline"]["collect_s"] for pair in pairs],
        "update_s": [pair["inline"]["update_s"] for pair in pairs],
    }


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--max-env-steps", type=int, default=100_000)
    args = made.parse_args()
    if args.quick:
        args.rounds, args.max_env_steps = 1, 10_000
    report = Report("overlap", args)
    balanced = find_balanced(args.max_env_steps, 1 if args.quick else 4)
    settings = [Setting("as the preset has it", ()), balanced]
    report.note(balanced_options=list(balanced.options))
    found = {setting.name: bench(report, setting, args) for setting in settings}
    rows = [
        [
            name,
            spread(result["collect_s"]),
            spread(result["update_s"]),
            spread(result["inline"], 0),
            spread(result["local"], 0),
            spread(result["gain"]),
            spread(result["bound"]),
            spread(result["share"]),
        ]
        for name, result in found.items()
    ]
    headers = ["setting", "inline collects s", "inline updates s", "inline trained/s"]
    headers += ["local trained/s", "local / inline", "bound", "share of bound"]
    report.table("Local engine against inline engine, trained steps per second", headers, rows)
    for name, result in found.items():
        report.check(f"{name}: share of the bound", median(result["share"]), ">=", SHARE_BOUND)
    equal = found[balanced.name]
    what = "equal sides: how far apart they are"
    report.check(what, median(equal["imbalance"]), "<=", BALANCED_WITHIN)
    report.check("equal sides: local / inline", median(equal["gain"]), ">=", BALANCED_BOUND)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
