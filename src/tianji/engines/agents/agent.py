"""Agent: runs a group on its host, as the local engine does, and tells its head about it.

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
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tianji.channels.gauges import Gauges
from tianji.channels.orders import Stop
from tianji.checkpoint.load import list_checkpoints
from tianji.checkpoint.schema import checkpoints_folder
from tianji.config.machine import read_machine
from tianji.engines.agents.files import pack, sees, unpack
from tianji.engines.agents.messages import Answer, GroupOrder, Question, Shipped, to_bytes
from tianji.engines.agents.peers import PeerBoards
from tianji.engines.assembly.wiring import open_peer_boards
from tianji.engines.interface import Neighbours, Outcome
from tianji.engines.local import LocalEngine
from tianji.engines.signals import StopRequest
from tianji.programs.groups import boards_of, group_program
from tianji.records import Report
from tianji.types import Clock


class Agent:
    """Its methods may be called by several threads at a time."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._reports: list[Report] = []
        self._outcome: Outcome | None = None
        self._gauges: Gauges | None = None
        self._stop = StopRequest(note="")  # the head tells a person
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        """Stands in for the run folder of the head, where this host does not have it."""
        self._last_shipped = ""
        self._boards = PeerBoards({})
        self._own_boards: tuple[str, ...] = ()
        """The boards that this group posts on, where there are several."""
        self._other_steps = 0

    def start(self, words: bytes) -> None:
        """Start the group of an encoded GroupOrder; return when its engine is built."""
        order, checkpoints, posts = GroupOrder.decode(words)
        run_dir = Path(order.run_dir)
        if not sees(run_dir, order.mark):
            self._scratch = tempfile.TemporaryDirectory(prefix="tianji-")
            run_dir = Path(self._scratch.name)
            for checkpoint in checkpoints:
                self._last_shipped = checkpoint.name
                unpack(checkpoint.data, checkpoints_folder(run_dir) / checkpoint.name)
        spec = order.to_spec(run_dir)
        fds = open_peer_boards(spec.config.num_groups) if order.has_head else {}
        self._boards = PeerBoards(fds)
        self._own_boards = boards_of(spec.group) if order.has_head else ()
        self._boards.put(posts)
        for board in self._own_boards:
            self._boards.leave(board)  # the learner writes it
        neighbours = Neighbours(fds, lambda: self._other_steps) if order.has_head else None
        program = group_program(spec.config, spec.plan, spec.group)
        engine = LocalEngine(spec, program, self, neighbours=neighbours)
        threading.Thread(target=self._run, args=(engine, order.resume), daemon=True).start()

    def _run(self, engine: LocalEngine, resume: bool) -> None:
        try:
            outcome = engine.run(self._stop, resume)
        except Exception as error:  # noqa: BLE001 - the head hears of it
            cause = f"{type(error).__name__}: {error}"
            outcome = Outcome(because="failed", record=None, restarts=0, first_cause=cause)
        with self._news:
            self._outcome = outcome
            self._news.notify_all()

    def machine(self) -> str:
        """Return this host's Machine as JSON."""
        return json.dumps(asdict(read_machine()))

    def poll(self, words: bytes) -> bytes:
        """Answer an encoded Question when there is news, or when its time is over."""
        asked = Question.decode(words)
        self._other_steps = asked.other_steps
        self._boards.put(asked.posts)
        with self._news:
            self._news.wait_for(lambda: self._reports or self._outcome, asked.timeout_s)
            reports, self._reports = self._reports, []
            gauges = b"" if self._gauges is None else to_bytes(self._gauges)
            now_ns, outcome = time.monotonic_ns(), self._outcome
        posts = self._boards.take_new(self._own_boards)
        return Answer(reports, gauges, now_ns, outcome, self._ship(), posts).encode()

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

    # The observer of the engine.

    def report(self, report: Report) -> None:
        with self._news:
            self._reports.append(report)
            self._news.notify_all()

    def watch(
        self,
        gauges: Gauges,
        pids: dict[str, int] | None = None,
        now_ns: Clock = time.monotonic_ns,
        settle: Callable[[], None] | None = None,
    ) -> None:
        self._gauges = gauges

    def tick(self) -> None:
        """The head asks for gauges when it wants them."""
