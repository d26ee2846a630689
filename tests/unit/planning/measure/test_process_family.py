"""Memory of a process and of what it has started, from files as the system writes them."""

import mmap
import os
from pathlib import Path

import pytest

from tianji.planning.measure import durations as family
from tianji.planning.measure.durations import ProcessFamily

PARTS = """55d949206000-7fff28151000 ---p 00000000 00:00 0                          [rollup]
Rss:              400000 kB
Pss:              150000 kB
Pss_Anon:         100000 kB
Pss_File:          30000 kB
Pss_Shmem:         20000 kB
"""
STATUS = """Name:\tpython
Threads:\t3
VmRSS:\t  400000 kB
RssAnon:\t  100000 kB
RssFile:\t  280000 kB
RssShmem:\t   20000 kB
"""


@pytest.fixture
def proc(monkeypatch, tmp_path):
    """Where the files of a process are put; there is no other process."""
    monkeypatch.setattr(family, "Path", lambda path: tmp_path / Path(path).name)
    monkeypatch.setattr(family, "_all_pids", list)
    return tmp_path


def test_a_library_counts_by_the_part_that_a_process_has_in_it_and_slots_do_not(proc):
    (proc / "smaps_rollup").write_text(PARTS)
    (proc / "status").write_text(STATUS)
    assert ProcessFamily().memory_bytes() == 130_000 * 1024


def test_where_the_system_tells_no_parts_a_process_counts_with_its_own_memory(proc):
    (proc / "status").write_text(STATUS)
    assert ProcessFamily().memory_bytes() == 100_000 * 1024


def test_a_process_that_is_gone_takes_nothing(proc):
    assert ProcessFamily().memory_bytes() == 0


def test_memory_of_its_own_counts_and_shared_memory_does_not(monkeypatch):
    monkeypatch.setattr(family, "_all_pids", list)  # others of our session grow as they like
    found = ProcessFamily()
    before = found.memory_bytes()
    own = bytearray(os.urandom(1)) * (256 << 20)  # far more than this process grows by otherwise
    with mmap.mmap(-1, 256 << 20) as shared:
        shared.write(own)
        grown = found.memory_bytes() - before
    assert grown == pytest.approx(len(own), rel=0.25)
