"""The page of figures: every figure of the first paper, and other systems beside ours."""

import sys

import pytest

from tests.docs.pages import DOCS
from tianji.figures.files import read_data
from tianji.figures.paper.reported import REPORTED


@pytest.fixture
def generate(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return sys.modules.get("generate") or __import__("generate")


def test_every_figure_of_the_first_paper_is_on_the_page(generate):
    page = (DOCS / "figures.md").read_text()
    assert [name for name in REPORTED if f"<!-- figure: {name} -->" not in page] == []
    text = generate.on_page_markdown(page)
    for name, reported in REPORTED.items():
        assert f"`tianji figure {name}`" in text and reported.paper in text


def test_a_figure_says_where_its_data_comes_from(generate):
    data, entry = read_data("equation-1"), generate.figure_entry("equation-1")
    assert f"`{data['command']}` at {data['commit']} on {data['machine']['cpu']}" in entry


def test_other_systems_stand_beside_ours_in_the_tables(generate):
    text = generate.on_page_markdown((DOCS / "speed.md").read_text())
    for row in ("| **TianJi** | PPO |", "| RLlib | PPO |", "| Sample Factory | APPO |"):
        assert row in text
    assert "| TianJi authors' code | PPO |" in text and "not in 70 s" in text
    assert "| XingTian's channel * | 2,382 |" in text
