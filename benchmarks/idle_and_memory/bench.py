"""What waiting roles cost, and whether memory grows.

python -m benchmarks.idle_and_memory.bench                about 12 minutes
python -m benchmarks.idle_and_memory.bench --minutes 2
python -m benchmarks.idle_and_memory.bench --quick
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field

import numpy as np

from benchmarks.harness import Report, parser, say, spread
from benchmarks.idle_and_memory.live_run import LiveRun, Paused
from benchmarks.idle_and_memory.processes import cpu_s, dev_shm_bytes, memfd_bytes, memory

MIB = 2**20
SETTLE_S = 1.0
WARM_UP_SHARE = 0.2
IDLE_BOUND = 0.02
GROWTH_BOUND = 0.02
PLAN_BOUND = 0.02


# --------------------------------------------------------------------------------------- idle


def idle_shares(run: LiveRun, paused_kind: str, window_s: float) -> dict[str, float]:
    """Share of a core that each other role uses while all roles of one kind stand still, so that
    nothing comes from them and there is nothing to do but wait."""
    pids = run.pids()
    paused = [pid for role, pid in pids.items() if role.startswith(paused_kind)]
    waiting = {role: pid for role, pid in pids.items() if pid not in paused}
    with Paused(paused):
        time.sleep(SETTLE_S)
        before, started = {role: cpu_s(pid) for role, pid in waiting.items()}, time.monotonic()
        time.sleep(window_s)
        elapsed = time.monotonic() - started
        return {role: (cpu_s(pid) - before[role]) / elapsed for role, pid in waiting.items()}


def bench_idle(report: Report, args: argparse.Namespace) -> None:
    rounds, window_s = (1, 2.0) if args.quick else (args.rounds, 8.0)
    shares: dict[str, list[float | None]] = {}
    with LiveRun(args.preset) as run:
        for turn in range(rounds):
            for paused_kind in ("learner", "actor"):
                for role, share in idle_shares(run, paused_kind, window_s).items():
                    name = f"{role} while the {paused_kind} stands still"
                    shares.setdefault(name, []).append(share)
                    report.add(name, turn, {"cpu_share": share, "window_s": window_s})
                time.sleep(SETTLE_S)
    percents = {name: [100 * (share or 0.0) for share in found] for name, found in shares.items()}
    rows = [[name, spread(found)] for name, found in percents.items()]
    report.table("Processor use of waiting roles", ["role", "% of a core"], rows)
    for name, found in shares.items():
        worst = max(share or 0.0 for share in found)
        report.check(f"{name}, share of a core", worst, "<=", IDLE_BOUND)


# ------------------------------------------------------------------------------------- memory


@dataclass
class Watched:
    """Samples of one role."""

    seconds: list[float] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    rss: list[int] = field(default_factory=list)

    def after_warm_up(self) -> tuple[np.ndarray, np.ndarray]:
        first = int(len(self.own) * WARM_UP_SHARE)
        return np.array(self.seconds[first:]), np.array(self.own[first:], float)

    def slope_per_minute(self) -> float:
        """Least squares over everything after warm-up, bytes per minute."""
        seconds, own = self.after_warm_up()
        return float(60 * np.polyfit(seconds, own, 1)[0])

    def growth(self) -> float:
        """From the first to the last tenth after warm-up, as a share of what is held."""
        _, own = self.after_warm_up()
        tenth = max(1, len(own) // 10)
        return float(np.median(own[-tenth:]) / np.median(own[:tenth]) - 1)


def watch(run: LiveRun, minutes: float, period_s: float) -> tuple[dict[str, Watched], list[int]]:
    """Sample every role's memory, and what all memfds of the run take."""
    watched: dict[str, Watched] = {}
    shared: list[int] = []
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < 60 * minutes:
        pids = run.pids()
        for role, pid in pids.items():
            now = memory(pid)
            samples = watched.setdefault(role, Watched())
            samples.seconds.append(round(elapsed, 1))
            samples.own.append(now.own)
            samples.rss.append(now.rss)
        shared.append(sum(memfd_bytes(list(pids.values())).values()))
        time.sleep(period_s)
    return watched, shared


def bench_memory(report: Report, args: argparse.Namespace) -> None:
    minutes = 0.2 if args.quick else args.minutes
    say(f"watching memory for {minutes:g} minutes")
    shm_before = dev_shm_bytes()
    with LiveRun(args.preset) as run:
        watched, shared = watch(run, minutes, min(2.0, 60 * minutes / 30))
        segments = memfd_bytes(list(run.pids().values()))
        planned = run.plan["shared_memory_bytes"] + run.plan["policy_board_bytes"]
    rows = []
    for role, samples in watched.items():
        rows.append(
            [
                role,
                f"{samples.rss[-1] / MIB:.1f}",
                f"{samples.own[0] / MIB:.1f}",
                f"{samples.own[-1] / MIB:.1f}",
                f"{samples.slope_per_minute() / MIB:+.3f}",
                f"{samples.growth():+.2%}",
            ]
        )
        report.add(role, 0, {"seconds": samples.seconds, "own": samples.own, "rss": samples.rss})
    headers = ["role", "RSS MiB", "own MiB at first", "own MiB at last", "MiB/min after warm-up"]
    report.table(f"Memory over {minutes:g} minutes", [*headers, "growth"], rows)
    names = {name.partition("#")[0]: size for name, size in segments.items()}
    rows = [[name, f"{size / 1024:.0f}"] for name, size in names.items()]
    rows += [["all", f"{shared[-1] / 1024:.0f}"], ["as planned", f"{planned / 1024:.0f}"]]
    report.table("Shared memory (memfd)", ["segment", "KiB"], rows)
    report.note(memfd_bytes=names, planned_bytes=planned, dev_shm_before=shm_before)
    for role, samples in watched.items():
        report.check(f"{role}: growth of its own memory", samples.growth(), "<=", GROWTH_BOUND)
    off_plan = abs(max(shared) / planned - 1)
    report.check("shared memory, distance from the plan", off_plan, "<=", PLAN_BOUND)
    left = max(0, dev_shm_bytes() - shm_before)
    report.check("bytes left in /dev/shm after the run", left, "<=", 0)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--preset", default="cartpole-ppo")
    made.add_argument("--minutes", type=float, default=10.0)
    made.add_argument("--rounds", type=int, default=5, help="rounds of the idle measurement")
    made.add_argument("--only", choices=("idle", "memory"))
    args = made.parse_args()
    report = Report("idle_and_memory", args)
    if args.only != "memory":
        bench_idle(report, args)
    if args.only != "idle":
        bench_memory(report, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
