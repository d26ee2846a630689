"""Training alone: unrolls are delivered by hand, checkpoints are real."""

import json
import shutil
import threading
import time

import numpy as np
import pytest

from tests.fakes.specs import make_spec
from tianji.channels.gauges import CARRIED, Gauge
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints, read_checkpoint
from tianji.engines.assembly.inproc_ends import InprocEnds, build_stream
from tianji.engines.assembly.roles import Roles
from tianji.learner.training import CUT_SHORT
from tianji.programs.one_group import program_for
from tianji.types import Stamp

STEPS = 8  # of an unroll: 4 rows, 2 environments
UPDATES = 2  # of the scripted algorithm, for every batch


class Rig:
    def __init__(self, run_dir, actor_states=lambda: None, now_ns=time.monotonic_ns, **values):
        values = {"checkpoint": {"period_s": 1e9}, **values}
        self.spec = make_spec(run_dir, **values)
        program = program_for(self.spec.config, self.spec.plan)
        ends = InprocEnds(program, build_stream(self.spec.plan))
        self.gauges = ends.gauges
        self.sender = ends.sender(program.of_kind("actor")[0])
        self.reports = []
        self.written = threading.Semaphore(0)
        roles = Roles(self.spec, program, ends, self._report, now_ns)
        self.training = roles.training(program.of_kind("learner")[0], actor_states)
        self.buffer, self.learner = self.training.group.buffer, self.training.group.learner
        self.writer = self.training._checkpoints._writer
        self.board = ends.policy_reader(program.of_kind("learner")[0])

    def _report(self, report):
        self.reports.append(report)
        if report["kind"] == "checkpoint_written":
            self.written.release()

    def start(self):
        """Start, and wait for the first checkpoint: a later one would take its place."""
        self.training.start()
        assert self.written.acquire(timeout=60)

    def send(self, episode_return=None, oldest=None):
        """The actor's next unroll; with a return, an episode ends in its last row."""
        self.buffer.tick()
        grant = self.sender.reserve()
        unroll = self.sender.unroll(grant.slot)
        unroll["valid"][:] = True
        unroll["episode_length"][:] = 0
        if episode_return is not None:
            unroll["episode_return"][3, 0] = episode_return
            unroll["episode_length"][3, 0] = 4
        version = self.learner.version
        oldest = version if oldest is None else oldest
        self.sender.send(grant.slot, Stamp(0, grant.round, oldest, version, STEPS, 0, 0))

    def make_version(self, episode_return=None):
        self.send(episode_return)
        while self.training.tick():
            pass

    def published(self):
        seen = []
        self.board.latest(lambda payload: seen.append(float(payload.view(np.float32)[0])))
        return seen[0]

    def of_kind(self, kind):
        return [report for report in self.reports if report["kind"] == kind]


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    made.start()
    yield made
    made.writer.close()


def versions_saved(run_dir):
    return [read_checkpoint(path).version for path in list_checkpoints(run_dir)]


def test_the_start_publishes_the_first_version_and_saves_it(rig, tmp_path):
    assert rig.board.version() == 0
    assert rig.published() == 0.0
    assert versions_saved(tmp_path) == [0]
    assert "v00000000" in rig.of_kind("checkpoint_written")[0]["text"]


def test_a_batch_that_arrived_becomes_a_version_and_a_line_of_metrics(rig):
    assert not rig.training.tick()
    rig.make_version()
    assert rig.board.version() == 1
    assert rig.published() == UPDATES, "what is published is the model after its updates"
    (report,) = rig.of_kind("metrics")
    record = report["record"]
    assert (record["version"], record["updates"], record["env_steps"]) == (1, UPDATES, STEPS)
    assert record["learner"] == {"loss": 1.0}
    assert record["lag_versions"] == {"mean": 0.0, "p95": 0, "max": 0}
    assert record["ratio"] == {"target": 1.0, "actual": 1.0}


def test_a_deleted_checkpoint_is_looked_for_with_every_report_and_no_more_often(tmp_path):
    observe = {"display": "off", "tensorboard": False, "period_s": 1e6}
    rig = Rig(tmp_path, observe=observe)
    rig.start()
    looks = []
    rig.writer.finds_loss = lambda: looks.append(rig.learner.version)
    for _ in range(3):
        rig.make_version()
    assert looks == [1]
    rig.training.close(save=False)


def test_metrics_come_no_more_often_than_they_were_asked_for(tmp_path):
    observe = {"display": "off", "tensorboard": False, "period_s": 1e6}
    rig = Rig(tmp_path, observe=observe)
    rig.start()
    for _ in range(3):
        rig.make_version()
    assert len(rig.of_kind("metrics")) == 1, "the first version is shown at once"
    rig.training.close(save=False)


