"""Profiles that were measured before, kept for the next run of the same kind on this machine.

    $XDG_CACHE_HOME/tianji/profiles/KEY.json

A file that cannot be read, is old, or is not a profile of this version, counts as none: it is
measured anew. Environments given as callables have no name to be kept under.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import platform
import time
from importlib import metadata
from pathlib import Path

from tianji.checkpoint.durable import replace_json
from tianji.config.machine import Machine
from tianji.config.run import RunConfig
from tianji.costs.profile import Profile

FORMAT = 2
"""Raised when the same numbers come to mean something else."""
_LIBRARIES = ("tianji", "torch", "numpy", "gymnasium")
_SETTINGS = {"env", "env_kwargs", "algorithm", "model", "normalize", "num_envs", "max_lag"}
"""What changes the cost of a run. Actors and threads are what a profile is measured over, but one
that is fixed by hand is measured alone."""
_SHARES = {"num_actors", "learner_threads", "actor_threads"}
MOST_AGE_S = 30 * 24 * 3600.0
"""An environment's own code may have changed since, which no version tells."""
DISTURBED_AGE_S = 3600.0
"""What was measured while something else used the machine serves for the time being."""


def has_any() -> bool:
    """Whether it is worth asking for one: a key takes milliseconds."""
    try:
        return _folder().is_dir()
    except (OSError, RuntimeError):  # a home that is not ours, or none
        return False


def key_of(config: RunConfig, machine: Machine) -> str:
    """The same for runs of the same cost on the same machine."""
    facts = {
        "format": FORMAT,
        "processor": _processor(),
        "cores": len(machine.cores),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "settings": config.model_dump(mode="json", include=_SETTINGS | _SHARES),
        "engine": config.engine,  # only of the local one are plans rehearsed
        "has_evaluator": config.evaluate.period_s > 0,
    }
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def load(key: str) -> Profile | None:
    """The profile that was kept under this key, if there is a sound one."""
    try:
        path = _path(key)
        age_s = time.time() - path.stat().st_mtime
        profile = Profile.model_validate_json(path.read_bytes())
    except (OSError, ValueError, RuntimeError):
        return None
    return profile if age_s <= (DISTURBED_AGE_S if profile.is_disturbed else MOST_AGE_S) else None


def save(key: str, profile: Profile) -> None:
    """Keep it for the next time; a place that cannot be written is only worth a note."""
    try:
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_json(path, profile.model_dump(mode="json"))
    except (OSError, RuntimeError) as error:
        logging.getLogger("tianji").warning(
            "The profile could not be saved, so the next run measures again: %s", error
        )


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tianji" / "profiles"


def _path(key: str) -> Path:
    return _folder() / f"{key}.json"


def _processor() -> str:
    """Its name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


@functools.cache
def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "none"
