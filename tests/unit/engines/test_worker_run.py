"""A worker's roles on memory that it inherited, run in this process and told to stop at once."""

import gc

from tests.fakes.replay import write_place
from tests.fakes.specs import make_spec
from tests.unit.planning.plans import REPLAY
from tianji.buffer.stores.rings import Rings
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.gauges import Gauge
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints, read_checkpoint
from tianji.engines.assembly.inproc_ends import build_stream
from tianji.engines.assembly.wiring import (
    SharedEnds,
    SharedMemory,
    replay_layout,
)
from tianji.engines.running import WorkerRun
from tianji.programs.one_group import program_for

POLICY_BYTES = 4  # the scripted model holds one number


class Rig:
    def __init__(self, run_dir, **values):
        self.spec = make_spec(run_dir, engine="local", **values)
        self.program = program_for(self.spec.config, self.spec.plan)
        self.memory = SharedMemory.create(self.program, self.spec.plan)
        self.control = self.memory.control
        self.policy_fd = self.memory.fds["policy"]
        self.control.stop(Stop.FINISH)
        self.reports = []

    def run_learner(self, resume=False, is_restart=False):
        """Build the learner's worker, publish, and end at once."""
        ends = SharedEnds(self.program, self.spec.plan, self.memory.fds)
        run = WorkerRun(self.spec, self.program, ends, "learner", self.reports.append)
        run.run(resume=resume, is_restart=is_restart)
        del run, ends
        gc.collect()  # as at the end of its process: nothing of it holds a channel any longer
        return ShmBoardReader(self.policy_fd).version()

    def of_kind(self, kind):
        return [report for report in self.reports if report["kind"] == kind]


def test_a_learner_that_is_told_to_stop_publishes_saves_and_says_that_it_is_done(tmp_path):
    rig = Rig(tmp_path)
    assert rig.run_learner() == 0
    (done,) = rig.of_kind("done")
    assert done["because"] == "interrupted"
    assert done["record"]["version"] == 0
    assert [read_checkpoint(path).version for path in list_checkpoints(tmp_path)] == [0]
    assert rig.of_kind("note") == []


def test_the_first_policy_wakes_whoever_waits_for_it(tmp_path):
    rig = Rig(tmp_path, evaluate={"period_s": 5})
    bells = [rig.control.bell(worker) for worker in ("actor-0", "evaluator")]
    for bell in bells:
        bell.wait(0.0)
        bell.arm()
    rig.run_learner()
    assert all(bell.wait(0.0) for bell in bells)


def test_a_restarted_learner_goes_on_above_what_was_published_and_says_what_is_lost(tmp_path):
    rig = Rig(tmp_path)
    rig.run_learner()
    ShmBoardWriter(rig.policy_fd, POLICY_BYTES).post(7, lambda payload: None)
    rig.control.gauges.the("learner")[Gauge.WALL_BEFORE_NS] = 5 * 10**9
    assert rig.run_learner(is_restart=True) == 8
    (told,) = rig.of_kind("restored")
    assert "from checkpoint v00000000 as version 8; what was learned after that" in told["text"]
    assert told["record"] == {"version": 0, "env_steps": 0}
    assert rig.of_kind("done")[-1]["record"]["wall_s"] == 5.0, "the clock of the run goes on"


def test_versions_do_not_fall_when_the_learner_died_before_its_first_checkpoint(tmp_path):
    rig = Rig(tmp_path)
    ShmBoardWriter(rig.policy_fd, POLICY_BYTES).post(7, lambda payload: None)
    assert rig.run_learner(is_restart=True) > 7
    (told,) = rig.of_kind("restored")
    assert "begins anew as version 8" in told["text"]
    assert told["record"] == {"version": -1, "env_steps": -1}, "all that was recorded is lost"


def test_a_resumed_learner_says_that_its_environments_begin_anew(tmp_path):
    rig = Rig(tmp_path)
    rig.run_learner()
    new = Rig(tmp_path)
    new.run_learner(resume=True)
    (note,) = new.of_kind("note")
    assert "new episodes" in note["text"]


def test_a_restarted_learner_says_that_its_replay_store_is_still_there(tmp_path):
    rig = Rig(tmp_path, algorithm=REPLAY)
    rig.run_learner()
    plan = rig.spec.plan
    layout = replay_layout(plan)
    rings, stream = Rings(layout, rig.memory.replay.memory), build_stream(plan)
    for number in range(3):
        write_place(stream.arrays, 0, 0, number * plan.unroll_length, plan.unroll_length)
        rings.put(stream.arrays, 0, lane=0, version=0)
    rig.run_learner(is_restart=True)
    (note,) = rig.of_kind("note")
    assert f"with {3 * plan.steps_per_unroll} steps" in note["text"]
    held = 3 * plan.unroll_length / (plan.num_actors * plan.replay_rows)
    assert rig.of_kind("done")[-1]["record"]["learner"]["fill"] == held
