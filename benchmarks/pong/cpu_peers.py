"""Compare the speed of Pong PPO on a machine without a GPU: TianJi, its peers, and the bound.

    benchmarks/pong/setup_peers.sh                       once
    python -m benchmarks.pong.cpu_peers                  3 rounds of 60 s each, about 40 minutes
    python -m benchmarks.pong.cpu_peers --contestants tianji sb3 --rounds 1
    python -m benchmarks.pong.cpu_peers --quick

Everybody trains the Nature-CNN in float32 with 8 environments x 128 steps, 4 epochs and minibatches
of 256, frame skip 4, 84 x 84 grey, 4 stacked frames, on two threads or processes. The figure is
agent steps per second between the end of the first and the end of the last iteration within the
given seconds. Contestants take turns; medians count, and of each system its best variant.

The bound follows from emulator, inference and update alone, measured in the same run:
cores / (core-seconds per agent step of the three together), see parts.py.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness import (
    OTHERS,
    ROOT,
    ContestantFailed,
    Report,
    alternate,
    median,
    parser,
    ratio,
    run_json,
    say,
    spread,
    train,
)
from benchmarks.pong.parts import measure_parts
from benchmarks.pong.ppo import Settings
from benchmarks.pong.reporting import make_report

PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
SAMPLE_FACTORY_PYTHON = ROOT / ".peers" / "sample-factory" / "bin" / "python"
START_UP_LIMIT_S = 180.0
BOUND = "bound"

Figures = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    """One row of the table; the best variant of a family counts."""

    name: str
    family: str
    run: Callable[[int], Figures]


def tianji(settings: Settings, seconds: float) -> Callable[[int], Figures]:
    """TianJi's command; this is the one place that names it."""
    arguments = {
        "--env": "ALE/Pong-v5",
        "--algorithm": "ppo",
        "--num-envs": settings.num_envs,
        "--unroll-length": settings.num_steps,
        "--epochs": settings.epochs,
        "--minibatch-size": settings.minibatch,
        "--learning-rate": settings.learning_rate,
        "--target-kl": "none",
        "--model.precision": "float32",
        "--max-wall-s": seconds,
    }

    def run(seed: int) -> Figures:
        words = [str(word) for pair in arguments.items() for word in pair]
        summary = train(*words, "--seed", str(seed), timeout_s=seconds + START_UP_LIMIT_S)
        trained = [line for line in summary["metrics"] if line["version"] > 0]
        return {**summary, "marks": [(line["wall_s"], line["env_steps"]) for line in trained]}

    return run


def peer(
    script: str, settings: Settings, seconds: float, *variant: str, python: Any = PEERS_PYTHON
) -> Callable[[int], Figures]:
    """A script of peers/ in its virtual environment."""
    arguments = {
        "--seconds": seconds,
        "--num-envs": settings.num_envs,
        "--num-steps": settings.num_steps,
        "--epochs": settings.epochs,
        "--minibatch": settings.minibatch,
    }

    def run(seed: int) -> Figures:
        words = [str(word) for pair in arguments.items() for word in pair]
        command = [python, "-m", f"benchmarks.pong.peers.{script}", *words, *variant]
        figures = run_json(
            [*command, "--seed", str(seed)], timeout_s=seconds + START_UP_LIMIT_S, cwd=ROOT
        )
        if script == "rllib":
            del figures[OTHERS]  # Ray's daemons are its own, but are not its children
        return figures

    return run


def contestants(args: argparse.Namespace, settings: Settings) -> list[Contestant]:
    """Return everybody who can run here; say who cannot."""
    seconds = args.seconds
    found = [
        Contestant("tianji", "tianji", tianji(settings, seconds)),
        Contestant(
            "hand-written loop, ALE",
            "hand",
            peer("hand_loop", settings, seconds, "--emulator", "ale", python=sys.executable),
        ),
    ]
    if PEERS_PYTHON.exists():
        found += [
            Contestant(name, family, peer(script, settings, seconds, *variant))
            for name, family, script, *variant in (
                ("hand-written loop, EnvPool", "hand", "hand_loop", "--emulator", "envpool"),
                ("sb3, DummyVecEnv", "sb3", "sb3", "--workers", "dummy"),
                ("sb3, SubprocVecEnv", "sb3", "sb3", "--workers", "subproc"),
                ("rllib, 2 runners x 4", "rllib", "rllib"),
            )
        ]
    if SAMPLE_FACTORY_PYTHON.exists():
        found += [
            Contestant(
                f"sample-factory, {mode}, 2 workers x 4",
                "sample-factory",
                peer(
                    *("sample_factory", settings, seconds, "--mode", mode),
                    python=SAMPLE_FACTORY_PYTHON,
                ),
            )
            for mode in ("sync", "async")
        ]
    families = {contestant.family for contestant in found}
    for missing in sorted(set(args.contestants) - families):
        say(f"{missing} is not installed: run benchmarks/pong/setup_peers.sh")
    return [contestant for contestant in found if contestant.family in args.contestants]


