"""Playing whole episodes with a policy, outside of training.

player = Player(act, world, num_episodes=20, seed=0, cut_after_steps=27_000)
while player.step(): ...                                  # one step of all environments
player.played()
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from tianji.algorithms.interface import Acting
from tianji.algorithms.memory import PolicyState, greedy_actions, state_size
from tianji.envs.build import make_rows
from tianji.envs.frames import ObservationReader
from tianji.envs.interface import World
from tianji.errors import EnvironmentFailed
from tianji.types import OBS, Array, Unroll, leaf_name

Act: TypeAlias = Callable[[Mapping[str, Array], Array], Array]
"""Observations of all environments by leaf name, and which of them may begin an episode [N], to
their actions."""


class Played(NamedTuple):
    """Returns and lengths of episodes, environment by environment.

    num_cut: how many of them had not ended when they were cut.
    """

    returns: list[float]
    lengths: list[int]
    num_cut: int


def greedy(acting: Acting) -> Act:
    """Return how a policy acts greedily, with a memory of its own if it has one."""
    return remembering(acting, lambda obs, state: greedy_actions(acting, obs, state))


def remembering(acting: Acting, choose: Callable[[Mapping[str, Array], PolicyState], Array]) -> Act:
    """Return how a policy acts that is given its state: each environment has its own, and forgets
    it when an episode begins."""
    size = state_size(acting)
    states: dict[int, PolicyState] = {}

    def act(obs: Mapping[str, Array], is_first_N: Array) -> Array:
        num_envs = len(is_first_N)
        state = states.setdefault(num_envs, PolicyState(num_envs, size))
        state.forget(is_first_N)
        return choose(obs, state)

    return act


def play(act: Act, world: World, seed: int) -> Iterator[Unroll]:
    """Reset, then step without end; every time, row 0 of the arrays holds the newest step, and the
    observation that it led to."""
    rows, reader = make_rows(world, 1), ObservationReader(world.spaces.observation)
    observed = [rows[field.name] for field in world.fields() if field.per == "obs"]
    world.reset(seed, rows)
    is_first_N = np.ones(world.num_envs, np.bool_)
    while True:
        obs = {leaf_name(OBS, key): array for key, array in reader.row(rows, 0).items()}
        world.step(act(obs, is_first_N), rows, 0)
        is_first_N = rows["terminated"][0] | rows["truncated"][0] | ~rows["valid"][0]
        for array in observed:
            array[:-1] = array[1:]
        yield rows


class Player:
    """Plays exactly a number of episodes, and cuts those that do not end or do not begin.

    Every environment plays a number of them that is fixed before the start: taking those that end
    first would favour short episodes. An environment whose episode is cut waits until the others
    have played theirs or are cut too. Then all are reset, since a world resets as a whole. So does
    an agent that is away for as long. If it has ended no episode since the last reset, it is given
    up: those that have appeared play its episodes too.
    """

    def __init__(
        self, act: Act, world: World, num_episodes: int, seed: int, cut_after_steps: int
    ) -> None:
        num_envs = world.num_envs
        self._act, self._world = act, world
        share, rest = divmod(num_episodes, num_envs)
        self._wanted = [share + (i < rest) for i in range(num_envs)]
        self._seeds = itertools.count(seed)
        self._cut_after_steps = cut_after_steps
        self._returns: list[list[float]] = [[] for _ in range(num_envs)]
        self._lengths: list[list[int]] = [[] for _ in range(num_envs)]
        self._num_cut = 0
        self._return, self._length = np.zeros(num_envs), np.zeros(num_envs, np.int64)
        self._absent = np.zeros(num_envs, np.int64)
        """How many rows an agent has been away."""
        self._has_appeared = np.zeros(num_envs, np.bool_)
        self._is_given_up = np.zeros(num_envs, np.bool_)
        self._has_ended = np.zeros(num_envs, np.bool_)
        """The environments that ended an episode since the last reset."""
        self._is_playing = np.zeros(num_envs, np.bool_)
        """The environments that still count before the next reset."""
        self._begin()

    def step(self) -> bool:
        """Step all environments once; return whether there are episodes left to play."""
        self._count(next(self._steps))
        if not self._is_playing.any():
            if all(self._has_all(i) for i in range(len(self._wanted))):
                return False
            self._begin()
        return True

    def played(self) -> Played:
        returns = list(itertools.chain(*self._returns))
        if not returns:
            raise EnvironmentFailed(
                f"No agent appeared in the first {self._cut_after_steps:,} steps of an evaluation, "
                "so that there is nothing to play. `tianji doctor --env ENV` looks into an "
                "environment."
            )
        return Played(returns, list(itertools.chain(*self._lengths)), self._num_cut)

    def _begin(self) -> None:
        """Reset all environments."""
        self._steps = play(self._act, self._world, next(self._seeds))
        self._return[:] = self._length[:] = self._absent[:] = 0
        self._has_ended[:] = False
        self._is_playing[:] = [not self._has_all(i) for i in range(len(self._wanted))]

    def _count(self, rows: Unroll) -> None:
        valid = rows["valid"][0]
        self._return += np.where(valid, rows["reward"][0], 0.0)
        self._length += valid
        self._absent = np.where(valid, 0, self._absent + 1)
        ended = (rows["terminated"][0] | rows["truncated"][0]) & valid
        self._has_appeared |= valid
        cut = (self._length >= self._cut_after_steps) & ~ended
        self._has_ended |= ended | cut
        for i in np.flatnonzero((ended | cut) & self._is_playing).tolist():
            self._returns[i].append(float(self._return[i]))
            self._lengths[i].append(int(self._length[i]))
            self._num_cut += int(cut[i])
            self._is_playing[i] = not (cut[i] or self._has_all(i))
        self._return[ended] = self._length[ended] = 0
        absent = np.flatnonzero((self._absent > self._cut_after_steps) & self._is_playing)
        self._is_playing[absent] = False
        self._give_up([i for i in absent.tolist() if not self._has_ended[i]])

    def _give_up(self, absent: Sequence[int]) -> None:
        """Let the others that have appeared play the episodes of these environments."""
        self._is_given_up[absent] = True
        others = np.flatnonzero(self._has_appeared & ~self._is_given_up).tolist()
        for i in absent:
            num_missing = self._wanted[i] - len(self._returns[i])
            self._wanted[i] = len(self._returns[i])
            for _ in range(num_missing if others else 0):
                self._wanted[min(others, key=self._wanted.__getitem__)] += 1

    def _has_all(self, i: int) -> bool:
        return len(self._returns[i]) == self._wanted[i]


def play_episodes(
    act: Act, world: World, num_episodes: int, seed: int, cut_after_steps: int
) -> Played:
    """Play this many episodes at once; see Player."""
    player = Player(act, world, num_episodes, seed, cut_after_steps)
    while player.step():
        pass
    return player.played()


def combine(played: Iterable[Played]) -> Played:
    """Return the episodes of several tasks as one record."""
    returns, lengths, num_cut = zip(*played, strict=True)
    return Played(list(itertools.chain(*returns)), list(itertools.chain(*lengths)), sum(num_cut))


def mean_returns(played: Mapping[str, Played]) -> dict[str, float]:
    """Return the mean return of each task; nothing where there is only one."""
    means = {name: float(np.mean(one.returns)) for name, one in played.items()}
    return means if len(means) > 1 else {}
