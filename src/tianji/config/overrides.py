"""From written words to a RunConfig: a preset, then the settings of a command line or of Python.

    make_config("cartpole-ppo", gamma=0.98, seed=3, checkpoint={"period_s": 5})
    resolve_tokens(["cartpole-ppo", "--gamma", "0.98", "--checkpoint.period-s", "5"]).config

The stages are: assignments, values by path (both in values.py), one validated record (run.py).
All mistakes of a call are reported together, before anything starts. `tianji resume`
changes only the end of a run, its machine and its output: anything else makes another run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tianji.config.extra_words import refuse_extra_words
from tianji.config.files import Preset, list_presets, load_preset
from tianji.config.run import RunConfig
from tianji.config.schema import ALGORITHM, AUTO, ENV_KWARGS, flat, load_algorithm_config, nested
from tianji.config.settings import ALGORITHM_NAME, Setting, UnknownSetting, canonical, list_settings
from tianji.config.values import (
    Assignment,
    Values,
    assign_all,
    from_mapping,
    path_of,
    split_tokens,
    validate,
)
from tianji.errors import UsageError
from tianji.wording import listed

DEFAULT_ALGORITHM = "ppo"
STYLE = "style"
_OF_THE_ENV = ("target_return", ENV_KWARGS)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config, and notes for the person about how it was made."""

    config: RunConfig
    notes: tuple[str, ...]
    base: str | Preset | None = None
    """What the person's own settings were added to."""
    reasons: tuple[str, ...] = ()
    """Why rules chose what they chose for this environment (tianji.defaults), in words."""


@dataclass(frozen=True, slots=True)
class Base:
    """The settings that a run starts from before the person's own."""

    preset: Preset
    algorithm: str
    env: str
    values: Values
    mistakes: tuple[str, ...]


def make_config(preset: str | None = None, **values: Any) -> RunConfig:
    """Return the config of `tianji.train`; notes go to the log."""
    resolved = resolve(preset, from_mapping(values))
    for note in resolved.notes:
        logging.getLogger("tianji").warning(note)
    return resolved.config


def resolve_tokens(tokens: Sequence[str]) -> Resolved:
    """Return the config of `tianji train TOKENS`."""
    return resolve(*preset_and_assignments(tokens))


def preset_and_assignments(tokens: Sequence[str]) -> tuple[str | None, list[Assignment]]:
    """Return the preset's name, if there is one, and the options."""
    words, assignments = split_tokens(tokens)
    refuse_extra_words(words, tokens)
    return (words[0] if words else None), assignments


def resolve(preset: str | Preset | None, asked: Sequence[Assignment]) -> Resolved:
    """Combine a preset and settings into one validated record.

    The algorithm `auto` is the preset's, or the default. tianji.defaults looks at the environment
    and gives a preset of its own.
    """
    asked = [one for one in asked if not _is_auto(one)]
    base = _find_base(preset, asked)
    mistakes = list(base.mistakes)
    name = algorithm_of(asked) or base.algorithm
    is_unknown = False
    try:
        load_algorithm_config(name)
    except UsageError as error:
        mistakes.append(str(error))
        is_unknown, name = True, base.algorithm
    repeated = _repeated(asked, name)
    values, notes = _keep(base, name, asked)
    asked = [*_beside_style(values, asked), *asked]
    try:
        values = _in_style(values, name, asked)
    except UsageError as error:
        raise UsageError("\n".join((*mistakes, str(error)))) from None
    name = values.get(ALGORITHM_NAME, name)
    for mistake in assign_all(values, asked, name):
        # An unknown setting may belong to the algorithm whose name is misspelt.
        if not (is_unknown and isinstance(mistake, UnknownSetting)):
            mistakes.append(str(mistake))
    if is_unknown or ALGORITHM_NAME not in values:
        values[ALGORITHM_NAME] = name
    return Resolved(validate(values, name, mistakes), (*repeated, *notes), preset)


def _repeated(asked: Sequence[Assignment], algorithm: str) -> tuple[str, ...]:
    """Return a note for each setting that a command line has more than once. Keywords of an
    environment are put together."""
    given: dict[str, list[Assignment]] = {}
    for one in asked:
        if one.is_text and (path := path_of(one, algorithm)) != ENV_KWARGS:
            given.setdefault(path, []).append(one)
    return tuple(_last_counts(all_of) for all_of in given.values() if len(all_of) > 1)


def _last_counts(given: Sequence[Assignment]) -> str:
    names, last = list(dict.fromkeys(one.written for one in given)), given[-1]
    same = f"{names[0]} is given {len(given)} times" if len(names) == 1 else ""
    value = last.value if last.value is not None else "" if same else last.written
    counts = f"the last one counts{f': {value}' if value else ''}."
    return f"{same or f'{listed(names)} are one setting'}; {counts}"


def _beside_style(values: Values, asked: Sequence[Assignment]) -> list[Assignment]:
    """Return the settings of a preset that names a style itself, as config.yaml of a run does: they
    are given beside the style. One that the person names is for any preset."""
    if STYLE not in values or any(canonical(one.written) == STYLE for one in asked):
        return []
    return [Assignment(path, value) for path, value in values.items()]


def _in_style(values: Values, algorithm: str, asked: Sequence[Assignment]) -> Values:
    """Return the settings that the run has in its style, if one was named; those that the person
    gave are to be assigned again. Mistakes in them are left to be found then."""
    given: Values = {}
    assign_all(given, asked, algorithm)
    whole = {ALGORITHM_NAME: algorithm, **values, **given}
    if STYLE not in whole:
        return values
    try:
        config = RunConfig.model_validate(nested(whole))
    except ValidationError:
        return values
    return styled(config, given)


