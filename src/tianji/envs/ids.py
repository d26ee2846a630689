"""Finds environments in Gymnasium's registry.

registered("Acrobot").id                     "Acrobot-v1", the newest version
registered("Pong").id                        "ALE/Pong-v5", which goes on from Pong-v4
stacked_game(registered("Pong-v4"))          "ALE/Pong-v5", the same game
"""

from __future__ import annotations

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

ATARI = "ale_py.vector_env:AtariVectorEnv"
GAMES = "ale_py"
"""The package that registers Atari games when it is imported."""


def registered(env_id: str) -> EnvSpec | None:
    """Return the spec of an id; without a version it is the newest one."""
    if env_id in gym.registry:
        return gym.registry[env_id]
    versions = [spec for spec in gym.registry.values() if spec.id.rpartition("-v")[0] == env_id]
    newest = max(versions, key=_version, default=None)
    return None if newest is None else _continued(newest)


def _continued(spec: EnvSpec) -> EnvSpec:
    """Return the newest version of an environment that may have moved to a namespace since."""
    if spec.namespace is not None:
        return spec
    same = (spec.name, spec.entry_point)
    moved = [one for one in gym.registry.values() if (one.name, one.entry_point) == same]
    return max(moved, key=_version)


def _version(spec: EnvSpec) -> int:
    return spec.version or 0


def stacked_game(spec: EnvSpec) -> str | None:
    """Return the id of the same Atari game with small, stacked frames; None if there is none."""
    if spec.vector_entry_point == ATARI or not str(spec.entry_point).startswith(GAMES):
        return None
    game = spec.kwargs.get("game")
    same = (
        one.id
        for one in gym.registry.values()
        if one.vector_entry_point == ATARI and one.kwargs.get("game") == game
    )
    return next(same, None)
