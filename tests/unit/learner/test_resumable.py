"""Tests of the checks before a run continues."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tianji.checkpoint.save import write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.errors import UsageError
from tianji.learner.resumable import newest_sound

ROUNDS = {"rounds": [3, 5], "items_put": 8, "items_taken": 8}


def _checkpoint(run_dir: Path, buffer: dict[str, object]) -> Path:
    weights = {"weight": torch.zeros(2)}
    return write_checkpoint(run_dir, Snapshot(1, weights, {"buffer": buffer}))


def test_checkpoint_of_a_gather_run_before_one_buffer_is_refused(tmp_path: Path) -> None:
    _checkpoint(tmp_path, {**ROUNDS, "counts": [3, 5], "losses": {"gradients": 0, "steps": 0}})
    with pytest.raises(UsageError, match=r"another form.*with the TianJi that wrote it"):
        newest_sound(tmp_path)


def test_checkpoint_with_a_store_is_accepted(tmp_path: Path) -> None:
    written = _checkpoint(tmp_path, {**ROUNDS, "store": {}})
    assert newest_sound(tmp_path) == written
