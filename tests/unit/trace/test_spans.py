"""The ring of a role: what is written is read back, also what a killed process left."""

import os

import numpy as np
import pytest

from tianji.trace.spans import (
    RECORD,
    SPANS_FOLDER,
    Kind,
    item_id,
    item_name,
    open_spans,
    read_spans,
)


def read_back(folder):
    (path,) = (folder / SPANS_FOLDER).iterdir()
    return read_spans(path)


def test_what_is_added_is_read_back(tmp_path):
    spans = open_spans(tmp_path, "actor-2", capacity=8)
    spans.add(Kind.INFER, 100, 130, 7)
    spans.add(Kind.STEP, 130, 190, 8)
    found = read_back(tmp_path)
    assert (found.role, found.pid, found.fell_out) == ("actor-2", os.getpid(), 0)
    assert found.kind.tolist() == [Kind.INFER, Kind.STEP]
    assert found.start_ns.tolist() == [100, 130]
    assert found.end_ns.tolist() == [130, 190]
    assert found.subject.tolist() == [7, 8]


def test_a_full_ring_keeps_the_newest_and_counts_what_fell_out(tmp_path):
    spans = open_spans(tmp_path, "actor-0", capacity=8)
    for start in range(1, 21):
        spans.add(Kind.STEP, start, start, 0)
    found = read_back(tmp_path)
    # One less than the capacity: the record that the next one would replace is not trusted.
    assert found.start_ns.tolist() == list(range(14, 21))
    assert found.fell_out == 13


@pytest.mark.parametrize("written", [0, 3, 20])
def test_a_record_that_was_being_written_at_a_death_is_passed_over(tmp_path, written):
    spans = open_spans(tmp_path, "actor-0", capacity=8)
    for start in range(1, written + 1):
        spans.add(Kind.STEP, start, start + 1, 0)
    (path,) = (tmp_path / SPANS_FOLDER).iterdir()
    records = np.memmap(path, RECORD)
    records["start_ns"][(written + 1) % 8] = 999_999  # all but the tag, which is written last
    records.flush()
    assert 999_999 not in read_back(tmp_path).start_ns


def test_a_timed_call_is_the_call_with_a_record(tmp_path):
    spans = open_spans(tmp_path, "actor-0", capacity=8)
    spans.subject = 5
    timed = spans.timed(lambda a, b=0: a - b, Kind.INFER)
    assert timed(5, b=2) == 3
    found = read_back(tmp_path)
    assert (found.kind.tolist(), found.subject.tolist()) == ([Kind.INFER], [5])
    assert found.end_ns[0] >= found.start_ns[0] > 0


def test_a_call_that_fails_is_recorded_too(tmp_path):
    spans = open_spans(tmp_path, "actor-0", capacity=8)

    def fail():
        raise RuntimeError("the world ended")

    with pytest.raises(RuntimeError, match="the world ended"):
        spans.timed(fail, Kind.STEP)()
    assert read_back(tmp_path).kind.tolist() == [Kind.STEP]


def test_the_rest_of_a_span_begins_where_the_last_one_ended(tmp_path):
    spans = open_spans(tmp_path, "buffer", capacity=8)
    spans.add(Kind.RECEIVE, 10, 40, 0)
    spans.mark(Kind.STORED, 20, 0)
    spans.add_rest(Kind.TAKE, 5, 0)
    found = read_back(tmp_path)
    assert found.start_ns[found.kind == Kind.TAKE].tolist() == [40]
    assert found.spans().tolist() == [True, False, True]


def test_without_room_on_the_disk_the_role_goes_on_without_a_trace(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    spans = open_spans(tmp_path, "actor-0", capacity=8)
    spans.add(Kind.STEP, 1, 2, 0)
    assert "No timeline of actor-0" in caplog.text


def test_an_item_is_one_number_that_javascript_can_hold():
    item = item_id(1000, 2**32 - 1)
    assert item < 2**53
    assert item_name(item) == "1000:4294967295"
