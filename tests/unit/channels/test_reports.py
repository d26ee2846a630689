"""Reports to a supervisor that reads late, or never."""

import fcntl
import json
import os
import resource
import threading

import pytest

from tianji.channels import reports as module
from tianji.channels.reports import ReportPipe

LONG_S = 60.0
ABOVE_SELECT = 1024  # select() takes descriptors below this
SMALLEST = 4096  # bytes that a pipe holds at least


@pytest.fixture
def pipe():
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, SMALLEST)
    os.set_blocking(read, False)
    yield read, ReportPipe(write, "learner")
    for fd in (read, write):
        os.close(fd)


def read_all(fd):
    data = b""
    while True:
        try:
            data += os.read(fd, 1 << 16)
        except BlockingIOError:
            return data


def to_reports(data):
    return [json.loads(line) for line in data.splitlines()]


def drain(fd, reports):
    """Everything, as a supervisor that comes back reads it."""
    flush = threading.Thread(target=reports.flush)
    flush.start()
    data = b""
    while flush.is_alive():
        data += read_all(fd)
    return to_reports(data + read_all(fd))


def finishes(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LONG_S)
    return not thread.is_alive()


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= ABOVE_SELECT:
        pytest.skip(f"a process has no more than {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (ABOVE_SELECT + 1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_descriptors")
def test_a_worker_of_a_large_run_waits_with_a_high_descriptor(pipe):
    read, low = pipe
    high = fcntl.fcntl(low._fd, fcntl.F_DUPFD, ABOVE_SELECT)
    reports = ReportPipe(high, "learner")
    reports({"kind": "note", "text": "x" * 2 * SMALLEST})
    (report,) = drain(read, reports)
    assert len(report["text"]) == 2 * SMALLEST
    os.close(high)


def test_a_supervisor_that_never_reads_does_not_stop_the_learner(pipe):
    _, reports = pipe

    def work():
        for version in range(500):
            reports({"kind": "metrics", "record": {"version": version, "more": "x" * 500}})

    assert finishes(work)


def test_only_the_newest_metrics_wait_and_every_line_is_whole(pipe):
    fd, reports = pipe
    for version in range(500):
        reports({"kind": "metrics", "record": {"version": version, "more": "x" * 500}})
    found = drain(fd, reports)
    versions = [report["record"]["version"] for report in found]
    assert versions == sorted(versions)
    assert versions[-1] == 499
    assert len(versions) < 20
    assert all(report["role"] == "learner" for report in found)


def test_notes_wait_in_order_and_what_does_not_fit_is_counted(pipe, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 10)
    fd, reports = pipe
    for number in range(100):
        reports({"kind": "note", "text": f"{number:0500}"})
    reports({"kind": "done", "because": "target_reached", "record": {}})
    *notes, done = drain(fd, reports)
    assert done["kind"] == "done"
    texts = [note["text"] for note in notes]
    (gap,) = [number for number, text in enumerate(texts) if "missing" in text]
    missing = int(texts.pop(gap).split()[-5])
    numbers = [int(text) for text in texts]
    assert numbers == sorted(numbers)
    assert missing + len(numbers) == 100
    assert numbers[gap] - numbers[gap - 1] == missing + 1, "it is told where they are missing"


def test_a_supervisor_that_reads_gets_everything_at_once(pipe):
    fd, reports = pipe
    reports({"kind": "note", "text": "one"})
    reports({"kind": "metrics", "record": {}})
    assert [report["kind"] for report in to_reports(read_all(fd))] == ["note", "metrics"]


def test_last_words_longer_than_the_pipe_reach_a_supervisor_that_reads_late(pipe):
    fd, reports = pipe
    reports({"kind": "error", "text": "x" * 10 * SMALLEST})
    (report,) = drain(fd, reports)
    assert len(report["text"]) == 10 * SMALLEST
