"""The gateways of a group that lives on several hosts: what each end of a link forwards.

    learner's host                                    a host with actors only
    HomeLinks                                         ActorLink
    policy, grants, orders of the buffer      ->      to the actors there
    items, gauges, lost actors                <-      of the actors there
    which sums of gradients are wanted        ->      to the gateway there, which adds them up
    their total                               <-

The learner's host listens and expects one host after the other under a name of its own each time,
so that a host that was given up cannot come back while another one has its actors.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tianji.algorithms.interface import Gather
from tianji.algorithms.registry import load_algorithm
from tianji.buffer.gather.rules import build_rule
from tianji.channels.board import ShmBoardReader
from tianji.channels.contributions import ContributionReader, Weigh
from tianji.channels.memory import Bell
from tianji.channels.orders import Order
from tianji.channels.shm import ShmReceiver
from tianji.engines.assembly.wiring import SharedMemory
from tianji.engines.spec import RunSpec
from tianji.errors import ChannelError
from tianji.gateways.gateway import Gateway
from tianji.gateways.interface import Port
from tianji.gateways.links.keys import LinkKeys
from tianji.gateways.links.link import Link
from tianji.gateways.links.state import LinkLimits, LinkState
from tianji.gateways.ports.actors_elsewhere import ActorsElsewhere, OnLost
from tianji.gateways.ports.boards import BoardSink, BoardSource
from tianji.gateways.ports.buffer_elsewhere import BufferElsewhere
from tianji.gateways.ports.rows import GaugesSink, GaugesSource, OrdersSink, OrdersSource
from tianji.gateways.ports.stream_notes import SlotPart
from tianji.gateways.ports.sums import SumsSource
from tianji.programs.program import (
    EXPERIENCE,
    GATEWAY,
    POLICY,
    Program,
    Role,
    sum_name,
    total_name,
    wanted_name,
)
from tianji.records import LinkFigures
from tianji.wording import counted

HOME = "the learner's host"
LIMITS = LinkLimits(gone_after_ns=8_000_000_000)
"""A host that says nothing for 5 s, and does not come back within 8 s more, is lost: others take
the turns of its actors."""
NEVER_CAME_NS = 30_000_000_000
"""A host that was started and has not connected after this time cannot reach the learner's."""
MAX_BOARD_BYTES = 1 << 31
ACTORS, BUFFER = "actors", "buffer"


class Expected(NamedTuple):
    """What a host must know to take part: the name to greet with, and how many processes have run
    each of its actors before."""

    name: str
    resets: list[int]


@dataclass(slots=True)
class _OpenLink:
    link: Link
    policy: BoardSource


class HomeLinks:
    """The links of the learner's host. `connect` is called once, the rest from any thread."""

    def __init__(self, program: Program, keys: LinkKeys, address: str) -> None:
        """address: on which to listen."""
        self._program = program
        self._keys = keys
        self._address = address
        self._lock = threading.Lock()
        self._tries: Counter[int] = Counter()
        self._open: dict[int, _OpenLink] = {}
        self._past: dict[int, LinkFigures] = {}
        """What has crossed over links that were given up."""
        self._totals: dict[int, BoardSink] = {}
        """The ports that write totals: a board has one writer, whatever the number of links."""
        self._given_up: set[int] = set()
        self.port = 0
        self._tell_at = 1

    def connect(self, memory: SharedMemory, on_lost: OnLost) -> Gateway:
        """Make the gateway of this host."""
        self._memory, self._on_lost = memory, on_lost
        self._gateway = Gateway(HOME, self._keys, memory.control.bell(GATEWAY))
        _, self.port = self._gateway.listen(self._address)
        for actor in self._program.of_kind("actor"):
            if actor.host != self._program.here:
                on_lost(actor.index, None)  # others take its turns until its host is there
        return self._gateway

    def expect(self, host: int) -> Expected:
        """Let a host connect; one that had these actors before is refused from now on."""
        with self._lock:
            return self._gateway.do(lambda: self._renew(host))

    def _renew(self, host: int) -> Expected:
        """Run in the gateway's thread: lost lanes are reset before their counts are read."""
        if (before := self._open.pop(host, None)) is not None:
            self._gateway.unlink(before.link)
            self._past[host] = self._figures(host, before)
        self._tries[host] += 1
        name = f"host {host}, try {self._tries[host]}"
        actors = self._program.actors_on(host)
        policy = _policy_source(self._memory)
        ports = [*self._ports(actors, policy), *self._sum_ports(host)]
        self._open[host] = _OpenLink(self._gateway.link(name, ports, limits=LIMITS), policy)
        rows = self._memory.control.supervision.rows
        return Expected(name, [rows[actor.name][Order.RESETS] for actor in actors])

    def give_up(self, hosts: Sequence[int]) -> None:
        """Go on without the actors of these hosts: nobody waits for them any more."""
        for host in set(hosts) - self._given_up:
            self._given_up.add(host)
            with contextlib.suppress(ChannelError):  # the group has ended
                self._gateway.do(partial(self._give_up, host))

    def _give_up(self, host: int) -> None:
        for actor in self._program.actors_on(host):
            self._memory.control.supervision.post(actor.name, Order.GIVEN_UP, 1)
            self._on_lost(actor.index, None)

    def _ports(self, actors: Sequence[Role], policy: BoardSource) -> list[Port]:
        control, stream = self._memory.control, self._memory.stream
        bell, indices = self._buffer_bell(), [actor.index for actor in actors]
        gauges = [control.gauges.rows[actor.name] for actor in actors]
        part = SlotPart.token(stream.layout) if self._gathers else None
        items = ActorsElsewhere(
            EXPERIENCE, stream, indices, bell, self._on_lost, policy, gauges, part
        )
        return [
            policy,
            items,
            OrdersSource(BUFFER, [control.orders.rows[actor.name] for actor in actors]),
            GaugesSink(ACTORS, gauges),
        ]

    @property
    def _gathers(self) -> bool:
        """Return whether the actors compute gradients."""
        return any(self._program.has_wire(wanted_name(h)) for h in self._program.other_hosts())

    def _sum_ports(self, host: int) -> list[Port]:
        """Return the ports of the actors' sums, where they compute gradients."""
        if not self._gathers:
            return []
        wanted, total, boards = wanted_name(host), total_name(host), self._memory.boards
        if host not in self._totals:
            ring = self._buffer_bell().ring
            self._totals[host] = BoardSink(total, boards[total], MAX_BOARD_BYTES, ring)
        source = BoardSource(wanted, ShmBoardReader(boards[wanted]), MAX_BOARD_BYTES)
        return [source, self._totals[host]]

    def _buffer_bell(self) -> Bell:
        (buffer,) = self._program.of_kind("buffer")
        return self._memory.control.bell(self._program.bells()[buffer.name])

    def lost(self) -> list[int]:
        """Return the hosts that were silent for too long, or never came."""
        return [host for host, opened in tuple(self._open.items()) if _is_lost(opened.link)]

    def figures(self) -> list[LinkFigures]:
        return [self._figures(host, opened) for host, opened in tuple(self._open.items())]

    def _figures(self, host: int, opened: _OpenLink) -> LinkFigures:
        report, policies = opened.link.report(), opened.policy.num_forwarded
        now = LinkFigures(host, report.bytes_sent, report.bytes_received, policies)
        return now.plus(self._past.get(host))

    def news(self) -> str:
        """Return how often strangers and messages were refused, when that has doubled; else ""."""
        counts = self._gateway.refusals.counts
        if counts.total() < self._tell_at:
            return ""
        self._tell_at = 2 * counts.total()
        why = "; ".join(f"{counted(n, 'time')}: {reason.value}" for reason, n in counts.items())
        return f"Connections or messages were refused, and the run goes on ({why})."