def test_checkpoints_are_written_when_they_are_due(tmp_path, monkeypatch):
    now_ns = [10**9]
    rig = Rig(tmp_path, now_ns=lambda: now_ns[0], checkpoint={"period_s": 5.0})
    rig.start()
    saved = []
    monkeypatch.setattr(rig.writer, "submit", lambda snapshot: saved.append(snapshot.version))
    for step_s in (3, 1, 1, 4, 1):
        now_ns[0] += step_s * 10**9
        rig.make_version()
    assert saved == [3, 5]
    rig.writer.close()


def test_a_checkpoint_that_was_deleted_is_written_again_with_the_next_version(rig, tmp_path):
    shutil.rmtree(tmp_path)
    rig.make_version()
    assert rig.of_kind("checkpoint_failed") == [], "there is no folder to write to"
    tmp_path.mkdir()
    rig.make_version()
    assert rig.written.acquire(timeout=60)
    rig.make_version()
    rig.writer.close()
    assert versions_saved(tmp_path) == [2], "once"


def test_a_checkpoint_of_a_run_whose_folder_is_gone_makes_no_folder(rig, tmp_path):
    shutil.rmtree(tmp_path)
    rig.make_version()
    rig.training.close(save=True)
    assert "was not written" in rig.of_kind("checkpoint_failed")[0]["text"]
    assert not tmp_path.exists()


def test_a_run_does_not_stop_inside_a_version(rig):
    rig.training.progress.env_steps = rig.spec.config.max_env_steps
    assert rig.training.ended(Stop.NO) == "max_env_steps"
    rig.send()
    rig.training.tick()
    assert not rig.learner.is_between_versions
    assert rig.training.ended(Stop.NO) is None


def test_a_version_that_goes_on_after_the_time_limit_is_cut_short_once(tmp_path):
    now_ns = [10**9]
    rig = Rig(tmp_path, now_ns=lambda: now_ns[0], max_wall_s=5.0)
    rig.start()
    rig.training.progress.started_ns = now_ns[0]
    rig.send()
    rig.training.tick()
    told = []
    for step_s in (5, 0.5, 1, 1):
        now_ns[0] += int(step_s * 1e9)
        assert rig.training.ended(Stop.NO) is None, "the version in work is published first"
        told.append([note["text"] for note in rig.of_kind("note")])
    assert told == [[], [], [CUT_SHORT], [CUT_SHORT]]
    updates = rig.training.record(now_ns[0])["updates"]
    rig.training.tick()
    assert rig.learner.is_between_versions
    assert rig.training.record(now_ns[0])["updates"] == updates, "no update follows"
    assert rig.training.ended(Stop.NO) == "max_wall"
    rig.writer.close()


def test_training_time_counts_from_the_first_step_of_any_actor(rig):
    rig.training.ended(Stop.NO)
    assert rig.training.record(50)["wall_s"] == 0.0
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 2 * 10**9
    assert rig.training.record(5 * 10**9)["wall_s"] == 3.0
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 4 * 10**9
    assert rig.training.record(5 * 10**9)["wall_s"] == 3.0, "a replaced actor begins no new run"


def test_closing_saves_the_last_version_unless_it_must_stop_now(tmp_path):
    for name, save, expected in (("kept", True, [0, 1]), ("left", False, [0])):
        rig = Rig(tmp_path / name)
        rig.start()
        rig.make_version()
        record = rig.training.close(save=save)
        assert record["version"] == 1
        assert rig.of_kind("metrics")[-1]["record"] == record
        assert versions_saved(tmp_path / name) == expected


def test_a_version_that_is_half_made_is_not_saved(tmp_path, monkeypatch):
    rig = Rig(tmp_path)
    rig.start()
    rig.send()
    rig.training.tick()
    saved = []
    monkeypatch.setattr(rig.writer, "submit", saved.append)
    rig.training.close(save=True)
    assert saved == []


