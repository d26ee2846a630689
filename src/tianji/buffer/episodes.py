"""The episodes that ended in an unroll."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tianji.channels.interface import Receiver
from tianji.types import Episode, Stamp

Finished: TypeAlias = tuple[tuple[int, int, int, int], Episode]
"""An episode behind its place in time: round, row, actor, environment."""


def finished_episodes(
    receiver: Receiver, stamp: Stamp, slot: int, first_row: int = 0
) -> list[Finished]:
    """With their place in time; rows before first_row repeat the unroll before."""
    lengths = receiver.arrays["episode_length"][slot]
    returns = receiver.arrays["episode_return"][slot]
    row_ns = receiver.arrays["row_ns"][slot]
    found = []
    for row, env in np.argwhere(lengths[first_row:] > 0).tolist():
        at = row + first_row
        episode = Episode(
            int(row_ns[at]), float(returns[at, env]), int(lengths[at, env]), stamp.actor
        )
        found.append(((stamp.round, row, stamp.actor, env), episode))
    return found
