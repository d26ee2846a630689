"""What scripts rely on may change, but not by accident.

Each snapshot is a committed text file. After a change on purpose, rewrite them with

    TIANJI_UPDATE_SNAPSHOTS=1 pytest tests/surface

and review the difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path

import tianji
from tianji.algorithms.registry import BUILT_IN
from tianji.cli.main import OPEN_ENDED, VERBS, build_app
from tianji.config.files import list_presets
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import list_settings, value_text

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "TIANJI_UPDATE_SNAPSHOTS"


def check(name: str, lines: Iterator[str]) -> None:
    path = SNAPSHOTS / name
    text = "".join(f"{line}\n" for line in lines)
    if os.environ.get(UPDATE):
        path.write_text(text)
    assert text == path.read_text(), f"{name} changed; if on purpose: {UPDATE}=1 pytest {__file__}"


def cli_lines() -> Iterator[str]:
    app = build_app()
    for verb in VERBS:
        yield f"tianji {verb}"
        if verb in OPEN_ENDED:
            yield "    any setting of config.txt"
            continue
        for argument in app[verb].assemble_argument_collection():
            default = argument.field_info.default
            fact = "required" if argument.field_info.required else f"default {value_text(default)}"
            if argument.field_info.kind is Parameter.VAR_POSITIONAL:
                fact = "any number"
            yield f"    {' '.join(argument.names)}: {fact}"
    yield "presets"
    yield from (f"    {name}" for name in list_presets())


def config_lines() -> Iterator[str]:
    for algorithm in BUILT_IN:
        yield f"algorithm {algorithm}"
        for setting in list_settings(load_algorithm_config(algorithm)):
            yield f"    {setting.path} = {value_text(setting.default)}: {setting.allowed}"


def test_commands_and_their_options() -> None:
    check("cli.txt", cli_lines())


def test_config_schema() -> None:
    check("config.txt", config_lines())


def test_public_names() -> None:
    check("public_names.txt", iter(sorted(getattr(tianji, "__all__", []))))
