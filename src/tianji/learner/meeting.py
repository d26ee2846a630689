"""Meeting: a learner's side of the agreements with the learners of other groups.

Takes      its own wish; the wishes of all others (Peers)
Gives      what all of them do next (Agreed)
Waits for  the other learners, for MEET_S and one update of theirs at most
Unblocked  by their coming
Stops      when they have agreed to end the run

A learner comes when it has a batch or wants to end the run. One that has neither comes from time to
time, so that those with a batch do not wait for ever, and look after their buffers meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from torch import Tensor

from tianji.channels.peers.interface import Peers, gathered, total
from tianji.errors import ReduceBroken
from tianji.learner.agreement import Agreed, Wish, agree, exchange
from tianji.records import StoppedBecause
from tianji.types import Clock

MEET_S = 5.0
"""A learner without a batch comes this often."""
LOOK_S = 0.25
"""During a version, learners look this often whether one of them cuts it short."""

NOTHING_YET = Agreed(False, None, False, 0, 1, ())


class Meeting:
    """`come` before a version, `cuts_short` before each of its updates."""

    def __init__(
        self,
        peers: Peers,
        now_ns: Clock = time.monotonic_ns,
        steps_elsewhere: Callable[[], int] | None = None,
    ) -> None:
        """steps_elsewhere: returns the environment steps of the run that this learner does not
        count, as the head has told it; None where all learners of the run meet here."""
        self.peers = peers
        self._steps_elsewhere = steps_elsewhere
        self.agreed = NOTHING_YET
        """What was agreed last."""
        self.other_steps = 0
        """Environment steps of all other learners of the run, when it was agreed."""
        self.wants_to_cut_short = False
        self._now_ns = now_ns
        self._env_steps: Callable[[], int] = lambda: 0
        self._is_save_due: Callable[[], bool] = lambda: False
        self._progress_at: Callable[[int], float] = lambda env_steps: 0.0
        self._came_ns = now_ns()
        self._begun_ns = 0
        self._num_made = 0
        """Updates of the version in work."""

    def ask(
        self,
        env_steps: Callable[[], int],
        is_save_due: Callable[[], bool],
        progress_at: Callable[[int], float],
    ) -> None:
        """Set where wishes come from: the steps that the group counts; whether to save.

        progress_at: turns environment steps of the run into a share of max_env_steps."""
        self._env_steps = env_steps
        self._is_save_due = is_save_due
        self._progress_at = progress_at

    def progress(self) -> float:
        """Return the share of max_env_steps that all groups have done, the same on every rank."""
        return self._progress_at(self.agreed.env_steps)

    def is_due(self, is_ready: bool) -> bool:
        """Return whether to come now. is_ready: there is a batch."""
        if self.agreed.because is not None:
            return False
        return is_ready or self._now_ns() - self._came_ns > MEET_S * 1e9

    def come(self, updates: int, is_ready: bool, because: StoppedBecause | None = None) -> Agreed:
        """Say what this learner has and wants, and wait for the others; return what all do next."""
        env_steps, elsewhere = self._env_steps(), self._steps_elsewhere
        wish = Wish(
            updates=updates,
            is_ready=is_ready,
            because=because,
            is_save_due=self._is_save_due(),
            env_steps=env_steps,
            run_steps=0 if elsewhere is None else env_steps + elsewhere(),
            updates_per_look=self._updates_per_look(),
        )
        self.agreed = agreed = agree(exchange(self.peers, wish))
        self.other_steps = agreed.env_steps - env_steps
        self._came_ns = self._now_ns()
        if agreed.begins:
            self._begun_ns, self._num_made = self._came_ns, 0
        return agreed

    def _updates_per_look(self) -> int:
        """Return how many updates of the last version took LOOK_S; 1 before the first."""
        if not self._num_made:
            return 1
        update_s = max(1, self._now_ns() - self._begun_ns) / 1e9 / self._num_made
        return max(1, int(LOOK_S / update_s))

    def cuts_short(self) -> bool:
        """Return whether all learners leave out the updates that are left of this version. Called
        before each update, and reduces only now and then."""
        num_made = self._num_made
        self._num_made += 1
        if not num_made or num_made % self.agreed.updates_per_look:
            return False
        (num_wanting,) = total(self.peers, [float(self.wants_to_cut_short)])
        return num_wanting > 0


def check_same(peers: Peers, vector_P: Tensor) -> None:
    """Raise ReduceBroken where the ranks have different parameters: a sum of gradients would mean
    nothing, and nobody would see it."""
    sums = [float(vector_P.double().sum()), float(vector_P.double().square().sum())]
    ranks = gathered(peers, sums)
    if any(each != ranks[0] for each in ranks):
        raise ReduceBroken(
            "The learners of the groups have different parameters, as after a run with `combine: "
            "average` or `gossip`. Gradients can be added up only where all of them have the same: "
            "continue such a run as it was combined before."
        )


NO_CHECKPOINT = -1


def oldest_of_all(peers: Peers, version: int) -> int:
    """Return the lowest of the versions that the ranks would continue from; NO_CHECKPOINT where
    all begin. ReduceBroken: some would continue and others begin."""
    versions = [int(each) for (each,) in gathered(peers, [version])]
    if NO_CHECKPOINT in versions and max(versions) > NO_CHECKPOINT:
        without = ", ".join(str(r) for r, each in enumerate(versions) if each == NO_CHECKPOINT)
        raise ReduceBroken(
            f"Group {without} died before its first checkpoint, and other groups have one: they "
            "cannot continue together. Train a new run."
        )
    return min(versions)
