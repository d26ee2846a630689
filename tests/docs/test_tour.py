"""The tour names files that exist, and can be read in one sitting."""

from __future__ import annotations

import re

import pytest

from tests.docs import pages
from tests.docs.pages import DOCS, PAGES, ROOT

PACKAGE = ROOT / "src/tianji"
MOST_LINES = 2000
STOP = re.compile(r"^\d+\. \*\*(.*?):", re.MULTILINE)
PATH = re.compile(r"`((?:[\w-]+/)+[\w-]+\.py)`")
CURRENT = [page for page in PAGES if page.parent != DOCS / "decisions"]


def stops() -> list[list[str]]:
    """The files in the heading of each stop."""
    return [re.findall(r"`([^`]+)`", heading) for heading in STOP.findall(_tour())]


def _tour() -> str:
    return (DOCS / "tour.md").read_text()


def test_the_tour_has_twelve_stops_and_each_names_its_files():
    assert len(stops()) == 12
    assert all(stops())


def test_the_files_of_the_tour_have_fewer_lines_than_it_says():
    files = [PACKAGE / name for names in stops() for name in names]
    assert len(set(files)) == len(files)
    num_lines = sum(len(file.read_text().splitlines()) for file in files)
    assert num_lines < MOST_LINES, f"the tour has {num_lines} lines"
    assert f"fewer than {MOST_LINES:,} lines" in _tour()


@pytest.mark.parametrize("page", CURRENT, ids=pages.name)
def test_every_source_file_that_a_page_names_exists(page):
    roots = (PACKAGE, ROOT, ROOT / "src", page.parent)
    named = set(PATH.findall(pages.prose(page)))
    missing = [name for name in named if not any((root / name).is_file() for root in roots)]
    assert [name for name in missing if "NAME" not in name] == []
