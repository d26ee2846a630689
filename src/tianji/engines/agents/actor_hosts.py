"""The hosts that run actors of a group, as its head sees them: one thread follows each.

A host that is lost costs its actors and nothing else. Its thread waits for another host, and gives
the actors to it; one that joins the cluster later gets them within seconds.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable

from tianji.balance.lost_task import lost_task
from tianji.channels.orders import Stop
from tianji.engines.agents.files import mark
from tianji.engines.agents.interface import AgentHandle, HostLost, RunLost, StartAgent
from tianji.engines.agents.messages import Door, GroupOrder, Question, Span
from tianji.engines.spec import RunSpec
from tianji.errors import TianjiError, UsageError
from tianji.programs.program import SUPERVISOR
from tianji.raised import error_in_words
from tianji.reports import Event, EventKind, Report
from tianji.wording import counted

POLL_S = 0.25
ENDS_S = 0.05
AGAIN_S = 1.0
"""Pause before the actors of a host are started again, times the number of failures in a row."""
PATIENCE_S = 5.0
NO_HOST = (
    "No host is free for {actors} of this run. One that joins the cluster gets them within "
    "seconds. Add a host, or use a smaller --actor-hosts."
)
STOP_S = 5.0
"""Longest time for all of them to end; hosts that do not answer are left behind."""
SOUND_S = 30.0
"""Actors that have run this long did not fail in a row with those before them."""


class ActorHosts:
    """Runs the actors of one group on other hosts, from `start` to `stop`."""

    def __init__(
        self, spec: RunSpec, start_agent: StartAgent, home: AgentHandle, door: Door, keys: str
    ) -> None:
        """home: the agent of the learner's host. door: where its gateway listens."""
        self._spec = spec
        self._start_agent = start_agent
        self._home = home
        self._door = door
        self._keys = keys
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._lost_links: set[int] = set()
        self._started_s: dict[int, float] = {}
        """Time at which the actors of a host were started last."""
        self.given_up: set[int] = set()
        """Hosts whose actors are not started again."""
        self._giving_up = threading.Lock()
        self.restarts = 0
        self.failure: TianjiError | None = None
        """Why the group cannot go on; the first cause is the one that counts."""
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=[host], daemon=True)
            for host in range(1, spec.plan.num_hosts)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all actors on other hosts."""
        self._is_over.set()
        until_s = time.monotonic() + STOP_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def lose(self, hosts: list[int]) -> None:
        """Note which hosts the learner's host cannot reach now: what was told before is void, also
        where it was told while another host took the place of a lost one."""
        self._lost_links = set(hosts)

    def reports(self) -> list[Report]:
        """Return what the hosts have reported since the last call."""
        found = []
        while not self._reports.empty():
            found.append(self._reports.get())
        return found

    def _is_wanted(self) -> bool:
        return not self._is_over.is_set()

    def _run(self, host: int) -> None:
        failures, most = 0, self._spec.config.supervise.max_restarts
        while self._is_wanted():
            begun_s = time.monotonic()
            cause = self._run_once(host)
            if not self._is_wanted():
                return
            started_s = max(begun_s, self._started_s.get(host, time.monotonic()))
            failures = 1 if time.monotonic() - started_s > SOUND_S else failures + 1
            if self.failure is not None:
                return
            self._let_go(host)
            if failures > most:
                self._give_up(host, f"{cause} Its actors are given up after {most} restarts.")
                return
            self.restarts += 1
            self._tell("restart", f"{cause} Its actors start again on a host that is free.")
            self._is_over.wait(failures * AGAIN_S)

    def _let_go(self, host: int) -> None:
        """Let others take the turns of a host's actors at once: the next host may be long in
        coming."""
        with contextlib.suppress(TianjiError):  # the learner's host is lost too
            self._home.expect(host)

    def _give_up(self, host: int, text: str) -> None:
        """Go on without the actors of a host, if that is possible."""
        self._tell("note", text)
        with self._giving_up:
            self.given_up.add(host)
            places = enumerate(self._spec.plan.actor_places)
            left = [actor for actor, place in places if place not in self.given_up]
            if not left:
                self.failure = self.failure or TianjiError(text)
            elif task := lost_task(self._spec.config, left):
                self.failure = self.failure or TianjiError(f"{text} No actor of {task} is left.")

    def _is_hopeless(self, error: TianjiError, host: int, agent: AgentHandle | None) -> bool:
        """Return whether another try is of no use: nothing takes the place of a host, or its actors
        were refused from the beginning, as where their environment is missing."""
        if isinstance(error, RunLost):
            return True
        return isinstance(error, UsageError) and agent is not None and host not in self._started_s

    def _telling_once(self, host: int) -> Callable[[], bool]:
        """Return a question whether an agent is still wanted, which tells once that it is waited
        for."""
        tell_s = time.monotonic() + PATIENCE_S

        def is_wanted() -> bool:
            nonlocal tell_s
            if time.monotonic() > tell_s:
                tell_s = math.inf
                num_actors = self._spec.plan.actor_places.count(host)
                self._tell("note", NO_HOST.format(actors=counted(num_actors, "actor")))
            return self._is_wanted()

        return is_wanted

    def _run_once(self, host: int) -> str:
        """Run the actors of a host until they are not wanted; return why they ended else."""
        agent: AgentHandle | None = None
        try:
            agent = self._start_agent(unit_of(self._spec, host), self._telling_once(host))
            if agent is None:
                return ""
            expected = self._home.expect(host)
            self._lost_links.discard(host)
            span = Span(host, self._keys, door=self._door, expected=expected)
            order = GroupOrder.of(self._spec, mark(self._spec.run_dir), resume=False, span=span)
            agent.start(order.encode([]))
            self._started_s[host] = time.monotonic()
            num_actors = self._spec.plan.actor_places.count(host)
            self._tell("note", f"{agent.host} runs {counted(num_actors, 'actor')} of this run.")
            return self._follow(agent, host)
        except TianjiError as error:
            if self._is_hopeless(error, host, agent):
                self.failure = self.failure or error
            return str(error)
        except Exception as error:  # noqa: BLE001 - whatever failed on that host is told
            return f"{agent.host if agent else 'A host'}: {error_in_words(error)}."
        finally:
            if agent is not None:
                agent.close()

    def _follow(self, agent: AgentHandle, host: int) -> str:
        is_told = False
        while True:
            answer = agent.poll(Question(ENDS_S if is_told else POLL_S, 0, []))
            for report in answer.reports:
                self._reports.put(report)
            if answer.outcome is not None:
                self.restarts += answer.outcome["restarts"]
                return f"{agent.host}: {answer.outcome['first_cause']}."
            if host in self._lost_links:
                raise HostLost(f"{agent.host} and the learner's host do not reach each other.")
            if not self._is_wanted() and not is_told:
                is_told = True
                agent.stop(Stop.NOW)

    def _tell(self, kind: EventKind, text: str) -> None:
        self._reports.put(Event(kind=kind, role=SUPERVISOR, text=text))


def unit_of(spec: RunSpec, host: int) -> int:
    """Return the number of an agent of the run: those of a group follow each other."""
    return spec.group * (1 + spec.config.actor_hosts) + host
