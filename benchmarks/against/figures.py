"""What is measured on each side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.against.sides import Side
from benchmarks.harness import OTHERS, run_json, tianji_command, train
from benchmarks.start_up.bench import ours_stamped

START_UP_LIMIT_S = 120.0
MESSAGES = {4: 100_000, 64: 20_000, 512: 4_000}
"""Messages for each size in KB: about a second."""
ROUNDS_ENV_STEPS = 500_000


@dataclass(frozen=True)
class Reading:
    """One measurement, with the cores that other processes used meanwhile where that is known."""

    value: float
    others_cores: float | None = None
    is_reached: bool = True


Measure: TypeAlias = Callable[[Side, int, bool], Reading]
"""Takes the side, the seed, and whether the run is a quick one."""


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    unit: str
    higher_is_better: bool
    measure: Measure


def time_to(preset: str, target: int, max_s: float) -> Measure:
    def measure(side: Side, seed: int, quick: bool) -> Reading:
        limit_s = 3.0 if quick else max_s
        summary = train(
            preset,
            *("--seed", str(seed), "--target-return", str(target), "--max-wall-s", f"{limit_s:g}"),
            timeout_s=limit_s + START_UP_LIMIT_S,
            env=side.variables,
        )
        reached = summary["time_to_target_s"]
        # A run that does not get there took at least this long.
        value = limit_s if reached is None else float(reached)
        return Reading(value, summary[OTHERS], is_reached=reached is not None)

    return measure


def start_up(side: Side, seed: int, quick: bool) -> Reading:
    return Reading(ours_stamped(seed, side.variables))


def comm(size_kb: int) -> Measure:
    def measure(side: Side, seed: int, quick: bool) -> Reading:
        messages = MESSAGES[size_kb] // (10 if quick else 1)
        command = tianji_command(
            *("bench", "comm", "--size", str(size_kb * 1024), "--messages", str(messages), "--json")
        )
        answer = run_json(command, timeout_s=START_UP_LIMIT_S, env=side.variables)
        return Reading(answer["messages_per_s"], answer[OTHERS])

    return measure


def rounds(side: Side, seed: int, quick: bool) -> Reading:
    steps = ROUNDS_ENV_STEPS // (10 if quick else 1)
    summary = train(
        "rennala-nigt",
        *("--seed", str(seed), "--target-return", "none", "--max-env-steps", str(steps)),
        env=side.variables,
    )
    return Reading(summary["gather"]["rounds_per_s"], summary[OTHERS])


FIGURES = (
    Figure("ppo to 300", "s", False, time_to("cartpole-ppo", 300, 90.0)),
    Figure("ppo to 475", "s", False, time_to("cartpole-ppo", 475, 90.0)),
    Figure("dqn to 300", "s", False, time_to("cartpole-dqn", 300, 240.0)),
    Figure("start-up", "s", False, start_up),
    *(Figure(f"comm {size} KB", "messages/s", True, comm(size)) for size in MESSAGES),
    Figure("rennala-nigt", "rounds/s", True, rounds),
)
