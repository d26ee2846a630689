"""Publishes the finished runs: the package's results, docs/zoo.md and its pictures.

python -m benchmarks.zoo.publish
"""

from __future__ import annotations

import json
import sys

from benchmarks.harness import ROOT
from benchmarks.zoo.bench import LEARN, WALL_TIME
from benchmarks.zoo.page import make_page
from benchmarks.zoo.pictures import draw_all
from benchmarks.zoo.runs import Runs
from benchmarks.zoo.summary import make_zoo
from benchmarks.zoo.workers import HERE
from tianji.zoo.evidence import count_verdicts

RESULTS = ROOT / "src" / "tianji" / "zoo" / "results.json"
PAGE = ROOT / "docs" / "zoo.md"


def main() -> int:
    learnt, timed = Runs(HERE / "results" / LEARN), Runs(HERE / "results" / WALL_TIME)
    zoo = make_zoo(learnt, timed)
    RESULTS.write_text(json.dumps(zoo, indent=1) + "\n")
    PAGE.write_text(make_page(zoo))
    draw_all(zoo, learnt, ROOT / "docs" / "pictures")
    print(f"{len(zoo['rows'])} rows. {count_verdicts(zoo['rows'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
