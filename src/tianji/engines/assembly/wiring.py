"""Builds channels on shared memory from the wires of a program.

memory = SharedMemory.create(program, plan)         # the supervisor makes it ...
ends = SharedEnds(program, plan, memory.fds)        # ... and each worker attaches to it
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.buffer.stores.ring_layout import RingLayout
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.confirmed import ConfirmedSender, ConfirmingReceiver
from tianji.channels.contributions import HostSums, wanted_bytes
from tianji.channels.interface import Batches, BoardReader, BoardWriter, Receiver, Sender
from tianji.channels.layout import Layout
from tianji.channels.memory import Bell, Segment
from tianji.channels.messages import MessageReceiver, MessageSender, empty
from tianji.channels.orders import Control
from tianji.channels.peers.cards import shared_cards
from tianji.channels.peers.interface import Peers
from tianji.channels.requested import AnsweringBatches, AskingSender, RequestedReader
from tianji.channels.requests import Answerer, Asker, RequestMemory
from tianji.channels.shm import AnnouncingSender, ShmReceiver, ShmSender, StreamMemory
from tianji.config.plan import RunPlan
from tianji.engines.assembly.ends import TeamMate
from tianji.programs.groups import PEER, boards_of, card_name, part_name, peer_name
from tianji.programs.program import (
    ANSWERS,
    BATCHES,
    CONFIRMATIONS,
    FEEDBACK,
    POLICY,
    REQUESTS,
    ROWS,
    TOTAL,
    Program,
    Role,
    sum_name,
    total_name,
    wanted_name,
)
from tianji.types import Array, Clock

if TYPE_CHECKING:
    from tianji.channels.reduce import GlooReduce

REPLAY = "replay"


def bell_names(program: Program) -> tuple[str, ...]:
    """Return the names of all bells, in the same order in every process."""
    return tuple(dict.fromkeys(program.bells().values()))


def message_slots(program: Program) -> dict[str, list[str]]:
    """Return the names of the slots of messages between a buffer and a learner in another worker,
    by wire; none where they share one."""
    return {
        wire.name: [f"{wire.name}-{slot}" for slot in range(wire.capacity)]
        for wire in program.wires
        if wire.name in (BATCHES, FEEDBACK, ANSWERS) and program.splits(wire)
    }


def replay_layout(plan: RunPlan) -> RingLayout | None:
    """Return the layout of the replay store's memory; None where there is no such store."""
    if not plan.replay_rows:
        return None
    layout = Layout.from_json(plan.layout)
    shape = plan.num_actors, plan.replay_rows, plan.lookahead
    return RingLayout(layout, *shape, has_observations=not plan.replay_on_gpu)


def open_peer_boards(num_learners: int) -> dict[str, int]:
    """Open the boards between all learners of a run; return their file descriptors by wire."""
    names = (
        name
        for learner in range(num_learners)
        for name in (*boards_of(learner), part_name(learner))
    )
    return {name: os.memfd_create(f"tianji-{name}") for name in names}


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """All shared memory of a run, as its owner sees it."""

    control: Control
    stream: StreamMemory
    boards: dict[str, int]
    """File descriptors by wire. A board's writer gives it its size; the ranks of a Reduce find each
    other through theirs."""
    replay: Segment | None
    """The replay store's own memory."""
    messages: dict[str, int]
    """File descriptors by slot (message_slots); messages give them their size."""
    peers: Mapping[str, int]
    """File descriptors of the boards between groups, by wire. The head of the run owns them."""

    @staticmethod
    def create(
        program: Program, plan: RunPlan, peers: Mapping[str, int] | None = None
    ) -> SharedMemory:
        layout, replay = Layout.from_json(plan.layout), replay_layout(plan)
        names = [
            POLICY,
            TOTAL,
            ROWS,
            REQUESTS,
            *(sum_name(actor) for actor in range(plan.num_actors)),
        ]
        for host in range(1, plan.num_hosts):
            names += [wanted_name(host), total_name(host)]
        return SharedMemory(
            Control.create(program.kinds(), bell_names(program)),
            StreamMemory.create(layout, plan.num_slots, plan.num_actors),
            {name: os.memfd_create(f"tianji-{name}") for name in names if program.has_wire(name)},
            None if replay is None else Segment.create("the replay store", replay.nbytes),
            {
                name: os.memfd_create(f"tianji-{name}")
                for slots in message_slots(program).values()
                for name in slots
            },
            {name: fd for name, fd in (peers or {}).items() if program.has_wire(name)},
        )

    @property
    def fds(self) -> dict[str, int]:
        """The file descriptors that a worker inherits."""
        return {
            "control": self.control.segment.fd,
            "slots": self.stream.slots.fd,
            "lanes": self.stream.lanes.fd,
            **self.boards,
            **({} if self.replay is None else {REPLAY: self.replay.fd}),
            **self.messages,
            **self.peers,
        }

    def empty_messages(self) -> None:
        """Forget what a buffer and its learner sent each other; neither of them runs."""
        empty(self.messages.values())

    def close(self) -> None:
        for name, fd in self.fds.items():
            if name not in self.peers:
                os.close(fd)


