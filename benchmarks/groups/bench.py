"""Groups against unconnected copies and against the simulator: what does the connection cost, and
what do more groups bring?

    python -m benchmarks.groups.bench                              on 16 cores, 45 minutes
    python -m benchmarks.groups.bench --groups 1 2 --cores 1 --seeds 1 2 3 --seconds 8
    python -m benchmarks.groups.bench --quick

The file (--out) is the data of figures tianji-4c, tianji-4d and tianji-6c. It is written after
every contestant; the same command continues it. src/tianji/figures/groups/runs.py makes the runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness import (
    ROOT,
    command_line,
    commit,
    format_table,
    machine_facts,
    median,
    parser,
    spread,
    versions,
)
from tianji.figures.files import Data, Point, write_data
from tianji.figures.groups.runs import COMBINES, PRESETS, TASKS, WIDE, GroupRuns, run_groups

MIXED_BOUND, GRADIENTS_BOUND, SIMULATED_BOUND = 0.9, 0.8, 0.15
RATES = ("received", "trained")


def over_copies(data: Data, point: Point, part: str, name: str) -> float | None:
    """Return a figure over that of the copies which were run in the same turn."""
    same = ("preset", "groups", "seed")
    copies = [c for c in data["copies"] if all(c[key] == point[key] for key in same)]
    if not copies or part not in point or part not in copies[0]:
        return None  # the learners' time was not kept in older files
    return float(point[part][name] / copies[0][part][name])


def shares_of_copies(data: Data, points: Sequence[Point], part: str, name: str) -> list[float]:
    """Return a figure over that of the copies, of all turns that have copies."""
    shares = [over_copies(data, point, part, name) for point in points]
    return [share for share in shares if share is not None]


def simulated_over_real(data: Data, points: Sequence[Point]) -> float | None:
    """Return the median over turns of the simulated rate over the real one of the same turn."""
    same = ("preset", "groups", "combine", "seed")
    return median([
        row["received"] / point["rates"]["received"]
        for point in points
        for row in data["simulated_here"]
        if all(row[key] == point[key] for key in same)
    ])  # fmt: skip


def is_bound(task: str, combine: str) -> float | None:
    """Return the share of the copies' rate that must be reached; None: it is only shown."""
    if combine == "gradients":
        return GRADIENTS_BOUND if task == WIDE else None
    return MIXED_BOUND


def settings_of(data: Data) -> dict[tuple[str, int, str], list[Point]]:
    found: dict[tuple[str, int, str], list[Point]] = {}
    for point in (point for point in data["points"] if "rates" in point):
        found.setdefault((point["preset"], point["groups"], point["combine"]), []).append(point)
    return dict(sorted(found.items()))


def show(data: Data) -> bool:
    """Print the table and what was missed; return whether everything was met."""
    rows, missed = [], []
    for (task, groups, combine), points in settings_of(data).items():
        shares = [shares_of_copies(data, points, "rates", rate) for rate in RATES]
        work = shares_of_copies(data, points, "learners", "update_ms")
        simulated = simulated_over_real(data, points)
        rates = [[point["rates"][rate] for point in points] for rate in RATES]
        rows.append([
            task, str(groups), combine, *(spread(some, 0) for some in rates),
            *(spread(some) for some in shares), spread(work) if work else "-",
            spread([point["time_to_target_s"] for point in points], 1),
            "-" if simulated is None else f"{simulated:.2f}",
        ])  # fmt: skip
        bound, name = is_bound(task, combine), f"{task}, {groups} groups, {combine}"
        for rate, some in zip(RATES, shares, strict=True):
            middle = median(some)
            if bound is not None and (middle is None or middle < bound):
                missed.append(f"{name}: {rate} over copies {middle}, must be {bound}")
        if simulated is not None and abs(simulated - 1) > SIMULATED_BOUND:
            missed.append(f"{name}: simulated over real {simulated:.2f}, must be within 15 %")
    headers = [
        "task", "groups", "combine", "received/s", "trained/s", "received over copies",
        "trained over copies", "work for an update over copies", f"s to {data['target']:g}",
        "simulated over real",
    ]  # fmt: skip
    print(format_table(headers, rows))
    print("\n".join(f"MISSED  {line}" for line in missed) or "all bounds met")
    return not missed


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    made.add_argument("--groups", nargs="+", type=int, default=[1, 2, 4, 7])
    made.add_argument("--cores", type=int, default=2, help="cores of each group")
    made.add_argument("--combine", nargs="+", default=list(COMBINES), choices=COMBINES)
    made.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5], help="turns")
    made.add_argument("--seconds", type=float, default=12.0, help="of each run")
    args = made.parse_args(argv)
    if args.quick:
        args.tasks, args.groups, args.cores = [PRESETS[0]], [1, 2], 1
        args.combine, args.seeds, args.seconds = ["gossip"], [1], 2.0
    out: Path | None = args.out
    if out is None and not args.quick:
        stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
        out = ROOT / "benchmarks" / "groups" / "results" / f"{stamp}.json"
    facts = {
        "figure": "tianji-groups",
        "command": command_line("benchmarks.groups.bench", argv),
        "commit": commit(),
        "machine": machine_facts(),
        "versions": versions(),
    }
    before = json.loads(out.read_text()) if out is not None and out.exists() else None

    commands = [*(before or {}).get("commands", []), facts["command"]]
    earlier = (before or {}).get("commit")
    if earlier and facts["commit"] not in earlier:
        facts["commit"] = f"{earlier}, {facts['commit']} (from command {len(commands)} on)"

    def keep(data: Data) -> None:
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_data({**data, **facts, "commands": commands}, out)

    asked = GroupRuns(
        tasks=args.tasks,
        groups=args.groups,
        cores=args.cores,
        combines=args.combine,
        seeds=args.seeds,
        seconds=args.seconds,
    )
    met = show(run_groups(asked, keep, before))
    return 0 if met or not args.strict else 1


if __name__ == "__main__":
    sys.exit(main())
