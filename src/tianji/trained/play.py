"""Playing whole episodes with greedy actions, outside of training."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from tianji.envs.build import make_rows
from tianji.envs.interface import World
from tianji.types import Array, Unroll

Greedy: TypeAlias = Callable[[Mapping[str, Array]], Array]
"""Observations of all environments by leaf name to their actions."""


class Played(NamedTuple):
    """Returns and lengths of finished episodes, environment by environment."""

    returns: list[float]
    lengths: list[int]


def play(greedy: Greedy, world: World, seed: int) -> Iterator[Unroll]:
    """Reset, then step without end; every time, row 0 of what is given holds the newest step."""
    rows = make_rows(world, 1)
    names = [field.name for field in world.observation_fields() if field.per == "obs"]
    world.reset(seed, rows)
    row = 0  # where a reset writes its observations; a step writes them one row further
    while True:
        world.step(greedy({name: rows[name][row] for name in names}), rows, 0)
        row = 1
        yield rows


def play_episodes(greedy: Greedy, world: World, num_episodes: int, seed: int) -> Played:
    """Play exactly this many whole episodes.

    Every environment plays a number of them that is fixed before the start. To take whichever end
    first would favour short episodes.
    """
    num_envs = world.num_envs
    wanted = [num_episodes // num_envs + (i < num_episodes % num_envs) for i in range(num_envs)]
    returns: list[list[float]] = [[] for _ in range(num_envs)]
    lengths: list[list[int]] = [[] for _ in range(num_envs)]
    running_return, running_length = np.zeros(num_envs), np.zeros(num_envs, np.int64)
    for rows in play(greedy, world, seed):
        valid = rows["valid"][0]
        running_return += np.where(valid, rows["reward"][0], 0.0)
        running_length += valid
        for i in np.flatnonzero((rows["terminated"][0] | rows["truncated"][0]) & valid):
            if len(returns[i]) < wanted[i]:
                returns[i].append(float(running_return[i]))
                lengths[i].append(int(running_length[i]))
            running_return[i] = running_length[i] = 0
        if all(len(mine) == count for mine, count in zip(returns, wanted, strict=True)):
            break
    return Played(list(itertools.chain(*returns)), list(itertools.chain(*lengths)))
