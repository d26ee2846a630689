"""Converts observations to named arrays, and actions to the values that environments expect.

An observation space is a tree whose leaves are arrays. A plain space has one leaf, `obs`; leaves of
dictionaries and tuples have names such as `obs.camera`, `obs.arm.angle` or `obs.0`.

Stacks of frames (`Frames`) are not stored as such: an unroll holds each frame once, and its age
beside it; ops/frames.py rebuilds the stacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from tianji.errors import UsageError
from tianji.types import AGE, FINAL_OBS, OBS, Array, Field, Unroll, leaf_name

Path: TypeAlias = tuple[Any, ...]
Place: TypeAlias = int | tuple[int, Any]


class Frames(spaces.Box):
    """The newest `num_frames` frames of an environment, oldest first; zeros before the reset.

    Policies see the whole stack. Worlds with this space store single frames, unless is_whole.
    """

    def __init__(self, num_frames: int, shape: tuple[int, ...], is_whole: bool = False) -> None:
        """is_whole: every stack is stored with all its frames."""
        super().__init__(0, 255, (num_frames, *shape), np.uint8)
        self.num_frames = num_frames
        self.is_whole = is_whole


SEEN = ""
"""Entry of a Masked observation that networks see."""
ACTION_MASK = "action_mask"
"""Entry of an info, or of a dictionary observation, that says which actions are legal."""


class Masked(spaces.Dict):
    """Observations beside masks of the legal actions: {"": what networks see, key: the mask}.

    A mask has one entry for each option of each choice of an action, side by side: 1 where it is
    legal. Its leaf is called `key`; the leaves of `seen` keep their names.
    """

    def __init__(self, seen: gym.Space[Any], key: str, size: int, from_info: bool) -> None:
        """from_info: masks come in infos, not as an observation of that name."""
        super().__init__({SEEN: seen, key: spaces.MultiBinary(size)})
        self.seen = seen
        self.key = key
        self.size = size
        self.from_info = from_info


NO_MASK, INFO_MASK = "none", "info"
"""Values of the setting `action_mask`; others name an observation."""


@dataclass(frozen=True, slots=True)
class Spaces:
    """The spaces of one environment: Spaces(observation=Box(...), action=Discrete(2))."""

    observation: gym.Space[Any]
    action: gym.Space[Any]

    @property
    def in_words(self) -> dict[str, str]:
        """Return what kinds of values observations and actions are."""
        return {"observation": in_words(self.observation), "action": in_words(self.action)}

    @property
    def seen(self) -> gym.Space[Any]:
        """Return the observations that networks see: all but the masks of actions."""
        return self.observation.seen if isinstance(self.observation, Masked) else self.observation

    @property
    def mask(self) -> str | None:
        """Return the leaf that says which actions are legal; None where all are."""
        return self.observation.key if isinstance(self.observation, Masked) else None

    @property
    def masked_by(self) -> str:
        """Return where masks come from, as the setting `action_mask` says it."""
        if not isinstance(self.observation, Masked):
            return NO_MASK
        return INFO_MASK if self.observation.from_info else self.observation.key


class Leaf(NamedTuple):
    """One array of an observation: Leaf("camera", Box(...), "uint8", (84, 84, 3))."""

    key: str
    """Empty for a plain space; the name of the field is `leaf_name("obs", key)`."""
    space: gym.Space[Any]
    """Box, Discrete, MultiDiscrete or MultiBinary. Discrete values are stored unchanged: they
    begin at `space.start`."""
    dtype: str
    shape: tuple[int, ...]

    @property
    def num_frames(self) -> int:
        """The frames of a stack that is stored frame by frame; 0 for what is stored as it is."""
        return self.space.num_frames if _is_stored_once(self.space) else 0


def _is_stored_once(space: gym.Space[Any]) -> TypeGuard[Frames]:
    """Return whether these are stacks of which each frame is stored once."""
    return isinstance(space, Frames) and not space.is_whole


def observation_leaves(space: gym.Space[Any]) -> list[Leaf]:
    """Return the leaves in the order of the space. float64 is stored as float32."""
    leaves = [Leaf(_key(path), leaf, *_storage(leaf, path)) for path, leaf in _walk(space, ())]
    if not leaves:
        raise UsageError(
            f"Observation space {space} has no entries: there is nothing to learn from."
        )
    keys = [leaf.key for leaf in leaves]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(
                f"Two entries of the observation space are both called '{key}': keys are joined "
                "with '.', so rename one of them."
            )
    return leaves


def in_words(space: gym.Space[Any]) -> str:
    """Return what kind of values a space has. Bounds are left out: another version of an
    environment may give others for the same values.

    >>> in_words(spaces.Dict({"camera": spaces.Box(0, 255, (84, 84, 3), np.uint8)}))
    'Dict(camera: Box (84, 84, 3) of uint8)'
    """
    if isinstance(space, Masked):
        return f"{in_words(space.seen)} with masks of {space.size} actions"
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{key}: {in_words(s)}' for key, s in space.spaces.items())})"
    if isinstance(space, spaces.Tuple):
        return f"Tuple({', '.join(map(in_words, space.spaces))})"
    if isinstance(space, spaces.Box):
        return f"Box {space.shape} of {space.dtype}"
    return str(space)


def observation_paths(space: gym.Space[Any]) -> list[Path]:
    """Return the keys that lead to each leaf of an observation, in the order of the leaves."""
    return [path for path, _ in _walk(space, ())]


def observation_fields(space: gym.Space[Any], keeps_final: bool) -> tuple[Field, ...]:
    """Return the fields of an unroll that hold observations of this space."""
    leaves = observation_leaves(space)
    fields = [_field(leaf) for leaf in leaves]
    fields += [
        Field(leaf_name(AGE, leaf.key), "uint8", (), "obs") for leaf in leaves if leaf.num_frames
    ]
    if keeps_final:
        fields += [Field(leaf_name(FINAL_OBS, leaf.key), leaf.dtype, leaf.shape) for leaf in leaves]
    return tuple(fields)


def _field(leaf: Leaf) -> Field:
    name = leaf_name(OBS, leaf.key)
    if leaf.num_frames:
        return Field(name, leaf.dtype, leaf.shape[1:], "obs", history=leaf.num_frames - 1)
    return Field(name, leaf.dtype, leaf.shape, "obs")


class ObservationWriter:
    """Writes observations of one space into the arrays of an unroll.

    >>> writer = ObservationWriter(space)
    >>> writer.write(batch, unroll, t)             # all environments of row t
    >>> writer.write(observation, unroll, (t, 3))  # one of them
    """

    write: Callable[[Any, Unroll, Place], None]

    def __init__(self, space: gym.Space[Any], prefix: str = OBS) -> None:
        paths = observation_paths(space)
        names = [leaf_name(prefix, leaf.key) for leaf in observation_leaves(space)]
        self._targets = list(zip(names, paths, strict=True))
        # The hot path: a plain space is one assignment, without a loop.
        if _is_stored_once(space):
            self.write = _write_frame(prefix, space.num_frames - 1)
        else:
            self.write = _write_plain(prefix) if paths == [()] else _write_tree(self._targets)

    def write_where(self, batch: Any, unroll: Unroll, row: int, mask: Array) -> None:
        """Write the environments that the mask selects, from a batch of all environments."""
        for name, path in self._targets:
            unroll[name][row][mask] = np.asarray(follow(batch, path))[mask]


def choice_sizes(space: gym.Space[Any]) -> tuple[int, ...]:
    """Return the options of each choice that an action makes; nothing where it makes none."""
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(int(n) for n in space.nvec.flat)
    if isinstance(space, spaces.MultiBinary):
        return (2,) * math.prod(space.shape)
    return ()


def make_action_cast(space: gym.Space[Any]) -> Callable[[Array], Array]:
    """Return a function from policy actions [N, ...] to a new array that environments accept.

    It always copies: environments may keep or change the array, and policies pass views of slots.
    """
    dtype = np.dtype(getattr(space, "dtype", None) or np.int64)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and np.any(space.start != 0):
        start = np.asarray(space.start, dtype)
        return lambda actions: actions.astype(dtype) + start
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.Box | spaces.MultiBinary):
        return lambda actions: actions.astype(dtype)
    raise UsageError(
        f"Action space {space} is not supported; Discrete, MultiDiscrete, MultiBinary and Box are. "
        "Wrap the environment (gymnasium.ActionWrapper) so that it takes one of these."
    )


def _key(path: Path) -> str:
    return ".".join(str(part) for part in path if part != SEEN)


def _walk(space: gym.Space[Any], path: Path) -> Iterator[tuple[Path, gym.Space[Any]]]:
    if isinstance(space, spaces.Dict):
        for key, child in space.spaces.items():
            yield from _walk(child, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, child in enumerate(space.spaces):
            yield from _walk(child, (*path, index))
    else:
        yield path, space


def _storage(space: gym.Space[Any], path: Path) -> tuple[str, tuple[int, ...]]:
    """Return the dtype and shape of a leaf in an unroll."""
    where = f" (entry '{_key(path)}')" if _key(path) else ""
    known = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    if not isinstance(space, known) or space.shape is None or space.dtype is None:
        raise UsageError(
            f"Observation space {space}{where} is not supported: its values have no fixed shape. "
            "Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of them are. Wrap the "
            "environment (gymnasium.ObservationWrapper) so that it gives one of these"
            + (", or leave the entry out (gymnasium.wrappers.FilterObservation)." if where else ".")
        )
    if 0 in space.shape:
        raise UsageError(
            f"Observation space {space}{where} has no values: its shape is {space.shape}. Correct "
            "it, or leave it out (gymnasium.wrappers.FilterObservation)."
        )
    dtype = np.dtype(space.dtype)
    return ("float32" if dtype == np.float64 else dtype.name), space.shape


def follow(observation: Any, path: Path) -> Any:
    """Return the value of one leaf of an observation."""
    for part in path:
        observation = observation[part]
    return observation


def _write_plain(name: str) -> Callable[[Any, Unroll, Place], None]:
    def write(observation: Any, unroll: Unroll, place: Place) -> None:
        unroll[name][place] = observation

    return write


def _write_frame(name: str, history: int) -> Callable[[Any, Unroll, Place], None]:
    def write(observation: Any, unroll: Unroll, place: Place) -> None:
        """Store the newest frame of the stacks of all environments."""
        assert isinstance(place, int), "stacks are stored for all environments at once"
        unroll[name][history + place] = observation[:, -1]

    return write


def _write_tree(targets: list[tuple[str, Path]]) -> Callable[[Any, Unroll, Place], None]:
    def write(observation: Any, unroll: Unroll, place: Place) -> None:
        for name, path in targets:
            unroll[name][place] = follow(observation, path)

    return write
