"""Actor: infers and simulates; the only role that touches environments.

Takes      the latest policy (Board), grants of slots (Stream)
Gives      items (unrolls, or gradients with a token for each), stamped with the versions that acted
Waits for  a grant, with gradients for the version after a closed round, for the answers of a
           server, where one infers, and for the other end of a channel that makes it wait
Unblocked  by the buffer, which grants slots, and by the learner, which publishes
Stops      between two ticks
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.actor.assembler import ActorOrders, Assembler, Inference
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import Grant, Sender
from tianji.channels.orders import ActorRows
from tianji.envs.interface import World
from tianji.types import Array, Clock, Stamp, Unroll

ENDS = ("valid", "terminated", "truncated")


class EpisodeLedger:
    """Returns and lengths of the episodes that are still running, one per environment."""

    def __init__(self, num_envs: int) -> None:
        self._return = np.zeros(num_envs, np.float64)
        self._length = np.zeros(num_envs, np.int64)

    def close_unroll(self, unroll: Unroll, first_row: int, end: int) -> None:
        """Fill `episode_return` and `episode_length` for the rows from first_row on, of which those
        from `end` on were not made."""
        unroll["episode_return"][first_row:] = 0.0
        unroll["episode_length"][first_row:] = 0
        if end == first_row:
            return
        rows = slice(first_row, end)
        valid = unroll["valid"][rows]
        rewards = np.where(valid, unroll["reward"][rows], 0.0).astype(np.float64)
        ended = (unroll["terminated"][rows] | unroll["truncated"][rows]) & valid
        cut = ~valid  # where no episode ended before, the environment failed: it does not count
        cut[1:] &= ~ended[:-1]
        returns, lengths = rewards.cumsum(0), valid.cumsum(0)
        start_return, start_length = -self._return, -self._length
        # Ends are few: walk them in order of time, each environment from its last end on.
        for row, env in np.argwhere(ended | cut):
            if ended[row, env]:
                at = first_row + row, env
                unroll["episode_return"][at] = returns[row, env] - start_return[env]
                unroll["episode_length"][at] = lengths[row, env] - start_length[env]
            start_return[env], start_length[env] = returns[row, env], lengths[row, env]
        self._return = returns[-1] - start_return
        self._length = lengths[-1] - start_length

    def restart(self) -> None:
        """All environments begin new episodes."""
        self._return[:] = 0.0
        self._length[:] = 0

    def state(self) -> dict[str, Any]:
        return {"return": self._return.copy(), "length": self._length.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._return = np.array(state["return"], np.float64)
        self._length = np.array(state["length"], np.int64)


@dataclass(frozen=True, slots=True)
class ActorPlan:
    """ActorPlan(index=0, num_rows=32, observed={"obs": 0})"""

    index: int
    num_rows: int
    """Rows of a slot."""
    observed: Mapping[str, int]
    """Fields with one entry for each observation, and how many observations each looks back."""


class Actor:
    """One loop over its environments; `tick` is one step of all of them."""

    def __init__(
        self,
        plan: ActorPlan,
        world: World,
        inference: Inference,
        assembler: Assembler,
        sender: Sender,
        rows: ActorRows,
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._plan = plan
        self._world = world
        self._inference = inference
        self._assembler = assembler
        self._sender = sender
        self._gauges = rows.gauges
        self._now_ns = now_ns
        self._orders = ActorOrders(rows)
        self._ledger = EpisodeLedger(world.num_envs)
        self._grant: Grant | None = None
        self._unroll: Unroll = {}
        self._row = 0
        self._oldest = -1
        self._started_ns = 0
        self._is_complete = False
        """The item in work has all its rows and waits until it is due."""
        self._is_inferring = False
        """The actions of the next row are being chosen."""
        self._may_leave = inference.is_elsewhere or (inference.runs_alone and world.steps_alone)
        # Actors with odd numbers are one phase ahead: while some infer, others step.
        is_even = plan.index % 2 == 0
        self._leaves_inference = self._may_leave and (is_even or inference.is_elsewhere)
        self._is_stepping = False
        """The environments make a step that was not received yet."""
        self.index = plan.index
        self.is_working = False
        """An item has been begun and is neither sent nor dropped."""

    def tick(self) -> bool:
        """Begin an item if one may, then step all environments once.

        Environments that step on threads of their own, and inference on a GPU or in another
        process, are left to it until a later tick, so that the other actors of this thread can work
        meanwhile."""
        if self._is_inferring:
            if not self._inference.is_ready():
                self._gauges[Gauge.ACTIVITY] = Activity.ASKING
                return False
            self._gauges[Gauge.ACTIVITY] = Activity.ACTING
            self._is_inferring = False
            self._send_row(self._inference.collect(self._unroll, self._row))
            return True
        was_stepping = self._is_stepping
        if was_stepping:
            self._receive_row()
            self._leaves_inference = self._may_leave
        if not self.begin():
            return was_stepping
        if self._is_complete:
            return self._send_when_due(self._now_ns()) or was_stepping
        self._assembler.before_row()
        if self._leaves_inference:
            self._inference.submit(self._unroll, self._row)
            self._is_inferring = True
            return True
        self._send_row(self._inference.act(self._unroll, self._row))
        if not self._world.steps_alone:
            self._receive_row()
        return True

    def begin(self) -> bool:
        """Drop an item that is no longer wanted, begin one if one may; return whether one is in
        work."""
        if not self._orders.is_lane_ready():
            return False  # what the lane holds was granted to an actor that is dead
        if self._sender.is_stale():
            self._abandon()
        if self.is_working:
            if self._assembler.is_wanted():
                return True
            self._drop()
        return self._begin()

    def is_wanted(self) -> bool:
        """Return whether the item in work is still wanted."""
        return self._assembler.is_wanted()

    @property
    def due_ns(self) -> int:
        """Time at which the item in work may be sent; 0 where that does not depend on time."""
        return self._assembler.due_ns

    def _abandon(self) -> None:
        """Let the slot go: the buffer was restarted and knows nothing of it."""
        if self.is_working:
            self._drop()
        self._grant = None
        self._sender.attach()

    def _drop(self) -> None:
        """Give up the item in work; its slot is used for the next one."""
        if self._assembler.carries_episodes:
            self._unroll["valid"][self._row :] = False
            self._ledger.close_unroll(self._unroll, self._assembler.first_row, self._row)
        self._assembler.drop(self._unroll, self._row)
        self._end_work()
        if self._now_ns() > self._started_ns:  # in simulated time nothing may have happened yet
            self._gauges[Gauge.DISCARDED] += 1
            self._gauges[Gauge.DISCARDED_STEPS] += self._num_steps()

    def _end_work(self) -> None:
        self.is_working = self._is_complete = False
        self._gauges[Gauge.STARTED_VERSION] = 0

    def _begin(self) -> bool:
        gauges, assembler = self._gauges, self._assembler
        if self._sender.is_waiting():
            gauges[Gauge.ACTIVITY] = Activity.ASKING
            return False
        newest = self._inference.newest()
        if not assembler.may_begin(newest):
            gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        # Before the grant is taken, so that the buffer never sees an item in work without it.
        gauges[Gauge.STARTED_VERSION] = newest + 1
        if self._grant is None:
            self._grant = self._sender.reserve()
        if self._grant is None:
            gauges[Gauge.STARTED_VERSION] = 0
            gauges[Gauge.ACTIVITY] = Activity.PACED
            return False
        gauges[Gauge.ACTIVITY] = Activity.ACTING
        self._started_ns = started_ns = assembler.start_ns(newest)
        if gauges[Gauge.FIRST_STEP_NS] == 0:
            gauges[Gauge.FIRST_STEP_NS] = started_ns
        self._inference.refresh()
        self._begin_rows(self._grant)
        self.is_working = True
        return True

    def _begin_rows(self, grant: Grant) -> None:
        self._unroll = unroll = self._sender.unroll(grant.slot)
        self._row = first = self._assembler.first_row
        first_step_ns = self._gauges[Gauge.FIRST_STEP_NS]
        start = self._assembler.begin(unroll, grant.round, self._started_ns, first_step_ns)
        if start.is_fresh:
            self._begin_episodes(start.rng, unroll, first)
        self._inference.begin(start.rng, unroll, first, start.steps_before)

    def _begin_episodes(self, rng: np.random.Generator, unroll: Unroll, first: int) -> None:
        """Reset the environments. Their first observation belongs to the first row that is made."""
        self._world.reset(int(rng.integers(2**31)), unroll)
        self._ledger.restart()
        if first:
            for name, history in self._plan.observed.items():
                unroll[name][history + first] = unroll[name][history]
            for name in ENDS:
                unroll[name][:first] = False

    def _send_row(self, actions: Array) -> None:
        """Start the step of the row."""
        version = self._inference.version
        if self._row == self._assembler.first_row:
            self._oldest = version
        self._unroll["row_version"][self._row] = version
        self._world.send(actions)
        self._is_stepping = True

    def _receive_row(self) -> None:
        """Wait until the step is done, and send the item that it completes."""
        row, unroll, gauges = self._row, self._unroll, self._gauges
        before_ns = self._now_ns()
        self._world.recv(unroll, row)
        self._is_stepping = False
        unroll["row_ns"][row] = now_ns = self._now_ns()
        gauges[Gauge.ENV_NS] += now_ns - before_ns
        gauges[Gauge.HEARTBEAT_NS] = now_ns
        self._row = row + 1
        if self._row == self._plan.num_rows or self._assembler.is_complete(unroll, row):
            self._complete()
            self._send_when_due(now_ns)

    def _complete(self) -> None:
        """The rows are made: they become an item."""
        unroll, first, end = self._unroll, self._assembler.first_row, self._row
        if end < self._plan.num_rows:
            for name in ENDS:
                unroll[name][end:] = False
        self._assembler.close_episodes(unroll, end)
        self._inference.finish(unroll, first)
        self._ledger.close_unroll(unroll, first, end)
        self._assembler.finish(unroll, end)
        self._is_complete = True

    def _send_when_due(self, now_ns: int) -> bool:
        if now_ns < self._assembler.due_ns:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        self._send(now_ns)
        return True

    def _send(self, now_ns: int) -> None:
        assert self._grant is not None, "an item in work has a slot"
        steps, version = self._num_steps(), self._inference.version
        stamp = Stamp(
            self._plan.index, self._grant.round, self._oldest, version, steps,
            self._started_ns, now_ns,
        )  # fmt: skip
        self._assembler.post()
        self._sender.send(self._grant.slot, stamp)
        self._grant = None
        self._end_work()  # after the send: until then it is in work
        self._gauges[Gauge.STEPS] += steps
        self._gauges[Gauge.ITEMS] += 1
        self._gauges[Gauge.VERSION] = version
        self._gauges[Gauge.UPLOADED_BYTES] = self._inference.uploaded_bytes

    def _num_steps(self) -> int:
        return int(np.count_nonzero(self._unroll["valid"][self._assembler.first_row : self._row]))

    def state(self) -> dict[str, Any] | None:
        """Return the state for an exact resume, between two items; None where there is none yet, or
        where the environments do not offer theirs."""
        state = self._assembler.state()
        if state is None or not self._assembler.carries_episodes:
            return state
        world = self._world.get_state()
        return None if world is None else {**state, "world": world, "ledger": self._ledger.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._assembler.load_state(state)
        if self._assembler.carries_episodes:
            self._world.set_state(state["world"])
            self._ledger.load_state(state["ledger"])

    def close(self) -> None:
        self._world.close()
