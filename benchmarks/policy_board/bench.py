"""Publishing and picking up policies of 0.1 to 100 MB: one writer, up to 8 readers in processes.

python -m benchmarks.policy_board.bench            about 2 minutes
python -m benchmarks.policy_board.bench --quick
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Report, parser, say
from benchmarks.policy_board.readers import Readers, Word, reading
from tianji.bench.message import aligned_bytes, copy_speeds
from tianji.channels.board import ShmBoardWriter
from tianji.channels.interface import Bytes

SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
NUM_READERS = (1, 2, 4, 8)
LEARNER_PERIOD_S = 0.02
"""Between two posts of the writer that has other things to do."""


class Learner:
    """Posts policies whose every word is their version."""

    def __init__(self, size_bytes: int) -> None:
        self.fd = os.memfd_create("policy")
        self.size_bytes = size_bytes
        self._board = ShmBoardWriter(self.fd, size_bytes)
        self._policy = aligned_bytes(size_bytes)
        self.version = -1

    def post(self) -> float:
        """Seconds that the next version took to publish."""
        self.version += 1
        self._policy.view(np.int64).fill(self.version)
        before_s = time.perf_counter()
        self._board.post(self.version, self._write)
        return time.perf_counter() - before_s

    def _write(self, payload: Bytes) -> None:
        np.copyto(payload, self._policy)

    def post_for(self, duration_s: float, period_s: float = 0.0) -> list[float]:
        """At least 5 posts, one after the other or one in each period."""
        seconds: list[float] = []
        end_s = time.perf_counter() + duration_s
        while time.perf_counter() < end_s or len(seconds) < 5:
            seconds.append(self.post())
            time.sleep(period_s)
        return seconds

    def close(self) -> None:
        del self._board
        os.close(self.fd)


@dataclass
class PickedUp:
    """What the readers did meanwhile."""

    num: int
    seconds: float
    copies: int
    mixed: int

    @staticmethod
    def since(readers: Readers, before: PickedUp | None = None) -> PickedUp:
        now = PickedUp(
            readers.total(Word.PICKED_UP),
            readers.total(Word.COPY_NS) / 1e9,
            readers.total(Word.COPIES),
            readers.total(Word.MIXED),
        )
        if before is None:
            return now
        return PickedUp(
            now.num - before.num,
            now.seconds - before.seconds,
            now.copies - before.copies,
            now.mixed - before.mixed,
        )


def measure(size_bytes: int, num_readers: int, duration_s: float) -> dict[str, float]:
    """Times in seconds, medians for posts and means for pick-ups."""
    learner = Learner(size_bytes)
    learner.post_for(duration_s / 4)  # every page of every copy is touched
    alone = learner.post_for(duration_s)
    with reading(learner.fd, size_bytes, num_readers) as readers:
        readers.wait_until_all(learner.version)
        before = PickedUp.since(readers)
        watched = learner.post_for(duration_s, LEARNER_PERIOD_S)
        calm = PickedUp.since(readers, before)
        before = PickedUp.since(readers)
        storm = learner.post_for(duration_s)
        under_storm = PickedUp.since(readers, before)
        learner.post()
        readers.wait_until_all(learner.version)
    with reading(learner.fd, size_bytes, num_readers, every_byte=True) as readers:
        readers.wait_until_all(learner.version)
        learner.post_for(duration_s)
        every_byte = PickedUp.since(readers)
    learner.close()
    return {
        "post_alone_s": statistics.median(alone),
        "post_read_s": statistics.median(watched),
        "post_storm_s": statistics.median(storm),
        "longest_post_read_s": max(watched),
        "posts": len(watched),
        "storm_posts": len(storm),
        "pick_up_s": calm.seconds / max(1, calm.num),
        "pick_ups": calm.num,
        "storm_pick_ups": under_storm.num,
        "storm_copies": under_storm.copies,
        "mixed": calm.mixed + under_storm.mixed + every_byte.mixed,
        "checked_whole": every_byte.num,
    }


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    sizes = SIZES[:2] if args.quick else SIZES
    counts = (1, 2) if args.quick else NUM_READERS
    duration_s = 0.2 if args.quick else 1.0
    report = Report("policy_board", args)
    cores = len(os.sched_getaffinity(0))
    found: dict[tuple[int, int], dict[str, float]] = {}
    for size_bytes in sizes:
        speed = statistics.median(copy_speeds(size_bytes))
        for count in counts:
            say(f"{size_bytes / 1e6:g} MB, {count} readers")
            figures = measure(size_bytes, count, duration_s)
            figures["copy_s"] = size_bytes / speed
            found[size_bytes, count] = figures
            report.add(f"{size_bytes / 1e6:g} MB, {count} readers", 0, figures)
    _tables(report, found)
    report.check("mixed versions", sum(row["mixed"] for row in found.values()), "<=", 0)
    for (size_bytes, count), row in found.items():
        if count < cores:  # with more, the ratio is one of the scheduler
            what = f"{size_bytes / 1e6:g} MB, {count} readers: post with readers / alone"
            report.check(what, row["post_storm_s"] / row["post_alone_s"], "<=", 2.5)
    return report.finish()


def _tables(report: Report, found: dict[tuple[int, int], dict[str, float]]) -> None:
    def ms(seconds: float) -> str:
        return f"{1e3 * seconds:.3g}"

    report.table(
        "Publishing, in ms",
        ["MB", "readers", "copy", "alone", "share", "read, calm", "read, storm", "posts"],
        [
            [
                f"{size / 1e6:g}", str(count), ms(row["copy_s"]), ms(row["post_alone_s"]),
                f"{row['copy_s'] / row['post_alone_s']:.2f}", ms(row["post_read_s"]),
                ms(row["post_storm_s"]), str(row["storm_posts"]),
            ]
            for (size, count), row in found.items()
        ],
    )  # fmt: skip
    report.table(
        "Picking up",
        ["MB", "readers", "ms", "share", "pick-ups in storm", "lapped", "mixed", "whole"],
        [
            [
                f"{size / 1e6:g}", str(count), ms(row["pick_up_s"]),
                f"{row['copy_s'] / row['pick_up_s']:.2f}", str(row["storm_pick_ups"]),
                str(row["storm_copies"] - row["storm_pick_ups"]), str(row["mixed"]),
                str(row["checked_whole"]),
            ]
            for (size, count), row in found.items()
        ],
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
