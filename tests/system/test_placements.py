"""A worker holds any roles, in turns or on threads: with no lag the run is the same everywhere."""

import time
from dataclasses import replace

import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.engines.inline import InlineEngine
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest
from tianji.programs.program import Worker, program_for

STEPS = 8  # of a version
ASKED = {"num_actors": 2, "max_env_steps": 40 * STEPS, "env_kwargs": {"spread": 5}}
EVALUATE = {"period_s": 1e-6}
PLACES = {
    "two actors in turns": ({"actor-0": "actors", "actor-1": "actors"}, "in turns"),
    "two actors on threads, as the buffer": (
        {"actor-0": "actors", "actor-1": "actors"},
        "on threads",
    ),
    "an evaluator with an actor": ({"evaluator": "actor-1"}, "in turns"),
    "a learner with an actor": ({"actor-0": "learner"}, "in turns"),
}


def placed(program, moved, runs):
    roles = tuple(replace(role, worker=moved.get(role.name, role.worker)) for role in program.roles)
    names = dict.fromkeys(role.worker for role in roles)
    return replace(program, roles=roles, workers=tuple(Worker(n, 1, runs) for n in names))


def result(outcome):
    record = outcome["record"]
    assert outcome["because"] == "max_env_steps", outcome["first_cause"]
    assert outcome["restarts"] == 0
    return [record[key] for key in ("env_steps", "version", "episodes", "mean_return_100")]


@pytest.mark.parametrize("place", PLACES)
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
