"""Figures of gathered gradients: what is on them."""

import json

import pytest

from tests.unit.figures.gathering.made_up_runs import PANELS, gathered_data, made_runs
from tianji.cli.main import main
from tianji.figures import catalogue
from tianji.figures.files import read_data
from tianji.figures.gathering import measure
from tianji.figures.gathering.grid import length_s
from tianji.figures.gathering.panels import COUNTED, FIGURES, SEEDS
from tianji.figures.gathering.picture import band_text


def names(axes):
    return [line.get_label() for line in axes.get_lines() if not line.get_label().startswith("_")]


def draw(name):
    return catalogue.FIGURES[name].draw(gathered_data(name))


def test_a_column_for_each_law_over_time_and_over_rounds():
    above_1, above_2, below_1, below_2 = draw("nigt-1").axes
    assert names(above_1) == ["Rennala NIGT", "synchronous NIGT", "AFedPG (our reconstruction)"]
    assert names(above_2) == names(below_1) == names(below_2) == names(above_1)
    assert [axes.get_xscale() for axes in (above_1, below_1)] == ["linear", "log"]
    assert "n = 3" in above_1.get_title(loc="left")
    assert above_2.get_xlim()[1] == pytest.approx(gathered_data()["points"][1]["length_s"])


def test_medians_are_drawn_and_the_seeds_around_them():
    axes = draw("nigt-1").axes[0]
    (rennala, *_) = axes.get_lines()
    assert rennala.get_ydata()[-1] == 10 + 4 * 2 * 19  # the second of three seeds, round 20
    assert len(axes.collections) == 3


def test_the_ratios_of_times_stand_under_the_panel():
    text = draw("nigt-1").axes[0].get_xlabel()
    assert "sync / rennala: 0.14 (" in text  # equally good rounds, seven of them in the same time
    assert "afedpg / rennala: 0.05 (" in text


def test_two_tasks_are_shown_together_and_each_by_itself():
    figure = draw("nigt-heterogeneous")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert "mean of both tasks" in titles[0] and "n = 2" in titles[0]
    assert "fast" in titles[2] and "slow" in titles[3]
    assert names(figure.axes[0])[0] == "Malenia NIGT"
    assert figure.axes[1].get_xscale() == "log"


def test_who_never_got_there_is_called_so():
    assert band_text(1.25, 26.14, None) == "26.1 (1.25 to never)"


def test_all_of_them_are_figures():
    assert set(FIGURES) == {name for name in catalogue.FIGURES if name.startswith("nigt")}


@pytest.mark.parametrize("name", ["nigt-1", "nigt-heterogeneous"])
def test_each_is_drawn_by_one_command(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "read_data", {name: gathered_data(name)}.__getitem__)
    assert main(["figure", name, "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["path"] == f"{name}.png"
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_measuring_again_says_how_long_it_takes_and_makes_the_same_data(
    tmp_path, monkeypatch, capfd
):
    grid, runs = made_runs(PANELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "whole_grid", lambda: grid)
    monkeypatch.setattr(measure, "FIGURES", {"nigt-1": PANELS})
    monkeypatch.setattr(measure, "make_runs", lambda *_: [])
    monkeypatch.setattr(measure, "read_runs", lambda _: runs)
    assert main(["figure", "nigt-1", "--rerun"]) == 0
    out, told = capfd.readouterr()
    assert out == "nigt-1.png\n"
    assert "nigt-1: about 20 runs and 1 minute" in told
    kept = json.loads((tmp_path / "nigt-1.json").read_text())
    assert kept["points"][0]["curves"] == gathered_data()["points"][0]["curves"]


@pytest.mark.parametrize("name", FIGURES)
def test_the_data_that_comes_with_the_package_is_whole(name):
    data = read_data(name)
    assert data["figure"] == name and data["commit"]
    for panel, point in zip(FIGURES[name], data["points"], strict=True):
        assert point["env"] == panel.task.env
        assert point["law"] == panel.law.label
        assert point["length_s"] == pytest.approx(length_s(panel), abs=1e-3)
        assert tuple(point["curves"]) == panel.methods
        for method, curves in point["curves"].items():
            assert [curve["seed"] for curve in curves] == list(SEEDS)
            more = [exponent for name, exponent in panel.more if name == method]
            sizes = len(panel.counts) if method in COUNTED else 1
            assert len(point["methods"][method]["tried"]) == (5 + len(more)) * sizes
            assert all(len(c["seconds"]) == len(c["return"]) > 15 for c in curves)
