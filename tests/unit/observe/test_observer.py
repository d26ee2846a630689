"""The observer: reports in, log lines and words for people out."""

import json

import pytest

from tests.fakes.roles import ONE_ACTOR, TWO_ACTORS
from tianji import errors
from tianji.channels.gauges import Gauge, Gauges
from tianji.config.run import RunConfig
from tianji.observe import observer as module
from tianji.observe.observer import RunObserver
from tianji.observe.run_log import read_lines
from tianji.records import NO_ROUNDS, NOTHING_LEARNED

S = 10**9
RESULT = {
    "version": 7, "episodes": 10, "cut_episodes": 0, "mean_return": 300.0, "std_return": 2.5,
}  # fmt: skip
RULE = {"rule": "first", "num_gradients": 20, "times": "sqrt", "network": "none"}


class Screen:
    """What a person would see."""

    def __init__(self):
        self.records, self.events, self.calls = [], [], []

    def start(self):
        self.calls.append("start")

    def update(self, record):
        self.records.append(record)

    def event(self, text, level):
        self.events.append((text, level))

    def stop(self, whole):
        self.calls.append("stop")
        self.whole = whole


class Rig:
    def __init__(self, tmp_path, monkeypatch, gather=None, **settings):
        self.run_dir = tmp_path
        self.now_ns = 10 * S
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: self.now_ns)
        observe = {"period_s": 2.0, "tensorboard": False}
        self.built = []
        config = RunConfig(**{"algorithm": "ppo", "observe": observe, **settings})
        self.screen = Screen()
        self.observer = RunObserver(
            config, tmp_path, self.screen, gather, self.built.append, lambda: 2
        )
        self.gauges = Gauges(ONE_ACTOR)
        self.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 1

    def watch(self, **pids):
        self.observer.watch(self.gauges, pids, lambda: self.now_ns)

    def work_s(self, seconds):
        """The learner works all the time, the actor half of it."""
        self.gauges.rows["actor-0"][Gauge.BUSY_NS] += int(seconds * S / 2)
        self.gauges.rows["learner"][Gauge.BUSY_NS] += int(seconds * S)
        self.gauges.rows["learner"][Gauge.UPDATES] += 1
        self.now_ns += int(seconds * S)

    def report(self, kind, **more):
        self.observer.report({"kind": kind, "role": "actor-0", **more})

    def learned(self, **facts):
        self.report("metrics", record={**NOTHING_LEARNED, **facts})

    def metrics(self):
        return list(read_lines(self.run_dir / "metrics.jsonl"))

    def events(self):
        return list(read_lines(self.run_dir / "events.jsonl"))


@pytest.fixture
def rig(tmp_path, monkeypatch):
    made = Rig(tmp_path, monkeypatch)
    yield made
    made.observer.close()


def test_it_starts_and_stops_what_people_see(rig):
    rig.observer.start()
    rig.observer.close()
    assert rig.screen.calls == ["start", "stop"]


def test_a_record_becomes_a_line_with_what_only_this_process_knows(rig):
    rig.watch()
    rig.learned(version=1)
    rig.gauges.rows["actor-0"][Gauge.STEPS] = 30
    rig.now_ns += 1 * S
    rig.learned(version=3, env_steps=30)
    line = rig.metrics()[-1]
    assert (line["version"], line["env_steps"], line["restarts"]) == (3, 30, 0)
    assert line["rates_per_s"]["produced"] == 30.0
    assert line["activity"]["learner"] == "starting"
    assert rig.screen.events == [], "a record is no event"


def test_times_that_are_written_late_are_written_before_they_are_read(rig):
    def settle():
        rig.gauges.rows["actor-0"][Gauge.BUSY_NS] = rig.now_ns // 2

    rig.observer.watch(rig.gauges, {}, lambda: rig.now_ns, settle)
    rig.learned()
    rig.now_ns += 1 * S
    rig.learned()
    assert rig.metrics()[-1]["busy_share"]["actor-0"] == 0.5


def test_what_is_known_of_the_network_is_passed_on_and_told_to_nobody(rig):
    rig.report("built", record={"policy_board_bytes": 4096})
    assert rig.built == [{"policy_board_bytes": 4096}]
    assert rig.screen.events == [] and rig.events() == []


def test_the_memory_of_every_process_is_in_the_record_unless_it_is_gone(rig):
    import os

    rig.watch(learner=os.getpid(), gone=2**22 + 1)
    rig.learned()
    assert set(rig.metrics()[0]["rss_bytes"]) == {"learner"}
    rig.observer.watch(rig.gauges, {})
    rig.learned()
    assert rig.metrics()[1]["rss_bytes"] == {}


def test_the_display_is_refreshed_when_it_is_due(rig):
    rig.observer.tick()
    assert rig.screen.records == [], "there is nothing to look at yet"
    rig.watch()
    for passed in (0, 1, 0.999, 0.001, 1):
        rig.now_ns += int(passed * S)
        rig.observer.tick()
    assert len(rig.screen.records) == 2


