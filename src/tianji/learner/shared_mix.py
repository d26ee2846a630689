"""SharedMix: mixes a group of several learners with other groups, so that all of them stay equal.

Takes      the state of the group's first learner after its mix (Peers)
Gives      the same parameters and statistics to all learners of the group, to the bit
Waits for  the other learners of the group
Unblocked  by their coming
Stops      with its learner

The first learner posts and reads boards, as one that is alone in its group does. The others take
what came of it through a reduction, to which they give zeros. All learners of a group make the same
updates, so that a mix is due on all of them at the same time.
"""

from __future__ import annotations

import numpy as np
import torch

from tianji.channels.peers.interface import Peers
from tianji.learner.combination import Combination, MixedState

FIRST = 0


class SharedMix:
    """One learner's side. Called as a Combination is."""

    def __init__(
        self, peers: Peers, state: MixedState, every: int, combination: Combination | None
    ) -> None:
        """peers: the learners of the group. every: updates between two mixes. combination: of the
        first learner with other groups; None in all others."""
        assert (combination is not None) == (peers.rank == FIRST), "the first learner mixes"
        self._peers = peers
        self._state = state
        self._every = every
        self._combination = combination
        self._payload = np.zeros(state.nbytes, np.uint8)
        self._updates = 0
        self.is_due = False

    def after_update(self) -> None:
        """Count an update; the first learner posts the state if it is to be mixed now."""
        self._updates += 1
        self.is_due = self._updates % self._every == 0
        if self._combination is not None:
            self._combination.after_update()

    def mix(self, version: int) -> None:
        """Mix the first learner with other groups, and share what came of it."""
        self.is_due = False
        if self._combination is not None:
            self._combination.mix(version)
        self.share()

    def share(self) -> None:
        """Take over the state of the first learner."""
        state, payload = self._state, self._payload
        if self._peers.rank == FIRST:
            state.write_to(payload)
        else:
            payload[:] = 0
        for part in state.parts(payload):
            if len(part):
                self._peers.add(torch.from_numpy(part))
        state.begin()
        state.add(payload)
        state.take_mean()
