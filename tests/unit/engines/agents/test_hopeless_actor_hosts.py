"""A group whose actors on other hosts fail, with agents that do what the test says."""

import threading
import time
from dataclasses import replace

import pytest

from tests.fakes.specs import make_spec
from tests.unit.engines.test_inline_engine import Watcher
from tianji.channels.orders import Stop
from tianji.engines.agents import actor_hosts
from tianji.engines.agents.interface import HostLost, RunLost
from tianji.engines.agents.messages import Answer, Door, Question
from tianji.engines.agents.remote import RemoteEngine
from tianji.engines.agents.spanning import Expected
from tianji.engines.signals import StopRequest
from tianji.errors import UsageError
from tianji.programs.one_group import program_for

INTERRUPTED = {"because": "interrupted", "record": None, "restarts": 0, "first_cause": None}


class Home:
    """The agent of the learner's host; it ends when it is told to, or after some polls."""

    host = address = "home"

    def __init__(self, polls=10_000, lost=None):
        self.stops, self._polls, self._lost = [], polls, lost

    def start(self, order):
        return Door(["home"], 1)

    def expect(self, host):
        return Expected(f"host {host}", [0])

    def poll(self, question):
        time.sleep(0.001)
        self.given_up = Question.decode(question.encode()).given_up
        self._polls -= 1
        if not self._polls and self._lost:
            raise self._lost
        return Answer([], b"", 0, INTERRUPTED if self.stops or not self._polls else None)

    def stop(self, level):
        self.stops.append(level)

    def close(self):
        pass


class Elsewhere(Home):
    """The agent of a host with actors; it fails when it is started, or when it is polled."""

    def __init__(self, refuses=None, fails=None, restarts=0):
        super().__init__()
        self._refuses, self._fails, self._restarts = refuses, fails, restarts

    def start(self, order):
        if self._refuses:
            raise self._refuses
        return Door([], 0)

    def poll(self, question):
        if self._fails:
            raise self._fails
        outcome = {**INTERRUPTED, "restarts": self._restarts} if self.stops else None
        return Answer([], b"", 0, outcome)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(actor_hosts, "AGAIN_S", 0.0)


def follow(tmp_path, home, elsewhere, **changes):
    """home, elsewhere: return the agent to start next."""
    return follow_agents(
        tmp_path, lambda number, is_wanted: elsewhere() if number else home(), **changes
    )


def follow_agents(tmp_path, start, places=(1, 1), **changes):
    """start: starts the agent with a number."""
    spec = make_spec(tmp_path, num_envs=4, num_actors=2)
    plan = spec.plan.model_copy(update={"actor_places": places})
    config = spec.config.model_copy(update={"actor_hosts": 1})
    spec = replace(spec, plan=plan, config=config, **changes)
    watcher = Watcher()
    engine = RemoteEngine(spec, program_for(config, plan), watcher, start)
    return engine.run(StopRequest(), resume=False), watcher


def test_a_lost_rank_ends_the_run_after_it_was_saved(tmp_path):
    home = Home()
    lost = RunLost("Lost rank 1.")
    outcome, watcher = follow(tmp_path, lambda: home, lambda: Elsewhere(fails=lost))
    assert (outcome["because"], outcome["first_cause"]) == ("failed", "Lost rank 1.")
    assert (home.stops, watcher.texts("restart")) == ([Stop.FINISH], [])


def test_a_lost_rank_ends_the_other_groups_too(tmp_path):
    with pytest.raises(RunLost, match="rank 1"):
        follow(tmp_path, Home, lambda: Elsewhere(fails=RunLost("Lost rank 1.")), has_head=True)


def test_an_environment_that_is_missing_there_ends_the_run(tmp_path):
    missing = UsageError("On host 1: no such environment.")
    outcome, watcher = follow(tmp_path, Home, lambda: Elsewhere(refuses=missing))
    assert (outcome["because"], outcome["first_cause"]) == ("failed", str(missing))
    assert watcher.texts("restart") == []


def test_a_run_without_any_actor_left_has_failed(tmp_path):
    lost = HostLost("host was lost.")
    outcome, watcher = follow(tmp_path, Home, lambda: Elsewhere(fails=lost))
    assert outcome["because"] == "failed"
    assert "given up after 5 restarts" in outcome["first_cause"]
    assert len(watcher.texts("restart")) == 5


def test_restarts_of_actors_are_not_those_of_the_learners_host(tmp_path):
    """Actors of another host that were started again five times use up nothing of its own."""
    homes = [Home(polls=2), Home(polls=500, lost=HostLost("home was lost."))]
    first = homes[-1]
    fails = HostLost("host was lost.")
    outcome, watcher = follow(tmp_path, homes.pop, lambda: Elsewhere(fails=fails), places=(0, 1))
    assert outcome["because"] == "interrupted"
    assert "home was lost. Restart 1 of 5" in "".join(watcher.texts("restart"))
    assert first.given_up == [1], "the learner's host does not wait for them any more"


def test_restarts_within_a_host_of_actors_are_counted(tmp_path):
    outcome, _ = follow(
        tmp_path, lambda: Home(polls=50), lambda: Elsewhere(restarts=3), places=(0, 1)
    )
    assert outcome["restarts"] == 3


def test_what_was_told_of_a_lost_host_does_not_hit_the_one_in_its_place(tmp_path):
    spec = make_spec(tmp_path, num_envs=4, num_actors=2)
    spec = replace(spec, plan=spec.plan.model_copy(update={"actor_places": (0, 1)}))

    class Late(Elsewhere):
        def start(self, order):
            hosts.lose([1])  # it was on its way when this host was expected
            hosts.lose([])
            return super().start(order)

        def poll(self, question):
            is_polled.set()
            return super().poll(question)

    is_polled = threading.Event()
    hosts = actor_hosts.ActorHosts(spec, lambda *_: Late(), Home(), Door([], 0), "")
    hosts.start()
    assert is_polled.wait(5.0)
    time.sleep(0.05)
    hosts.stop()
    assert [report["kind"] for report in hosts.reports()] == ["note"]


def test_others_take_the_turns_of_a_lost_host_before_another_one_is_free(tmp_path):
    """That the learner's host expects another one is what gives the turns away."""
    expected = []

    class Expecting(Home):
        def expect(self, host):
            expected.append(host)
            return super().expect(host)

    class OneHost:
        """Gives a host to the actors once."""

        is_given = False

        def start(self, number, is_wanted):
            if number and self.is_given:
                while is_wanted():
                    time.sleep(0.001)
                return None
            self.is_given = self.is_given or bool(number)
            return Elsewhere(fails=HostLost("host was lost.")) if number else Expecting(polls=300)

    outcome, watcher = follow_agents(tmp_path, OneHost().start, places=(0, 1))
    assert outcome["because"] == "interrupted"
    assert len(watcher.texts("restart")) == 1
    assert expected == [1, 1]