def test_the_last_record_has_the_rates_of_the_whole_session(tmp_path):
    now_ns = [10**9]
    rig = Rig(tmp_path, now_ns=lambda: now_ns[0])
    rig.start()
    rig.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 2 * 10**9
    rig.gauges.rows["actor-0"][Gauge.STEPS] = 40
    rig.gauges.rows["actor-0"][Gauge.BUSY_NS] = 10**9
    for _ in range(3):
        rig.make_version()
    now_ns[0] = 6 * 10**9
    record = rig.training.close(save=False)
    assert record["rates_per_s"] == {
        "produced": 10.0, "received": 3 * STEPS / 4, "trained": 3 * UPDATES * (STEPS // 2) / 4,
        "unique_trained": 3 * STEPS / 4,
    }  # fmt: skip
    assert record["busy_share"]["actor-0"] == 0.25
    assert record["busy_s"]["actor-0"] == 1.0


def saved_run(tmp_path, versions=3, actor_states=lambda: None):
    rig = Rig(tmp_path, actor_states)
    rig.start()
    for number in range(versions):
        rig.make_version(episode_return=float(number))
    rig.training.close(save=True)
    return rig


def test_a_resumed_training_goes_on_where_the_checkpoint_was(tmp_path):
    old = saved_run(tmp_path, actor_states=lambda: {"actor-0": {"at": 7}})
    new = Rig(tmp_path)
    assert new.training.resume(highest_version=-1) == {"actor-0": {"at": 7}}
    new.start()
    assert (new.board.version(), new.published()) == (3, 3 * UPDATES)
    one, other = old.training.record(0), new.training.record(0)
    for key in ("env_steps", "updates", "version", "episodes", "mean_return_100"):
        assert one[key] == other[key], key
    assert other["lag_histogram"] == [3]
    assert other["ratio"]["actual"] == 1.0
    row = new.gauges.rows["learner"]
    for gauge, carried in CARRIED.items():
        assert row[gauge] == row[carried] == old.gauges.rows["learner"][gauge] > 0
    new.make_version()
    assert new.board.version() == 4
    assert new.training.group._update.state()["seen"] == 4
    assert new.buffer.state()["rounds"] == [4]
    new.training.close(save=False)


def test_rates_of_a_resumed_session_leave_out_what_was_trained_before(tmp_path):
    saved_run(tmp_path)
    now_ns = [10**9]
    new = Rig(tmp_path, now_ns=lambda: now_ns[0])
    new.training.resume(highest_version=-1)
    new.start()
    new.gauges.rows["actor-0"][Gauge.FIRST_STEP_NS] = 10**9
    new.make_version()
    now_ns[0] = 2 * 10**9
    rates = new.training.close(save=False)["rates_per_s"]
    assert rates["trained"] == UPDATES * (STEPS // 2)
    assert rates["unique_trained"] == STEPS


def test_versions_never_fall_below_what_was_published(tmp_path):
    saved_run(tmp_path)
    new = Rig(tmp_path)
    new.gauges.rows["learner"][Gauge.UPDATES] = lost = 100  # by the one that died
    new.training.resume(highest_version=9)
    row = new.gauges.rows["learner"]
    assert row[Gauge.UPDATES] - row[Gauge.CARRIED_UPDATES] == lost, "they were made all the same"
    new.start()
    assert new.board.version() == 10
    new.send(oldest=9)
    new.training.tick()
    assert new.buffer.discarded == 1, "lag is counted from where it goes on"
    new.make_version()
    assert new.board.version() == 11
    new.training.close(save=False)


def test_a_version_that_a_killed_run_has_reported_is_not_used_again(tmp_path):
    saved_run(tmp_path)
    for name, version in (("metrics.jsonl", 5), ("metrics-lost.jsonl", 8)):
        (tmp_path / name).write_text(json.dumps({"version": version, "env_steps": 99}) + "\n")
    new = Rig(tmp_path)
    new.training.resume(highest_version=-1)
    new.start()
    assert (new.board.version(), new.published()) == (9, 3 * UPDATES)
    (told,) = new.of_kind("restored")
    assert told["record"] == {"version": 3, "env_steps": 3 * STEPS}
    assert "checkpoint v00000003 as version 9" in told["text"]
    new.training.close(save=False)


def test_a_damaged_checkpoint_is_passed_over_and_that_is_said(tmp_path):
    saved_run(tmp_path)
    newest = list_checkpoints(tmp_path)[-1]
    (newest / "weights.safetensors").write_bytes(b"torn")
    new = Rig(tmp_path)
    new.training.resume(highest_version=-1)
    assert new.learner.version == 4, "version 3 was written, and is not used again"
    (told,) = new.of_kind("restored")
    assert newest.name in told["text"]
    new.writer.close()


def test_a_mean_of_few_episodes_is_no_claim_to_be_the_best(tmp_path):
    saved_run(tmp_path, versions=3)
    manifests = [read_checkpoint(path).facts for path in list_checkpoints(tmp_path)]
    assert [facts["mean_return_100"] for facts in manifests] == [None, None]
    assert [facts["env_steps"] for facts in manifests] == [0, 3 * STEPS]
