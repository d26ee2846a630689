"""Callbacks are called in order, in one thread, and cannot break a run."""

import sys
import threading

import pytest

import tianji
from tianji.config.run import RunConfig
from tianji.observe.callbacks.calling import CallbackCalls, needs_episodes
from tianji.observe.callbacks.interface import RunHandle
from tianji.observe.callbacks.load import NamedCallback
from tianji.types import Episode

EPISODES = [Episode(1, 10.0, 10, 0), Episode(2, 20.0, 20, 1)]


class Recorder(tianji.Callback):
    def __init__(self):
        self.told, self.threads = [], set()

    def on_version(self, run, record):
        self.threads.add(threading.get_ident())
        self.told.append(("version", record))

    def on_episode(self, run, episode):
        self.told.append(("episode", episode.episode_return))

    def on_checkpoint(self, run, record):
        self.told.append(("checkpoint", record))

    def on_end(self, run, summary):
        self.told.append(("end", summary))


class Broken(tianji.Callback):
    def on_version(self, run, record):
        raise OSError("no answer from https://me:pass@host")


class Stopper(tianji.Callback):
    def on_version(self, run, record):
        run.stop(f"version {record}")


@pytest.fixture
def reports():
    return []


def calls(tmp_path, reports, *callbacks):
    run = RunHandle(RunConfig(algorithm="ppo"), tmp_path)
    named = [NamedCallback(type(one).__name__, one) for one in callbacks]
    return CallbackCalls(named, run, reports.append)


def test_callbacks_are_told_everything_in_order_when_the_engine_has_time(tmp_path, reports):
    recorder = Recorder()
    made = calls(tmp_path, reports, recorder)
    made.version(1)
    made.episodes(EPISODES)
    made.checkpoint("saved")
    assert recorder.told == [], "whoever reports does not wait for callbacks"
    made.make()
    made.end("over")
    assert recorder.told == [
        ("version", 1), ("episode", 10.0), ("episode", 20.0), ("checkpoint", "saved"),
        ("end", "over"),
    ]  # fmt: skip
    assert reports == []


def test_several_callbacks_are_called_in_the_order_in_which_they_are_given(tmp_path, reports):
    told = []
    first, second = Recorder(), Recorder()
    first.on_version = lambda run, record: told.append(("first", record))
    second.on_version = lambda run, record: told.append(("second", record))
    made = calls(tmp_path, reports, first, second)
    made.version(1)
    made.make()
    assert told == [("first", 1), ("second", 1)]


def test_calls_that_are_due_at_the_end_come_before_on_end(tmp_path, reports):
    recorder = Recorder()
    made = calls(tmp_path, reports, recorder)
    made.checkpoint("saved")
    made.end("over")
    assert recorder.told == [("checkpoint", "saved"), ("end", "over")]


def test_what_other_threads_report_is_called_in_the_thread_of_the_engine(tmp_path, reports):
    recorder = Recorder()
    made = calls(tmp_path, reports, recorder)
    writer = threading.Thread(target=made.version, args=[1])
    writer.start()
    writer.join()
    made.make()
    assert recorder.threads == {threading.get_ident()}


def test_a_callback_that_asks_python_to_exit_does_not_end_the_run(tmp_path, reports):
    class Exits:
        def on_version(self, run, record):
            sys.exit(5)

    made = calls(tmp_path, reports, Exits())
    made.version(1)
    made.make()
    (failed,) = reports
    assert failed["text"].startswith("on_version raised SystemExit: 5. Training goes on")


def test_a_callback_that_raises_is_told_once_and_counted_and_the_others_go_on(tmp_path, reports):
    recorder = Recorder()
    made = calls(tmp_path, reports, Broken(), recorder)
    for version in (1, 2, 3):
        made.version(version)
    made.make()
    made.end("over")
    assert made.num_errors == 3
    assert [version for _, version in recorder.told] == [1, 2, 3, "over"]
    failed, counted = reports
    assert failed["kind"] == "callback_failed" and failed["role"] == "callback Broken"
    assert failed["text"].startswith("on_version raised OSError: no answer")
    assert "Traceback" in failed["traceback"]
    assert counted["text"] == "3 of its calls raised an exception."


def test_no_password_gets_into_reports(tmp_path, reports):
    made = calls(tmp_path, reports, Broken())
    made.version(1)
    made.make()
    assert "me:pass" not in str(reports) and "https://***@host" in reports[0]["text"]


def test_the_first_reason_to_stop_counts_and_is_told_once(tmp_path, reports):
    asked = []
    made = calls(tmp_path, reports, Stopper())
    made.run.ask_to_stop = lambda: asked.append(True)
    for version in (1, 2):
        made.version(version)
    made.make()
    assert asked == [True] and made.run.stop_reason == "version 1"
    (told,) = reports
    assert told["role"] == "callback Stopper" and told["text"] == "stops the run: version 1"


def test_methods_that_a_callback_lacks_are_left_out(tmp_path, reports):
    class OnlyEnd:
        ended = None

        def on_end(self, run, summary):
            self.ended = summary

    one = OnlyEnd()
    made = calls(tmp_path, reports, one)
    made.version(1)
    made.end("over")
    assert one.ended == "over" and reports == []


def test_learners_report_episodes_only_to_callbacks_that_take_them():
    def named(callback):
        return [NamedCallback("it", callback)]

    assert needs_episodes(named(Recorder()))
    assert not needs_episodes(named(Broken()))
    assert not needs_episodes([])
