"""What the pages on gathered gradients show is what the simulator finds."""

import re
import runpy

import pytest

from tests.docs import pages
from tests.docs.pages import DOCS
from tianji.cli.main import main
from tianji.cli.verbs.simulate import simulate

PAGE = DOCS / "concepts/gathering.md"
PICTURE = DOCS / "pictures/gathering.py"
_ROW = re.compile(r"^\| `([\w-]+)` \| (\d*) ?\| ([\d.]+) \| ([\d.]+) \| (\d+) % \|$", re.MULTILINE)
_SHOWN = re.compile(r"^\$ tianji (simulate [^\n]+)\n(.+)", re.DOTALL)


def shown():
    every = [block.text for page in pages.PAGES for block in pages.blocks(page)]
    return [found.groups() for text in every if (found := _SHOWN.match(text))]


@pytest.mark.parametrize(("command", "told"), shown(), ids=[command for command, _ in shown()])
def test_what_a_page_shows_of_simulate_is_what_it_prints(command, told, capfd):
    assert main(command.split()) == 0
    printed = capfd.readouterr()
    text = printed.out if "--json" in command else printed.err
    assert [line.split() for line in text.splitlines()] == [
        line.split() for line in told.splitlines()
    ]


def report(algorithm, *options):
    return simulate(algorithm, *options).report


@pytest.mark.parametrize("row", _ROW.findall(PAGE.read_text()), ids=" ".join)
def test_the_table_of_dropped_work_is_simulated(row):
    algorithm, m, versions, gradients, dropped = row
    asked = ["--times", "sqrt", "--actors", "10", *(["--m", m] if m else [])]
    found = report(algorithm, *asked)
    begun = found["gradients"] + found["discarded"]
    assert f"{found['rounds_per_s']:.3f}" == versions
    assert f"{found['gradients_per_s']:.2f}" == gradients
    assert f"{100 * found['discarded'] / begun:.0f}" == dropped


def test_a_straggler_costs_what_the_page_says():
    asked = ["--times", "straggler", "--actors", "5"]
    rennala, sync = report("rennala-nigt", *asked, "--m", "5"), report("sync-nigt", *asked)
    times = round(rennala["rounds_per_s"] / sync["rounds_per_s"])
    assert f"{times} times as many versions" in PAGE.read_text()


def test_a_small_m_wastes_what_the_page_says():
    asked = ["--times", "sqrt", "--actors", "100"]
    rennala, sync = report("rennala-nigt", *asked, "--m", "20"), report("sync-nigt", *asked)
    dropped = rennala["discarded"] / (rennala["discarded"] + rennala["gradients"])
    assert f"{100 * dropped:.0f} % of the gradients are dropped" in PAGE.read_text()
    assert round(sync["gradients_per_s"] / rennala["gradients_per_s"]) == 2


def test_the_picture_draws_rounds_of_the_rules():
    picture = runpy.run_path(str(PICTURE))
    rennala = picture["rounds_of"]("first", 3)
    bars = list(picture["gathered_bars"](rennala, one_each=False))
    assert [done.closed_s for done in rennala] == [5.0, 10.0, 15.0]
    assert sum(bar.is_used for bar in bars) == 3 * picture["M"]
    assert {bar.actor for bar in bars if not bar.is_used} == {1, 2, 3}
    lags = [bar.lag for bar in picture["arriving_bars"](picture["rounds_of"]("every", 40))]
    assert f"{max(lags)} versions here" in PAGE.read_text()
    assert picture["OUTPUT"].is_file()
    assert len(picture["draw"]().axes) == len(picture["RULES"])
