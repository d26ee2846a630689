"""The channels of a program whose roles all run in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tianji.buffer.stores.ring_layout import RingLayout
from tianji.channels.contributions import HostSums
from tianji.channels.gauges import Gauges
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.interface import Batches, BoardReader, BoardWriter, Receiver, Sender
from tianji.channels.layout import Layout
from tianji.channels.orders import Orders
from tianji.channels.peers.interface import ALONE, Peers
from tianji.config.plan import RunPlan
from tianji.engines.assembly.ends import TeamMate
from tianji.programs.program import Program, Role
from tianji.types import Clock

if TYPE_CHECKING:
    from tianji.channels.peers.inproc import InprocTeam
    from tianji.channels.reduce import GlooReduce


def build_stream(plan: RunPlan) -> InprocStream:
    """Return the stream of experience inside one process."""
    return InprocStream(Layout.from_json(plan.layout), plan.num_slots, plan.num_actors)


class InprocEnds:
    """All channels in ordinary memory. The policy's board exists once it was opened for writing.

    In one process nobody waits for an answer or a confirmation: roles work one after the other, so
    each would be there before it could be waited for."""

    def __init__(
        self,
        program: Program,
        stream: InprocStream,
        make_board: Callable[[int], InprocBoard] = InprocBoard,
        peers: dict[int, InprocBoard] | None = None,
        team: InprocTeam | None = None,
    ) -> None:
        """make_board: makes the policy's board, of so many bytes. peers: the boards between groups,
        the same for all groups. team: the learners that add up their gradients."""
        kinds = program.kinds()
        self.gauges = Gauges(kinds)
        self.supervision = Orders(kinds)
        self.orders = Orders(kinds)
        self._stream = stream
        self._make_board = make_board
        self._policy: InprocBoard | None = None
        self._sums: dict[int, InprocBoard] = {}
        self._peers = {} if peers is None else peers
        self._team = team

    def sender(self, actor: Role) -> Sender:
        return self._stream.sender(actor.index)

    def receiver(self) -> Receiver:
        return self._stream

    def replay_memory(self, layout: RingLayout) -> Any:
        return np.zeros(layout.nbytes, np.uint8)

    def policy_writer(self, nbytes: int) -> BoardWriter:
        self._policy = self._make_board(nbytes)
        return self._policy

    def policy_reader(self, reader: Role) -> BoardReader:
        assert self._policy is not None, "the learner is built before whoever reads its policy"
        return self._policy

    def batches(self, buffer: Batches) -> Batches:
        return buffer

    def sum_writer(self, actor: Role, nbytes: int) -> tuple[BoardWriter, BoardReader]:
        board = self._sum(actor.index, nbytes)
        return board, board

    def sum_readers(self, nbytes: int) -> Sequence[BoardReader]:
        return [self._sum(lane, nbytes) for lane in range(self._stream.num_lanes)]

    def host_sums(self) -> Sequence[HostSums]:
        return ()

    def _sum(self, actor: int, nbytes: int) -> InprocBoard:
        return self._sums.setdefault(actor, InprocBoard(nbytes))

    def peer_writer(self, group: int, nbytes: int) -> BoardWriter:
        return self._peers.setdefault(group, InprocBoard(nbytes))

    def peer_reader(self, group: int, nbytes: int) -> BoardReader:
        return self._peers.setdefault(group, InprocBoard(nbytes))

    def peers(self, mate: TeamMate) -> Peers:
        return ALONE if self._team is None else self._team.end(mate.rank)

    def meeting_clock(self) -> Clock:
        # It counts how often it is asked, so that no decision depends on the speed of the machine.
        return itertools.count(0, 1_000_000).__next__

    def reduce(self, role: Role, timeout_s: float) -> GlooReduce | None:
        return None
