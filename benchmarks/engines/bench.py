"""Compare the engines of clusters with the local one, on one host: do Ray and MPI cost anything?

    python -m benchmarks.engines.bench                  5 rounds of PPO on CartPole, 12 s each
    python -m benchmarks.engines.bench --engines local ray --rounds 3
    python -m benchmarks.engines.bench --quick

Every engine runs the same group with the same sizes: experience and policies stay in shared memory,
and only orders, reports and gauges take another way. The rate is that after the first third of a
run. Engines take turns, and medians of the ratios within a round count.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Report, alternate, median, parser, ratio, run_json, say, spread

LOCAL = "local"
ENGINES = (LOCAL, "ray", "mpi")
MUST = 0.95
SETTLED_SHARE = 1 / 3
SIZES = ("--num-actors", "1", "--learner-threads", "1", "--plan.source", "rule")


def command(engine: str, seconds: float) -> list[str]:
    """Return the command of one run."""
    here = Path(sys.executable).parent
    words = [str(here / "tianji"), "train", "cartpole-ppo", "--engine", engine, *SIZES]
    words += ["--target-return", "none", "--max-env-steps", "1000000000"]
    words += ["--max-wall-s", str(seconds), "--json"]
    if engine != "mpi":
        return words
    mpirun = shutil.which("mpirun") or str(here / "mpirun")
    return [mpirun, "--allow-run-as-root", "--bind-to", "none", "-n", "1", *words]


def rate(engine: str, seconds: float) -> float:
    """Train once; return the steps per second once settled."""
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        run_json(command(engine, seconds), timeout_s=seconds + 120, cwd=Path(scratch))
        (run,) = (Path(scratch) / "runs").iterdir()
        lines = (run / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    settled = [record for record in records if record["wall_s"] > SETTLED_SHARE * seconds]
    steps = settled[-1]["env_steps"] - settled[0]["env_steps"]
    return float(steps / (settled[-1]["wall_s"] - settled[0]["wall_s"]))


def main(argv: Sequence[str] | None = None) -> int:
    made = parser(__doc__ or "")
    made.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    made.add_argument("--seconds", type=float, default=12.0, help="length of each run")
    made.add_argument("--rounds", type=int, default=5)
    args = made.parse_args(argv)
    if args.quick:
        args.seconds, args.rounds, args.engines = 3.0, 1, [LOCAL, "mpi"]
    report = Report("engines", args, ("ray", "mpi4py"))
    rates: dict[str, list[float]] = {engine: [] for engine in args.engines}
    for engine, number in alternate(args.engines, range(1, args.rounds + 1)):
        rates[engine].append(rate(engine, args.seconds))
        report.add(engine, number, {"steps_per_s": rates[engine][-1]})
        say(f"{engine}: {rates[engine][-1]:,.0f} steps/s")
    rows = []
    for engine, values in rates.items():
        shares = [
            ratio(mine, local) or 0.0 for mine, local in zip(values, rates[LOCAL], strict=True)
        ]
        rows.append([engine, spread(values, 0), f"{median(shares) or 0:.2f}"])
        if engine != LOCAL:
            report.check(f"{engine} over local, steps/s", median(shares), ">=", MUST)
    report.table("PPO on CartPole, one host", ["engine", "steps/s", "x local"], rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
