"""How many seeded mutations of the source do the tests of the mutated room catch?

python -m benchmarks.mutations.bench --list              the 60 mutations of HEAD
python -m benchmarks.mutations.bench --jobs 2            run them; stop and continue at any time
python -m benchmarks.mutations.bench --rooms buffer learner
python -m benchmarks.mutations.bench --replay OLD.json   the mutations of an earlier result
python -m benchmarks.mutations.bench --compare OLD.json  only show both, by room
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from benchmarks.code_lines import commit_sources, room_of
from benchmarks.harness import ROOT, format_table, say
from benchmarks.mutations.book import Book, Entry, room_rows
from benchmarks.mutations.replay import newly_surviving, replayed
from benchmarks.mutations.room_tests import find_tests
from benchmarks.mutations.selection import select
from benchmarks.mutations.sites import Site, find_sites
from benchmarks.mutations.trial import Copy, Trial

RESULTS = ROOT / "benchmarks" / "mutations" / "results"
SHORTEST_LIMIT_S = 60.0
TIMES_BASELINE = 3.0  # a mutated room that takes longer than this hangs


class Runner:
    """Gives each mutation a free copy of the tree."""

    def __init__(self, commit: str, book: Book, scratch: Path, jobs: int, limit_s: float) -> None:
        self._book = book
        self._limit_s = limit_s
        self._jobs = jobs
        self._free: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            self._free.put(Copy(commit, scratch / str(number)))

    def run(self, sites: list[Site]) -> None:
        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                list(pool.map(self._baseline, dict.fromkeys(room_of(site.file) for site in sites)))
                list(pool.map(self._mutate, sites))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _baseline(self, room: str) -> None:
        """Run a room's tests without a mutation once: a room that fails anyway catches nothing."""
        if self._book.baseline(room) is not None:
            return
        copy = self._free.get()
        try:
            trial = copy.run(find_tests(room, copy.folder), self._limit_s)
        finally:
            self._free.put(copy)
        say(f"{room} without a mutation: {trial.outcome}, {trial.seconds:.0f} s")
        if trial.outcome in ("passed", "no tests"):
            self._book.add_baseline(room, trial)
        else:
            say(f"  its mutations are left out; first failure: {trial.first_failure}")

    def _mutate(self, site: Site) -> None:
        baseline = self._book.baseline(room_of(site.file))
        if baseline is None:
            return
        limit_s = min(self._limit_s, max(SHORTEST_LIMIT_S, TIMES_BASELINE * baseline.seconds))
        copy = self._free.get()
        try:
            trial = copy.run_mutated(site, find_tests(room_of(site.file), copy.folder), limit_s)
        finally:
            self._free.put(copy)
        entry = self._book.add(site, trial)
        say(f"{'caught' if entry['caught'] else 'SURVIVED'}  {site.id}  ({_why(trial)})")


def _why(trial: Trial) -> str:
    return f"{trial.first_failure or trial.outcome}, {trial.seconds:.0f} s"


def all_sites(commit: str) -> list[Site]:
    return [site for file, source in commit_sources(commit) for site in find_sites(file, source)]


def show(entries: list[Entry], before: list[Entry]) -> None:
    headers = ["room", "mutations", "caught"]
    if before:
        headers += ["mutations before", "caught before"]
    print(format_table(headers, room_rows(entries, before)))
    survivors = [entry for entry in entries if not entry["caught"]]
    for entry in survivors:
        print(f"survived: {entry['id']} (line {entry['line']})\n  {change_text(entry)}")
    for entry in newly_surviving(entries, before):
        print(f"CAUGHT BEFORE, SURVIVES NOW: {entry['id']}")


def change_text(change: Entry) -> str:
    before, after = (" ".join(change[key].split()) for key in ("before", "after"))
    return f"{before[:70]}  ->  {after[:70]}"


def arguments(argv: list[str] | None) -> argparse.Namespace:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--commit", default="HEAD", help="the commit to mutate")
    made.add_argument("--count", type=int, default=60)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--rooms", nargs="+", help="only the mutations of these rooms")
    made.add_argument("--jobs", type=int, default=1, help="mutations at the same time")
    made.add_argument("--limit-s", type=float, default=600.0, help="longest time of one trial")
    made.add_argument("--stop-after", type=int, help="run this many and stop; continue later")
    made.add_argument("--list", action="store_true", help="show the mutations, run nothing")
    made.add_argument("--replay", type=Path, metavar="OLD", help="mutate as in this result")
    made.add_argument("--compare", type=Path, metavar="OLD", help="show beside it, run nothing")
    return made.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", args.commit],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    old = args.replay or args.compare
    before: list[Entry] = json.loads(old.read_text())["mutations"] if old else []
    sites = all_sites(commit)
    chosen = replayed(sites, before) if args.replay else select(sites, args.count, args.seed)
    if args.replay:
        print(f"{len(chosen)} of {len(before)} mutations of {old.name} exist in this tree")
    if args.rooms:
        chosen = [site for site in chosen if room_of(site.file) in args.rooms]
    kind = f"replay-{args.replay.stem}" if args.replay else f"seed{args.seed}"
    path = RESULTS / f"{commit}-{kind}.json"
    book = Book(path, {"commit": commit, "kind": kind, "count": args.count})
    remaining = [site for site in chosen if book.find(site) is None]
    if args.list:
        for site in chosen:
            entry = book.find(site)
            state = "" if entry is None else " [caught]" if entry["caught"] else " [SURVIVED]"
            print(f"{site.id} (line {site.line}){state}\n  {change_text(vars(site))}")
        print(f"{len(chosen)} mutations, {len(remaining)} not run yet")
        return 0
    if not args.compare and remaining:
        with tempfile.TemporaryDirectory(prefix="mutations-") as scratch:
            runner = Runner(commit, book, Path(scratch), args.jobs, args.limit_s)
            runner.run(remaining[: args.stop_after])
    show(book.mutations, before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
