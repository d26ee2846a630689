"""Our own rooms alone, in one process, on the real channels: what actor and learner benchmarks run.

spec = make_spec("cartpole-ppo", num_envs=64)
actor = ActorRoom(spec)
actor.run(num_unrolls=8)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tianji.algorithms.registry import load_algorithm
from tianji.channels.board import ShmBoardReader, ShmBoardWriter
from tianji.channels.contributions import ContributionWriter, contribution_bytes
from tianji.channels.gauges import Ticks, timed_tick
from tianji.channels.interface import BoardReader, Sender
from tianji.channels.layout import Layout
from tianji.channels.memory import BELL_BYTES, Bell, Segment
from tianji.channels.orders import BufferRows
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory
from tianji.config.machine import read_machine
from tianji.config.overrides import make_config
from tianji.engines.assembly.build import build_actor
from tianji.engines.assembly.model import build_model
from tianji.engines.loop import run_loop
from tianji.engines.spec import RunSpec
from tianji.envs.build import probe
from tianji.models.tensors import Snapshot
from tianji.planning.resolve.resolve import resolve


def make_spec(preset: str, **values: Any) -> RunSpec:
    """The plan of a run on this machine, with one actor."""
    config = make_config(preset, num_actors=1, **values)
    found = probe(config.env, config.env_kwargs)
    plan = resolve(config, read_machine(), found)
    # Nothing here writes files, so the folder is only a name.
    return RunSpec(config, plan, found.spaces, config.env, Path("runs"))


def _bells(count: int) -> list[Bell]:
    segment = Segment.create("bells", BELL_BYTES * count)
    bells = [Bell(segment, BELL_BYTES * index) for index in range(count)]
    for bell in bells:
        bell.initialise()
    return bells


class ActorRoom:
    """One real actor driven by the real loop, with shared memory under it; whoever would receive
    its unrolls gives every slot back at once."""

    def __init__(self, spec: RunSpec) -> None:
        plan = spec.plan
        actor_bell, buffer_bell = _bells(2)
        memory = StreamMemory.create(Layout.from_json(plan.layout), plan.num_slots, 1)
        self.receiver = ShmReceiver(memory, [actor_bell])
        board = os.memfd_create("policy")
        snapshot = Snapshot(build_model(spec))
        ShmBoardWriter(board, snapshot.nbytes).post(0, snapshot.write_to)
        (self._rows,) = BufferRows.private(num_actors=1).actors
        self._gauges = self._rows.gauges
        sender = ShmSender(memory, 0, buffer_bell)
        self._actor = self._build_actor(spec, sender, ShmBoardReader(board))
        self._bell = actor_bell
        self._buffer_bell = buffer_bell
        self._round = 0
        self.steps_per_unroll = plan.steps_per_unroll

    def _build_actor(self, spec: RunSpec, sender: Sender, policy: BoardReader) -> Ticks:
        return build_actor(spec, 0, lambda: sender, policy, self._rows)

    def run(self, num_unrolls: int) -> int:
        """Make unrolls and give their slots back; returns the environment steps."""
        for _ in range(num_unrolls):
            self.receiver.release(self.make_unroll())
        return num_unrolls * self.steps_per_unroll

    def make_unroll(self) -> int:
        """Let the actor make one unroll; returns its slot, which is the caller's to release."""
        assert self.receiver.grant(0, self._round)
        self._round += 1
        taken: list[int] = []
        run_loop(
            lambda: timed_tick(self._actor, self._gauges),
            [self._gauges],
            _Collect(self, taken),
            lambda: bool(taken),
        )
        return taken[0]

    def take(self) -> int | None:
        return self.receiver.take()


class GradientRoom(ActorRoom):
    """The same with an actor that makes gradients, and nobody who would close its round."""

    def _build_actor(self, spec: RunSpec, sender: Sender, policy: BoardReader) -> Ticks:
        board = os.memfd_create("sum")

        def contributions(num_parameters: int) -> ContributionWriter:
            writer = ShmBoardWriter(board, contribution_bytes(num_parameters))
            return ContributionWriter(writer, ShmBoardReader(board))

        parts = spec, 0, lambda: sender, policy, self._rows
        return build_actor(*parts, open_contributions=contributions)

    def run(self, num_unrolls: int) -> int:
        """Environment steps that went into gradients."""
        steps = 0
        for _ in range(num_unrolls):
            slot = self.make_unroll()
            steps += self.receiver.stamp(slot).env_steps
            self.receiver.release(slot)
        return steps


class _Collect:
    """Stands for the actor's bell: when the actor has nothing left to do, its unroll is there."""

    def __init__(self, room: ActorRoom, taken: list[int]) -> None:
        self._room = room
        self._taken = taken

    def arm(self) -> None:
        """Nobody rings: what there is to wait for has been sent by then."""

    def wait(self, timeout_s: float) -> bool:
        slot = self._room.take()
        assert slot is not None
        self._taken.append(slot)
        return True


def build_update(spec: RunSpec) -> Any:
    """The learner's update over a fresh model."""
    return load_algorithm(spec.config.algorithm.name).build_update(
        build_model(spec), spec.spaces, spec.config
    )
