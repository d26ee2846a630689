from __future__ import annotations

import time
from pathlib import Path

import psutil

from tianji.cli.output import process_started_ns


def test_the_start_of_this_process_is_known() -> None:
    created_s = psutil.Process().create_time()
    least_s = time.time() - created_s
    age_s = (time.monotonic_ns() - process_started_ns()) / 1e9
    assert least_s - 1.0 <= age_s <= time.time() - created_s + 1.0


def test_a_system_that_does_not_tell_means_now(tmp_path: Path) -> None:
    before_ns = time.monotonic_ns()
    assert process_started_ns(tmp_path / "stat") >= before_ns
