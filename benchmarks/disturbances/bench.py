"""How fast a run finds its balance again after it was disturbed, and what it loses.

    python -m benchmarks.disturbances.bench            3 rounds, about 3 minutes
    python -m benchmarks.disturbances.bench --quick

Four actors and a learner, all as processes, PPO on CartPole with environments and a learner whose
speeds can be changed while they run (slowed.py).
"""

from __future__ import annotations

import sys
from dataclasses import asdict

from benchmarks.disturbances.stage import Phase, Played, play
from benchmarks.disturbances.tape import Answer, judge
from benchmarks.harness import Report, median, parser, say, spread

SETTLED_BOUND_S = 10.0
RATIO_BOUND = 0.02
SETTLE_S = 4.0
PHASES = (
    Phase("half of the actors killed", lambda stage: stage.kill_half(), 10.0),
    Phase("learner 2 times slower", lambda stage: stage.speeds.set(learner=2.0), 8.0),
    Phase("learner as before", lambda stage: stage.speeds.set(), 8.0),
    Phase("environments 5 times slower", lambda stage: stage.speeds.set(environments=5.0), 8.0),
    Phase("environments as before", lambda stage: stage.speeds.set(), 8.0),
)
HALF_GONE_S = (0.2, 1.2)
"""After the kill: the successors are still starting."""


def judge_all(played: Played) -> dict[str, Answer]:
    return {name: judge(played.tape, *mark) for name, mark in played.marks.items()}


def totals_of(played: Played) -> dict[str, float]:
    """What concerns the whole script."""
    began_s, _ = played.marks[PHASES[0].name]
    start_s, end_s = (began_s + after_s for after_s in HALF_GONE_S)
    last = played.tape.samples[-1]
    return {
        "steps/s while half are gone": played.tape.rate(start_s, end_s),
        "unrolls sent": last.sent,
        "unrolls lost": played.tape.lost(),
        "unrolls discarded": last.discarded,
        "longest send, ms": 1e3 * played.longest_send_s,
        "restarts": played.outcome["restarts"],
    }


def row_of(name: str, answers: list[Answer]) -> list[str]:
    return [
        name,
        spread([answer.rate_before for answer in answers], 0),
        spread([answer.rate_after for answer in answers], 0),
        spread([answer.settled_s for answer in answers]),
        spread([100 * answer.overshoot for answer in answers], 1),
        spread([answer.lag_after for answer in answers]),
        str(max(answer.highest_lag for answer in answers)),
        f"{max(answer.ratio_error for answer in answers):.4f}",
    ]


def check(report: Report, name: str, answers: list[Answer]) -> None:
    settled_s = median([answer.settled_s for answer in answers])
    report.check(f"{name}: settled after s", settled_s, "<=", SETTLED_BOUND_S)
    error = max(answer.ratio_error for answer in answers)
    report.check(f"{name}: ratio error", error, "<=", RATIO_BOUND)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=3)
    args = made.parse_args()
    report = Report("disturbances", args)
    answers: dict[str, list[Answer]] = {phase.name: [] for phase in PHASES}
    totals: dict[str, list[float | None]] = {}
    for seed in range(1 if args.quick else args.rounds):
        played = play(PHASES, SETTLE_S, seed)
        judged, whole = judge_all(played), totals_of(played)
        figures = {name: asdict(answer) for name, answer in judged.items()}
        report.add("tianji", seed, {"answers": figures, **whole, "events": list(played.events)})
        for name, answer in judged.items():
            answers[name].append(answer)
        for name, value in whole.items():
            totals.setdefault(name, []).append(value)
        say(f"round {seed}: {whole['unrolls sent']} unrolls sent")
    headers = ["disturbance", "steps/s before", "steps/s after", "settled after s", "overshoot %"]
    headers += ["mean lag after", "highest lag", "largest ratio error"]
    rows = [row_of(name, found) for name, found in answers.items()]
    report.table("Each disturbance, and how the run answered", headers, rows)
    rows = [[name, spread(values, 1)] for name, values in totals.items()]
    report.table("The whole script", ["figure", "value"], rows)
    for name, found in answers.items():
        check(report, name, found)
    report.check("unrolls lost", max(filter(None, totals["unrolls lost"]), default=0), "<=", 0)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
