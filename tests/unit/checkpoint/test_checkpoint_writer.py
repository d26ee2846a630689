"""The background writer: never waits, never loses the newest, survives a full disk."""

import errno
import os
import subprocess
import threading
import time

import numpy as np
import pytest
import torch

from tianji.checkpoint import save, writer
from tianji.checkpoint.load import latest, list_checkpoints, read_checkpoint, verify
from tianji.checkpoint.schema import Snapshot
from tianji.checkpoint.writer import Writer, to_size
from tianji.errors import CheckpointError


def snapshot(version, size=8):
    return Snapshot(version, {"w": torch.zeros(2)}, {"replay": np.zeros(size, np.uint8)})


@pytest.fixture
def events():
    return []


@pytest.fixture
def a_writer(tmp_path, events):
    return Writer(tmp_path, 2, lambda kind, text, _snapshot: events.append((kind, text)))


def test_close_waits_for_the_last_snapshot_and_rotates(tmp_path, a_writer, events):
    for version in (1, 2, 3):
        a_writer.submit(snapshot(version))
    a_writer.close()
    a_writer.close()
    assert a_writer.last_written == latest(tmp_path).path
    assert latest(tmp_path).path.name == "v00000003"
    assert len(list_checkpoints(tmp_path)) <= 2
    assert events[-1][0] == "checkpoint_written" and "v00000003" in events[-1][1]


def test_a_newer_snapshot_takes_the_place_of_a_waiting_one(tmp_path, a_writer, monkeypatch):
    started, go_on, written = threading.Event(), threading.Event(), []

    def slow(run_dir, given):
        written.append(given.version)
        started.set()
        go_on.wait()
        return save.write_checkpoint(run_dir, given)

    monkeypatch.setattr(writer, "write_checkpoint", slow)
    a_writer.submit(snapshot(1))
    started.wait()
    a_writer.submit(snapshot(2))
    a_writer.submit(snapshot(3))
    go_on.set()
    a_writer.close()
    assert written == [1, 3]


def test_a_full_disk_is_reported_with_the_size_and_the_next_one_is_tried(
    tmp_path, a_writer, events, monkeypatch
):
    save.write_checkpoint(tmp_path, snapshot(1))
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", _raise_no_space)
        a_writer.submit(snapshot(2, 5_000_000))
        while not events:
            time.sleep(0.005)
    assert events[0][0] == "checkpoint_failed"
    for part in (
        "v00000002 was not written",
        "full",
        "needs 5.0 MB",
        "newest on disk is v00000001",
    ):
        assert part in events[0][1]
    assert a_writer.last_error == events[0][1]
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {".lock", "v00000001"}

    a_writer.submit(snapshot(3))
    a_writer.close()
    assert read_checkpoint(latest(tmp_path).path).version == 3
    assert a_writer.last_error is None


def test_training_is_not_said_to_continue_after_the_last_checkpoint(a_writer, events, monkeypatch):
    is_closing = threading.Event()

    def fill_the_disk(*_):
        is_closing.wait()
        _raise_no_space(0)

    monkeypatch.setattr(writer, "write_checkpoint", fill_the_disk)
    a_writer.submit(snapshot(1))
    a_writer.close(while_waiting=is_closing.set)
    assert "The run has no checkpoint on disk." in events[0][1]
    assert "Training continues" not in events[0][1]


def _raise_no_space(_descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("look_first", [True, False], ids=["looks at free space", "fills the disk"])
def test_a_disk_that_is_really_full_keeps_the_older_checkpoint(
    small_disk, events, monkeypatch, look_first
):
    if not look_first:
        monkeypatch.setattr(save, "_check_space", lambda *_: None)
    w = Writer(small_disk, 2, lambda kind, text, _snapshot: events.append((kind, text)))
    save.write_checkpoint(small_disk, snapshot(1, 1_000_000))
    w.submit(snapshot(2, 1_500_000))
    w.close()
    assert [kind for kind, _ in events] == ["checkpoint_failed"]
    assert "needs 1.5 MB" in events[0][1]
    verify(latest(small_disk).path)
    assert os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize > 900_000


def test_a_state_that_cannot_be_kept_is_reported_and_training_goes_on(a_writer, events):
    a_writer.submit(Snapshot(1, {}, {"env": object()}))
    a_writer.close()
    assert events[0][0] == "checkpoint_failed"
    assert "State 'env' is an object" in events[0][1]


def test_nothing_is_taken_after_close(a_writer):
    a_writer.close()
    with pytest.raises(CheckpointError, match="closed"):
        a_writer.submit(snapshot(1))


def test_sizes_read_as_people_say_them():
    assert [to_size(n) for n in (999, 3_400_000, 212_000_000, 2_000_000_000)] == [
        "999 bytes",
        "3.4 MB",
        "212 MB",
        "2.0 GB",
    ]
