"""The Python interface: the same runs as the command line, in a line of code."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from tianji.comparison.report import Comparison
    from tianji.config.run import RunConfig
    from tianji.envs.build import EnvSources
    from tianji.observe.callbacks.load import GivenCallback
    from tianji.records import Summary
    from tianji.trained.policy import LoadedPolicy

Env: TypeAlias = str | Callable[..., Any]
"""A Gymnasium id, a `module:factory`, or a callable that makes an environment."""
ALLOWED = (
    "it must be a Gymnasium id ('CartPole-v1'), a 'module:factory', a class or function that makes "
    "an environment, or a list of these."
)


class Trained(NamedTuple):
    """What train() returns."""

    summary: Summary
    """The same as summary.json of the run."""
    policy: LoadedPolicy
    """The policy as it was at the end of the run."""


def make_config(preset: str | None = None, **values: Any) -> RunConfig:
    """Return the config that train() would use: a preset, and settings by name."""
    from tianji.defaults.choose import make_config as choose_config

    return choose_config(preset, **values)


def train(
    preset: str | None = None,
    *,
    env: Env | Sequence[Env] | None = None,
    callbacks: Sequence[str | GivenCallback] | None = None,
    **values: Any,
) -> Trained:
    """Train a policy and return the summary of the run and the policy.

    preset: the name of a preset or the path of a YAML file; cartpole-ppo when nothing is named.
        Without one, rules look at the environment and choose an algorithm and its numbers.
    env: a Gymnasium id, a `module:factory`, or a callable that makes an environment; a list of
        them gives every actor its own, in turn, with an algorithm that gathers gradients.
    callbacks: objects or classes with methods of tianji.Callback, or names, as on the command line.
    values: any setting, as on the command line: gamma=0.98, max_env_steps=100_000, seed=3.
    """
    from tianji.config.overrides import engine_of
    from tianji.config.values import from_mapping
    from tianji.defaults.choose import resolve
    from tianji.engines.agents.mpi.launcher import join_job
    from tianji.errors import UsageError, WorkerLost
    from tianji.importing import refuse_runs
    from tianji.run import train_config
    from tianji.trained.policy import load_policy

    refuse_runs("tianji.train()")
    if "seeds" in values:
        raise UsageError(
            f"seeds = {values['seeds']!r}: tianji.train() trains with one seed. Call it once for "
            "each: tianji.train(..., seed=2); or use the command `tianji train --seeds N`, which "
            "trains with N seeds side by side."
        )
    if isinstance(callbacks, str) or not isinstance(callbacks, Sequence | None):
        raise UsageError(
            f"callbacks is {callbacks!r}, and must be a list of callbacks: "
            'callbacks=[MyCallback()] or callbacks=["module:MyCallback"].'
        )
    given = _name_envs(env, values)
    called = [one for one in callbacks or () if not isinstance(one, str)]
    if callbacks is not None:
        values["callbacks"] = [one for one in callbacks if isinstance(one, str)]
    asked = from_mapping(values)
    join_job(engine_of(preset, asked))
    resolved = resolve(preset, asked, given)
    for note in resolved.notes:
        logging.getLogger("tianji").warning(note)
    summary = train_config(resolved.config, env=given, callbacks=called, reasons=resolved.reasons)
    if summary["stopped_because"] == "failed":
        raise WorkerLost(
            f"Training failed: {summary['first_cause']}. More in {summary['run_dir']}/events.jsonl."
        )
    return Trained(summary, _told(load_policy(Path(summary["run_dir"]), "latest", env=given)))


def compare(preset: str, *, styles: Sequence[str], seeds: int = 5, **values: Any) -> Comparison:
    """Run styles side by side, one run at a time, and return the same as comparison.json.

    styles: names as `tianji programs` lists them; the others are compared with the first one.
    seeds: seeds of each style. values: any setting, for all runs; run="name" names the folder, and
        continues the comparison that is there. Without it, the same call continues what was
        broken off.
    """
    from tianji.comparison.compare import run_comparison
    from tianji.comparison.styles import style_contest
    from tianji.config.values import from_mapping
    from tianji.errors import UsageError
    from tianji.importing import refuse_runs
    from tianji.seeds.screen import make_screen

    refuse_runs("tianji.compare()")
    if isinstance(styles, str):
        raise UsageError(f"styles is {styles!r}: name the styles in a list: {styles.split(',')!r}.")
    given = "".join(f", {name}={value!r}" for name, value in values.items())
    command = f"tianji.compare({preset!r}, styles={list(styles)!r}, seeds={seeds}{given})"
    found = style_contest(preset, list(styles), seeds, from_mapping(values), command)
    screen = make_screen(found.contest.reference.config.observe.display)
    return run_comparison(found.contest, screen, found.run)


def load(run: str | Path, checkpoint: str = "best", *, env: Any = None) -> LoadedPolicy:
    """Load the policy of a run, by name under runs/ or by path: tianji.load(RUN).act(observation).

    checkpoint: `best`, `latest`, or a checkpoint by its name or version. Where the best or the
        latest is damaged, the newest sound one is loaded, with a warning; `policy.note` says why.
    """
    from tianji.run_folder.paths import find_run
    from tianji.trained.policy import load_policy

    given = env if env is None or isinstance(env, str) or callable(env) else _checked_list(env)
    return _told(load_policy(find_run(str(run)), checkpoint, env=given))


def _told(policy: LoadedPolicy) -> LoadedPolicy:
    """Warn if it is not the policy that was asked for."""
    if policy.note:
        warnings.warn(policy.note, stacklevel=3)
    return policy


def _name_envs(env: Env | Sequence[Env] | None, values: dict[str, Any]) -> EnvSources | None:
    """Put names into the config; return what config.yaml cannot hold, None where it can.

    A callable is named after the place where it was defined.
    """
    from tianji.envs.build import name_of

    if env is None:
        return None
    if isinstance(env, str):
        values["env"] = env
        return None
    if callable(env):
        values["env"] = name_of(env)
        return env
    tasks = _checked_list(env)
    values["envs"] = _distinct({task: name_of(task) for task in tasks}, tasks)
    return tasks if any(callable(task) for task in tasks) else None


def _checked_list(env: object) -> tuple[Env, ...]:
    """Return a list of environments as a tuple; raise UsageError for anything else."""
    from tianji.errors import UsageError

    if not isinstance(env, Sequence) or not env:
        raise UsageError(f"env is {_described(env)}, but {ALLOWED}")
    for index, task in enumerate(env):
        if not (isinstance(task, str) or callable(task)):
            raise UsageError(f"env[{index}] is {_described(task)}, but {ALLOWED}")
    return tuple(env)


def _described(env: object) -> str:
    text = f"{env!r:.80} ({type(env).__name__})"
    if hasattr(env, "step") and hasattr(env, "reset"):
        text += ", an environment that exists already; every actor makes its own"
    return text


def _distinct(names: Mapping[Env, str], tasks: Sequence[Env]) -> tuple[str, ...]:
    """Number the callables that have the same name as another one."""
    seen: dict[str, list[Env]] = {}
    for task, name in names.items():
        seen.setdefault(name, []).append(task)
    places = {task: seen[name].index(task) for task, name in names.items()}
    return tuple(f"{names[t]}#{places[t] + 1}" if places[t] else names[t] for t in tasks)
