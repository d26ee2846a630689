"""From the command to the first environment step, against one `import torch, gymnasium`.

python -m benchmarks.start_up.bench            7 rounds, about a minute
python -m benchmarks.start_up.bench --quick
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness import (
    ROOT,
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
from benchmarks.start_up.stamped import STAMP_VARIABLE

IMPORT = "import torch, gymnasium, time; print(time.monotonic())"
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
PEERS = ROOT / "benchmarks" / "time_to_target" / "peers"
LIMITS = ("--max-env-steps", "512")
FACTORY = "benchmarks.start_up.stamped:make"


def import_alone(seed: int) -> float:
    """From the start of an interpreter to the end of the import."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True
    )
    return float(done.stdout) - started


def ours_reported(seed: int) -> float:
    """What the run says of itself (`start_up_s`)."""
    return float(train("cartpole-ppo", *LIMITS, "--seed", str(seed))["start_up_s"])


def ours_stamped(seed: int, more_variables: Mapping[str, str] | None = None) -> float:
    """The same measured from outside: from before the command is started to the moment that the
    environment itself was stepped. `more_variables` may name another source tree."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stamp = Path(folder) / "first_step"
        variables = {"PYTHONPATH": str(ROOT), **(more_variables or {}), STAMP_VARIABLE: str(stamp)}
        started = time.monotonic()
        train("cartpole-ppo", "--env", FACTORY, *LIMITS, "--seed", str(seed), env=variables)
        return float(stamp.read_text()) - started


def sb3(seed: int) -> float:
    """From the start of the interpreter to the call of learn()."""
    command = [PEERS_PYTHON, PEERS / "sb3_ppo.py", "--seed", seed, "--max-s", 0.1]
    return float(run_json(command, timeout_s=60)["start_up_s"])


def rllib(seed: int) -> float:
    """From the start of the interpreter to the first call of train()."""
    command = [PEERS_PYTHON, PEERS / "rllib_ppo.py", "--seed", seed, "--max-s", 0.1]
    return float(run_json(command, timeout_s=120)["start_up_s"])


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=7)
    args = made.parse_args()
    rounds = 1 if args.quick else args.rounds
    contestants = {
        "import torch, gymnasium": import_alone,
        "tianji, as it reports": ours_reported,
        "tianji, stamped by the environment": ours_stamped,
    }
    if PEERS_PYTHON.exists() and not args.quick:
        contestants |= {"sb3, to learn()": sb3, "rllib, to train()": rllib}
    report = Report("start_up", args)
    results: dict[str, list[float | None]] = {name: [] for name in contestants}
    for name, seed in alternate(list(contestants), range(1, rounds + 1)):
        seconds = contestants[name](seed)
        results[name].append(seconds)
        report.add(name, seed, {"seconds": seconds})
        say(f"{name}: {seconds:.2f} s")
    base = median(results["import torch, gymnasium"])
    rows = [
        [name, str(len(values)), spread(values), f"{ratio(median(values), base):.2f}"]
        for name, values in results.items()
    ]
    report.table("Start-up", ["contestant", "runs", "seconds", "x import"], rows)
    for name in ("tianji, as it reports", "tianji, stamped by the environment"):
        report.check(f"{name} / import", ratio(median(results[name]), base), "<=", 2.0)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
