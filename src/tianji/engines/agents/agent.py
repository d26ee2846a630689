"""Agent: runs a group on its host, or some actors of one, as the local engine does, and tells its
head about it.

Takes      an order with config and plan, stops
Gives      reports, gauges, checkpoints, and how the group ended, when it is asked
Waits for  nothing
Stops      with its group, or with its process
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from tianji.channels.gauges import Gauges
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.schema import checkpoints_folder
from tianji.config.machine import read_machine
from tianji.engines.agents.addresses import (
    ALL_ADDRESSES,
    Invitation,
    first_that_answers,
    own_addresses,
    visit,
)
from tianji.engines.agents.core_times import CoreTimes
from tianji.engines.agents.files import pack, sees, unpack
from tianji.engines.agents.interface import Call
from tianji.engines.agents.messages import (
    Answer,
    Door,
    GroupOrder,
    Question,
    Shipped,
    Span,
    to_bytes,
)
from tianji.engines.agents.network import Target, measure
from tianji.engines.agents.peers import PeerBoards
from tianji.engines.agents.spanning import ActorLink, HomeLinks, weigh_of
from tianji.engines.assembly.wiring import open_peer_boards
from tianji.engines.groups.observer import GroupObserver
from tianji.engines.interface import Neighbours, Outcome
from tianji.engines.local import Connect, LocalEngine
from tianji.engines.signals import StopRequest
from tianji.engines.spec import RunSpec
from tianji.gateways.links.keys import LinkKeys
from tianji.programs.groups import boards_of, group_program
from tianji.programs.program import SUPERVISOR, Program
from tianji.raised import error_in_words
from tianji.records import LinkFigures
from tianji.reports import Event, Report


class Agent:
    """Its methods may be called by several threads at a time."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._reports: list[Report] = []
        self._outcome: Outcome | None = None
        self._gauges: Gauges | None = None
        self._pids: Mapping[str, int] = {}
        self._roles: tuple[str, ...] = ()
        """The roles that run on this host."""
        self._core_times: CoreTimes | None = None
        self._stop = StopRequest(notes={})  # the head tells a person
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        """Stands in for the run folder of the head, where this host does not have it."""
        self._last_shipped = ""
        self._boards = PeerBoards({})
        self._own_boards: tuple[str, ...] = ()
        """The boards that this group posts on, where there are several."""
        self._other_steps = 0
        self._links: HomeLinks | None = None
        """To the hosts of this group's actors, where they live on several."""

    def answer(self, call: int, words: bytes) -> bytes:
        """Do what a Call asks for."""
        answers: dict[int, Callable[[bytes], bytes]] = {
            Call.START: self.start,
            Call.POLL: self.poll,
            Call.STOP: self._take_stop,
            Call.MACHINE: lambda _: json.dumps(asdict(read_machine())).encode(),
            Call.EXPECT: lambda host: self.expect(json.loads(host)),
            Call.VISIT: lambda asked: json.dumps(visit(Invitation.decode(asked))).encode(),
            Call.LISTEN: self._listen,
            Call.MEASURE: _measure,
        }
        return answers[call](words)

    def _take_stop(self, words: bytes) -> bytes:
        self.stop(json.loads(words))
        return b""

    def _listen(self, words: bytes) -> bytes:
        """Let another host measure the network to this one, once and soon."""
        asked = json.loads(words)
        address = asked["address"]
        target = Target(address or ALL_ADDRESSES, bytes.fromhex(asked["secret"]))
        return Door([address] if address else own_addresses(), target.port).encode()

    def start(self, words: bytes) -> bytes:
        """Start the group of an encoded GroupOrder; return when its engine is built. Return an
        encoded Door."""
        order, checkpoints, posts = GroupOrder.decode(words)
        run_dir = Path(order.run_dir)
        if not sees(run_dir, order.mark):
            self._scratch = tempfile.TemporaryDirectory(prefix="tianji-")
            run_dir = Path(self._scratch.name)
            for checkpoint in checkpoints:
                self._last_shipped = checkpoint.name
                unpack(checkpoint.data, checkpoints_folder(run_dir) / checkpoint.name)
        spec = order.to_spec(run_dir)
        fds = open_peer_boards(spec.config.num_learners) if order.has_head else {}
        self._boards = PeerBoards(fds)
        self._own_boards = boards_of(spec.group) if order.has_head else ()
        self._boards.put(posts)
        for board in self._own_boards:
            self._boards.leave(board)  # the learner writes it
        neighbours = Neighbours(fds, lambda: self._other_steps) if order.has_head else None
        program = group_program(spec.config, spec.plan, spec.group)
        connect: Connect | None = None
        if (span := order.span) is not None:
            program = replace(program, here=span.host)
            connect = self._connect(spec, program, span)
        here = (program.roles_in(worker.name) for worker in program.workers_here())
        self._roles = tuple(role.name for roles in here for role in roles)
        observer = GroupObserver(self.report, self._watch)
        engine = LocalEngine(spec, program, observer, neighbours=neighbours, connect=connect)
        threading.Thread(target=self._run, args=(engine, order.resume), daemon=True).start()
        return self._door(span).encode()

    def _connect(self, spec: RunSpec, program: Program, span: Span) -> Connect:
        keys = LinkKeys.from_text(span.keys)
        if span.door is None or span.expected is None:
            self._links = HomeLinks(program, keys, span.listen or ALL_ADDRESSES)
            return self._links.connect
        address = first_that_answers(span.door.addresses, span.door.port)
        weigh = weigh_of(spec)
        return ActorLink(program, keys, address, span.expected, weigh).connect

    def _door(self, span: Span | None) -> Door:
        if self._links is None or span is None:
            return Door([], 0)
        return Door([span.listen] if span.listen else own_addresses(), self._links.port)

    def expect(self, host: int) -> bytes:
        """Let a host with actors of this group connect; return an encoded Expected."""
        assert self._links is not None, "the group lives on several hosts"
        return json.dumps(self._links.expect(host)).encode()

    def _run(self, engine: LocalEngine, resume: bool) -> None:
        try:
            outcome = engine.run(self._stop, resume)
        except Exception as error:  # noqa: BLE001 - the head hears of it
            cause = error_in_words(error)
            outcome = Outcome(because="failed", record=None, restarts=0, first_cause=cause)
        with self._news:
            self._outcome = outcome
            self._news.notify_all()

    def poll(self, words: bytes) -> bytes:
        """Answer an encoded Question when there is news, or when its time is over."""
        asked = Question.decode(words)
        self._other_steps = asked.other_steps
        self._boards.put(asked.posts)
        if self._links is not None:
            self._links.give_up(asked.given_up)
        with self._news:
            self._news.wait_for(lambda: self._reports or self._outcome, asked.timeout_s)
            reports, self._reports = self._reports, []
            if self._core_times is not None:
                self._core_times.look(self._pids)
            gauges = b"" if self._gauges is None else to_bytes(self._gauges)
            now_ns, outcome = time.monotonic_ns(), self._outcome
        posts = self._boards.take_new(self._own_boards)
        lost, figures = self._look_at_links()
        return Answer(reports, gauges, now_ns, outcome, self._ship(), posts, lost, figures).encode()

    def _look_at_links(self) -> tuple[list[int], list[LinkFigures]]:
        if self._links is None:
            return [], []
        if text := self._links.news():
            self.report(Event(kind="note", role=SUPERVISOR, text=text))
        return self._links.lost(), self._links.figures()

    def _ship(self) -> Shipped | None:
        """Return the newest checkpoint, if the head does not have it."""
        if self._scratch is None:
            return None
        found = list_checkpoints(Path(self._scratch.name))
        if not found or found[-1].name == self._last_shipped:
            return None
        self._last_shipped = found[-1].name
        return Shipped(found[-1].name, pack(found[-1]))

    def stop(self, level: int) -> None:
        """Ask the group to end, as urgently as this Stop says."""
        self._stop.raise_to(max(self._stop.level, Stop(level)))

    # What the engine tells.

    def report(self, report: Report) -> None:
        with self._news:
            self._reports.append(report)
            self._news.notify_all()

    def _watch(self, gauges: Gauges, pids: Mapping[str, int]) -> None:
        with self._news:
            self._gauges, self._pids = gauges, pids
            self._core_times = self._core_times or CoreTimes(gauges, self._roles)


def _measure(words: bytes) -> bytes:
    asked = json.loads(words)
    door = Door(*asked["door"])
    return json.dumps(measure(door.addresses, door.port, bytes.fromhex(asked["secret"]))).encode()
