"""Playing whole episodes with a policy, outside of training."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from tianji.envs.build import make_rows
from tianji.envs.interface import World
from tianji.types import Array, Unroll

Act: TypeAlias = Callable[[Mapping[str, Array]], Array]
"""Observations of all environments by leaf name to their actions."""


class Played(NamedTuple):
    """Returns and lengths of episodes, environment by environment."""

    returns: list[float]
    lengths: list[int]
    num_cut: int
    """How many of them had not ended when they were cut."""


def play(act: Act, world: World, seed: int) -> Iterator[Unroll]:
    """Reset, then step without end; every time, row 0 of what is given holds the newest step."""
    rows = make_rows(world, 1)
    names = [field.name for field in world.observation_fields() if field.per == "obs"]
    world.reset(seed, rows)
    row = 0  # where a reset writes its observations; a step writes them one row further
    while True:
        world.step(act({name: rows[name][row] for name in names}), rows, 0)
        row = 1
        yield rows


def play_episodes(
    act: Act, world: World, num_episodes: int, seed: int, cut_after_steps: int
) -> Played:
    """Play exactly this many episodes, and cut those that do not end.

    Every environment plays a number of them that is fixed before the start. To take whichever end
    first would favour short episodes. An environment whose episode is cut waits until the others
    have played theirs or are cut too: then all are reset, since a world resets as a whole.
    """
    tally = _Tally(world.num_envs, num_episodes, cut_after_steps)
    for round_seed in itertools.count(seed):
        tally.begin()
        for rows in play(act, world, round_seed):
            tally.add(rows)
            if not tally.is_playing.any():
                break
        if tally.is_complete:
            break
    return tally.played()


class _Tally:
    """The episodes of every environment, as they are played."""

    def __init__(self, num_envs: int, num_episodes: int, cut_after_steps: int) -> None:
        share, rest = divmod(num_episodes, num_envs)
        self._wanted = [share + (i < rest) for i in range(num_envs)]
        self._cut_after_steps = cut_after_steps
        self._returns: list[list[float]] = [[] for _ in range(num_envs)]
        self._lengths: list[list[int]] = [[] for _ in range(num_envs)]
        self._num_cut = 0
        self._return, self._length = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self.is_playing = np.zeros(num_envs, np.bool_)
        """The environments that still count in this round."""

    def begin(self) -> None:
        """All environments were reset."""
        self._return[:] = self._length[:] = 0
        self.is_playing[:] = [not self._has_all(i) for i in range(len(self._wanted))]

    def add(self, rows: Unroll) -> None:
        """Count one step of all environments."""
        valid = rows["valid"][0]
        self._return += np.where(valid, rows["reward"][0], 0.0)
        self._length += valid
        ended = (rows["terminated"][0] | rows["truncated"][0]) & valid
        cut = (self._length >= self._cut_after_steps) & ~ended
        for i in np.flatnonzero((ended | cut) & self.is_playing).tolist():
            self._returns[i].append(float(self._return[i]))
            self._lengths[i].append(int(self._length[i]))
            self._num_cut += int(cut[i])
            self.is_playing[i] = not (cut[i] or self._has_all(i))
        self._return[ended] = self._length[ended] = 0

    def _has_all(self, i: int) -> bool:
        return len(self._returns[i]) == self._wanted[i]

    @property
    def is_complete(self) -> bool:
        return all(self._has_all(i) for i in range(len(self._wanted)))

    def played(self) -> Played:
        returns = list(itertools.chain(*self._returns))
        return Played(returns, list(itertools.chain(*self._lengths)), self._num_cut)
