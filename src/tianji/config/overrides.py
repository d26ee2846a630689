"""From wishes to a RunConfig: a preset, then what the person set, by command line or Python.

    make_config("cartpole-ppo", gamma=0.98, seed=3, checkpoint={"period_s": 5})
    resolve_tokens(["cartpole-ppo", "--gamma", "0.98", "--checkpoint.period-s", "5"]).config

Both go the same way: assignments, then paths of the schema, then one validated record. All mistakes
of a call are told at once, and before anything starts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tianji.config.presets import Preset, list_presets, load_preset
from tianji.config.run import RunConfig
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import (
    ALGORITHM,
    ALGORITHM_NAME,
    ENV_KWARGS,
    UnknownSetting,
    canonical,
    list_settings,
)
from tianji.config.tokens import Assignment, from_mapping, split_tokens
from tianji.config.values import Values, assign, raise_mistakes, validate
from tianji.errors import UsageError

DEFAULT_ALGORITHM = "ppo"
_OF_THE_ENV = ("target_return", ENV_KWARGS)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config, and what a person should know about how it came about."""

    config: RunConfig
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Base:
    """What a run starts from before the person's own wishes."""

    preset: Preset
    algorithm: str
    env: str
    values: Values
    mistakes: tuple[str, ...]


def make_config(preset: str | None = None, **values: Any) -> RunConfig:
    """The config of `tianji.train`; notes go to the log."""
    resolved = resolve(preset, from_mapping(values))
    for note in resolved.notes:
        logging.getLogger("tianji").warning(note)
    return resolved.config


def resolve_tokens(tokens: Sequence[str]) -> Resolved:
    """The config of `tianji train TOKENS`."""
    preset, assignments = preset_and_assignments(tokens)
    return resolve(preset, assignments)


def preset_and_assignments(tokens: Sequence[str]) -> tuple[str | None, list[Assignment]]:
    """The one word that names the preset, and the options."""
    words, assignments = split_tokens(tokens)
    if len(words) > 1:
        raise UsageError(
            f"One preset at most, but these words stand alone: {', '.join(words)}. "
            "Settings are written --key value."
        )
    return (words[0] if words else None), assignments


def resolve(preset: str | None, asked: Sequence[Assignment]) -> Resolved:
    """A preset and wishes to one validated record."""
    base = find_base(preset, asked)
    mistakes = list(base.mistakes)
    name = asked_text(ALGORITHM_NAME, asked) or base.algorithm
    unknown_algorithm = False
    try:
        algorithm = load_algorithm_config(name)
    except UsageError as error:
        mistakes.append(str(error))
        unknown_algorithm, name = True, base.algorithm
        algorithm = load_algorithm_config(name)
    settings = list_settings(algorithm)
    values, notes = _kept_of(base, name, asked)
    for assignment in asked:
        try:
            assign(values, assignment, settings, name)
        except UnknownSetting as error:
            # It may be a setting of the algorithm that was meant.
            if not unknown_algorithm:
                mistakes.append(str(error))
        except UsageError as error:
            mistakes.append(str(error))
    if unknown_algorithm or ALGORITHM_NAME not in values:
        values[ALGORITHM_NAME] = name
    config = validate(values, settings, mistakes)
    raise_mistakes(mistakes)
    assert config is not None
    return Resolved(config, notes)


def find_base(preset: str | None, asked: Sequence[Assignment]) -> Base:
    """The preset asked for; without one, CartPole's, unless an environment is asked for."""
    if preset is not None:
        return _base_from(load_preset(preset))
    algorithm = asked_text(ALGORITHM_NAME, asked) or DEFAULT_ALGORITHM
    for name in (f"cartpole-{algorithm}", algorithm):
        if name in list_presets() and _asked_env(asked) is None:
            return _base_from(load_preset(name))
    return _base_from(Preset("", "", {}))


def _base_from(preset: Preset) -> Base:
    wishes = from_mapping(preset.config)
    algorithm = asked_text(ALGORITHM_NAME, wishes) or DEFAULT_ALGORITHM
    settings = list_settings(load_algorithm_config(algorithm))
    values: Values = {}
    mistakes = []
    for assignment in wishes:
        try:
            assign(values, assignment, settings, algorithm)
        except UsageError as error:
            mistakes.append(f"Preset '{preset.name}': {error}")
    env = _asked_env(wishes) or RunConfig.model_fields["env"].default
    return Base(preset, algorithm, env, values, tuple(mistakes))


def _asked_env(asked: Sequence[Assignment]) -> str | None:
    """The environment asked for, or a list of them as one text."""
    lists = [a.value for a in asked if canonical(a.written) == "envs" and a.value]
    if not lists:
        return asked_text("env", asked)
    names = lists[-1].split(",") if isinstance(lists[-1], str) else lists[-1]
    return ", ".join(str(name).strip() for name in names)


def asked_text(path: str, asked: Sequence[Assignment]) -> str | None:
    """What was asked for at a path, the last one if it was said twice."""
    names = (ALGORITHM, ALGORITHM_NAME) if path == ALGORITHM_NAME else (path,)
    found = [a.value for a in asked if canonical(a.written) in names]
    return found[-1] if found and isinstance(found[-1], str) else None


def _kept_of(
    base: Base, algorithm: str, asked: Sequence[Assignment]
) -> tuple[Values, tuple[str, ...]]:
    """What of the base still fits when another algorithm or environment was asked for."""
    values = dict(base.values)
    notes = []
    env = _asked_env(asked) or base.env
    if algorithm != base.algorithm:
        values = {p: v for p, v in values.items() if not p.startswith(f"{ALGORITHM}.")}
        if base.preset.name:
            notes.append(
                f"The algorithm settings of preset '{base.preset.name}' are for {base.algorithm} "
                f"and are dropped; {algorithm} starts from its defaults."
            )
    if env != base.env:
        values.pop("envs", None)
        dropped = [path for path in _OF_THE_ENV if values.pop(path, None) is not None]
        if dropped:
            notes.append(
                f"Not for {env}, and left out: {' and '.join(dropped)} of preset "
                f"'{base.preset.name}', which is for {base.env}."
            )
    if not base.preset.name and (tuned := _tuned_for(env, algorithm)):
        notes.append(f"Preset '{tuned}' has numbers for {env}: tianji train {tuned}")
    return values, tuple(notes)


def _tuned_for(env: str, algorithm: str) -> str | None:
    for name in list_presets():
        wishes = from_mapping(load_preset(name).config)
        found = asked_text(ALGORITHM_NAME, wishes) or DEFAULT_ALGORITHM
        if (_asked_env(wishes), found) == (env, algorithm):
            return name
    return None
