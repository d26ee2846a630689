"""Sets of checkpoints: which checkpoint of each group goes together."""

import json

import pytest
import torch

from tianji.checkpoint.save import write_checkpoint
from tianji.checkpoint.schema import STATE, Snapshot
from tianji.checkpoint.sets import (
    KEPT_SETS,
    SETS_FILE,
    CheckpointSet,
    add_set,
    as_set,
    group_folder,
    has_groups,
    main_folder,
    newest_of_groups,
    newest_set,
)
from tianji.errors import CheckpointError

PROGRESS = {"last_returns": [[1.0, 2.0]], "env_steps": 30}


def save(run_dir, group, version, steps=0):
    folder = group_folder(run_dir, group)
    folder.mkdir(parents=True, exist_ok=True)
    weights = {"w": torch.zeros(1)}
    return write_checkpoint(folder, Snapshot(version, weights, {}, {"env_steps": steps}))


def put(run_dir, *versions):
    names = [f"groups/{g}/checkpoints/v{v:08d}" for g, v in enumerate(versions)]
    made = CheckpointSet(tuple(names), max(versions), 7, sum(versions), PROGRESS)
    add_set(run_dir, made)
    return made


def test_the_newest_set_has_the_checkpoint_and_the_steps_of_each_group(tmp_path):
    for version in (1, 2):
        save(tmp_path, 0, version, 10 * version)
        save(tmp_path, 1, version + 5, 100 * version)
        made = put(tmp_path, version, version + 5)
    saved = newest_set(tmp_path)
    assert saved.found == made
    assert [path.name for path in saved.paths] == ["v00000002", "v00000007"]
    assert (saved.group_steps, saved.note) == ((20, 200), "")


def test_a_set_with_a_damaged_checkpoint_is_passed_over_with_a_note(tmp_path):
    for version in (1, 2):
        save(tmp_path, 0, version)
        save(tmp_path, 1, version)
        put(tmp_path, version, version)
    (group_folder(tmp_path, 1) / "checkpoints" / "v00000002" / STATE).write_bytes(b"bad")
    saved = newest_set(tmp_path)
    assert saved.found.version == 1
    assert "groups/1" in saved.note and "older set" in saved.note


def test_without_any_intact_set_there_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="no valid set"):
        newest_set(tmp_path)
    (tmp_path / SETS_FILE).write_text("[]")
    with pytest.raises(CheckpointError, match="cannot be read"):
        newest_set(tmp_path)


def test_only_the_newest_sets_whose_checkpoints_exist_are_kept(tmp_path):
    for version in range(KEPT_SETS + 2):
        save(tmp_path, 0, version)
        put(tmp_path, version)
    put(tmp_path, 99)  # was never saved
    put(tmp_path, 1)
    content = json.loads((tmp_path / SETS_FILE).read_text())
    assert [entry["version"] for entry in content["sets"]] == [3, 4, 1]


def test_the_newest_of_all_groups_needs_one_of_each(tmp_path):
    save(tmp_path, 0, 3)
    assert newest_of_groups(tmp_path, 2) is None
    save(tmp_path, 1, 1)
    save(tmp_path, 1, 2)
    found = newest_of_groups(tmp_path, 2)
    assert [path.name for path in found] == ["v00000003", "v00000002"]


def test_the_first_group_stands_for_the_run(tmp_path):
    assert not has_groups(tmp_path) and main_folder(tmp_path) == tmp_path
    save(tmp_path, 0, 1)
    assert has_groups(tmp_path) and main_folder(tmp_path) == group_folder(tmp_path, 0)


def test_a_checkpoint_of_a_run_without_groups_is_a_set_of_one(tmp_path):
    state = {"progress": {**PROGRESS, "best_mean_return": float("nan")}}
    snapshot = Snapshot(4, {"w": torch.zeros(1)}, state, {"env_steps": 30})
    saved = as_set(write_checkpoint(tmp_path, snapshot), tmp_path)
    assert (saved.found.version, saved.found.env_steps, saved.group_steps) == (4, 30, (30,))
    assert saved.found.progress["last_returns"] == [[1.0, 2.0]]
