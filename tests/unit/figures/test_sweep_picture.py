"""The picture of a sweep: looked up in the drawing, not compared as pixels."""

import warnings

import pytest

from tests.unit.bench.made_up import measured
from tianji.figures.style import save
from tianji.figures.sweep import draw_sweep

KB, MB = 1 << 10, 1 << 20
SIZES = (4 * KB, 512 * KB, 8 * MB)


def report():
    made = [measured(n, size=size, s_per_10k=1.0 / n) for size in SIZES for n in (2, 1)]
    made += [measured(n, t, s_per_10k=1000 * t / n) for t in (0.01, 0.001) for n in (4, 2, 1)]
    made += [measured(1, size=size, copying=True, s_per_10k=9.0) for size in SIZES]
    return {"points": [{**p, "predicted_s_per_10k": p["collection_s_per_10k"] / 2} for p in made]}


@pytest.fixture
def axes():
    return draw_sweep(report()).axes


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def predicted(axes, label):
    """The line drawn right after the measured one."""
    drawn = list(axes.get_lines())
    return drawn[[line.get_label() for line in drawn].index(label) + 1]


def test_throughput_has_a_line_per_number_of_actors_and_the_limit_of_the_machine(axes):
    left, _ = axes
    assert {"1 actor", "2 actors", "copying memory, one core"} <= set(lines(left))
    assert list(lines(left)["1 actor"].get_xdata()) == list(SIZES)
    assert lines(left)["1 actor"].get_ydata()[1] == pytest.approx(512 * KB * 10_000 / 1e6)
    assert set(lines(left)["copying memory, one core"].get_ydata()) == {12_000.0}
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["4 KB", "512 KB", "8 MB"]


def test_collection_time_has_a_line_per_sample_time_by_actors(axes):
    _, right = axes
    assert {"sample time 0 ms", "sample time 1 ms", "sample time 10 ms"} <= set(lines(right))
    assert list(lines(right)["sample time 10 ms"].get_xdata()) == [1, 2, 4]
    assert lines(right)["sample time 10 ms"].get_ydata() == pytest.approx([10.0, 5.0, 2.5])
    assert "512 KB" in right.get_title(loc="left") and "8 MB" not in right.get_title(loc="left")


def test_the_model_is_laid_over_what_was_measured(axes):
    left, right = axes
    assert list(predicted(right, "sample time 10 ms").get_ydata()) == [5.0, 2.5, 1.25]
    twice = [2 * value for value in lines(left)["2 actors"].get_ydata()]
    assert list(predicted(left, "2 actors").get_ydata()) == pytest.approx(twice)


def test_only_what_was_measured_is_in_the_legend(axes):
    for half in axes:
        named = [text.get_text() for text in half.get_legend().get_texts()]
        assert named == [name for name in lines(half) if not name.startswith("_")]
        assert named


def test_it_is_written_as_a_picture_without_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(draw_sweep(report()), tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
