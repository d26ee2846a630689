"""Completes the names of environments that a person wrote without a version.

    asked, notes = with_full_ids([Assignment("--env", "Acrobot", is_text=True)])
    asked    [Assignment("--env", "Acrobot-v1", is_text=True)]

So presets and results are found for them too, and config.yaml says what a run was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tianji.config.settings import canonical
from tianji.config.values import Assignment

SETTINGS = ("env", "envs")
"""Settings that name environments."""


def with_full_ids(asked: Sequence[Assignment]) -> tuple[list[Assignment], tuple[str, ...]]:
    """Return the assignments with the full ids of environments, and a note for each new one."""
    named = {name for one in asked for name in _names(one)}
    ids = {name: env_id for name in named if (env_id := _full_id(name)) != name}
    notes = tuple(_note(name, env_id) for name, env_id in sorted(ids.items()))
    return [_completed(one, ids) for one in asked], notes


def _completed(one: Assignment, ids: Mapping[str, str]) -> Assignment:
    names = [ids.get(name, name) for name in _names(one)]
    if names == _names(one):
        return one
    return replace(one, value=",".join(names) if isinstance(one.value, str) else names)


def _names(one: Assignment) -> list[str]:
    """Return the environments that an assignment names, none if it is about something else."""
    if canonical(one.written) not in SETTINGS:
        return []
    names = one.value.strip("()[] ").split(",") if isinstance(one.value, str) else one.value
    is_list = isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
    return [name.strip() for name in names] if is_list else []


def _full_id(name: str) -> str:
    from tianji.envs.find import full_id  # it imports Gymnasium, which help pages do without

    return full_id(name)


def _note(name: str, env_id: str) -> str:
    return f"Environment '{name}' has no version: its newest one is taken, '{env_id}'."