def test_between_two_records_the_display_shows_the_last_one(rig):
    rig.watch()
    rig.learned(version=3)
    rig.observer.tick()
    assert rig.screen.records[-1]["version"] == 3


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("note", "info"),
        ("checkpoint_failed", "warning"),
        ("restart", "warning"),
        ("error", "error"),
    ],
)
def test_an_event_is_logged_and_told_as_urgently_as_it_is(rig, kind, level):
    rig.report(kind, text="something happened")
    assert rig.screen.events == [("actor-0: something happened", level)]
    (line,) = rig.events()
    assert (line["kind"], line["role"]) == (kind, "actor-0")
    assert line["text"] == "something happened"


def test_only_the_first_traceback_is_shown_and_all_are_logged(rig):
    for number in (1, 2):
        rig.report("error", text=f"error {number}", traceback=f"Traceback {number}")
    shown = [text for text, _ in rig.screen.events]
    assert shown == ["actor-0: error 1\nTraceback 1", "actor-0: error 2"]
    logged = [line["text"] for line in rig.events()]
    assert logged == ["error 1\nTraceback 1", "error 2\nTraceback 2"]


def test_frames_of_tianji_alone_are_logged_and_not_shown(rig):
    whole = f'Traceback:\n  File "{errors.__file__}", line 1\ntianji.errors.UsageError: no mask'
    rig.report("error", text="no mask", traceback=whole)
    assert rig.screen.events == [("actor-0: no mask", "error")]
    assert rig.events()[0]["text"] == f"no mask\n{whole}"


def test_an_environment_that_was_replaced_hides_no_later_error(rig):
    rig.report("env_failure", text="Environment 1 of 8 failed.", traceback="Traceback 1")
    rig.report("error", text="error", traceback="Traceback 2")
    shown = [text for text, _ in rig.screen.events]
    assert shown == [
        "actor-0: Environment 1 of 8 failed.\nTraceback 1",
        "actor-0: error\nTraceback 2",
    ]
    assert rig.events()[0]["text"].startswith("Environment 1 of 8 failed.")


def test_restarts_are_counted_in_every_later_record(rig):
    rig.watch()
    rig.report("restart", text="killed by SIGKILL. Restart 1 of 5.")
    rig.report("restart", text="killed by SIGKILL. Restart 2 of 5.", stops_actors=True)
    rig.report("restart", text="killed by SIGKILL. Restart 1 of 5.", stops_learner=True)
    rig.learned(version=3)
    line = rig.metrics()[0]
    counted = line["restarts"], line["learner_restarts"], line["actor_restarts"]
    assert counted == (3, 1, 1)


def test_an_evaluation_is_told_and_logged_in_words(rig):
    rig.watch()
    rig.report("evaluation", record=RESULT)
    text = "mean return 300.0 +- 2.5 over 10 episodes of version 7"
    assert rig.screen.events == [(f"evaluator: {text}", "info")]
    assert rig.events()[0]["text"] == text
    rig.observer.tick()
    assert rig.screen.records[-1]["evaluation"] == RESULT


def test_an_evaluation_is_in_the_next_line_of_metrics(rig):
    rig.watch()
    rig.learned(version=7)
    rig.report("evaluation", record=RESULT)
    rig.learned(version=8)
    assert rig.metrics()[-1]["evaluation"] == RESULT


def test_a_log_that_cannot_be_written_is_told_and_stops_nothing(rig):
    (rig.run_dir / "events.jsonl").mkdir()
    rig.report("note", text="something happened")
    assert any(level == "warning" for _, level in rig.screen.events)
    assert rig.screen.events[-1] == ("actor-0: something happened", "info")


def test_the_first_step_is_known_once_there_is_something_to_watch(rig):
    assert rig.observer.first_step_ns() == 0
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 5
    rig.watch()
    assert rig.observer.first_step_ns() == 5


def test_an_imbalance_that_is_over_is_good_news(rig):
    rig.report("imbalance", text="slower than before", record={"is_over": False})
    rig.report("imbalance", text="as fast as before", record={"is_over": True})
    assert rig.screen.events == [
        ("actor-0: slower than before", "warning"), ("actor-0: as fast as before", "info")
    ]  # fmt: skip


def test_the_clock_runs_while_the_first_environment_step_hangs(rig):
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = rig.now_ns
    rig.gauges.rows["actor-0"][Gauge.HEARTBEAT_NS] = rig.now_ns
    rig.watch()
    rig.now_ns += 40 * S
    rig.observer.tick()
    shown = rig.screen.records[-1]
    assert (shown["wall_s"], shown["silent_s"]) == (40.0, {"actor-0": 40.0})


def test_the_clock_runs_on_from_the_last_record_and_stops_with_the_run(rig):
    rig.watch()
    rig.learned(wall_s=7.0)
    rig.now_ns += 3 * S
    rig.observer.tick()
    assert rig.screen.records[-1]["wall_s"] == 10.0
    rig.learned(wall_s=10.5)
    rig.now_ns += 2 * S
    rig.observer.finish()
    assert rig.screen.records[-1]["wall_s"] == 10.5
    assert [line["wall_s"] for line in rig.metrics()] == [7.0, 10.5], (
        "the log has what was recorded"
    )


