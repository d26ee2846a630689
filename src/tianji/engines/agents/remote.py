"""A group that an agent runs, as its head sees it: an engine like the local one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tianji.channels.gauges import Gauges
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.save import rotate
from tianji.checkpoint.schema import checkpoints_folder
from tianji.config.run import adds_gradients
from tianji.engines.agents.actor_hosts import ActorHosts, unit_of
from tianji.engines.agents.files import mark, pack, unpack
from tianji.engines.agents.interface import AgentHandle, HostLost, RunLost, StartAgent
from tianji.engines.agents.messages import (
    GroupOrder,
    Question,
    Shipped,
    Span,
    check_source,
    copy_gauges,
)
from tianji.engines.agents.peers import PeerBoards, Post
from tianji.engines.interface import Neighbours, Observer, Outcome
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.errors import TianjiError, UsageError
from tianji.gateways.links.keys import LinkKeys
from tianji.programs.groups import boards_read_by
from tianji.programs.program import Program
from tianji.records import LinkFigures, StoppedBecause
from tianji.reports import Event

POLL_S = 0.25
MIX_S = 0.05
"""Time between two exchanges with other groups, while there is something to exchange."""
QUICK_S = 5.0
"""After a post of a learner more are expected for this long."""


class RemoteEngine:
    """Runs a group by an agent; starts another one if its host is lost."""

    def __init__(
        self,
        spec: RunSpec,
        program: Program,
        observer: Observer,
        start_agent: StartAgent,
        neighbours: Neighbours | None = None,
    ) -> None:
        """start_agent: see Hosts.start.
        neighbours: the other groups, where there are several."""
        check_source(spec)
        self._spec = spec
        self._observer = observer
        self._start_agent = start_agent
        self._neighbours = neighbours = neighbours or Neighbours({}, lambda: 0)
        self._boards = PeerBoards(neighbours.boards)
        self._peers = boards_read_by(spec.group, spec.config)
        self._quick_until_s = 0.0
        self._posts: dict[str, Post] = {}
        """The latest that was told or heard, by board: another agent begins with them."""
        self._gauges = Gauges(program.kinds())
        self._restarts = self._losses = 0
        """Restarts of everything, and losses of the learner's host."""
        self._links: dict[int, LinkFigures] = {}
        self._links_before: dict[int, LinkFigures] = {}
        """What had crossed to each agent when the learner's host was lost last."""
        self._keys = LinkKeys.make().to_text() if spec.plan.num_hosts > 1 else ""

    def run(self, stop: StopRequest, resume: bool) -> Outcome:
        self._observer.watch(self._gauges)
        while True:
            unit = unit_of(self._spec, host=0)
            agent = self._start_agent(unit, lambda: stop.level == Stop.NO)
            if agent is None:
                return self._without_host("interrupted", None)
            try:
                outcome = self._follow(agent, stop, resume)
                restarts = outcome["restarts"] + self._restarts
                return {**outcome, "restarts": restarts, "links": self._links}
            except HostLost as lost:
                if (failed := self._after_loss(lost)) is not None:
                    return failed
                resume = resume or bool(list_checkpoints(self._spec.run_dir))
            finally:
                agent.close()

    def _follow(self, agent: AgentHandle, stop: StopRequest, resume: bool) -> Outcome:
        """Follow a group to its end."""
        spec = replace(self._spec, address=agent.address)
        span = Span(0, self._keys, listen=agent.address) if self._keys else None
        order = GroupOrder.of(spec, mark(self._spec.run_dir), resume, span)
        posts = list(self._posts.values())
        door = agent.start(order.encode(self._newest() if resume else [], posts))
        others = ActorHosts(self._spec, self._start_agent, agent, door, self._keys)
        others.start()
        try:
            return self._listen(agent, others, stop)
        finally:
            others.stop()
            self._restarts += others.restarts

    def _listen(self, agent: AgentHandle, others: ActorHosts, stop: StopRequest) -> Outcome:
        told = Stop.NO
        while True:
            answer = agent.poll(
                self._question(0.0 if told < stop.level else self._poll_s(), others)
            )
            self._boards.put(answer.posts)
            self._keep_posts(answer.posts)
            others.lose(answer.lost_hosts)
            self._count_links(answer.links)
            for report in (*answer.reports, *others.reports()):
                self._observer.report(report)
            if answer.gauges:
                # An answer that had to wait was given at the end of the wait.
                offset_ns = time.monotonic_ns() - answer.now_ns
                copy_gauges(answer.gauges, self._gauges, offset_ns)
            if answer.checkpoint is not None:
                self._keep(answer.checkpoint)
            self._observer.tick()
            if answer.outcome is not None:
                return self._judge(answer.outcome, others.failure)
            wanted = stop.level if others.failure is None else max(stop.level, Stop.FINISH)
            if wanted > told:
                told = wanted
                agent.stop(told)
                if stop.level == told and stop.note:
                    self._observer.report(Event(kind="note", role="supervisor", text=stop.note))

    def _count_links(self, links: Sequence[LinkFigures]) -> None:
        """Keep what has crossed in the whole run; the agent knows it since its own start."""
        for link in links:
            unit = unit_of(self._spec, link.host)
            self._links[unit] = link.plus(self._links_before.get(unit))

    def _judge(self, outcome: Outcome, failure: TianjiError | None) -> Outcome:
        """Return how the group ended, where its actors on other hosts may have failed it."""
        if failure is None or outcome["because"] not in ("interrupted", "failed"):
            return outcome
        if self._spec.has_head and isinstance(failure, UsageError | RunLost):
            raise failure  # it ends the other groups too
        return {**outcome, "because": "failed", "first_cause": str(failure)}

    def _question(self, timeout_s: float, others: ActorHosts) -> Question:
        posts = self._boards.take_new(self._peers)
        self._keep_posts(posts)
        steps = self._neighbours.other_steps()
        return Question(timeout_s, steps, posts, sorted(tuple(others.given_up)))

    def _keep_posts(self, posts: Sequence[Post]) -> None:
        self._posts |= {post.board: post for post in posts}
        if posts:
            self._quick_until_s = time.monotonic() + QUICK_S

    def _poll_s(self) -> float:
        """Return how long the agent may wait for news: learners that mix or meet are not kept
        waiting."""
        return MIX_S if time.monotonic() < self._quick_until_s else POLL_S

    def _newest(self) -> list[Shipped]:
        """Return the checkpoints to continue from, for a host that does not have the run folder.
        Learners that make updates together continue from the newest that all of them have."""
        found = list_checkpoints(self._spec.run_dir)
        if not found and self._spec.start_from is not None:
            found = [self._spec.start_from]
        count = 2 if adds_gradients(self._spec.config) else 1
        return [Shipped(path.name, pack(path)) for path in found[-count:]]

    def _keep(self, checkpoint: Shipped) -> None:
        """Write a checkpoint of a host that does not have the run folder."""
        run_dir = self._spec.run_dir
        unpack(checkpoint.data, checkpoints_folder(run_dir) / checkpoint.name)
        rotate(run_dir, self._spec.config.checkpoint.keep_last)

    def _without_host(self, because: StoppedBecause, cause: str | None) -> Outcome:
        restarts = self._restarts - (because == "failed")
        return Outcome(because=because, record=None, restarts=restarts, first_cause=cause)

    def _after_loss(self, lost: HostLost) -> Outcome | None:
        """Report it; return how the run ends, where it cannot go on."""
        self._restarts += 1
        self._losses += 1
        self._links_before = dict(self._links)
        most = self._spec.config.supervise.max_restarts
        text = f"{lost} Restart {self._losses} of {most}, from the last checkpoint."
        if self._losses > most:
            return self._without_host("failed", str(lost))
        restart = Event(kind="restart", role="supervisor", text=text)
        self._observer.report({**restart, "stops_learner": True, "stops_actors": True})
        return None
