"""Equation 1 against measurement: what is drawn, and what is measured again."""

import pytest

from tests.unit.figures.made_up import equation_data
from tianji.bench import sweep
from tianji.figures import equation


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_settings_that_were_fitted_on_are_not_compared():
    _, right = equation.draw_equation(equation_data()).axes
    rows = [label.get_text() for label in right.get_yticklabels()]
    assert rows == ["512 KB, 2 actors, 1 ms", "512 KB, 4 actors, 1 ms"]


def test_every_form_of_the_equation_is_drawn_over_what_was_measured():
    _, right = equation.draw_equation(equation_data()).axes
    _, printed, _, divided, _, whole, _ = right.get_lines()
    assert list(printed.get_xdata()) == pytest.approx([2.0, 4.0])
    assert list(divided.get_xdata()) == pytest.approx([0.9, 0.5])
    assert list(whole.get_xdata()) == pytest.approx([1.0, 1.1])


def test_the_papers_bottleneck_is_pointed_out_where_there_are_as_many_actors():
    left, _ = equation.draw_equation(equation_data()).axes
    assert texts(left) == ["paper: bottleneck"]
    assert left.texts[0].xy == (4, 2.5)


def test_measuring_again_keeps_the_points_of_the_sweep(monkeypatch):
    found = {"points": [1], "saturation": [2], "in_words": ["3"]}
    monkeypatch.setattr(sweep, "sweep", lambda say: found)
    assert equation.measure() == {"points": [1], "saturation": [2]}
