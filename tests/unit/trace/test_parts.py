"""What roles are built from, with a trace and without."""

import gc

import pytest

from tests.fakes.specs import make_spec
from tianji.channels.gauges import Gauges
from tianji.engines.inline import InlineEngine
from tianji.programs.one_group import program_for
from tianji.trace.parts import Traced, trace_bell, trace_sender
from tianji.trace.spans import SPANS_FOLDER, Kind, Spans, open_spans, read_spans

QUIET = {"display": "off", "tensorboard": False, "period_s": 1e-9}


class Observer:
    def report(self, report):
        pass

    def watch(self, gauges: Gauges, pids=None, now_ns=None, settle=None):
        pass

    def tick(self):
        pass


def build(run_dir, trace):
    observe = {**QUIET, "trace": trace}
    spec = make_spec(run_dir, observe=observe, evaluate={"period_s": 1.0})
    return InlineEngine(spec, program_for(spec.config, spec.plan), Observer())


def held_by(root):
    """Everything that can be reached from an object, by any reference but a module's or class's."""
    seen, rest = {}, [root]
    while rest:
        thing = rest.pop()
        if id(thing) in seen or isinstance(thing, type | type(pytest)):
            continue
        seen[id(thing)] = thing
        if not callable(thing) or hasattr(thing, "__closure__") or hasattr(thing, "__self__"):
            rest += [x for x in gc.get_referents(thing) if not _is_globals(x)]
    return seen.values()


def _is_globals(thing):
    return isinstance(thing, dict) and "__builtins__" in thing


def test_without_a_trace_there_is_no_wrapper_anywhere(tmp_path):
    held = held_by(build(tmp_path, trace=False))
    assert not [thing for thing in held if isinstance(thing, Traced | Spans)]
    assert not (tmp_path / SPANS_FOLDER).exists()


def test_with_a_trace_every_role_has_spans(tmp_path):
    held = list(held_by(build(tmp_path, trace=True)))
    assert len([thing for thing in held if isinstance(thing, Spans)]) == 4
    # An actor keeps its world, policy, sender and acting.
    assert len([thing for thing in held if isinstance(thing, Traced)]) == 4 + 3 + 2 + 4
    names = {path.name.rsplit("-", 2)[0] for path in (tmp_path / SPANS_FOLDER).iterdir()}
    assert names == {"actor-0", "buffer", "learner", "evaluator"}


class Bell:
    def wait(self, timeout_s):
        return timeout_s > 1.0

    def ring(self):
        return "rung"


class EmptySender:
    def __init__(self):
        self.awaits_reply = False

    def is_waiting(self):
        return self.awaits_reply

    def reserve(self):
        return None

    def send(self, slot, stamp):
        pass


def test_a_sleep_is_paced_only_when_a_grant_was_refused(tmp_path):
    spans = open_spans(tmp_path, "actor-0", 16)
    lane = EmptySender()
    bell, sender = trace_bell(Bell(), spans), trace_sender(lane, 0, spans)
    assert (bell.wait(0.5), bell.wait(2.0), bell.ring()) == (False, True, "rung")
    assert sender.reserve() is None
    bell.wait(0.5)
    bell.wait(0.5)
    lane.awaits_reply = True
    assert sender.reserve() is None
    bell.wait(0.5)
    (path,) = (tmp_path / SPANS_FOLDER).iterdir()
    kinds = [Kind.WAIT, Kind.WAIT, Kind.PACED, Kind.WAIT, Kind.WAIT]
    assert read_spans(path).kind.tolist() == kinds


def test_a_wrapper_shows_the_parts_own_state(tmp_path):
    part = Bell()
    part.count = 1
    traced = Traced(part, {})
    assert traced.count == 1
    part.count = 2
    assert traced.count == 2
    assert traced.ring() == "rung"
