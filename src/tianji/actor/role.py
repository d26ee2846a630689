"""Actor: infers and simulates; the only role that touches environments.

Takes      the latest policy (Board), grants of slots (Stream)
Gives      unrolls, written in place while it works, each stamped with the versions that acted
Waits for  a grant, and nothing else
Unblocked  by the buffer, which grants slots as the balance allows
Stops      between two ticks
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tianji.actor.episodes import EpisodeLedger
from tianji.algorithms.interface import Acting
from tianji.channels.gauges import Activity, Gauge
from tianji.channels.interface import BoardReader, Bytes, Grant, Sender
from tianji.envs.interface import World
from tianji.types import Clock, Stamp, Unroll


@dataclass(frozen=True, slots=True)
class ActorPlan:
    """What one actor is told."""

    index: int
    num_actors: int
    num_rows: int
    lookahead: int
    steps_per_unroll: int
    seed: int
    row_names: tuple[str, ...]
    """Fields with one entry for each row, other than the observations; the layout names them."""


class Actor:
    """One loop over its environments; `tick` is one step of all of them."""

    due_ns = 0
    """It never waits for a point in time."""

    def __init__(
        self,
        plan: ActorPlan,
        world: World,
        acting: Acting,
        read_policy: Callable[[Bytes], None],
        policy: BoardReader,
        sender: Sender,
        gauges: memoryview[int],
        now_ns: Clock = time.monotonic_ns,
    ) -> None:
        self._plan = plan
        self._world = world
        self._acting = acting
        self._read_policy = read_policy
        self._policy = policy
        self._sender = sender
        self._gauges = gauges
        self._now_ns = now_ns
        self._rng = np.random.default_rng()
        self._ledger = EpisodeLedger(world.num_envs)
        self._carry: dict[str, np.ndarray[Any, Any]] | None = None
        self._grant: Grant | None = None
        self._unroll: Unroll = {}
        self._row = 0
        self._version = -1
        self._oldest = -1
        self._started_ns = 0
        self._row_ns: np.ndarray[Any, Any] = np.zeros(0, np.int64)

    def tick(self) -> bool:
        """Begin an unroll if one may, then step all environments once."""
        if self._gauges[Gauge.LANE_RESETS] != self._gauges[Gauge.LANE_RESETS_DONE]:
            return False  # what the lane holds was granted to an actor that is dead
        if self._sender.is_stale():
            self._abandon()
        if self._grant is None and not self._begin():
            return False
        if self._policy.version() != self._version:
            self._version = self._policy.latest(self._read_policy)
        row = self._row
        actions = self._acting.act(self._unroll, row)
        before_ns = self._now_ns()
        self._world.step(actions, self._unroll, row)
        self._row_ns[row] = now_ns = self._now_ns()
        self._gauges[Gauge.ENV_NS] += now_ns - before_ns
        self._gauges[Gauge.HEARTBEAT_NS] = now_ns
        self._row = row + 1
        if self._row == self._plan.num_rows or self._is_hurried():
            self._finish(now_ns)
        return True

    def _abandon(self) -> None:
        """The buffer was reborn and knows nothing of the slot being written. The environments have
        moved on, so what the next unroll starts from is saved before the slot is let go."""
        if self._grant is not None:
            self._unroll["valid"][self._row :] = False
            self._ledger.close_unroll(self._unroll, self._first_row, self._row)
            self._keep_carry(self._unroll, self._row)
            self._grant = None
            self._gauges[Gauge.DISCARDED] += 1
        self._sender.attach()

    def _begin(self) -> bool:
        version = self._policy.version()
        if version < 0:
            self._gauges[Gauge.ACTIVITY] = Activity.WAITING
            return False
        # Before the grant is taken, so that the buffer never sees an unroll in work without it.
        self._gauges[Gauge.STARTED_VERSION] = version + 1
        grant = self._sender.reserve()
        if grant is None:
            self._gauges[Gauge.STARTED_VERSION] = 0
            self._gauges[Gauge.ACTIVITY] = Activity.PACED
            return False
        self._gauges[Gauge.ACTIVITY] = Activity.ACTING
        self._grant = grant
        self._unroll = unroll = self._sender.unroll(grant.slot)
        self._row_ns = unroll["row_ns"]
        self._started_ns = self._now_ns()
        if self._gauges[Gauge.FIRST_STEP_NS] == 0:
            self._gauges[Gauge.FIRST_STEP_NS] = self._started_ns
        first = self._first_row
        if self._carry is None:
            self._begin_episodes(unroll, grant.round)
        else:
            for name, rows in self._carry.items():
                unroll[name][: len(rows)] = rows
        self._row = first
        if self._policy.version() != self._version:
            self._version = self._policy.latest(self._read_policy)
        self._oldest = self._version
        self._acting.begin(self._rng, unroll, first, self._steps_before(grant.round))
        return True

    @property
    def _first_row(self) -> int:
        """Rows before it repeat the end of the unroll before (n-step returns look ahead)."""
        return self._plan.lookahead - 1

    def _steps_before(self, round_number: int) -> int:
        return round_number * self._plan.num_actors * self._plan.steps_per_unroll

    def _begin_episodes(self, unroll: Unroll, round_number: int) -> None:
        """Fresh environments. Their first observation belongs to the first row that is written.

        Random numbers follow from the seed and the round, so that an actor that takes over, after
        a death or a resume, does not live through the same episodes again.
        """
        sequence = np.random.SeedSequence(self._plan.seed, spawn_key=(round_number,))
        self._rng = np.random.default_rng(sequence)
        self._world.reset(int(self._rng.integers(2**31)), unroll)
        first = self._first_row
        for name in self._observation_names(unroll):
            unroll[name][first] = unroll[name][0]
        for name in ("valid", "terminated", "truncated"):
            unroll[name][:first] = False
        self._ledger.restart()

    @staticmethod
    def _observation_names(unroll: Unroll) -> list[str]:
        return [name for name in unroll if name == "obs" or name.startswith("obs.")]

    def _is_hurried(self) -> bool:
        """The buffer asks for an unroll that would soon be too old: it is handed over short.

        Not where rows are repeated for n-step returns: the repeated items would be stored twice.
        """
        assert self._grant is not None
        return self._gauges[Gauge.HURRY] > self._grant.round and self._first_row == 0

    def _finish(self, now_ns: int) -> None:
        assert self._grant is not None
        unroll, first, end = self._unroll, self._first_row, self._row
        if end < self._plan.num_rows:
            for name in ("valid", "terminated", "truncated"):
                unroll[name][end:] = False
        self._acting.finish(unroll, first)
        self._ledger.close_unroll(unroll, first, end)
        steps = int(np.count_nonzero(unroll["valid"][first:end]))
        self._keep_carry(unroll, end)
        stamp = Stamp(
            self._plan.index, self._grant.round, self._oldest, self._version, steps,
            self._started_ns, now_ns,
        )  # fmt: skip
        self._sender.send(self._grant.slot, stamp)
        self._grant = None
        self._gauges[Gauge.STARTED_VERSION] = 0  # after the send: until then it is in work
        self._gauges[Gauge.STEPS] += steps
        self._gauges[Gauge.ITEMS] += 1
        self._gauges[Gauge.VERSION] = self._version

    def _keep_carry(self, unroll: Unroll, end: int) -> None:
        """What the next unroll repeats: the last observation, and for n-step returns the rows
        before it. It is copied, because the slot belongs to the buffer once it is sent."""
        first = self._first_row
        observations = self._observation_names(unroll)
        self._carry = {name: unroll[name][end - first : end + 1].copy() for name in observations}
        if first:
            for name in self._plan.row_names:
                self._carry[name] = unroll[name][end - first : end].copy()

    def state(self) -> dict[str, Any] | None:
        """For exact resume, between two unrolls; None before the first one, and where the world
        does not offer its state."""
        if self._carry is None:  # environments may have no state before their first reset
            return None
        world = self._world.get_state()
        if world is None:
            return None
        return {
            "world": world,
            "carry": {name: rows.copy() for name, rows in self._carry.items()},
            "ledger": self._ledger.state(),
            "rng": self._rng.bit_generator.state,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self._world.set_state(state["world"])
        self._carry = {name: np.array(rows) for name, rows in state["carry"].items()}
        self._ledger.load_state(state["ledger"])
        self._rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        self._world.close()
