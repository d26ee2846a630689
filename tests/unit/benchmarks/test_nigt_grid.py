"""The grid behind the figures of gathered gradients: its quick form, and what the whole one is."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.nigt_grid import bench
from benchmarks.nigt_grid.bench import judge, main
from benchmarks.nigt_grid.grids import of_figures
from tianji.figures.files import read_data
from tianji.figures.gathering.panels import EQUAL, FIGURES, HUMANOID, Panel
from tianji.figures.gathering.picture import band_text

BANDS = re.compile(r"(?:never|-?[\d.]+) \(-?[\d.]+ to (?:never|-?[\d.]+)\)")


@pytest.mark.slow
def test_the_quick_form_tunes_runs_and_shows_every_method(capfd):
    assert main(["--quick"]) == 0
    shown = capfd.readouterr().out
    assert "all runs are there" in shown
    for method in ("rennala-nigt", "malenia-nigt", "sync-nigt", "afedpg"):
        assert f"| {method}" in shown


def test_what_there_is_to_do_is_listed_without_doing_it(capfd):
    assert main(["--list", "--only", "nigt-2"]) == 0
    shown = capfd.readouterr().out
    assert "nigt-2" in shown and "together" in shown and "nigt-1" not in shown


@pytest.mark.slow
def test_the_figures_stay_within_their_budget():
    from tianji.figures.gathering.measure import estimate

    wanted = of_figures()
    panels = [panel for some in wanted.figures.values() for panel in some]
    _, core_seconds = estimate(wanted.grid, panels)
    assert core_seconds < 8 * 3600


@pytest.mark.parametrize(
    ("mine", "verdict"),
    [((1, 5, 6), "met"), ((1, 3, 6), "overlap"), ((1, 2, 3), "MISSED"), ((8, 9, 10), "met")],
)
def test_a_median_is_held_against_the_band_of_the_others(mine, verdict, capfd):
    panel = Panel(HUMANOID, EQUAL, 10, 5, methods=("rennala-nigt", "afedpg"))
    judge(panel, {"ends": {"rennala-nigt": mine, "afedpg": (4, 5, 7)}})
    assert capfd.readouterr().out.startswith(verdict)


def test_the_readme_tells_what_the_data_of_the_figures_say():
    readme = Path(bench.__file__).with_name("README.md").read_text()
    told = Counter(BANDS.findall(readme))
    points = [point for name in FIGURES for point in read_data(name)["points"]]
    bands = [
        band
        for point in points
        for key in ("times_to_target", "ends")
        for band in point[key].values()
    ]
    bands += [band for point in points for some in point["ends_by_task"].values() for band in some]
    assert told == Counter(band_text(*band) for band in bands)
