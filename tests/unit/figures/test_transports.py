"""Figures 5 (a) and (b): looked up in the drawing, not compared as pixels."""

import pytest

from tests.unit.figures.made_up import actors_data, sizes_data
from tianji.figures.transports import draw_actors, draw_sizes, to_series


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_throughput_by_size_has_a_line_per_transport_and_the_limit_of_the_machine():
    left, right = draw_sizes(sizes_data()).axes
    drawn = {"tianji (ours)", "pipe", "ray (RLlib)", "copying memory, one core"}
    assert drawn <= set(lines(left))
    assert left.get_xscale() == left.get_yscale() == right.get_yscale() == "log"
    assert lines(left)["copying memory, one core"].get_ydata()[0] == 13_000
    sizes = list(lines(left)["tianji (ours)"].get_xdata())
    assert sizes == [4 << 10, 64 << 10, 512 << 10, 2 << 20]


def test_only_one_actor_without_a_sample_time_counts_by_size():
    left, _ = draw_sizes(sizes_data()).axes
    assert lines(left)["tianji (ours)"].get_ydata()[0] == pytest.approx(
        4096 / (4096 / 12e9 + 2e-6) / 1.1 / 1e6
    )


def test_times_by_actors_have_a_panel_per_sample_time_and_the_ideal():
    panels = draw_actors(actors_data()).axes
    assert [axes.get_title() for axes in panels] == [
        "sample time 0 ms", "sample time 1 ms (paper: bottleneck beyond 4 actors)",
        "sample time 10 ms (paper: bottleneck with 16)",
    ]  # fmt: skip
    ideal = "ideal: messages x sample time / actors"
    assert ideal not in lines(panels[0])
    assert list(lines(panels[2])[ideal].get_ydata()) == pytest.approx([102, 51, 25.5])


def test_a_point_is_the_median_of_its_repeats_with_their_range():
    points = [
        {"transport": "pipe", "copying": True, "at": 2, "value": value} for value in (5, 1, 2)
    ]
    (series,) = to_series(points, "at", lambda point: point["value"])
    assert series.values == [(2, 1, 2, 5)]
    assert series.label == "pipe"


def test_channels_of_other_systems_stand_only_beside_data_of_such_a_machine():
    data = sizes_data()
    assert "XingTian's channel *" not in lines(draw_sizes(data).axes[0])
    data["machine"] = {"cpu": "AMD EPYC", "cores": 2}
    drawn = draw_sizes(data)
    xingtian = lines(drawn.axes[0])["XingTian's channel *"]
    assert list(xingtian.get_xdata()) == [4 << 10, 64 << 10, 512 << 10, 2 << 20]
    assert xingtian.get_ydata()[2] == pytest.approx(1902 * 524_288 / 1e6, rel=1e-3)
    assert "TianJi authors' channel *" in lines(drawn.axes[0])
    assert "* measured apart" in drawn.legends[0].get_title().get_text()


def test_every_transport_is_named_once_and_dashes_mean_that_the_receiver_copies():
    data = actors_data()
    data["points"] += [{**p, "copying": True} for p in data["points"] if p["transport"] == "tianji"]
    names = [text.get_text() for text in draw_actors(data).legends[0].get_texts()]
    assert names.count("tianji (ours)") == 1 and "dashed: receiver copies" in names
