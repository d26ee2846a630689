"""One actor over channels in this process, with a world and a policy of known answers."""

import time

import numpy as np

from tests.fakes.scripted import (
    PAYLOAD_BYTES,
    ScriptedActing,
    ScriptedWorld,
    scripted_layout,
    write_version,
)
from tianji.actor.assembler import ActorOrders, Inference
from tianji.actor.episodes import OngoingEpisodes, OngoingPlan
from tianji.actor.role import Actor, ActorPlan
from tianji.actor.unrolls import UnrollAssembler
from tianji.channels.inproc import InprocBoard, InprocStream
from tianji.channels.orders import BufferRows


class Rig:
    """One actor, its lane and the policy board, with everything a test may want to turn."""

    def __init__(
        self,
        length=4,
        lookahead=1,
        world=None,
        num_actors=1,
        seed=0,
        layout=None,
        now_ns=time.monotonic_ns,
    ):
        self.world = world or ScriptedWorld()
        self.acting = ScriptedActing()
        (self.rows,) = BufferRows.private(num_actors=1).actors
        self.gauges, self.orders = self.rows.gauges, self.rows.orders
        self.board = InprocBoard(PAYLOAD_BYTES)
        num_rows = length + lookahead - 1
        num_envs = self.world.num_envs
        layout = layout or scripted_layout(num_rows, num_envs, self.world.keeps_final)
        self.stream = InprocStream(layout, num_slots=2, num_lanes=1)
        self.poison()
        inference = Inference(self.acting, self.board, self.acting.read_policy)
        steps_per_round = num_actors * length * num_envs
        plan = OngoingPlan(
            lookahead - 1, steps_per_round, seed, layout.row_names(), layout.observed()
        )
        assembler = UnrollAssembler(
            OngoingEpisodes(plan), inference, ActorOrders(self.rows), now_ns
        )
        self.actor = Actor(
            ActorPlan(0, num_rows, plan.observed), self.world, inference, assembler,
            self.stream.sender(0), self.rows, now_ns,
        )  # fmt: skip
        self.first = lookahead - 1

    def poison(self, slot=slice(None)):
        """Whatever is not written is wrong."""
        for array in self.stream.arrays.values():
            array[slot] = np.nan if array.dtype.kind == "f" else True

    def publish(self, version):
        self.board.post(version, write_version(version))

    def grant(self, number=0):
        assert self.stream.grant(0, number)

    def finish_unroll(self):
        """Tick until the unroll in work has arrived; its stamp and a copy of its arrays."""
        while (slot := self.stream.take()) is None:
            assert self.actor.tick()
        arrays = {name: array[slot].copy() for name, array in self.stream.arrays.items()}
        stamp = self.stream.stamp(slot)
        self.poison(slot)
        self.stream.release(slot)
        return stamp, arrays

    def unroll(self, number=0):
        self.grant(number)
        return self.finish_unroll()

    def tick(self, count):
        for _ in range(count):
            assert self.actor.tick()
