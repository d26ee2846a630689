"""Config as YAML text: presets, a run's config.yaml, and single values of the command line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tianji.config.run import RunConfig
from tianji.errors import UsageError


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 1e-3 is a number, as people expect."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def parse_yaml(text: str, source: str) -> Any:
    """Plain data from YAML; UsageError names the source and the place of a mistake."""
    try:
        # _Loader is a SafeLoader: plain data, no objects.
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"Cannot read {source}: {' '.join(str(error).split())}") from error


def read_text(path: Path) -> str:
    """A file of the person; UsageError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': {error}") from error


def save_config(config: RunConfig, path: Path) -> None:
    """Write all settings, defaults included, so that later defaults cannot change an old run."""
    text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def load_config(path: Path) -> RunConfig:
    """The config that save_config wrote."""
    data = parse_yaml(read_text(path), f"'{path}'")
    if not isinstance(data, dict):
        raise UsageError(f"'{path}' holds no settings: it must be a YAML mapping.")
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        reasons = "; ".join(
            f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()
        )
        raise UsageError(f"'{path}' is not the config of a run: {reasons}") from error
