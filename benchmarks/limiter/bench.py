"""TianJi's balance and Reverb's samples-per-insert limiter under the same disturbances.

    python -m benchmarks.limiter.bench                   on the virtual clock, a minute
    python -m benchmarks.limiter.bench --engine local    on processes in real time, 15 minutes
    python -m benchmarks.limiter.bench --quick

The learner becomes slower, the environments become slower, an actor dies, and the environments
become faster and slower by turns. `python docs/pictures/limiter.py` draws the newest results of the
virtual clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from benchmarks.disturbances import stage
from benchmarks.disturbances.stage import Phase
from benchmarks.disturbances.tape import Tape
from benchmarks.harness import Report, alternate, median, parser, ratio, say, spread
from benchmarks.limiter import simulated
from benchmarks.limiter.script import PHASES, SETTLE_S, Answer, Marks, follow, judge, series

SET_POINTS = (1, 4)
"""Of our balance: the default, and the lag that the limiter has with a queue."""
WITH_ROOM = (1, 2)
"""The default set-point, and a max_lag that leaves room for bursts: what MOST_ABOVE allows."""
MOST_ABOVE = 1
"""Versions by which the p95 of the lag may be above its set-point; a learner that waits for actors
has less lag."""
LEAST_RATE = 0.97
"""Of the limiter's rate."""
THEIRS = "limiter"
QUICK_PHASES = (PHASES[0], PHASES[4])


class Run(NamedTuple):
    """What one run did."""

    tape: Tape
    marks: Marks
    num_actors: int


class Contestant(NamedTuple):
    """A way to keep actors and learner in step, and how to play the script with it."""

    name: str
    set_point: int | None
    """None: the lag has none."""
    play: Callable[[int, tuple[Phase, ...], float], Run]
    """Arguments: seed, phases, seconds before the first of them."""


Contests = dict[str, list[Contestant]]
"""By the kind of store."""


def on_the_virtual_clock() -> Contests:
    return {
        store: [
            *(_simulated(simulated.paced(store, point), point) for point in SET_POINTS),
            _simulated(simulated.paced(store, *WITH_ROOM), WITH_ROOM[0]),
            _simulated(simulated.limited(store)),
            _simulated(simulated.limited(store, times_wider=4.0)),
        ]
        for store in ("queue", "replay")
    }


def _simulated(contestant: simulated.Contestant, set_point: int | None = None) -> Contestant:
    def play(seed: int, phases: tuple[Phase, ...], settle_s: float) -> Run:
        run = simulated.SimulatedRun(contestant, seed)
        run.run_for(settle_s)
        return Run(run.tape, follow(run, phases, run.clock.elapsed_s), simulated.NUM_ACTORS)

    return Contestant(contestant.name, set_point, play)


def on_processes() -> Contests:
    paced = [
        _real(f"balance, set-point {point}", point, {"lag_target": point, "max_lag": point})
        for point in SET_POINTS
    ]
    return {"queue": [*paced, _real(THEIRS, None, {"balance": "limiter"})]}


def _real(name: str, set_point: int | None, settings: Mapping[str, Any]) -> Contestant:
    def play(seed: int, phases: tuple[Phase, ...], settle_s: float) -> Run:
        played = stage.play(phases, settle_s, seed, settings)
        return Run(played.tape, played.marks, stage.NUM_ACTORS)

    return Contestant(name, set_point, play)


Answers = dict[str, dict[str, list[Answer]]]
"""By contestant and by phase: one for each seed."""


def show(report: Report, store: str, answers: Answers) -> None:
    headers = ["disturbance", "contestant", "steps/s", "steps/s from 5 s on", "p95 lag from 5 s on",
               "highest lag", "blocked inserts", "time blocked, %"]  # fmt: skip
    rows = []
    for phase in answers[THEIRS]:
        for name, found in answers.items():
            each = found[phase]
            rows.append(
                [
                    phase,
                    name,
                    spread([answer.rate for answer in each], 0),
                    spread([answer.settled_rate for answer in each], 0),
                    str(max(answer.settled_lag_p95 for answer in each)),
                    str(max(answer.highest_lag for answer in each)),
                    spread([answer.blocked for answer in each], 0),
                    spread([100 * answer.blocked_share for answer in each], 1),
                ]
            )
    report.table(f"{store}: each disturbance, and how the run answered", headers, rows)


def check(report: Report, store: str, contestants: list[Contestant], answers: Answers) -> None:
    for name, set_point, _ in contestants:
        if set_point is None:
            continue
        what = f"{store}, {name}"
        found = [answer for each in answers[name].values() for answer in each]
        report.check(f"{what}: blocked inserts", sum(answer.blocked for answer in found), "<=", 0)
        above = max(answer.settled_lag_p95 for answer in found) - set_point
        report.check(f"{what}: p95 lag above it, versions", above, "<=", MOST_ABOVE)
        for phase, each in answers[name].items():
            theirs = median([answer.settled_rate for answer in answers[THEIRS][phase]])
            rate = ratio(median([answer.settled_rate for answer in each]), theirs)
            report.check(f"{what}, {phase}: rate / limiter's", rate, ">=", LEAST_RATE)


def measure(
    report: Report,
    store: str,
    contestants: list[Contestant],
    phases: tuple[Phase, ...],
    seeds: int,
) -> Answers:
    """Play the script with every contestant; the first seed of each is kept to be drawn."""
    answers: Answers = {each.name: {phase.name: [] for phase in phases} for each in contestants}
    for contestant, seed in alternate(contestants, range(seeds)):
        run = contestant.play(seed, phases, SETTLE_S)
        found = {name: judge(run.tape, *mark, run.num_actors) for name, mark in run.marks.items()}
        last = run.tape.samples[-1]
        figures = {
            "store": store,
            "set_point": contestant.set_point,
            "answers": {name: asdict(answer) for name, answer in found.items()},
            "unrolls_sent": last.sent,
            "unrolls_lost": run.tape.lost(),
            "unrolls_discarded": last.discarded,
        }
        if seed == 0:
            figures["series"] = series(run.tape, run.marks, run.num_actors)
        report.add(contestant.name, seed, figures)
        for name, answer in found.items():
            answers[contestant.name][name].append(answer)
        say(f"{store}, {contestant.name}, seed {seed}: {last.sent} unrolls, {last.blocked} blocked")
    return answers


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--engine", choices=("virtual", "local"), default="virtual")
    made.add_argument("--seeds", type=int, help="default: 5, and 3 on processes")
    args = made.parse_args()
    is_virtual = args.engine == "virtual"
    seeds = 1 if args.quick else args.seeds or (5 if is_virtual else 3)
    phases = QUICK_PHASES if args.quick else PHASES
    report = Report("limiter", args)
    report.note(engine=args.engine)
    for store, contestants in (on_the_virtual_clock() if is_virtual else on_processes()).items():
        answers = measure(report, store, contestants, phases, seeds)
        show(report, store, answers)
        check(report, store, contestants, answers)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
