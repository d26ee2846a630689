"""Checks that a run can continue here, before anything in its folder is changed."""

from __future__ import annotations

from pathlib import Path

from tianji.algorithms.registry import load_algorithm
from tianji.channels.layout import Layout
from tianji.checkpoint.load import latest, read_manifest
from tianji.checkpoint.schema import WEIGHTS
from tianji.checkpoint.sets import SavedGroups, as_set, has_groups, newest_set
from tianji.checkpoint.tensors import read_shapes
from tianji.config.plan import RunPlan
from tianji.config.run import RunConfig
from tianji.envs.interface import Spaces
from tianji.errors import CheckpointError, UsageError
from tianji.observe.summary import read_summary
from tianji.types import OBS, Field


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


def check_fits(
    checkpoint: Path, before: RunPlan, plan: RunPlan, config: RunConfig, spaces: Spaces
) -> None:
    """Raise UsageError where the environment or the network has changed since the run was trained.

    before: the plan that the run had until now.
    """
    what = _changed_observation(before, plan) or _changed_network(checkpoint, config, spaces)
    if what:
        raise UsageError(
            f"Checkpoint {checkpoint} cannot be continued: {what}. The environment "
            f"{config.env_name}, or the code of the network, was changed since. Change it back, or "
            "train a new run."
        )


def _changed_observation(before: RunPlan, plan: RunPlan) -> str:
    old, new = _observations(before), _observations(plan)
    for name in old.keys() & new.keys():
        if old[name] != new[name]:
            return f"{name} was {_in_words(old[name])}, and is {_in_words(new[name])} now"
    for name in sorted(old.keys() ^ new.keys()):
        return f"{name} {'is new' if name in new else 'is gone'}"
    return ""


def _observations(plan: RunPlan) -> dict[str, Field]:
    fields = Layout.from_json(plan.layout).fields
    return {field.name: field for field in fields if field.name.startswith(OBS)}


def _in_words(field: Field) -> str:
    return f"{field.dtype} of shape {tuple(field.shape)}"


def _changed_network(checkpoint: Path, config: RunConfig, spaces: Spaces) -> str:
    model = load_algorithm(config.algorithm.name).build_model(spaces, config)
    built = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    saved = read_shapes(checkpoint / WEIGHTS)
    for name in sorted(built.keys() | saved.keys()):
        if built.get(name) != saved.get(name):
            old, new = saved.get(name, "missing"), built.get(name, "missing")
            return f"weight {name} is {old} in its checkpoint, and {new} in the network now"
    return ""
