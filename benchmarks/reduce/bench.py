"""What adding up gradients costs: updates of several learners, in shared memory and by gloo on the
loopback interface, against as many that know nothing of each other. One core and thread each.

    python -m benchmarks.reduce.bench                          2 learners, about four minutes
    python -m benchmarks.reduce.bench --ranks 7 --networks wide --ways "shared memory"
    python -m benchmarks.reduce.bench --quick
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection

from benchmarks.harness import Report, alternate, median, parser, spread
from benchmarks.reduce.rank import Network, Rank, Turn

NETWORKS = (
    Network("CartPole's", (64, 64), 128),
    Network("wide", (384, 384), 256),
)
APART, TOGETHER = "apart", "together"
MEMORY, GLOO = "shared memory", "gloo"
WIDE_ENOUGH_MS, BOUND = 5.0, 0.8
FORK = multiprocessing.get_context("fork")


def run_rank(
    pipe: Connection,
    cards: list[int],
    parts: list[int],
    rank: int,
    network: Network,
    rounds: int,
    turn_s: float,
) -> None:
    """Send the turns of this rank, and what a bare reduction takes."""
    room = Rank(cards, parts, rank, network)
    num_versions = room.versions_that_take(turn_s)
    turns: dict[str, list[Turn]] = {APART: [], TOGETHER: []}
    for name, _ in alternate([APART, TOGETHER], range(rounds)):
        turns[name].append(room.turn(name == TOGETHER, num_versions))
    pipe.send((turns, room.bare_ms(200), room.gradient_bytes))


def measure(
    num_ranks: int, network: Network, way: str, rounds: int, turn_s: float
) -> list[tuple[dict[str, list[Turn]], float, int]]:
    """Return what each rank has sent."""
    cards, parts = ([os.memfd_create(n) for _ in range(num_ranks)] for n in ("card", "part"))
    given = parts if way == MEMORY else []
    pipes = [FORK.Pipe(duplex=False) for _ in range(num_ranks)]
    ranks = [
        FORK.Process(target=run_rank, args=(pipe, cards, given, rank, network, rounds, turn_s))
        for rank, (_, pipe) in enumerate(pipes)
    ]
    for process in ranks:
        process.start()
    for _, pipe in pipes:
        pipe.close()
    found = [mine.recv() for mine, _ in pipes]
    for process in ranks:
        process.join()
    for fd in (*cards, *parts):
        os.close(fd)
    return found


def mean_ms(ranks: Sequence[Turn]) -> float:
    """Return the mean over ranks of the time for an update."""
    return statistics.mean(each.update_ms for each in ranks)


def slowest_ms(ranks: Sequence[Turn]) -> float:
    """Return the time for an update if each version took as long as on its slowest rank, and adding
    up took no time: nobody who waits for all can be faster."""
    versions = list(zip(*(each.version_ms for each in ranks), strict=True))
    growth = sum(map(max, versions)) / statistics.mean(sum(each.version_ms) for each in ranks)
    return mean_ms(ranks) * growth


def bench(
    report: Report, num_ranks: int, network: Network, way: str, rounds: int, turn_s: float
) -> list[str]:
    """Return the row of a network; times are means over the ranks of a turn."""
    found = measure(num_ranks, network, way, rounds, turn_s)
    times: dict[str, list[float | None]] = {}
    slowest: list[float | None] = []
    for name in (APART, TOGETHER):
        all_ranks = zip(*(turns[name] for turns, _, _ in found), strict=True)
        for turn, ranks in enumerate(all_ranks):
            times.setdefault(name, []).append(mean_ms(ranks))
            if name == APART:
                slowest.append(slowest_ms(ranks))
            for rank, each in enumerate(ranks):
                report.add(f"{network.name}, {way}, {name}, rank {rank}", turn, each._asdict())
    shares = [
        apart / together if apart and together else None
        for apart, together in zip(times[APART], times[TOGETHER], strict=True)
    ]
    together = found[0][0][TOGETHER]
    waits = zip(*(turns[TOGETHER] for turns, _, _ in found), strict=True)
    reduce_ms = [statistics.mean(each.reduce_ms for each in ranks) for ranks in waits]
    gradient_bytes, bare_ms = found[0][2], max(bare for _, bare, _ in found)
    update_ms = median(times[APART]) or 0.0
    report.add(f"{network.name}, {way}, bare", 0, {"reduce_ms": bare_ms, "bytes": gradient_bytes})
    if way == MEMORY and update_ms >= WIDE_ENOUGH_MS:
        text = f"{network.name}: updates together over updates apart"
        report.check(text, median(shares), ">=", BOUND)
    return [
        f"{network.name} ({'-'.join(map(str, network.hidden))}, minibatch {network.minibatch})",
        way,
        f"{gradient_bytes:,}",
        f"{together[-1].other_bytes:.0f}",
        f"{bare_ms:.2f}",
        spread(times[APART]),
        spread(slowest),
        spread(times[TOGETHER]),
        spread(reduce_ms),
        spread(shares),
    ]


HEADERS = [
    "network",
    "by",
    "bytes per reduction",
    "other bytes per update",
    "bare reduction, ms",
    "update apart, ms",
    "slowest of each version, ms",
    "update together, ms",
    "of it in reductions, ms",
    "rate together / apart",
]


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--rounds", type=int, default=10)
    made.add_argument("--ranks", type=int, default=2, help="learners, each on a core of its own")
    names, ways = [network.name for network in NETWORKS], (MEMORY, GLOO)
    made.add_argument("--networks", nargs="+", default=names, choices=names)
    made.add_argument("--ways", nargs="+", default=list(ways), choices=ways)
    args = made.parse_args()
    if args.ranks > len(os.sched_getaffinity(0)):
        made.error(f"--ranks {args.ranks} is more than the cores of this machine.")
    report = Report("reduce", args)
    rounds, turn_s = (2, 0.2) if args.quick else (args.rounds, 2.0)
    rows = [
        bench(report, args.ranks, network, way, rounds, turn_s)
        for network in NETWORKS
        for way in args.ways
        if network.name in args.networks
    ]
    report.table(f"{args.ranks} learners, one thread each", HEADERS, rows)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
