"""The documentation as data: pages, their code blocks, commands and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tianji

TRAIN = tianji.train
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DOCS = ROOT / "docs"
NEW_ALGORITHM = EXAMPLES / "04_new_algorithm"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    NEW_ALGORITHM / "README.md",
    *sorted(DOCS.rglob("*.md")),
]
_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_INLINE = re.compile(r"`(?:python -m )?tianji ([^`]+)`")
_COMMAND = re.compile(r"^(?:    )?(?:python -m )?tianji (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    title: str
    text: str


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    found = _FENCE.findall(page.read_text())
    return [Block(lang, "".join(_TITLE.findall(rest)[:1]), text) for lang, rest, text in found]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def script(page: Path) -> str:
    """All Python of a page that is to be run, one block after the other."""
    return "\n".join(b.text for b in blocks(page) if b.language == "python" and not b.title)


def files(page: Path) -> dict[str, str]:
    """Blocks with a title are files that the rest of the page needs."""
    return {block.title: block.text for block in blocks(page) if block.title}


def commands(page: Path) -> list[list[str]]:
    """The words after `tianji` of every command line in a shell block."""
    shell = "\n".join(block.text for block in blocks(page) if block.language in ("sh", "console"))
    indented = prose(page) if page.parent == NEW_ALGORITHM else ""
    return [shlex.split(line, comments=True) for line in _COMMAND.findall(f"{shell}\n{indented}")]


def mentions(page: Path) -> Iterator[list[str]]:
    """The same for `tianji ...` in running text, unless it is a pattern with brackets or dots."""
    for text in _INLINE.findall(prose(page)):
        if not set("[|") & set(text) and "..." not in text:
            yield shlex.split(text)


def train_inline(preset=None, **settings):
    """Train as the page says, in one process: the code of a page is tried here, not engines."""
    return TRAIN(preset, **{"engine": "inline", **settings})


def links(page: Path) -> list[str]:
    """Relative links, without their anchors."""
    found = [link.partition("#")[0] for link in _LINK.findall(prose(page))]
    return [link for link in found if link and "://" not in link]
