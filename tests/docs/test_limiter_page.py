"""What the page on balance says about the limiter is what was measured."""

import json
import runpy
from statistics import median

import pytest

from benchmarks.limiter.script import PHASES
from tests.docs.pages import DOCS

PAGE = DOCS / "concepts/balance.md"
RESULTS = DOCS.parent / "benchmarks/limiter/results"
CONTESTANTS = (
    "balance, set-point 1",
    "balance, set-point 1 of at most 2",
    "balance, set-point 4",
    "limiter",
)


@pytest.fixture(scope="module")
def raw():
    found = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    return [kept for kept in found if kept["engine"] == "virtual"][-1]["raw"]


def answers(raw, store, contestant, phase):
    return [
        row["answers"][phase]
        for row in raw
        if (row["store"], row["contestant"]) == (store, contestant)
    ]


def row_of(raw, store, phase):
    cells = [phase]
    for name in CONTESTANTS:
        found = answers(raw, store, name, phase)
        rate = median(answer["settled_rate"] for answer in found)
        cells.append(f"{rate:,.0f}")
        cells.append(str(max(answer["settled_lag_p95"] for answer in found)))
    blocked = median(answer["blocked_share"] for answer in found)
    return f"| {' | '.join(cells)} | {100 * blocked:.0f} % |"


@pytest.mark.parametrize("store", ["queue", "replay"])
def test_the_tables_show_the_newest_results(raw, store):
    page = PAGE.read_text()
    for phase in PHASES:
        assert row_of(raw, store, phase.name) in page


def test_nothing_was_lost_and_the_balance_blocked_nothing(raw):
    for row in raw:
        assert row["unrolls_lost"] == row["unrolls_discarded"] == 0
        if row["set_point"] is not None:
            assert all(answer["blocked"] == 0 for answer in row["answers"].values())


def test_the_picture_can_be_drawn_again():
    script = runpy.run_path(str(DOCS / "pictures/limiter.py"))
    figure = script["draw"](script["newest"]())
    assert len(figure.axes) == 6
