"""Span files to one trace file."""

import gzip
import json

import pytest

from tianji.trace.merge import TRACE_FILE, merge_in_words, merge_spans
from tianji.trace.spans import NOTHING, SPANS_FOLDER, Kind, open_spans


def record(folder, capacity=16):
    """One actor and one learner with a round trip between them."""
    actor = open_spans(folder, "actor-0", capacity)
    learner = open_spans(folder, "learner", capacity)
    learner.add(Kind.PUBLISH, 1_000, 2_500, 0)
    actor.add(Kind.PICK_UP, 2_600, 2_700, 0)
    actor.add(Kind.BEGIN, 2_700, 2_800, 3)
    actor.add(Kind.SEND, 3_000, 3_100, 3)
    learner.add(Kind.RECEIVE, 3_050, 3_200, 3)
    learner.add(Kind.WAIT, 3_200, 1_003_200, NOTHING)
    return actor


def events(path):
    with gzip.open(path, "rt") as file:
        return json.load(file)["traceEvents"]


def test_the_file_says_what_was_when(tmp_path):
    record(tmp_path)
    merged = merge_spans(tmp_path)
    found = {e["name"]: e for e in events(merged.path) if e["ph"] == "X"}
    assert (found["publish"]["ts"], found["publish"]["dur"]) == (0.0, 1.5)
    assert found["publish"]["args"] == {"version": 0}
    assert found["write"]["args"] == {"item": "0:3", "part": "send"}
    assert "args" not in found["wait"]
    assert found["wait"]["dur"] == 1000.0


def test_arrows_begin_and_end_within_spans_of_their_track(tmp_path):
    record(tmp_path)
    found = events(merge_spans(tmp_path).path)
    spans = [e for e in found if e["ph"] == "X"]
    ends = [e for e in found if e["ph"] in "stf"]
    assert sorted(e["name"] + e["ph"] for e in ends) == ["itemf", "items", "policyf", "policys"]
    for end in ends:
        assert any(
            span["tid"] == end["tid"] and span["ts"] < end["ts"] < span["ts"] + span["dur"]
            for span in spans
        ), end


def test_tracks_have_names(tmp_path):
    record(tmp_path)
    found = [e for e in events(merge_spans(tmp_path).path) if e["ph"] == "M"]
    assert {e["args"].get("name") for e in found if e["name"] == "thread_name"} == {
        "actor-0", "learner",
    }  # fmt: skip
    assert [e["args"]["name"] for e in found if e["name"] == "process_name"] == [
        "actor-0 + learner"
    ]


def test_span_files_are_gone_afterwards(tmp_path):
    record(tmp_path)
    merge_spans(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [TRACE_FILE]


def test_a_trace_that_is_there_stays(tmp_path):
    for name in (TRACE_FILE, "trace-2.json.gz", "trace-3.json.gz"):
        record(tmp_path)
        assert merge_spans(tmp_path).path.name == name
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("is_there", [False, True])
def test_where_nothing_was_recorded_nothing_is_written(tmp_path, is_there):
    if is_there:
        open_spans(tmp_path, "actor-0", 16)
    assert merge_spans(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert merge_in_words(tmp_path) == "The trace is empty: no role did anything."


def test_what_fell_out_is_said(tmp_path):
    actor = record(tmp_path, capacity=8)
    for start in range(5_000, 5_020):
        actor.add(Kind.STEP, start, start + 1, 3)
    text = merge_in_words(tmp_path)
    assert "older ones fell out: actor-0 16." in text
    with gzip.open(tmp_path / TRACE_FILE, "rt") as file:
        assert json.load(file)["otherData"]["fell_out"] == {"actor-0": 16}


def test_a_disk_that_is_full_is_said_and_keeps_the_spans(tmp_path, monkeypatch):
    record(tmp_path)

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gzip, "open", refuse)
    assert "No space left on device" in merge_in_words(tmp_path)
    assert len(list((tmp_path / SPANS_FOLDER).iterdir())) == 2
