"""A group that an agent runs, with agents that do what the test says."""

import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.gauges import Gauge, Gauges
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints
from tianji.config.machine import read_machine
from tianji.engines.agents.files import pack
from tianji.engines.agents.messages import Answer, GroupOrder, Shipped, to_bytes
from tianji.engines.agents.remote import HostLost, RemoteEngine
from tianji.engines.inline import InlineEngine
from tianji.engines.signals import StopRequest
from tianji.programs.one_group import program_for
from tianji.records import LinkFigures

DONE = {"because": "max_env_steps", "record": None, "restarts": 2, "first_cause": None}


class ScriptedAgent:
    """Answers in turn; an exception is raised."""

    host, address = "host", "10.0.0.7"

    def __init__(self, *answers):
        self._answers = list(answers)
        self.orders, self.stops, self.is_closed = [], [], False

    def start(self, order):
        self.orders.append(GroupOrder.decode(order))

    def machine(self):
        return read_machine()

    def poll(self, question):
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self, level):
        self.stops.append(level)

    def close(self):
        self.is_closed = True


def answer(outcome=None, reports=(), gauges=b"", checkpoint=None, now_ns=0, links=()):
    return Answer(list(reports), gauges, now_ns, outcome, checkpoint, links=list(links))


@pytest.fixture
def spec(tmp_path):
    return make_spec(tmp_path, num_envs=4, num_actors=2, max_env_steps=64)


def follow(spec, *agents, stop=None):
    waiting, watcher = list(agents), Watcher()
    program = program_for(spec.config, spec.plan)
    engine = RemoteEngine(spec, program, watcher, lambda group, is_wanted: waiting.pop(0))
    outcome = engine.run(stop or StopRequest(), resume=False)
    assert all(agent.is_closed for agent in agents[: len(agents) - len(waiting)])
    return outcome, watcher


def test_reports_and_gauges_reach_the_observer(spec):
    gauges = Gauges(program_for(spec.config, spec.plan).kinds())
    gauges.rows["learner"][Gauge.UPDATES] = 11
    note = {"kind": "note", "role": "learner", "text": "hello"}
    agent = ScriptedAgent(answer(reports=[note]), answer(DONE, gauges=to_bytes(gauges)))
    outcome, watcher = follow(spec, agent)
    assert outcome == {**DONE, "links": {}}
    assert watcher.texts("note") == ["hello"]
    assert watcher.gauges.rows["learner"][Gauge.UPDATES] == 11
    ((order, shipped, posts),) = agent.orders
    assert (order.resume, shipped, posts) == (False, [], [])
    assert order.address == "10.0.0.7", "learners of other hosts reach this one there"


def test_a_stop_is_passed_on_once(spec):
    stop = StopRequest()
    stop.ask()
    agent = ScriptedAgent(answer(), answer(), answer(DONE))
    _, watcher = follow(spec, agent, stop=stop)
    assert agent.stops == [Stop.FINISH]
    assert watcher.texts("note") == [stop.note], "the person is told, once"


def test_a_lost_host_costs_what_was_not_saved(spec):
    """The first agent loses its host before there is a checkpoint, the second one after."""
    InlineEngine(spec, program_for(spec.config, spec.plan), Watcher()).run(StopRequest(), False)
    *others, newest = list_checkpoints(spec.run_dir)
    shipped = Shipped(newest.name, pack(newest))
    for path in (*others, newest):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    lost = HostLost("host was lost.")
    first, second = ScriptedAgent(lost), ScriptedAgent(answer(checkpoint=shipped), lost)
    third = ScriptedAgent(answer(DONE))
    outcome, watcher = follow(spec, first, second, third)
    assert outcome["restarts"] == DONE["restarts"] + 2
    assert [order.resume for agent in (first, second, third) for order, *_ in agent.orders] == [
        False, False, True,
    ]  # fmt: skip
    assert third.orders[0][1] == [shipped]
    assert [path.name for path in list_checkpoints(spec.run_dir)] == [newest.name]
    assert "host was lost. Restart 1 of 5" in watcher.texts("restart")[0]


def test_hosts_that_are_lost_again_and_again_end_the_run(spec):
    agents = [ScriptedAgent(HostLost("host was lost.")) for _ in range(6)]
    outcome, _ = follow(spec, *agents)
    assert (outcome["because"], outcome["first_cause"]) == ("failed", "host was lost.")


def test_what_has_crossed_counts_on_when_the_learners_host_was_replaced(spec):
    lost = HostLost("host was lost.")
    first = ScriptedAgent(
        answer(links=[LinkFigures(1, 10, 20, 3)]),
        answer(links=[LinkFigures(1, 100, 200, 30)]),
        lost,
    )
    second = ScriptedAgent(answer(links=[LinkFigures(1, 7, 8, 2)]), answer(DONE))
    outcome, _ = follow(spec, first, second)
    assert outcome["links"] == {1: LinkFigures(1, 107, 208, 32)}
