"""Workers on simulated machines, and the ways of messages between them.

actor --> gateway --(link)--> gateway --> buffer and learner      on other machines than 0
actor ------------------------------------^                       on the learner's own
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tianji.costs.work import Work
from tianji.virtual.clock import Action, Network, NetworkModel, VirtualClock
from tianji.virtual.node import EQUAL, Job, Node, Ranks, Worker


@dataclass(frozen=True, slots=True)
class Machines:
    """Equal machines; the learner is on the first one, and every machine has as many actors.

    forward_s: time in which a gateway takes one item and hands it on.
    """

    cores_per_node: int = 1
    num_nodes: int = 1
    unroll_bytes: int = 0
    policy_bytes: int = 0
    forward_s: float = 0.0
    network: NetworkModel = field(default_factory=NetworkModel)


class Cluster:
    """The workers of one group and the messages between them.

    cluster = Cluster(clock, Machines(cores_per_node=3), num_actors=2)
    cluster.add_actor(job) ...
    cluster.add_learner(job, cores=1.0)
    cluster.start()
    """

    def __init__(
        self,
        clock: VirtualClock,
        machines: Machines,
        num_actors: int,
        nodes: Sequence[Node] | None = None,
    ) -> None:
        """nodes: the machines, where other groups use them too."""
        self._machines = machines
        self._actors_per_node = num_actors // machines.num_nodes
        self.clock = clock
        self.network = Network(clock, machines.network, machines.num_nodes)
        own = [Node(machines.cores_per_node) for _ in range(machines.num_nodes)]
        self._nodes = own if nodes is None else nodes
        self._versions = [-1] * machines.num_nodes  # the newest policy on every machine
        self._on_its_way = [-1] * machines.num_nodes
        # Grants that wait for the policy of their version, by machine.
        self._held_back: list[list[tuple[int, Action]]] = [[] for _ in self._nodes]
        self.actors: list[Worker] = []
        self._others: list[Worker] = []
        self._observers: list[Worker] = []  # workers that look at every new policy
        self._gateways: list[tuple[Gateway, Worker]] = []
        if machines.num_nodes > 1:
            self._gateways = [self._make_gateway(node) for node in range(machines.num_nodes)]

    def _worker(self, node: int, job: Job, cores: float, idle_ns: int, ranks: Ranks) -> Worker:
        return Worker(self.clock, self._nodes[node], job, cores, idle_ns, ranks)

    def add_actor(self, job: Job, cores: float = 1.0, ranks: Ranks = EQUAL) -> None:
        node = self._node_of(len(self.actors))
        self.actors.append(self._worker(node, job, cores, 0, ranks))

    def add_learner(self, job: Job, cores: float, idle_ns: int = 0, ranks: Ranks = EQUAL) -> None:
        """Add the worker of buffer and learner."""
        self.learner = self._worker(0, job, cores, idle_ns, ranks)

    def add_other(self, job: Job, cores: float, idle_ns: int = 0) -> None:
        """Add a worker on the learner's machine; without idle_ns every new policy wakes it."""
        worker = self._worker(0, job, cores, idle_ns, EQUAL)
        (self._others if idle_ns else self._observers).append(worker)

    def _make_gateway(self, node: int) -> tuple[Gateway, Worker]:
        """On machine 0 items come from the network and go to the buffer, elsewhere they come from
        the actors and go to machine 0."""
        seconds = self._machines.forward_s
        gateway = Gateway(Work(seconds, seconds, 1.0))
        worker = self._worker(node, gateway, 1.0, 0, EQUAL)
        gateway.hand_on = worker.later
        return gateway, worker

    def start(self) -> None:
        """Show the first policy, which the learner has published, and let it work."""
        self.learner.deliver()
        for worker in (self.learner, *self._others):
            worker.wake()

    def settle_actors(self) -> None:
        """Bring the gauges of all actors up to now."""
        for actor in self.actors:
            actor.settle()

    def version_at(self, actor: int) -> int:
        """Return the newest version on the machine of an actor; -1 before the first."""
        return self._versions[self._node_of(actor)]

    def _node_of(self, actor: int) -> int:
        return actor // self._actors_per_node

    def grant(self, lane: int, deliver: Action) -> None:
        """Carry a grant from the buffer to an actor."""
        node = self._node_of(lane)

        def arrive() -> None:
            deliver()
            self.actors[lane].wake()

        def leave() -> None:
            version = self._versions[0]
            self.network.signal(lambda: self._follow_policy(node, version, arrive))

        self.learner.after_what_left(leave if node else arrive)

    def _follow_policy(self, node: int, version: int, arrive: Action) -> None:
        """Hold back a grant, which is small, until the policy has arrived under which it was
        given."""
        if self._versions[node] >= version:
            arrive()
        else:
            self._held_back[node].append((version, arrive))

    def item(self, lane: int, deliver: Action, wakes: Callable[[], bool]) -> None:
        """Carry an item from an actor to the buffer.

        wakes: called after the delivery, returns whether the buffer's worker wakes up.
        """

        def arrive() -> None:
            deliver()
            if wakes():
                self.learner.wake()

        node = self._node_of(lane)
        leave = arrive if node == 0 else lambda: self._forward(node, arrive)
        self.actors[lane].later(leave)

    def _forward(self, node: int, deliver: Action) -> None:
        def arrive() -> None:
            self._put(0, deliver)

        nbytes = self._machines.unroll_bytes
        self._put(node, lambda: self.network.send(node, 0, nbytes, arrive, "items"))

    def _put(self, node: int, message: Action) -> None:
        gateway, worker = self._gateways[node]
        gateway.inbox.append(message)
        worker.wake()

    def wake_actors(self) -> None:
        def wake() -> None:
            for actor in self.actors:
                actor.wake()

        self.learner.after_what_left(wake)

    def policy(self, version: int, deliver: Action) -> None:
        """Carry a policy from the learner to the board on its machine, and on to the others."""

        def show() -> None:
            deliver()
            self._versions[0] = version
            for observer in self._observers:
                observer.wake()
            for node in range(1, len(self._nodes)):
                self._send_policy(node)

        self.learner.later(show)

    def _send_policy(self, node: int) -> None:
        """Send the newest policy; while one is on its way, the next ones wait and only the newest
        of them is sent."""
        newest = self._versions[0]
        if self._on_its_way[node] > self._versions[node] or newest == self._versions[node]:
            return
        self._on_its_way[node] = newest
        nbytes = self._machines.policy_bytes
        self.network.send(0, node, nbytes, lambda: self._arrive_policy(node), "policies")

    def _arrive_policy(self, node: int) -> None:
        self._versions[node] = self._on_its_way[node]
        self._send_policy(node)
        held_back, self._held_back[node] = self._held_back[node], []
        for version, arrive in held_back:
            self._follow_policy(node, version, arrive)


class Gateway(Job):
    """Takes items at the border of a machine and hands them on, one at a time."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work
        self.hand_on: Callable[[Action], None]  # sends an item, after the time that it takes
        self.inbox: deque[Action] = deque()

    def tick(self) -> Work | None:
        if not self.inbox:
            return None
        self.hand_on(self.inbox.popleft())
        return self._work

    def spend(self, took_ns: int) -> None:
        """A gateway has no gauges."""
