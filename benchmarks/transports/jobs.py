"""Which transport runs which point, how often and with how many messages; and running it.

The machine's time goes where a bound is held: there everything is repeated five times, elsewhere
twice. Slow transports send fewer messages, and what they took is scaled.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import OTHERS, ROOT, ContestantFailed, run_json, say, tianji_command
from benchmarks.transports.points import KB, MESSAGES, MIDDLE, Point, per_10k_s

OURS = "tianji"
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
CONTESTANT = "benchmarks.transports.contestant"
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

TRIES = 3
POINT_LIMIT_S = 60  # its own process gives up then, and ends what it has started
PROCESS_LIMIT_S = POINT_LIMIT_S + 30

CHECKED_REPEATS, OTHER_REPEATS = 5, 2
RAY_REPEATS = {CHECKED_REPEATS: 3, OTHER_REPEATS: 1}  # it takes seconds to start
CHECKED_AT_MIDDLE = (OURS, "iceoryx2", "iceoryx2-poll", "mpi", "ray")
CHECKED_AT_4K = (OURS, "mp-pipe", "zmq-ipc", "zmq-tcp", "iceoryx2", "iceoryx2-poll")

SLOW = ("ray", "torch-queue", "mp-queue")
FAST = (OURS, "iceoryx2", "iceoryx2-poll", "mpi")
MIN_MESSAGES = 64
MESSAGES_WITH_PAUSE = {1e-3: 2_000, 1e-2: 200}

Figures = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One transport at one point, `repeats` times."""

    transport: str
    point: Point
    repeats: int


def make_job(transport: str, point: Point, is_quick: bool = False) -> Job:
    if is_quick:
        return Job(transport, point, 1)
    point = point.with_messages(num_messages(transport, point))
    return Job(transport, point, num_repeats(transport, point))


def num_messages(transport: str, point: Point) -> int:
    """10,000, or what a transport of that kind moves in about two seconds."""
    if point.sample_time_s:
        return MESSAGES_WITH_PAUSE[point.sample_time_s]
    if transport == OURS:
        return MESSAGES
    if transport in SLOW:
        most, max_bytes = MESSAGES // 10, 5e8
    else:
        most, max_bytes = MESSAGES, 1e10 if transport in FAST else 2.5e9
    return max(MIN_MESSAGES, min(most, int(max_bytes) // point.size_bytes))


def num_repeats(transport: str, point: Point) -> int:
    if transport == OURS:
        return CHECKED_REPEATS
    is_checked = not point.sample_time_s and (
        (point.size_bytes == MIDDLE and transport in CHECKED_AT_MIDDLE)
        or (point.size_bytes == 4 * KB and transport in CHECKED_AT_4K)
    )
    repeats = CHECKED_REPEATS if is_checked else OTHER_REPEATS
    return RAY_REPEATS[repeats] if transport == "ray" else repeats


def installed_peers() -> dict[str, str | None]:
    """Versions by transport, None where it is not installed."""
    if not PEERS_PYTHON.exists():
        return {}
    found = run_json(
        [PEERS_PYTHON, "-m", CONTESTANT, "--list"], timeout_s=PROCESS_LIMIT_S, env=ENVIRONMENT
    )
    return {name: version for name, version in found.items() if name not in ("process_s", OTHERS)}


def run_job(job: Job) -> Figures:
    """The figures of one run, with how many tries failed before it; `failed` when all did."""
    error: Exception | None = None
    for failed_tries in range(TRIES):
        try:
            return {**_run_once(job), "failed_tries": failed_tries}
        except (ContestantFailed, subprocess.TimeoutExpired) as caught:
            error = caught
            say(f"{job.transport}, {job.point.label}: {error}")
    return {"transport": job.transport, "failed": str(error), "failed_tries": TRIES}


def _run_once(job: Job) -> Figures:
    figures = run_json(_command(job), timeout_s=PROCESS_LIMIT_S, env=ENVIRONMENT)
    if job.transport == "ray":
        del figures[OTHERS]  # Ray's daemons are its own, but are not its children
    messages = job.point.messages
    if figures["received"] != messages:
        raise ContestantFailed(f"{figures['received']} of {messages} messages were received")
    return {
        **figures,
        "transport": job.transport,
        "messages": messages,
        "is_scaled": messages != MESSAGES,
        "collection_s_per_10k": per_10k_s(figures["collection_s"], messages),
    }


def _command(job: Job) -> list[str]:
    point = job.point
    if job.transport != OURS:
        limit = ("--timeout-s", str(POINT_LIMIT_S))
        module = [str(PEERS_PYTHON), "-m", CONTESTANT]
        return [*module, job.transport, "--point", point.to_json(), *limit]
    return tianji_command(
        *("bench", "comm", "--size", str(point.size_bytes), "--actors", str(point.actors)),
        *("--sample-time", f"{point.sample_time_s:g}", "--messages", str(point.messages)),
        *(("--copy",) if point.is_copying else ()),
        *(("--check",) if point.is_check else ()),
        "--json",
    )
