"""Profiles of the runs that a config may become: kept from an earlier run, or measured now.

    $XDG_CACHE_HOME/tianji/profiles/KEY.json

The test runs that choose where inference runs are kept there too, under keys of their own. A file
that cannot be read, is too old, or is no profile of this version counts as missing, and the run is
measured again. An environment given as a callable has no name to keep a profile under.
Every start of a run looks here, so this module imports little.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from tianji.checkpoint.durable import replace_json
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.config.schema import Record
from tianji.costs.places import PlaceTrials
from tianji.costs.profile import SHARES, Profile
from tianji.devices.nvml import list_gpus
from tianji.devices.processor import processor
from tianji.envs.build import EnvSources, Probe
from tianji.errors import UsageError

if TYPE_CHECKING:
    from tianji.planning.resolve.settle import Trial

Kept = TypeVar("Kept", bound=Record)
Tell: TypeAlias = Callable[[str], None]  # shows a sentence to the person who waits

FORMAT = 2  # raised when the same numbers change their meaning
# Settings that change the cost of a run. A share that is fixed by hand is the only one measured.
_SETTINGS = {
    *("env", "env_kwargs", "action_mask", "algorithm", "model", "normalize", "num_envs"),
    *("style", "balance", "queue_size", "max_lag", *SHARES),
}
# Settings that change which place of inference is the fastest, beside those.
_PLACE_SETTINGS = {"inference", "emulator_threads", "lag_target"}
_LIBRARIES = ("tianji", "torch", "numpy", "gymnasium")
MOST_AGE_S = 30 * 24 * 3600.0  # the code of an environment may change, and no version tells
ONE_OF_SEVERAL_S = 20.0  # time to measure each of several variants
DISTURBED_AGE_S = 3600.0  # of a profile that other programs disturbed


def kept_profile(config: RunConfig, env: EnvSources, machine: Machine) -> Profile | None:
    """Return the kept profile of such a run on this machine, if there is one.

    If actors or threads are fixed by hand, a profile over all of them serves too. A profile of the
    local engine, which has rehearsals, serves any engine.
    """
    if env != config.env or not has_any():  # a callable may be another one the next time
        return None
    free = config.model_copy(update=dict.fromkeys(SHARES, "auto"))
    local = [asked.model_copy(update={"engine": "local"}) for asked in (config, free)]
    keys = dict.fromkeys(key_of(asked, machine) for asked in (*local, config, free))
    return next(filter(None, map(load, keys)), None)


def is_kept(config: RunConfig, env: EnvSources, machine: Machine) -> bool:
    """Return whether a plan can be solved without measuring anything."""
    if not config.plan.choose:
        return kept_profile(config, env, machine) is not None
    from tianji.planning.resolve.settle import settle, variants

    return all(kept_profile(settle(config, v), env, machine) for v in variants(config))


def trials(
    config: RunConfig,
    env: EnvSources,
    machine: Machine,
    probe: Probe,
    tell: Tell,
    fresh: bool = False,
) -> list[Trial]:
    """Return a profile of every variant of the config; one that cannot run is left out."""
    from tianji.planning.measure.measure import LIMIT_S, measure
    from tianji.planning.resolve.resolve import demand_of, resolve
    from tianji.planning.resolve.settle import Trial, settle, variants

    made: list[Trial] = []
    first, *others = variants(config)
    for values in (first, *others):
        settled = settle(config, values)
        try:
            resolve(settled, machine, probe)
        except UsageError:
            if values is first:
                raise
            continue
        if values:
            tell(f"With {', '.join(f'{path} = {value}' for path, value in values.items())}.")
        profile = None if fresh else kept_profile(settled, env, machine)
        if profile is None:
            limit_s = ONE_OF_SEVERAL_S if others else LIMIT_S
            profile = measure(settled, env, machine, probe, tell, values, limit_s)
            is_complete = not settled.has_processes or bool(profile.rehearsals)
            if env == settled.env and is_complete:  # a callable has no name to keep it under
                save(key_of(settled, machine), profile)
        made.append(Trial(values, profile, machine, demand_of(settled, probe)))
    return made


def has_any() -> bool:
    """Return whether any profile is kept; computing a key takes milliseconds."""
    try:
        return _folder().is_dir()
    except (OSError, RuntimeError):  # the home folder is not readable, or there is none
        return False


def key_of(config: RunConfig, machine: Machine) -> str:
    """Return a key that is the same for runs of the same cost on the same machine."""
    return _digest(_facts(config, machine, _SETTINGS))


def _facts(config: RunConfig, machine: Machine, settings: set[str]) -> dict[str, object]:
    return {
        "format": FORMAT,
        "processor": processor(),
        "cores": len(machine.cores),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "settings": config.model_dump(mode="json", include=settings),
        "engine": config.engine,  # plans are rehearsed for the local engine only
        "has_evaluator": config.evaluate.period_s > 0,
    }


def _digest(facts: dict[str, object]) -> str:
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def places_key(config: RunConfig, machine: Machine, device: str) -> str:
    """Return a key for the places of inference of such runs; device: where the learner trains."""
    gpu = next((gpu.name for gpu in list_gpus() if device == f"cuda:{gpu.index}"), device)
    facts = _facts(config, machine, _SETTINGS | _PLACE_SETTINGS)
    return _digest(facts | {"gpu": gpu, "buffer_worker": config.plan.buffer_worker})


def kept_places(
    config: RunConfig, env: EnvSources, machine: Machine, device: str
) -> PlaceTrials | None:
    """Return the kept test runs of such a run's places of inference, if there are any."""
    if env != config.env or not has_any():  # a callable may be another one the next time
        return None
    found = _read(places_key(config, machine, device), PlaceTrials)
    return found[0] if found is not None and found[1] <= MOST_AGE_S else None


def load(key: str) -> Profile | None:
    """Return the profile kept under this key, if it can be read and is not too old."""
    found = _read(key, Profile)
    if found is None:
        return None
    profile, age_s = found
    return profile if age_s <= (DISTURBED_AGE_S if profile.is_disturbed else MOST_AGE_S) else None


def _read(key: str, kind: type[Kept]) -> tuple[Kept, float] | None:
    """Return a kept record and its age in seconds; None if it cannot be read."""
    try:
        path = _path(key)
        age_s = time.time() - path.stat().st_mtime
        return kind.model_validate_json(path.read_bytes()), age_s
    except (OSError, ValueError, RuntimeError):
        return None


def save(key: str, record: Profile | PlaceTrials) -> None:
    """Keep what was measured for the next run; a failure is logged."""
    try:
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_json(path, record.model_dump(mode="json"))
    except (OSError, RuntimeError) as error:
        logging.getLogger("tianji").warning(
            "The profile could not be saved, so the next run measures again: %s", error
        )


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tianji" / "profiles"


def _path(key: str) -> Path:
    return _folder() / f"{key}.json"


@functools.cache
def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"
