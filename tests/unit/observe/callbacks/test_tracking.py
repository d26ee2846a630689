"""Trackers send in a thread of their own, and keep the ids of runs."""

import threading

import pytest

from tianji.observe.callbacks.tracking import Tracker, keep_id, kept_id, plain_values


class Service(Tracker):
    """Answers when the test says so."""

    def __init__(self):
        super().__init__()
        self.may_answer, self.sent = threading.Event(), []

    def log(self, run, record):
        self.may_answer.wait()
        if record == "bad":
            raise OSError("refused")
        self.sent.append(record)

    def close(self, run, summary):
        self.sent.append(summary)


def test_nobody_waits_for_a_slow_service_before_the_end():
    service = Service()
    for record in ("one", "two"):
        service.on_version(None, record)
    assert service.sent == []
    service.may_answer.set()
    service.on_end(None, "over")
    assert service.sent == ["one", "two", "over"]


def test_an_error_of_the_service_is_raised_by_a_later_call_and_the_rest_is_sent():
    service = Service()
    service.may_answer.set()
    service.on_version(None, "bad")
    service._due.put(None)
    service._thread.join()
    service._thread = None
    with pytest.raises(OSError, match="refused"):
        service.on_version(None, "good")
    service.on_end(None, "over")
    assert service.sent == ["good", "over"]


def test_a_run_keeps_its_id_in_every_tracker(tmp_path):
    assert kept_id(tmp_path, "wandb") is None
    keep_id(tmp_path, "wandb", "a1")
    keep_id(tmp_path, "mlflow", "b2")
    assert (kept_id(tmp_path, "wandb"), kept_id(tmp_path, "mlflow")) == ("a1", "b2")
    (tmp_path / "trackers.json").write_text("[]")
    assert kept_id(tmp_path, "wandb") is None


def test_only_numbers_and_words_of_a_summary_are_sent():
    summary = {"env": "X", "wall_s": 1.5, "can_be_filmed": True, "checkpoint": None, "groups": []}
    assert plain_values(summary) == {"env": "X", "wall_s": 1.5}
