"""A scenario as workers on simulated machines, wired up; who hands what to whom, and by which way.

actor --> gateway --(link)--> gateway --> buffer and learner      on other machines than 0
actor ------------------------------------^                       on the learner's own
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tianji.buffer.role import Buffer
from tianji.buffer.window import RatioWindow, WindowPlan
from tianji.channels.gauges import Gauges
from tianji.channels.layout import STANDARD_FIELDS, Layout
from tianji.channels.orders import ActorRows, BufferRows, Orders
from tianji.config.run import RunConfig
from tianji.costs.work import Work
from tianji.learner.progress import Progress
from tianji.learner.role import Learner
from tianji.types import RoleKind
from tianji.virtual.channels import VirtualBoard, VirtualStream
from tianji.virtual.clock import Action, VirtualClock
from tianji.virtual.costs import LearnerJob
from tianji.virtual.network import Network
from tianji.virtual.node import IDLE_NS, Node, Worker
from tianji.virtual.roles import CountingStore, CountingUpdate, Gateway, SimulatedActor
from tianji.virtual.scenario import Scenario


class Cluster:
    """All parts of one group: a learner and its actors."""

    def __init__(self, scenario: Scenario, config: RunConfig) -> None:
        self._scenario = scenario
        self.clock = VirtualClock()
        self.network = Network(self.clock, scenario.network, scenario.num_nodes)
        self.nodes = [Node(scenario.cores_per_node) for _ in range(scenario.num_nodes)]
        self._versions = [-1] * scenario.num_nodes
        """The newest policy on every machine."""
        self._on_its_way = [-1] * scenario.num_nodes
        self._held_back: list[list[tuple[int, Action]]] = [[] for _ in range(scenario.num_nodes)]
        """Grants that wait for the policy of their version, by machine."""
        self._wake_ns = round(scenario.wake_s * 1e9)
        names = tuple(f"actor-{i}" for i in range(len(scenario.paces)))
        kinds: dict[str, RoleKind] = dict.fromkeys(names, "actor")
        self.gauges = Gauges(kinds | {"buffer": "buffer", "learner": "learner"})
        self._rows = self._control_rows(names)
        layout = Layout(tuple(STANDARD_FIELDS), num_rows=1, num_envs=1)
        self.stream = VirtualStream(layout, scenario.num_slots, len(names), self)
        self.actors = [self._make_actor(i) for i in range(len(names))]
        self.buffer = self._make_buffer(config)
        self.learner = Learner(
            CountingUpdate(scenario.learner.num_updates, scenario.trained_steps_per_version),
            self.buffer,
            VirtualBoard(0, self),
            lambda _payload: None,
            lambda: 0.0,
            self.gauges.rows["learner"],
            self.clock.now_ns,
        )
        self.learner_worker = self._make_learner_worker()
        self.gateways = self._make_gateways() if scenario.num_nodes > 1 else []

    def start(self) -> None:
        self.learner.publish()
        self.learner_worker.deliver()
        self.learner_worker.wake()

    # Workers.

    def _node_of(self, actor: int) -> int:
        return actor // self._scenario.actors_per_node

    def _make_actor(self, index: int) -> Worker:
        pace, node = self._scenario.paces[index], self._node_of(index)
        rows = self._rows.actors[index]
        actor = SimulatedActor(
            index,
            pace,
            self.stream.sender(index),
            lambda: self._versions[node],
            rows,
            self.clock.now_ns,
        )
        cores = max(1.0, pace.unroll.cores)
        return Worker(
            self.clock, self.nodes[node], actor, [rows.gauges], cores, wake_ns=self._wake_ns
        )

    def _control_rows(self, actors: Sequence[str]) -> BufferRows:
        gauges, supervision, orders = self.gauges.rows, Orders(["buffer", *actors]), Orders(actors)
        return BufferRows(
            gauges["buffer"],
            supervision.rows["buffer"],
            [ActorRows(gauges[a], supervision.rows[a], orders.rows[a]) for a in actors],
        )

    def _make_buffer(self, config: RunConfig) -> Buffer:
        scenario = self._scenario
        num_workers = scenario.actors_per_node + scenario.learner.cores
        plan = WindowPlan(
            scenario.point,
            scenario.max_lag,
            may_park=scenario.num_nodes == 1 and num_workers > scenario.cores_per_node,
        )
        window = RatioWindow(plan, self.stream, self._rows, self.clock.now_ns)
        return Buffer(window, CountingStore(self.stream), Progress(config))

    def _make_learner_worker(self) -> Worker:
        rows = [self.gauges.rows["buffer"], self.gauges.rows["learner"]]
        parts = self._scenario.learner

        def tick() -> bool:
            worked = self.buffer.tick()
            return self.learner.tick() or worked

        job = LearnerJob(tick, parts, *rows)
        return Worker(
            self.clock,
            self.nodes[0],
            job,
            rows,
            parts.cores,
            idle_ns=IDLE_NS,
            wake_ns=self._wake_ns,
        )

    def _make_gateways(self) -> list[tuple[Gateway, Worker]]:
        return [self._make_gateway(node) for node in range(self._scenario.num_nodes)]

    def _make_gateway(self, node: int) -> tuple[Gateway, Worker]:
        """On machine 0 messages come from the network and go to the buffer, elsewhere they come
        from the actors and go to machine 0."""
        seconds = self._scenario.forward_s
        gateway = Gateway(Work(seconds, seconds, 1.0))
        worker = Worker(self.clock, self.nodes[node], gateway, wake_ns=self._wake_ns)
        gateway.hand_on = worker.later
        return gateway, worker

    # Ways (channels.Ways).

    def grant(self, lane: int, deliver: Action) -> None:
        node = self._node_of(lane)

        def arrive() -> None:
            deliver()
            self.actors[lane].wake()

        def leave() -> None:
            version = self._versions[0]
            self.network.signal(lambda: self._follow_policy(node, version, arrive))

        self.learner_worker.after_what_left(leave if node else arrive)

    def _follow_policy(self, node: int, version: int, arrive: Action) -> None:
        """A grant is small and would overtake the policy under which it was given."""
        if self._versions[node] >= version:
            arrive()
        else:
            self._held_back[node].append((version, arrive))

    def unroll(self, lane: int, deliver: Action, wakes: Callable[[], bool]) -> None:
        def arrive() -> None:
            deliver()
            if wakes():
                self.learner_worker.wake()

        node = self._node_of(lane)
        leave = arrive if node == 0 else lambda: self._forward(node, arrive)
        self.actors[lane].later(leave)

    def _forward(self, node: int, deliver: Action) -> None:
        def arrive() -> None:
            self._put(0, deliver)

        nbytes = self._scenario.unroll_bytes
        self._put(node, lambda: self.network.send(node, 0, nbytes, arrive))

    def _put(self, node: int, message: Action) -> None:
        gateway, worker = self.gateways[node]
        gateway.inbox.append(message)
        worker.wake()

    def policy(self, deliver: Action) -> None:
        def show() -> None:
            deliver()
            self._versions[0] = self.learner.version
            for node in range(1, len(self.nodes)):
                self._send_policy(node)

        self.learner_worker.later(show)

    def _send_policy(self, node: int) -> None:
        """Only the newest matters: while one is on its way, the next waits, and is then the
        newest."""
        newest = self._versions[0]
        if self._on_its_way[node] > self._versions[node] or newest == self._versions[node]:
            return
        self._on_its_way[node] = newest
        nbytes = self._scenario.policy_bytes
        self.network.send(0, node, nbytes, lambda: self._arrive_policy(node))

    def _arrive_policy(self, node: int) -> None:
        self._versions[node] = self._on_its_way[node]
        self._send_policy(node)
        held_back, self._held_back[node] = self._held_back[node], []
        for version, arrive in held_back:
            self._follow_policy(node, version, arrive)