def test_the_clock_of_a_resumed_run_begins_where_it_stood(tmp_path, monkeypatch):
    (tmp_path / "metrics.jsonl").write_text('{"wall_s": 60.0}\n')
    rig = Rig(tmp_path, monkeypatch)
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 0
    rig.watch()
    rig.now_ns += 3 * S
    rig.observer.tick()
    assert rig.screen.records[-1]["wall_s"] == 60.0
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = rig.now_ns
    rig.now_ns += 3 * S
    rig.observer.tick()
    assert rig.screen.records[-1]["wall_s"] == 63.0


def test_the_record_of_the_whole_run_begins_with_the_first_version(rig):
    rig.watch()
    rig.learned(version=0)
    for version in range(1, 6):
        rig.work_s(2)
        rig.learned(version=version)
    whole = rig.observer.whole_run()
    assert (whole["version"], whole["span_s"]) == (5, 8.0)
    assert set(whole["waited_s"]) == {"actor-0", "learner"} and whole["usable_cores"] == 2
    rig.observer.close()
    assert rig.screen.whole == whole, "it is what the screen explains at the end"


def test_a_run_of_which_nothing_is_known_has_a_record_all_the_same(rig):
    whole = rig.observer.whole_run()
    assert (whole["span_s"], whole["waited_s"], whole["env_steps"]) == (0.0, {}, 0)


def test_another_engine_goes_on_with_other_gauges_and_the_same_first_step(rig):
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 5
    rig.watch()
    rig.learned()
    rig.gauges = Gauges(TWO_ACTORS)
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 9
    rig.watch()
    rig.learned()
    assert "actor-1" in rig.metrics()[-1]["busy_share"]
    assert rig.observer.first_step_ns() == 5


GATHERED = {**NO_ROUNDS, "counts": [4], "waiting_for": [0], "late": [0], "open_s": 0.1}


@pytest.mark.parametrize(("engine", "share"), [("local", 0.25), ("virtual", None)])
def test_what_the_buffer_gathered_is_completed_by_the_gauges(tmp_path, monkeypatch, engine, share):
    rig = Rig(tmp_path, monkeypatch, RULE, algorithm="rennala-nigt", engine=engine)
    rig.watch()
    rig.learned(version=1, gather=GATHERED)
    rig.gauges.rows["actor-0"][Gauge.STEPS] += 30
    rig.gauges.rows["actor-0"][Gauge.DISCARDED_STEPS] += 10
    rig.work_s(2)
    rig.learned(version=2, gather=GATHERED)
    found = list(read_lines(tmp_path / "metrics.jsonl"))[-1]["gather"]
    assert (found["rule"], found["num_gradients"], found["times"]) == ("first", 20, "sqrt")
    assert (found["counts"], found["waiting_for"]) == ([4], [0])
    assert found["late"] == ([] if engine == "virtual" else [0]), "simulated actors are in time"
    assert (found["discarded_step_share"], found["rounds_per_s"]) == (share, 0.5)
    assert rig.observer.whole_run()["gather"]["counts"] == [4]


def test_algorithms_that_gather_nothing_have_no_rounds(rig):
    rig.watch()
    rig.learned(version=1)
    rig.work_s(2)
    rig.learned(version=2)
    assert "gather" not in list(read_lines(rig.run_dir / "metrics.jsonl"))[-1]
    assert "gather" not in rig.observer.whole_run()


def test_it_says_how_many_steps_a_dead_learner_has_lost(rig):
    rig.watch()
    rig.learned(version=3, env_steps=1000)
    rig.learned(version=9, env_steps=3500)
    saved = {"version": 3, "env_steps": 1000}
    rig.report("restored", text="Continuing from checkpoint v00000003.", record=saved)
    (told,) = [event["text"] for event in rig.events() if event["kind"] == "restored"]
    assert "That is at least 2,500 environment steps. Its records (1) were moved" in told


def test_a_run_whose_main_process_was_killed_says_what_that_cost(tmp_path, monkeypatch):
    lines = [{"version": version, "env_steps": 1000 * version} for version in (3, 5)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    rig = Rig(tmp_path, monkeypatch)
    saved = {"version": 3, "env_steps": 3000}
    rig.report("restored", text="Continuing from checkpoint v00000003.", record=saved)
    (told,) = [event["text"] for event in rig.events() if event["kind"] == "restored"]
    assert "That is at least 2,000 environment steps. Its records (1) were moved" in told


def test_a_run_that_was_stopped_in_order_has_lost_no_steps(rig):
    rig.watch()
    rig.learned(version=3, env_steps=1000)
    saved = {"version": 3, "env_steps": 1000}
    rig.report("restored", text="Continuing from checkpoint v00000003.", record=saved)
    (told,) = [event["text"] for event in rig.events() if event["kind"] == "restored"]
    assert told == "Continuing from checkpoint v00000003."
