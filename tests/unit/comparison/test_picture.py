"""The picture of a comparison."""

import pytest

from tests.fakes.comparison import contestant, run_figures
from tianji.comparison import picture
from tianji.comparison.report import style_figures


@pytest.fixture
def figure(tmp_path, monkeypatch):
    """Draw a comparison of these runs and return its figure."""
    drawn = []
    monkeypatch.setattr(picture.style, "save", lambda figure, _path: drawn.append(figure))

    def draw(runs, names=("tianji", "impala"), target=475.0):
        contestants = [contestant(name, target_return=target) for name in names]
        report = {
            "env": "CartPole-v1", "target_return": target, "reference": names[0],
            "seeds": sorted({run["seed"] for run in runs}), "runs": runs,
            "styles": style_figures(contestants, runs), "machine": {"cpu": "a CPU", "cores": 2},
            "commit": "abc123", "time": "2026-11-17T04:00:00", "command": "tianji compare " * 30,
        }  # fmt: skip
        picture.draw(report, tmp_path / "comparison.png")
        return drawn[-1]

    return draw


def runs(*styles, seeds=(1, 2), **changes):
    return [run_figures(style, seed, **changes) for style in styles for seed in seeds]


def test_it_shows_returns_certainty_throughput_lag_and_idle_shares(figure):
    titles = [axes.get_title(loc="left") for axes in figure(runs("tianji", "impala")).axes]
    assert titles == [
        "mean return of the last 100 episodes", "mean return of the last 100 episodes",
        "probability that tianji is better", "throughput, steps per second", "lag, versions",
        "idle share of the time",
    ]  # fmt: skip


def test_curves_have_bands_and_the_legend_has_the_order_of_the_styles(figure):
    shown = figure(runs("impala", "tianji"))
    over_time, over_steps = shown.axes[:2]
    assert [text.get_text() for text in shown.legends[0].get_texts()] == ["tianji", "impala"]
    assert len(over_time.collections) == len(over_steps.collections) == 2
    assert over_time.lines[0].get_xdata()[-1] == pytest.approx(2.4)
    assert over_steps.lines[0].get_xdata()[-1] == 60_000


def test_one_seed_has_no_band_and_is_labelled(figure):
    shown = figure(runs("tianji", "impala", seeds=(1,)))
    assert len(shown.axes[0].collections) == 0
    assert "1 seed (too few for a claim)" in shown.legends[0].get_title().get_text()


def test_a_curve_with_one_point_is_drawn_as_a_marker(figure):
    one_point = run_figures("impala", 1)["curve"][-1:]
    shown = figure([*runs("tianji"), *runs("impala", curve=one_point)])
    for axes in shown.axes[:2]:
        markers = {line.get_label(): line.get_marker() for line in axes.lines}
        assert (markers["tianji"], markers["impala"]) == ("None", "o")


def test_five_seeds_are_not_labelled_as_too_few(figure):
    shown = figure(runs("tianji", "impala", seeds=(1, 2, 3, 4, 5)))
    assert "too few" not in shown.legends[0].get_title().get_text()


def test_rates_are_multiples_of_those_of_the_reference(figure):
    half = {"produced": 15_000.0, "received": 15_000.0, "trained": 9e4, "unique_trained": 1.0}
    shown = figure([*runs("tianji"), *runs("impala", rates_per_s=half)])
    heights = [bar.get_height() for bar in shown.axes[3].patches]
    assert heights == pytest.approx([1.0, 0.5, 1.0, 0.5, 1.0, 1.0])


def markers(axes):
    return {line.get_marker() for line in axes.lines} - {"None"}


def test_no_probability_of_returns_is_drawn_where_runs_stop_at_the_target(figure):
    panel = figure(runs("tianji", "impala")).axes[2]
    assert markers(panel) == {"o"} and panel.get_xlabel() == "circle: sooner at the target"


def test_without_a_target_that_is_reached_the_probability_is_that_of_returns(figure):
    never = runs("tianji", "impala", time_to_target_s=None, steps_to_target=None)
    for target in (475.0, None):
        panel = figure(never, target=target).axes[2]
        assert markers(panel) == {"s"} and panel.get_xlabel() == "square: higher return"


def test_styles_without_runs_and_figures_that_are_unknown_are_left_out(figure):
    nothing = {"mean": None, "p95": None, "max": None}
    shown = figure(
        runs("impala", lag_versions=nothing, curve=[], mean_return_100=None), target=None
    )
    assert len(shown.axes[0].lines) == 0 and len(shown.axes[4].patches) == 0
    unknown = {"busy_share": None, "waited_share": {}}
    shown = figure([*runs("tianji"), *runs("impala", learner=unknown)])
    assert len(shown.axes[5].patches) == 3


def test_it_is_written_as_a_file(tmp_path):
    report = {
        "env": "CartPole-v1", "target_return": 475.0, "reference": "tianji", "seeds": [1, 2],
        "runs": (ran := runs("tianji", "impala")), "machine": {"cpu": "a CPU", "cores": 2},
        "styles": style_figures([contestant("tianji"), contestant("impala")], ran),
        "commit": "abc123", "time": "2026-11-17T04:00:00", "command": "tianji compare",
    }  # fmt: skip
    picture.draw(report, tmp_path / "comparison.png")
    assert (tmp_path / "comparison.png").stat().st_size > 10_000
