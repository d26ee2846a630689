"""The format of a checkpoint: a folder with two tensor files and a manifest with their hashes.

    RUN/checkpoints/v00000160/weights.safetensors   the policy, for any safetensors reader
                              state.safetensors     every other tensor and array
                              manifest.json         counters, the state tree, sizes and hashes
    RUN/checkpoints/best.json                       which of them had the best return

The state tree is JSON that refers to tensors in state.safetensors by name. Nothing is pickled, so
that opening a checkpoint runs no code.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tianji.checkpoint.durable import Stored, to_plain

if TYPE_CHECKING:
    import torch

FORMAT = 1
"""Increased when older versions of TianJi cannot read new checkpoints."""
WEIGHTS, STATE = "weights.safetensors", "state.safetensors"
MANIFEST, BEST = "manifest.json", "best.json"
_NAME = re.compile(r"v(\d{8,})")


@dataclass(frozen=True)
class Snapshot:
    """Everything that a run needs to continue from one version.

    >>> Snapshot(160, model.state_dict(), {"rng": rng.bit_generator.state}, {"env_steps": 41000})
    """

    version: int
    weights: Mapping[str, torch.Tensor]
    state: Mapping[str, Any] = field(default_factory=dict)
    """Nested dicts, lists and tuples of plain values, numpy arrays and torch tensors."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Figures for people and for choosing the best: `updates`, `env_steps`, `wall_s`,
    `mean_return_100`."""


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest.json whose hash is right."""

    version: int
    created: str
    facts: dict[str, Any]
    made_with: dict[str, str]
    files: dict[str, Stored]
    state: Any

    @property
    def mean_return_100(self) -> float | None:
        found = self.facts.get("mean_return_100")
        return None if found is None else float(found)


def checkpoints_folder(run_dir: Path) -> Path:
    return run_dir / "checkpoints"


def folder_name(version: int) -> str:
    return f"v{version:08d}"


def version_of(name: str) -> int | None:
    """Return the version in a folder's name; None if it is not a finished checkpoint."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as JSON, with the hash of its content as the last entry."""
    content = {"format": FORMAT, **to_plain(asdict(manifest))}
    content["sha256"] = _hash(content)
    return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()


def is_unaltered(content: dict[str, Any]) -> bool:
    """Return whether the content of a manifest matches its hash."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return content.get("sha256") == _hash(rest)


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
