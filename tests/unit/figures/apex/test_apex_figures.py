"""Figures 4 (a) and (b), from made-up data, and how runs become data."""

import json

import pytest

from tests.unit.figures.made_up import content
from tianji.cli.main import main
from tianji.errors import UsageError
from tianji.figures import catalogue
from tianji.figures.apex.picture import draw_returns, draw_throughput
from tianji.figures.apex.runs import curve_of, settled_rates
from tianji.figures.catalogue import FIGURES

PNG = b"\x89PNG"


def record(seconds, **changes):
    return {
        "wall_s": seconds, "env_steps": int(1000 * seconds), "updates": int(10 * seconds),
        "mean_return_100": None if seconds < 10 else -21.0 + seconds / 10,
        "lag_versions": {"mean": 1.0}, "ratio": {"actual": 8.0}, "rates_per_s": {"trained": 8000.0},
        "gpu": {"busy_share": 0.5}, **changes,
    }  # fmt: skip


def run_of(preset, gpu=True):
    records = [record(seconds) for seconds in range(0, 61, 2)]
    records[20]["evaluation"] = {"mean_return": 3.0}
    settled = settled_rates(records)
    if not gpu:
        del settled["gpu_busy_share"]
    summary = {"ratio": {"target": None, "actual": 2.0}, "lag_versions": {"mean": 1.5}}
    return {
        "preset": preset, "seed": 1, "cores": 8, "curve": curve_of(records), "settled": settled,
        "summary": summary,
    }  # fmt: skip


def made_up(gpu="Made-up GPU"):
    points = [run_of(preset, gpu is not None) for preset in ("pong-dqn", "pong-apex")]
    more = {"minutes": 1.0, "side_by_side": True, "gpu": gpu}
    return {**content("tianji-4", points), **more}


@pytest.mark.parametrize("name", ["tianji-4a", "tianji-4b"])
@pytest.mark.parametrize("gpu", ["Made-up GPU", None])
def test_both_are_drawn_from_the_same_data(name, gpu, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "read_data", {"tianji-4": made_up(gpu)}.__getitem__)
    assert main(["figure", name]) == 0
    assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


def test_without_data_it_says_where_data_comes_from(monkeypatch, capfd):
    def refuse(name):
        raise UsageError(f"The data of figure {name} cannot be read: there is none.")

    monkeypatch.setattr(catalogue, "read_data", refuse)
    assert main(["figure", "tianji-4a"]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert "The data of figure tianji-4 cannot be read" in said
    assert "python -m benchmarks.pong.dqn --out tianji-4.json" in said


def test_returns_are_those_of_training_and_of_the_greedy_policy():
    axes = draw_returns(made_up()).axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    trained = lines["TianJi: DQN in its serial ratio"]
    assert trained.get_xdata()[-1] == pytest.approx(58 / 60), "the last one of every five seconds"
    assert trained.get_ydata()[-1] == pytest.approx(-15.2)
    assert list(lines["Ape-X: free-running, prioritised, greedy policy"].get_ydata()) == [3.0]


def test_a_greedy_policy_that_was_never_evaluated_is_not_in_the_legend():
    data = made_up()
    for run in data["points"]:
        run["curve"] = [{**point, "greedy_return": None} for point in run["curve"]]
    names = [text.get_text() for text in draw_returns(data).legends[0].get_texts()]
    assert names == ["TianJi: DQN in its serial ratio", "Ape-X: free-running, prioritised"]


def test_a_share_that_was_not_measured_is_no_zero():
    texts = [text.get_text() for axes in draw_throughput(made_up(None)).axes for text in axes.texts]
    assert texts.count("not measured") == 2
    assert "1,000" in texts and "8,000" in texts


def test_a_curve_has_a_point_every_five_seconds_and_every_evaluation():
    records = [record(seconds) for seconds in range(13)]
    records[7]["evaluation"] = {"mean_return": 2.5}
    found = curve_of(records)
    assert [point["seconds"] for point in found] == [0, 5, 7, 12]
    assert [point["greedy_return"] for point in found] == [None, None, 2.5, None]
    json.dumps(found)


def test_rates_are_those_after_the_first_third():
    slow = [record(seconds, env_steps=0, updates=0) for seconds in range(1, 10)]
    records = [*slow, *(record(seconds) for seconds in range(10, 31))]
    records[-1]["gpu"] = None
    rates = settled_rates(records)
    assert rates["steps_per_s"] == pytest.approx(1000)
    assert rates["updates_per_s"] == pytest.approx(10)
    assert rates["gpu_busy_share"] == pytest.approx(0.5)
    assert settled_rates(records[:1]) is None
    assert settled_rates([]) is None


def test_several_seeds_have_one_entry_in_the_legend_and_one_seed_is_no_claim():
    data = made_up()
    assert "1 seed each: no claim" in FIGURES["tianji-4a"].draw(data).axes[0].get_title(loc="left")
    data["points"] = [{**run, "seed": seed} for seed in (1, 2) for run in data["points"]]
    labels = FIGURES["tianji-4a"].draw(data).axes[0].get_legend_handles_labels()[1]
    assert len(labels) == len(set(labels)) and "TianJi: DQN in its serial ratio" in labels
