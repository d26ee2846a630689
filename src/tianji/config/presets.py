"""Presets: YAML files with tested settings, those of the package or a person's own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tianji.config.files import parse_yaml, read_text
from tianji.errors import UsageError, did_you_mean

_SUFFIX = ".yaml"


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
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return _parse_preset(read_text(Path(name)), name)
    known = list_presets()
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
