"""Tests of the checks before a run continues."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, Tuple

from tests.fakes.scripted import SPACES
from tests.unit.planning.plans import config, plan_for
from tianji.checkpoint.save import write_checkpoint
from tianji.checkpoint.schema import Snapshot
from tianji.envs.spaces import Masked, Spaces, in_words
from tianji.errors import UsageError
from tianji.learner.resumable import check_spaces, newest_sound

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


def test_other_spaces_are_refused_before_a_plan_that_may_fail_with_them(tmp_path: Path) -> None:
    plan = plan_for(config())
    same, images = Spaces(SPACES.observation, SPACES.action), Box(0, 255, (84, 84, 3), "uint8")
    check_spaces(tmp_path, plan, config(), same)
    told = rf"was {re.escape(in_words(SPACES.observation))}, and is Box \(84, 84, 3\) of uint8 now"
    with pytest.raises(UsageError, match=told):
        check_spaces(tmp_path, plan, config(), Spaces(images, SPACES.action))
    older = plan.model_copy(update={"spaces": {}})
    check_spaces(tmp_path, older, config(), Spaces(images, SPACES.action))


def test_bounds_alone_make_no_other_space() -> None:
    one, other = (Box(-limit, limit, (4,), "float32") for limit in (1.0, 2.0))
    assert in_words(one) == in_words(other) == "Box (4,) of float32"
    both = Tuple([Dict({"a": one}), Discrete(3)])
    assert in_words(both) == "Tuple(Dict(a: Box (4,) of float32), Discrete(3))"
    masked = Masked(one, "action_mask", 3, from_info=True)
    assert in_words(masked) == "Box (4,) of float32 with masks of 3 actions"
