"""Checks that a run can continue here, before anything in its folder is changed."""

from __future__ import annotations

from pathlib import Path

from tianji.algorithms.registry import load_algorithm
from tianji.checkpoint.load import latest, read_manifest
from tianji.checkpoint.schema import WEIGHTS
from tianji.checkpoint.sets import SavedGroups, as_set, has_groups, newest_set
from tianji.checkpoint.tensors import read_shapes
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import CheckpointError, UsageError
from tianji.observe.summary import read_summary


def newest_sound(run_dir: Path) -> Path:
    """Return the checkpoint that a resume continues from; UsageError where there is none."""
    try:
        checkpoint = latest(run_dir).path
    except CheckpointError as error:
        raise UsageError(f"Run {run_dir} cannot be continued. {error}") from error
    if "counts" in read_manifest(checkpoint).state.get("buffer", {}):
        raise UsageError(
            f"Checkpoint {checkpoint} cannot be continued: an earlier TianJi wrote it, which kept "
            "the state of gathered gradients in another form. Continue the run with the TianJi "
            "that wrote it, or train a new run. `tianji eval` and `tianji export` can still read "
            "its policy."
        )
    return checkpoint


def newest_saved(run_dir: Path) -> SavedGroups:
    """Return where a run continues; UsageError where no checkpoint can be continued."""
    if not has_groups(run_dir):
        return as_set(newest_sound(run_dir), run_dir)
    try:
        return newest_set(run_dir)
    except CheckpointError as error:
        raise UsageError(f"Run {run_dir} cannot be continued. {error}") from error


def check_not_over(config: RunConfig, run_dir: Path, done: int) -> None:
    """Refuse to continue a run that has reached its limit or its target. done: the environment
    steps of the checkpoint that it would continue from."""
    if done >= config.max_env_steps:
        raise UsageError(
            f"Run {run_dir} has done {done:,} of max_env_steps = {config.max_env_steps:,} steps. "
            f"Raise the limit: --max-env-steps {2 * done}"
        )
    summary = read_summary(run_dir)
    reached = summary is not None and summary["stopped_because"] == "target_reached"
    if summary is not None and reached and config.target_return == summary.get("target_return"):
        raise UsageError(
            f"Run {run_dir} has reached target_return = {config.target_return:g}. Set a higher "
            "--target-return, or start a new run."
        )


def check_spaces(run_dir: Path, before: RunPlan, config: RunConfig, spaces: Spaces) -> None:
    """Raise UsageError where the environment has other spaces than when the run was trained. This
    comes before a new plan, which may fail for other reasons with them.

    before: the plan that the run had until now.
    """
    now = spaces.in_words
    for which, old in before.spaces.items():
        if old != now[which]:
            raise UsageError(
                f"Run {run_dir} cannot be continued: the {which} space of {config.env_name} was "
                f"{old}, and is {now[which]} now. Change the environment back, or train a new run."
            )


def check_fits(checkpoint: Path, config: RunConfig, spaces: Spaces) -> None:
    """Raise UsageError where the network has changed since the run was trained."""
    what = _changed_network(checkpoint, config, spaces)
    if what:
        raise UsageError(
            f"Checkpoint {checkpoint} cannot be continued: {what}. The environment "
            f"{config.env_name}, or the code of the network, was changed since. Change it back, or "
            "train a new run."
        )


def _changed_network(checkpoint: Path, config: RunConfig, spaces: Spaces) -> str:
    model = load_algorithm(config.algorithm.name).build_model(spaces, config)
    built = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    saved = read_shapes(checkpoint / WEIGHTS)
    for name in sorted(built.keys() | saved.keys()):
        if built.get(name) != saved.get(name):
            old, new = saved.get(name, "missing"), built.get(name, "missing")
            return f"weight {name} is {old} in its checkpoint, and {new} in the network now"
    return ""
