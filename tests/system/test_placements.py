"""A worker holds any roles, in turns or on threads: with no lag the run is the same everywhere."""

import itertools
import os
import signal
import time
from dataclasses import replace

import pytest

from tests.fakes.specs import make_spec
from tests.system.commands import FOREVER, SMALL, Command
from tests.system.runs import DQN, PPO, differences, resume, run, saved_state
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.gauges import Gauge
from tianji.engines.inline import InlineEngine
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest
from tianji.programs.one_group import program_for
from tianji.programs.program import Worker

STEPS = 8  # of a version
ASKED = {"num_actors": 2, "max_env_steps": 40 * STEPS, "env_kwargs": {"spread": 5}}
EVALUATE = {"period_s": 1e-6}
PLACES = {
    "two actors in turns": ({"actor-0": "actors", "actor-1": "actors"}, "in turns"),
    "two actors on threads": (
        {"actor-0": "actors", "actor-1": "actors"},
        "on threads",
    ),
    "an evaluator with an actor": ({"evaluator": "actor-1"}, "in turns"),
    "a learner with an actor": ({"actor-0": "learner"}, "in turns"),
    "actors on the second thread of the learner": (
        {"actor-0": "learner", "actor-1": "learner"},
        "actors apart",
    ),
    "a buffer with an actor": ({"buffer": "actor-0"}, "in turns"),
}


def placed(program, moved, runs):
    counts = {
        worker: itertools.count() for worker in ("actors", *(r.worker for r in program.roles))
    }
    roles = []
    for role in program.roles:
        worker = moved.get(role.name, role.worker)
        trains = role.kind in ("buffer", "learner")
        thread = next(counts[worker]) if runs == "on threads" and not trains else 0
        if runs == "actors apart" and role.kind == "actor":
            thread = 1
        roles.append(replace(role, worker=worker, thread=thread))
    names = dict.fromkeys(role.worker for role in roles)
    return replace(program, roles=tuple(roles), workers=tuple(Worker(n, 1) for n in names))


def result(outcome):
    record = outcome["record"]
    assert outcome["because"] == "max_env_steps", outcome["first_cause"]
    assert outcome["restarts"] == 0
    return [record[key] for key in ("env_steps", "version", "episodes", "mean_return_100")]


QUICK = (
    "two actors in turns",
    "actors on the second thread of the learner",
    "a buffer with an actor",
)


@pytest.mark.parametrize(
    "place",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PLACES],
)
def test_a_run_is_the_same_wherever_its_roles_live(place, tmp_path):
    moved, runs = PLACES[place]
    asked = {**ASKED, "evaluate": EVALUATE} if "evaluator" in moved else ASKED
    serial = make_spec(tmp_path / "inline", engine="inline", **asked)
    watcher = Watcher()
    inline = InlineEngine(serial, program_for(serial.config, serial.plan), watcher)
    spec = make_spec(tmp_path / "local", engine="local", **asked)
    program = placed(program_for(spec.config, spec.plan), moved, runs)
    observer, stop = Watcher(), StopRequest()
    began_s = time.monotonic()
    local = LocalEngine(spec, program, observer).run(stop, resume=False)
    assert result(local) == result(inline.run(watcher.stop, resume=False))
    assert time.monotonic() - began_s < 60, "workers end when they are told to"


ALONE = {"source": "rule", "buffer_worker": "buffer"}
BARRIER = {"name": "sync-nigt"}


def differ(one, other):
    """Names in two checkpoints whose values differ, although they depend on no clock."""
    one, other = saved_state(one["run_dir"]), saved_state(other["run_dir"])
    names = {*one, *other}
    clocks = [name for name in names if name.endswith(("row_ns", "wall_s")) or ".actors" in name]
    return differences(one, other, but=clocks)


@pytest.mark.parametrize(
    ("algorithm", "num_actors"),
    [
        pytest.param(PPO, 1, id="ppo", marks=pytest.mark.slow),
        pytest.param(DQN, 1, id="dqn"),
        pytest.param(DQN, 2, id="dqn of two actors", marks=pytest.mark.slow),
        pytest.param(BARRIER, 2, id="sync-nigt", marks=pytest.mark.slow),
    ],
)
def test_a_buffer_in_a_worker_of_its_own_gives_the_same_bits(
    algorithm, num_actors, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    asked = {"algorithm": algorithm, "num_actors": num_actors, "max_lag": 0, "max_env_steps": 2000}
    inline = run(engine="inline", **asked)
    local = run(engine="local", plan=ALONE, **asked)
    assert local["restarts"] == 0
    for key in ("env_steps", "updates", "version", "episodes", "lag_versions", "ratio"):
        assert inline[key] == local[key], key
    assert differ(inline, local) == []


@pytest.mark.slow
def test_buffer_and_learner_start_again_together_and_the_actors_stay(tmp_path):
    words = [*FOREVER, "--env", "tianji.envs.worlds:Counting", "--plan.buffer-worker", "buffer"]
    command = Command(tmp_path, "train", *SMALL, *words)
    folder = command.run_dir / "checkpoints"
    command.wait_for(lambda: any(folder.glob("v*[1-9]")), "checkpoint")
    before = command.workers()
    before["buffer"].kill()

    def are_replaced():
        now = command.workers()
        return all(name in now and now[name] != before[name] for name in ("buffer", "learner"))

    command.wait_for(are_replaced, "replacements")
    command.wait_for_version(command.version() + 50)
    assert command.workers()["actor-0"].pid == before["actor-0"].pid
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.finish()
    assert code == 130
    assert "buffer: killed by SIGKILL. Restart 1 of 5." in err
    assert "cannot continue without buffer; both start again" in err
    summary = command.summary()
    assert (summary["restarts"], summary["stopped_because"]) == (1, "interrupted")
    steps = summary["env_steps"] + 1000
    assert resume(command.run_dir, max_env_steps=steps, engine="inline")["env_steps"] >= steps


class Killer(Watcher):
    """Kills a worker when its learner has made some versions."""

    def __init__(self, worker):
        super().__init__()
        self._worker = worker
        self._pids = {}
        self.killed = 0

    def watch(self, gauges, pids=None, **rest):
        super().watch(gauges, pids, **rest)
        self._pids = pids or {}
        self._learner = gauges.the("learner")

    def tick(self):
        super().tick()
        if not self.killed and self._learner[Gauge.VERSION] > 5 and self._worker in self._pids:
            self.killed = self._pids[self._worker]
            os.kill(self.killed, signal.SIGKILL)


def test_a_worker_with_learner_and_actors_starts_again_as_a_whole(tmp_path):
    asked = {**ASKED, "max_env_steps": 4000 * STEPS, "checkpoint": {"period_s": 0.05}}
    spec = make_spec(tmp_path / "local", engine="local", **asked)
    moved, runs = PLACES["actors on the second thread of the learner"]
    program = placed(program_for(spec.config, spec.plan), moved, runs)
    killer = Killer("learner")
    outcome = LocalEngine(spec, program, killer).run(StopRequest(), resume=False)
    assert killer.killed
    told = [report["text"] for report in killer.reports if report["kind"] == "restart"]
    assert (outcome["because"], outcome["restarts"]) == ("max_env_steps", 1), told
    assert outcome["record"]["env_steps"] >= asked["max_env_steps"]
    assert told == [
        "killed by SIGKILL. Restart 1 of 5. Actors and learner share that process and start again "
        "together, with new episodes."
    ]