class SharedEnds:
    """The channels of a run on shared memory that this process has inherited."""

    def __init__(self, program: Program, plan: RunPlan, fds: dict[str, int]) -> None:
        self._program = program
        self._fds = fds
        self._num_envs = plan.envs_per_actor
        self._device = plan.device
        self._bells = program.bells()
        self.control = Control(program.kinds(), bell_names(program), Segment.attach(fds["control"]))
        self.gauges = self.control.gauges
        self.supervision = self.control.supervision
        self.orders = self.control.orders
        self.steps_kept = 0
        """Steps that a learner before this one has left in the replay store."""
        self.highest_version = -1
        """Highest version that a learner before this one has published."""
        self._requested: dict[str, RequestedReader] = {}
        """The policies of actors here that have to ask for it, by name."""
        self._stream = StreamMemory(
            Segment.attach(fds["slots"]),
            Segment.attach(fds["lanes"]),
            Layout.from_json(plan.layout),
            plan.num_slots,
            plan.num_actors,
        )

    def slots(self) -> tuple[dict[str, Array], Array]:
        """Return the fields of all slots, and the bytes behind them."""
        stream = self._stream
        fields = stream.layout.arrays(stream.slots.memory, stream.num_slots)
        return fields, np.frombuffer(stream.slots.memory, np.uint8)

    def bell(self, role: Role) -> Bell:
        """Open the bell that wakes this role. Each thread that rings it needs one of its own."""
        return self.control.bell(self._bells[role.name])

    def sender(self, actor: Role) -> Sender:
        (buffer,) = self._program.of_kind("buffer")
        is_here = buffer.host == self._program.here
        kind = ShmSender if is_here else AnnouncingSender
        if self._program.has_wire(CONFIRMATIONS):
            kind = ConfirmedSender
        sender = kind(self._stream, actor.index, self.bell(buffer))
        policy = self._requested.get(actor.name)
        return sender if policy is None else AskingSender(sender, policy)

    def receiver(self) -> Receiver:
        actors = self._program.of_kind("actor")
        kind = ConfirmingReceiver if self._program.has_wire(CONFIRMATIONS) else ShmReceiver
        return kind(self._stream, [self.bell(actor) for actor in actors])

    def replay_memory(self, layout: RingLayout) -> Any:
        segment = Segment.attach(self._fds[REPLAY])
        assert segment.nbytes == layout.nbytes, "all processes start from the same plan"
        self.steps_kept = layout.count_steps(segment.memory)
        return segment.memory

    def _requests(self, num_outputs: int) -> RequestMemory:
        num_actors = len(self._program.of_kind("actor"))
        return RequestMemory.open(self._fds[ROWS], num_actors, self._num_envs, num_outputs)

    def asker(self, actor: Role, num_outputs: int) -> Asker:
        """Open an actor's end of its requests for inference."""
        (server,) = self._program.of_kind("inference")
        return Asker(self._requests(num_outputs), actor.index, self.bell(server).ring)

    def answerer(self, num_outputs: int) -> Answerer:
        return Answerer(self._requests(num_outputs))

    def message_sender(self, wire: str, target: Role) -> MessageSender:
        return MessageSender(self._slots_of(wire), self.bell(target).ring)

    def message_receiver(self, wire: str) -> MessageReceiver:
        return MessageReceiver(self._slots_of(wire))

    def _slots_of(self, wire: str) -> list[int]:
        return [self._fds[name] for name in message_slots(self._program)[wire]]

    def policy_writer(self, nbytes: int) -> BoardWriter:
        writer = ShmBoardWriter(self._fds[POLICY], nbytes)
        self.highest_version = writer.version()
        return writer

    def policy_reader(self, reader: Role) -> BoardReader:
        board = ShmBoardReader(self._fds[POLICY])
        if not self._program.is_source(reader, REQUESTS):
            return board
        (learner,) = self._program.of_kind("learner")
        asker = Asker(self._policy_requests(), reader.index, self.bell(learner).ring)
        self._requested[reader.name] = requested = RequestedReader(board, asker)
        return requested

    def batches(self, buffer: Batches) -> Batches:
        if not self._program.has_wire(REQUESTS):
            return buffer
        version = ShmBoardReader(self._fds[POLICY]).version
        wake_actors = [self.bell(actor).ring for actor in self._program.of_kind("actor")]
        return AnsweringBatches(buffer, Answerer(self._policy_requests()), version, wake_actors)

    def _policy_requests(self) -> RequestMemory:
        num_actors = len(self._program.of_kind("actor"))
        return RequestMemory.open(self._fds[REQUESTS], num_actors, num_envs=0, num_outputs=0)

    def sum_writer(self, actor: Role, nbytes: int) -> tuple[BoardWriter, BoardReader]:
        name = sum_name(actor.index)
        return ShmBoardWriter(self._fds[name], nbytes, name), ShmBoardReader(self._fds[name])

    def sum_readers(self, nbytes: int) -> Sequence[BoardReader]:
        actors = self._program.of_kind("actor")
        return [ShmBoardReader(self._fds[sum_name(actor.index)]) for actor in actors]

    def host_sums(self) -> Sequence[HostSums]:
        return [self._sums_of(host) for host in self._program.other_hosts()]

    def _sums_of(self, host: int) -> HostSums:
        actors = [actor.index for actor in self._program.actors_on(host)]
        wanted, name = self._fds[wanted_name(host)], wanted_name(host)
        writer = ShmBoardWriter(wanted, wanted_bytes(len(actors)), name)
        answers = ShmBoardReader(self._fds[total_name(host)])
        return HostSums(actors, writer, ShmBoardReader(wanted), answers)

    def peer_writer(self, group: int, nbytes: int) -> BoardWriter:
        return ShmBoardWriter(self._fds[peer_name(group)], nbytes, PEER)

    def peer_reader(self, group: int, nbytes: int) -> BoardReader:
        return ShmBoardReader(self._fds[peer_name(group)])

    def peers(self, mate: TeamMate) -> Peers:
        from tianji.channels.peers.gloo import LOOPBACK, GlooPeers  # it loads torch
        from tianji.channels.peers.shared import SharedPeers

        cards = shared_cards(mate.rank, [self._fds[card_name(each)] for each in mate.team])
        peers: GlooPeers | SharedPeers
        if part_name(mate.group) in self._fds:
            parts = [self._fds[part_name(each)] for each in mate.team]
            peers = SharedPeers(cards, parts, mate.timeout_s, mate.show_life)
        else:
            address = mate.address or LOOPBACK
            peers = GlooPeers(cards, mate.timeout_s, mate.show_life, address)
        if self._device == "cpu":
            return peers
        from tianji.channels.peers.nccl import on_own_gpus

        return on_own_gpus(peers, self._device)

    def meeting_clock(self) -> Clock:
        return time.monotonic_ns

    def reduce(self, role: Role, timeout_s: float) -> GlooReduce | None:
        if TOTAL not in self._fds:
            return None
        from tianji.channels.reduce import GlooReduce  # it loads torch, and supervisors wait for it

        return GlooReduce(self._fds[TOTAL], timeout_s, self.bell(role).ring)
