"""Interrupted, altered and missing checkpoints, and which one is used then."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from tianji.checkpoint import save
from tianji.checkpoint.load import best, choose, latest, list_checkpoints, read_checkpoint, verify
from tianji.checkpoint.save import rotate, write_checkpoint
from tianji.checkpoint.schema import FORMAT, Snapshot, encode_manifest
from tianji.errors import CheckpointError, UsageError

WRITE_FOREVER = """
import sys, itertools, pathlib, numpy as np
from tianji.checkpoint.save import write_checkpoint, rotate
from tianji.checkpoint.schema import Snapshot
run = pathlib.Path(sys.argv[1])
for version in itertools.count(1):
    for _ in range(2):  # the second replaces the first
        facts = {"mean_return_100": version}
        write_checkpoint(run, Snapshot(version, {}, {"replay": np.arange(1_000_000)}, facts))
    rotate(run, 2)
"""


def write(run: Path, version: int, mean_return: float | None = None) -> Path:
    facts = {"mean_return_100": mean_return}
    weights = {"w": torch.full((4,), float(version))}
    return write_checkpoint(run, Snapshot(version, weights, {"replay": np.arange(9)}, facts))


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def flip_a_byte(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("delay_ms", [0, 3, 11, 26, 47])
def test_a_writer_killed_at_any_moment_leaves_only_whole_checkpoints(tmp_path, delay_ms):
    child = subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(tmp_path)])
    while len(list_checkpoints(tmp_path)) < 2 and child.poll() is None:
        time.sleep(0.01)
    time.sleep(delay_ms / 1000)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    found = list_checkpoints(tmp_path)
    assert found
    for path in found:
        verify(path)

    write(tmp_path, 1_000_000)
    left = {path.name for path in (tmp_path / "checkpoints").iterdir() if path.is_dir()}
    assert left == set(names(list_checkpoints(tmp_path)))


def test_a_replacement_killed_between_its_two_renames_is_undone(tmp_path):
    path = write(tmp_path, 5)
    path.rename(path.with_name(f".replaced-{path.name}"))
    path.with_name(".writing-v00000005").mkdir()
    write(tmp_path, 6)
    assert names(list_checkpoints(tmp_path)) == ["v00000005", "v00000006"]
    assert names(path.parent.glob(".*")) == [".lock"]


def test_leftovers_are_removed_by_the_next_write_and_never_listed(tmp_path):
    half = tmp_path / "checkpoints" / ".writing-v00000009"
    half.mkdir(parents=True)
    assert list_checkpoints(tmp_path) == []
    write(tmp_path, 10)
    assert not half.exists()


@pytest.mark.parametrize("other", [9, 8], ids=["same version", "another version"])
def test_an_unfinished_checkpoint_of_another_writer_is_left_alone(tmp_path, monkeypatch, other):
    is_writing, go_on = threading.Event(), threading.Event()
    write_tensors = save.write_tensors

    def slow(path, leaves):
        is_writing.set()
        assert go_on.wait(60)
        return write_tensors(path, leaves)

    monkeypatch.setattr(save, "write_tensors", slow)
    one = threading.Thread(target=write, args=(tmp_path, 9))
    one.start()
    assert is_writing.wait(60)
    two = threading.Thread(target=write, args=(tmp_path, other))
    two.start()
    two.join(0.05)  # without a lock it would have removed what the first is writing
    assert (tmp_path / "checkpoints" / ".writing-v00000009").is_dir()
    go_on.set()
    for thread in (one, two):
        thread.join()
    assert set(names(list_checkpoints(tmp_path))) == {"v00000009", f"v{other:08d}"}
    for path in list_checkpoints(tmp_path):
        verify(path)


def test_a_network_file_system_locks_only_what_is_open_for_writing(tmp_path, monkeypatch):
    def flock(file, operation):
        mode = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
        if operation == fcntl.LOCK_EX and mode == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(save.fcntl, "flock", flock)
    verify(write(tmp_path, 1))
    assert rotate(tmp_path, keep_last=1) == []


@pytest.mark.parametrize("name", ["weights.safetensors", "state.safetensors", "manifest.json"])
@pytest.mark.parametrize("at", [20, -20])
def test_one_altered_bit_is_found(tmp_path, name, at):
    path = write(tmp_path, 1)
    flip_a_byte(path / name, at)
    with pytest.raises(
        CheckpointError,
        match=rf"(altered: checksum mismatch in {name}|cannot be read: {name}|altered: {name})",
    ):
        read_checkpoint(path)


@pytest.mark.parametrize("name", ["weights.safetensors", "state.safetensors", "manifest.json"])
def test_a_missing_file_is_named(tmp_path, name):
    path = write(tmp_path, 1)
    (path / name).unlink()
    with pytest.raises(CheckpointError, match=f"incomplete: {name} is missing"):
        read_checkpoint(path)


def test_a_newer_format_asks_for_an_upgrade(tmp_path):
    path = write(tmp_path, 1)
    content = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(content | {"format": FORMAT + 1}))
    with pytest.raises(CheckpointError, match=r"newer TianJi .* Upgrade"):
        read_checkpoint(path)


def test_no_checkpoint_is_said_in_words(tmp_path):
    with pytest.raises(CheckpointError, match="There is no checkpoint at"):
        read_checkpoint(tmp_path / "v00000001")
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        latest(tmp_path)


def test_latest_and_best_fall_back_over_damaged_ones_with_a_note(tmp_path):
    for version, mean_return in [(1, 10.0), (2, 30.0), (3, 20.0)]:
        write(tmp_path, version, mean_return)
    rotate(tmp_path, keep_last=3)
    assert (latest(tmp_path).path.name, latest(tmp_path).note) == ("v00000003", "")
    assert (best(tmp_path).path.name, best(tmp_path).note) == ("v00000002", "")

    flip_a_byte(best(tmp_path).path / "weights.safetensors", -1)
    assert best(tmp_path).path.name == "v00000003"
    assert "v00000002 was altered" in best(tmp_path).note.replace(f"{tmp_path}/checkpoints/", "")
    flip_a_byte(latest(tmp_path).path / "state.safetensors", -1)
    assert latest(tmp_path).path.name == "v00000001"
    assert latest(tmp_path, weights_only=True).path.name == "v00000003"


def test_the_best_is_found_by_its_return_where_its_mark_is_damaged(tmp_path):
    for version, mean_return in [(1, 10.0), (2, 30.0), (3, 20.0)]:
        write(tmp_path, version, mean_return)
    rotate(tmp_path, keep_last=3)
    (tmp_path / "checkpoints" / "best.json").write_text("torn")
    assert (best(tmp_path).path.name, best(tmp_path).note) == ("v00000002", "")


def test_a_fall_back_to_an_untrained_policy_says_so(tmp_path):
    write_checkpoint(tmp_path, Snapshot(0, {}, {}, {"updates": 0}))
    flip_a_byte(write(tmp_path, 7, 30.0) / "weights.safetensors", -1)
    rotate(tmp_path, keep_last=3)
    choice = best(tmp_path)
    assert choice.path.name == "v00000000"
    assert choice.note.count("checksum mismatch") == 1, "the best is the newest: told once"
    assert "used instead: v00000000, which is untrained (0 updates)." in choice.note


def test_a_checkpoint_is_chosen_by_name_or_version(tmp_path):
    write(tmp_path, 160)
    assert choose(tmp_path, "160") == choose(tmp_path, "v00000160") == choose(tmp_path, "latest")
    with pytest.raises(UsageError, match=r"no checkpoint '161'\. It has: best, latest, v00000160"):
        choose(tmp_path, "161")


def test_rotation_keeps_the_newest_and_the_best(tmp_path):
    for version, mean_return in [(1, None), (2, 50.0), (3, 10.0), (4, 20.0), (5, 50.0), (6, 1.0)]:
        write(tmp_path, version, mean_return)
        rotate(tmp_path, keep_last=2)
    assert names(list_checkpoints(tmp_path)) == ["v00000005", "v00000006"]
    write(tmp_path, 7, 2.0)
    rotate(tmp_path, keep_last=2)
    assert names(list_checkpoints(tmp_path)) == ["v00000005", "v00000006", "v00000007"]
    assert best(tmp_path).path.name == "v00000005"


def test_a_removal_that_is_interrupted_leaves_no_half_checkpoint(tmp_path, monkeypatch):
    for version in (1, 2):
        write(tmp_path, version)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    rotate(tmp_path, keep_last=1)
    assert names(list_checkpoints(tmp_path)) == ["v00000002"]


def test_rotation_leaves_what_it_cannot_read_and_does_not_count_it(tmp_path):
    for version in range(1, 6):
        write(tmp_path, version)
    (tmp_path / "checkpoints" / "v00000004" / "manifest.json").write_text("{}")
    rotate(tmp_path, keep_last=2)
    assert names(list_checkpoints(tmp_path)) == ["v00000003", "v00000004", "v00000005"]


def test_checkpoints_sort_by_version_also_past_eight_digits(tmp_path):
    for version in (100_000_000, 99_999_999):
        write(tmp_path, version)
    assert latest(tmp_path).path.name == "v100000000"


def test_opening_the_room_imports_no_torch():
    code = "import sys, tianji.checkpoint.writer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_manifests_of_the_same_content_are_the_same_bytes(tmp_path):
    manifest = verify(write(tmp_path, 1))
    assert (
        encode_manifest(manifest) == (tmp_path / "checkpoints/v00000001/manifest.json").read_bytes()
    )