def _is_lost(link: Link) -> bool:
    if link.state is LinkState.EXPECTED:
        return time.monotonic_ns() - link.report().state_since_ns > NEVER_CAME_NS
    return link.state is LinkState.GONE


def _policy_source(memory: SharedMemory) -> BoardSource:
    return BoardSource(POLICY, ShmBoardReader(memory.boards[POLICY]), MAX_BOARD_BYTES)


def weigh_of(spec: RunSpec) -> Weigh | None:
    """Return what weighs the sums of gradients of a run; None where its items are unrolls."""
    cadence = load_algorithm(spec.config.algorithm.name).cadence(spec.config)
    if not isinstance(cadence, Gather):
        return None
    return build_rule(cadence, spec.plan.num_actors).weigh


class ActorLink:
    """The link of a host with actors only."""

    def __init__(
        self,
        program: Program,
        keys: LinkKeys,
        address: tuple[str, int],
        expected: Expected,
        weigh: Weigh | None,
    ) -> None:
        """address: of the learner's host. weigh: weighs sums of gradients, where actors compute
        some."""
        self._program = program
        self._keys = keys
        self._address = address
        self._expected = expected
        self._weigh = weigh

    def connect(self, memory: SharedMemory, on_lost: OnLost) -> Gateway:
        """Make the gateway of this host; on_lost is not used here."""
        control, stream = memory.control, memory.stream
        actors = self._program.actors_on(self._program.here)
        for actor, resets in zip(actors, self._expected.resets, strict=True):
            control.supervision.post(actor.name, Order.RESETS, resets)
        bells = self._program.bells()

        def wake(index: int) -> None:
            of_actors[index].ring()

        def wake_all() -> None:
            for bell in of_actors:
                bell.ring()

        of_actors: list[Bell] = [control.bell(bells[actor.name]) for actor in actors]
        lanes = [control.bell(bells[actor.name]) for actor in self._program.of_kind("actor")]
        supervision = [control.supervision.rows[actor.name] for actor in actors]
        receiver = ShmReceiver(stream, lanes)
        indices = [actor.index for actor in actors]
        part = None if self._weigh is None else SlotPart.token(stream.layout)
        ports: list[Port] = [
            BoardSink(POLICY, memory.boards[POLICY], MAX_BOARD_BYTES, wake_all),
            BufferElsewhere(EXPERIENCE, stream, receiver, indices, supervision, part),
            OrdersSink(BUFFER, [control.orders.rows[actor.name] for actor in actors], wake),
            GaugesSource(ACTORS, [control.gauges.rows[actor.name] for actor in actors]),
            *self._sum_ports(memory.boards, indices),
        ]
        gateway = Gateway(self._expected.name, self._keys, control.bell(GATEWAY))
        gateway.link(HOME, ports, self._address, LIMITS)
        return gateway

    def _sum_ports(self, boards: dict[str, int], actors: Sequence[int]) -> list[Port]:
        if self._weigh is None:
            return []
        host = self._program.here
        wanted, total = boards[wanted_name(host)], total_name(host)
        sums = ContributionReader([ShmBoardReader(boards[sum_name(actor)]) for actor in actors])
        asked = ShmBoardReader(wanted)
        return [
            BoardSink(wanted_name(host), wanted, MAX_BOARD_BYTES),
            SumsSource(total, asked, sums, self._weigh, MAX_BOARD_BYTES),
        ]
