"""Make the data of figures tianji-4c, tianji-4d and tianji-6c: groups on this machine.

    python -m benchmarks.groups.figure --groups 1 2 4 7 --cores 2       on 16 cores, 50 minutes
    python -m benchmarks.groups.figure --groups 1 2 --cores 1 --seeds 3 --seconds 8
    python -m benchmarks.groups.figure --quick

Each setting is run for a given time, whose rates count, and until the mean return is 300; more
machines like this one are simulated. The file is written after every run, so that a stop costs one
run. The package draws from src/tianji/figures/data/tianji-groups.json.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.harness import (
    ROOT,
    command_line,
    commit,
    format_table,
    machine_facts,
    parser,
    versions,
)
from tianji.figures.files import Data, write_data
from tianji.figures.groups.runs import COMBINES, PRESETS, GroupRuns, run_groups


def table(data: Data) -> str:
    rows = [
        [
            point["preset"], str(point["groups"]), point["combine"], str(point["seed"]),
            f"{point['rates']['received']:,.0f}", f"{point['rates']['trained']:,.0f}",
            "never" if point["time_to_target_s"] is None else f"{point['time_to_target_s']:.1f}",
        ]
        for point in data["points"]
    ]  # fmt: skip
    headers = ["preset", "groups", "combine", "seed", "received/s", "trained/s", "s to target"]
    return format_table(headers, rows)


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--presets", nargs="+", default=list(PRESETS))
    made.add_argument("--groups", nargs="+", type=int, default=[1, 2, 4, 7])
    made.add_argument("--cores", type=int, default=2, help="cores of each group")
    made.add_argument("--combine", nargs="+", default=list(COMBINES), choices=COMBINES)
    made.add_argument("--seeds", type=int, default=5, help="runs of each setting")
    made.add_argument("--seconds", type=float, default=12.0, help="of the runs for rates")
    args = made.parse_args(argv)
    if args.quick:
        args.presets, args.groups, args.cores = ["cartpole-ppo"], [1, 2], 1
        args.combine, args.seeds, args.seconds = ["gossip"], 1, 2.0
    out = args.out
    if out is None and not args.quick:
        stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
        out = ROOT / "benchmarks" / "groups" / "results" / f"figure-{stamp}.json"
    facts = {
        "figure": "tianji-groups",
        "command": command_line("benchmarks.groups.figure", argv),
        "commit": commit(),
        "machine": machine_facts(),
        "versions": versions(),
    }

    def keep(data: Data) -> None:
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_data({**facts, **data}, out)

    asked = GroupRuns(
        presets=args.presets,
        groups=args.groups,
        cores=args.cores,
        combines=args.combine,
        seeds=range(1, args.seeds + 1),
        seconds=args.seconds,
    )
    print(table(run_groups(asked, keep)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