def bound(settings: Settings, seconds: float) -> Contestant:
    def run(_seed: int) -> Figures:
        parts = measure_parts(settings, min(5.0, seconds / 10))
        return {**asdict(parts), "steps_per_s": parts.bound_steps_per_s}

    return Contestant(BOUND, BOUND, run)


def rate(marks: Sequence[Sequence[float]]) -> float | None:
    """Return agent steps per second between the first and the last mark; None with fewer than 2."""
    if len(marks) < 2:
        return None
    (first_s, first_steps), (last_s, last_steps) = marks[0], marks[-1]
    return (last_steps - first_steps) / (last_s - first_s)


def measure(
    report: Report, all_contestants: Sequence[Contestant], rounds: int
) -> dict[str, list[float | None]]:
    """Run everybody in turns; a contestant that fails says so, and the others go on."""
    rates: dict[str, list[float | None]] = {each.name: [] for each in all_contestants}
    for contestant, seed in alternate(all_contestants, range(1, rounds + 1)):
        try:
            figures = contestant.run(seed)
        except (ContestantFailed, subprocess.TimeoutExpired) as error:
            say(f"{contestant.name}: {error}")
            figures = {"failed": str(error)}
        if "steps_per_s" not in figures:
            figures["steps_per_s"] = rate(figures.get("marks", ()))
        report.add(contestant.name, seed, figures)
        rates[contestant.name].append(figures["steps_per_s"])
        say(f"{contestant.name}, round {seed}: {figures['steps_per_s']} agent steps/s")
    return rates


def median_rate(rates: Sequence[float | None]) -> float:
    """Return the median; a turn that failed counts as 0 steps/s."""
    return median([value or 0.0 for value in rates]) or 0.0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    everybody = ["tianji", "hand", "sb3", "rllib", "sample-factory"]
    made = parser(__doc__ or "")
    made.add_argument("--seconds", type=float, default=60.0, help="training time of each turn")
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--contestants", nargs="+", choices=everybody, default=everybody)
    args = made.parse_args(argv)
    if args.quick:
        args.seconds, args.rounds = 4.0, 1
    return args


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments(argv)
    settings = Settings(num_envs=8, num_steps=128, minibatch=256, learning_rate=2.5e-4)
    if args.quick:
        settings = Settings(num_envs=8, num_steps=8, minibatch=32, learning_rate=2.5e-4)
    report = make_report("cpu_peers", args)
    report.note(settings=asdict(settings))
    field = contestants(args, settings)
    rates = measure(report, [*field, bound(settings, args.seconds)], args.rounds)
    best = {
        family: max(median_rate(rates[each.name]) for each in field if each.family == family)
        for family in {each.family for each in field}
    }
    ours, peers = best.get("tianji"), [best[name] for name in best if name != "tianji"]
    best_peer, limit = max(peers, default=None), median_rate(rates[BOUND])
    rows = []
    for name, values in rates.items():
        to_peer, to_bound = (ratio(median_rate(values), other) for other in (best_peer, limit))
        shown = ["-" if value is None else f"{value:.2f}" for value in (to_peer, to_bound)]
        rows.append([name, str(len(values)), spread(values, 0), *shown])
    title = f"Pong PPO on the CPU: {settings.num_envs} x {settings.num_steps}, float32"
    report.table(title, ["contestant", "runs", "agent steps/s", "x best peer", "x bound"], rows)
    if ours is not None:
        report.check("tianji / best peer", ratio(ours, best_peer), ">=", 1.3)
        report.check("tianji / bound", ratio(ours, limit), ">=", 0.85)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
