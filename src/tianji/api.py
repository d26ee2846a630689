"""The Python door: the same runs as the command line's, in a line of code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tianji.config.run import RunConfig
    from tianji.trained.policy import LoadedPolicy


class Trained(NamedTuple):
    """What train() returns."""

    summary: dict[str, Any]
    """The same as summary.json of the run."""
    policy: LoadedPolicy
    """The policy as it was at the end of the run."""


def make_config(preset: str | None = None, **values: Any) -> RunConfig:
    """The config that train() would use: a preset, and settings by name."""
    from tianji.config.overrides import make_config as resolve_values

    return resolve_values(preset, **values)


def train(
    preset: str | None = None, *, env: str | Callable[..., Any] | None = None, **values: Any
) -> Trained:
    """Train a policy and return the summary of the run and the policy.

    preset: the name of a preset or the path of a YAML file; cartpole-ppo when nothing is named.
    env: a Gymnasium id, a `module:factory`, or a callable that makes an environment.
    values: any setting, as on the command line: gamma=0.98, max_env_steps=100_000, seed=3.
    """
    from tianji.errors import WorkerLost
    from tianji.run import train_config
    from tianji.trained.policy import load_policy

    if isinstance(env, str):
        values["env"], env = env, None
    elif env is not None:
        values["env"] = _name_of(env)
    config = make_config(preset, **values)
    summary = train_config(config, env=env)
    if summary["stopped_because"] == "failed":
        raise WorkerLost(
            f"Training failed: {summary['first_cause']}. More in {summary['run_dir']}/events.jsonl."
        )
    return Trained(summary, load_policy(Path(summary["run_dir"]), "latest", env=env))


def load(run: str | Path, checkpoint: str = "best", *, env: Any = None) -> LoadedPolicy:
    """The policy of a run, by name under runs/ or by path: tianji.load(RUN).act(observation)."""
    from tianji.config.runs import find_run
    from tianji.trained.policy import load_policy

    return load_policy(find_run(str(run)), checkpoint, env=env)


def _name_of(factory: Callable[..., Any]) -> str:
    """What config.yaml says of a callable: where it was defined, so that a person knows."""
    module = getattr(factory, "__module__", "__main__")
    return f"{module}:{getattr(factory, '__qualname__', type(factory).__name__)}"