def styled(config: RunConfig, given: Iterable[str]) -> Values:
    """Return all settings of a run in its style; UsageError if they do not fit it. given: the
    settings that the person gave, which a style does not change."""
    from tianji.programs.registry import find_style

    return find_style(config.style).settings(flat(config.model_dump()), frozenset(given))


def _find_base(preset: str | Preset | None, asked: Sequence[Assignment]) -> Base:
    """Return the preset; without one, that of CartPole unless an environment is given."""
    if preset is not None:
        return _base_from(load_preset(preset) if isinstance(preset, str) else preset)
    algorithm = algorithm_of(asked) or DEFAULT_ALGORITHM
    for name in (f"cartpole-{algorithm}", algorithm):
        if name in list_presets() and env_of(asked) is None:
            return _base_from(load_preset(name))
    return _base_from(Preset("", "", {}))


def _base_from(preset: Preset) -> Base:
    asked = [one for one in from_mapping(preset.config) if not _is_auto(one)]
    algorithm = algorithm_of(asked) or DEFAULT_ALGORITHM
    values: Values = {}
    mistakes = (
        f"Preset '{preset.name}': {error}" for error in assign_all(values, asked, algorithm)
    )
    env = env_of(asked) or RunConfig.model_fields["env"].default
    return Base(preset, algorithm, env, values, tuple(mistakes))


def env_of(asked: Sequence[Assignment]) -> str | None:
    """Return the environment, or a list of environments as one text."""
    lists = [a.value for a in asked if canonical(a.written) == "envs" and a.value]
    if not lists:
        return _last_text(asked, "env")
    names = lists[-1].split(",") if isinstance(lists[-1], str) else lists[-1]
    return ", ".join(str(name).strip() for name in names)


def engine_of(preset: str | None, asked: Sequence[Assignment]) -> str | None:
    """Return the engine that is named, in the preset or beside it."""
    base = [] if preset is None else from_mapping(load_preset(preset).config)
    return _last_text([*base, *asked], "engine")


def algorithm_of(asked: Sequence[Assignment]) -> str | None:
    """Return the algorithm that is named; None if there is none, or `auto`."""
    named = _last_text(asked, ALGORITHM, ALGORITHM_NAME)
    return None if named == AUTO else named


def _is_auto(one: Assignment) -> bool:
    """Return whether this leaves the choice of the algorithm open."""
    return canonical(one.written) in (ALGORITHM, ALGORITHM_NAME) and one.value == AUTO


def _last_text(asked: Sequence[Assignment], *names: str) -> str | None:
    found = [a.value for a in asked if canonical(a.written) in names]
    return found[-1] if found and isinstance(found[-1], str) else None


def _keep(
    base: Base, algorithm: str, asked: Sequence[Assignment]
) -> tuple[Values, tuple[str, ...]]:
    """Return the values of the base that fit this algorithm and environment, with notes."""
    values = dict(base.values)
    notes = []
    env = env_of(asked) or base.env
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
                f"Preset '{base.preset.name}' is for {base.env}: its {' and '.join(dropped)} "
                f"{'is' if len(dropped) == 1 else 'are'} not used for {env}."
            )
    if not base.preset.name and (tuned := _tuned_for(env, algorithm)):
        notes.append(f"Preset '{tuned}' has settings for {env}: tianji train {tuned}")
    return values, tuple(notes)


def _tuned_for(env: str, algorithm: str) -> str | None:
    for name in list_presets():
        asked = from_mapping(load_preset(name).config)
        if (env_of(asked), algorithm_of(asked) or DEFAULT_ALGORITHM) == (env, algorithm):
            return name
    return None


_CHANGEABLE = (
    *("engine", "num_groups", "learners_per_group", "actor_hosts", "combine", "combine_every"),
    "combine_max_age",
    *("num_actors", "learner_threads", "actor_threads"),
    *("device", "inference", "emulator_threads", "algorithm.replay_on"),
    *("target_return", "max_env_steps", "max_wall_s", "callbacks"),
    *("plan.source", "plan.replan", "plan.pin", "plan.buffer_worker"),
)
_CHANGEABLE_GROUPS = ("checkpoint", "evaluate", "observe", "supervise")


def is_changeable(setting: Setting) -> bool:
    """Return whether `tianji resume` takes this setting."""
    return setting.path in _CHANGEABLE or setting.group in _CHANGEABLE_GROUPS


def resume_changes(config: RunConfig, asked: Sequence[Assignment]) -> dict[str, Any]:
    """Return the changes, checked against the run's config and nested as in RunConfig."""
    algorithm = config.algorithm.name
    values: Values = {}
    mistakes = [str(error) for error in assign_all(values, asked, algorithm)]
    settings = list_settings(type(config.algorithm))
    known = {setting.path for setting in settings}
    allowed = ", ".join((*(path for path in _CHANGEABLE if path in known), *_CHANGEABLE_GROUPS))
    for setting in settings:
        if setting.path in values and not is_changeable(setting):
            mistakes.append(
                f"{setting.path} cannot change when a run is resumed; `tianji train` starts "
                f"another run. Allowed: {allowed}."
            )
    changed = validate({**flat(config.model_dump()), **values}, algorithm, mistakes)
    styled(changed, values)
    new = flat(changed.model_dump())
    return nested({path: new[path] for path in values})


def with_changes(config: RunConfig, changes: Mapping[str, Any]) -> RunConfig:
    """Return the config of the resumed run."""
    return RunConfig.model_validate(nested({**flat(config.model_dump()), **flat(changes)}))
