"""Settings for an environment that comes without a preset: rules look at it and choose.

    resolved = resolve(None, [Assignment("--env", "CartPole-v1", is_text=True)])
    resolved.config, resolved.reasons

The rules' values take the place of a preset: what the person sets wins, one by one. The config of
the run holds all values, so that nothing is chosen again when it is resumed or loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tianji.config import overrides
from tianji.config.files import Preset, load_preset
from tianji.config.overrides import DEFAULT_ALGORITHM, Resolved, algorithm_of, env_of
from tianji.config.run import RunConfig
from tianji.config.schema import ALGORITHM, flat, nested
from tianji.config.settings import ALGORITHM_NAME
from tianji.config.values import Assignment, Values, assign_all, from_mapping
from tianji.defaults.names import with_full_ids
from tianji.defaults.rules import ALGORITHMS, Suggestion, suggest
from tianji.errors import UsageError

if TYPE_CHECKING:
    from tianji.defaults.facts import Facts
    from tianji.envs.build import EnvSources


def make_config(preset: str | None = None, **values: Any) -> RunConfig:
    """Return the config of `tianji.train`; notes and reasons go to the log."""
    resolved = resolve(preset, from_mapping(values))
    for note in (*resolved.notes, *resolved.reasons):
        logging.getLogger("tianji").warning(note)
    return resolved.config


def resolve(
    preset: str | None, asked: Sequence[Assignment], env: EnvSources | None = None
) -> Resolved:
    """Combine what rules choose, a preset and settings into one validated record.

    A preset that names an algorithm is complete: nothing is chosen then, nor without an
    environment. env: what makes the environment, where its name alone does not. An environment that
    the person named without a version gets its newest one.
    """
    asked, notes = with_full_ids(asked)
    resolved = _resolve(preset, asked, env)
    return replace(resolved, notes=(*notes, *resolved.notes))


def _resolve(preset: str | None, asked: Sequence[Assignment], env: EnvSources | None) -> Resolved:
    base = Preset("", "", {}) if preset is None else load_preset(preset)
    written = [*from_mapping(base.config), *asked]
    if env_of(written) is None or algorithm_of(from_mapping(base.config)) is not None:
        return overrides.resolve(preset, asked)
    named = algorithm_of(asked)
    fitting = _fitting(base, asked, (named,) if named else ALGORITHMS)
    from tianji.defaults.look import look  # it imports Gymnasium, which help pages do without

    asked_for, learns = next(iter(fitting.items()))
    facts = look(_values(written, asked_for), env)
    is_open = named is None and len(fitting) > 1
    suggestion = suggest(facts, None if is_open else learns)
    values = suggestion.values
    if not is_open:
        values[ALGORITHM_NAME] = asked_for
    written_down = _flat(base.config)
    needed = {path: one for path, one in suggestion.needed.items() if path not in written_down}
    resolved = overrides.resolve(_completed(base, values), [*from_mapping(needed), *asked])
    reasons = _reasons(suggestion, resolved.config)
    if named is None and not is_open:
        reasons = (f"Algorithm {learns}: it has all the settings that you gave.", *reasons)
    return replace(resolved, notes=(*resolved.notes, *_warnings(facts)), reasons=reasons)


def _warnings(facts: Facts) -> tuple[str, ...]:
    """Return what the person should know of the environment before the run."""
    if not facts.step_failure:
        return ()
    return (
        f"The environment failed within the first steps, which were random: {facts.step_failure}. "
        "A run replaces an environment that fails, and stops if that happens again and again: "
        f"`tianji doctor` helps to find the cause.{facts.step_advice}",
    )


def _reasons(suggestion: Suggestion, config: RunConfig) -> tuple[str, ...]:
    """Return why the config is as the rules chose; nothing of what the person chose instead."""
    has = flat(config.model_dump()).items()
    return tuple(choice.because for choice in suggestion.choices if choice.values.items() <= has)


def _completed(base: Preset, values: Mapping[str, Any]) -> Preset:
    """Return a preset with these values where it has none. The usual algorithm is not written: it
    is nothing that a style has to keep."""
    if values[ALGORITHM_NAME] == DEFAULT_ALGORITHM:
        values = {path: value for path, value in values.items() if path != ALGORITHM_NAME}
    return replace(base, config=nested({**values, **_flat(base.config)}))


def _fitting(
    base: Preset, asked: Sequence[Assignment], algorithms: Sequence[str]
) -> dict[str, str]:
    """Return the algorithms that the person's settings fit, each with the one that learns: a style
    may put another in its place. Mistakes are found here, before anything of the environment
    runs."""
    fitting: dict[str, str] = {}
    errors: list[UsageError] = []
    for name in algorithms:
        try:
            resolved = overrides.resolve(_completed(base, {ALGORITHM_NAME: name}), asked)
        except UsageError as error:
            errors.append(error)
        else:
            fitting[name] = resolved.config.algorithm.name
    if not fitting:
        raise errors[0]
    return fitting


def _values(written: Sequence[Assignment], algorithm: str) -> Values:
    values: Values = {}
    assign_all(values, written, algorithm)  # its mistakes were found before
    return values


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a preset by path; an algorithm that is left open is none of them."""
    names = (ALGORITHM, ALGORITHM_NAME)
    return {path: value for path, value in flat(config).items() if path not in names}
