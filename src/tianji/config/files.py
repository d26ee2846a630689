"""Reads and writes settings as YAML: presets, config.yaml and values of the command line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tianji.config.run import RunConfig
from tianji.errors import UsageError, did_you_mean


class _Loader(yaml.SafeLoader):
    """A safe YAML loader that reads 1e-3 as a number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def parse_yaml(text: str, source: str) -> Any:
    """Return the plain data of a YAML text; UsageError with the source and place of a mistake."""
    try:
        # _Loader is a SafeLoader: plain data, no objects.
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise UsageError(f"Cannot read {source}: {' '.join(str(error).split())}") from error


def read_text(path: Path) -> str:
    """Return the text of a file; UsageError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': {error}") from error


def save_config(config: RunConfig, path: Path) -> None:
    """Write all settings with their defaults, so that later defaults do not change an old run."""
    text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def load_config(path: Path) -> RunConfig:
    """Read the config that save_config() wrote."""
    data = parse_yaml(read_text(path), f"'{path}'")
    if not isinstance(data, dict):
        raise UsageError(f"'{path}' has no settings: it must be a YAML mapping.")
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        reasons = "; ".join(
            f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()
        )
        raise UsageError(f"'{path}' is not a valid config of a run: {reasons}") from error


_SUFFIX = ".yaml"
_LIKE_AN_ENVIRONMENT = re.compile(r"[^:]+:.+|.+-v\d+")
"""How people write environments, `module:name` or an id with its version, and not presets."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset file.

    >>> Preset("cartpole-ppo", "PPO on CartPole-v1 ...", {"env": "CartPole-v1", ...})
    """

    name: str
    about: str
    """One sentence: what it trains, where its numbers come from, how long it takes."""
    config: dict[str, Any]
    """Settings, nested as in RunConfig."""


def list_presets() -> list[str]:
    """Return the names of the presets of this package."""
    files = resources.files("tianji.presets").iterdir()
    return sorted(file.name.removesuffix(_SUFFIX) for file in files if file.name.endswith(_SUFFIX))


def load_preset(name: str) -> Preset:
    """Load a preset by its name or by the path of a YAML file."""
    may_be_env = _LIKE_AN_ENVIRONMENT.fullmatch(name) and not Path(name).exists()
    if name.endswith((".yaml", ".yml")) or ("/" in name and not may_be_env):
        return _parse_preset(read_text(Path(name)), name)
    known = list_presets()
    if may_be_env:
        raise UsageError(
            f"Unknown preset '{name}'. To train on an environment of this name: tianji train "
            f"--env {name}; in Python, env={name!r}.{did_you_mean(name, known)} `tianji presets` "
            "lists the presets; the path of a YAML file works too."
        )
    if name not in known:
        raise UsageError(
            f"Unknown preset '{name}'.{did_you_mean(name, known)} Known: {', '.join(known)}, or the"
            " path of a YAML file."
        )
    file = resources.files("tianji.presets") / f"{name}{_SUFFIX}"
    return _parse_preset(file.read_text(encoding="utf-8"), name)


def _parse_preset(text: str, source: str) -> Preset:
    """Parse a mapping with the key `config`, or plain settings such as a run's config.yaml."""
    data = parse_yaml(text, f"preset '{source}'")
    if not isinstance(data, dict):
        raise UsageError(f"Preset '{source}' has no settings: it must be a YAML mapping.")
    config = data.get("config", data)
    if not isinstance(config, dict):
        raise UsageError(f"'config' of preset '{source}' must be a mapping of settings.")
    if config is data:
        return Preset(source, "", config)
    unknown = data.keys() - {"name", "about", "config"}
    if unknown:
        raise UsageError(
            f"Preset '{source}' has keys other than name, about and config: "
            f"{', '.join(sorted(map(str, unknown)))}. Settings go under 'config'."
        )
    return Preset(str(data.get("name", source)), str(data.get("about", "")), config)
