"""The specs of the groups of a run: what each is told, and where it continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tianji.checkpoint.sets import SavedGroups, group_folder
from tianji.config.plan import RunPlan
from tianji.config.run import EvaluateConfig, RunConfig
from tianji.engines.spec import RunSpec
from tianji.wording import counted


def group_specs(
    spec: RunSpec, plans: Sequence[RunPlan], saved: SavedGroups | None
) -> list[RunSpec]:
    """Return the spec of every group, and make its folder.

    saved: where the run continues; group g continues from saved group g modulo their number.
    """
    specs = []
    for group, plan in enumerate(plans):
        folder = group_folder(spec.run_dir, group)
        folder.mkdir(parents=True, exist_ok=True)
        specs.append(
            replace(
                spec,
                config=_config_of(spec.config, group),
                plan=plan,
                run_dir=folder,
                group=group,
                has_head=True,
                start_from=_source(saved, group, spec.config.learners_per_group),
            )
        )
    return specs


def _source(saved: SavedGroups | None, learner: int, learners_per_group: int) -> Path | None:
    return None if saved is None else saved.paths[saved.source_of(learner, learners_per_group)]


def _config_of(config: RunConfig, group: int) -> RunConfig:
    """Leave out what the head decides, and evaluations in all groups but the first."""
    ends = {"target_return": None, "max_wall_s": None}
    return config.model_copy(update=ends if group == 0 else {**ends, "evaluate": EvaluateConfig()})


def restored_words(saved: SavedGroups, config: RunConfig) -> str:
    """Say which group continues from which."""
    before, after = saved.found.learners_per_group, config.learners_per_group
    told = [_groups_words(saved.num_groups, config.num_groups)]
    if before != after:
        told.append(
            f"Groups had {counted(before, 'learner')} each and have {after}: all of them continue "
            "from learners of the same group."
        )
    return " ".join(told)


def _groups_words(num_saved: int, num_groups: int) -> str:
    if num_saved == num_groups:
        return "Every group continues from its checkpoint."
    if num_groups < num_saved:
        unused = ", ".join(str(group) for group in range(num_groups, num_saved))
        return (
            f"The run was saved with {num_saved} groups and continues with {num_groups}. Not used: "
            f"the checkpoints of group {unused}."
        )
    copies = ", ".join(
        f"group {g} from group {g % num_saved}" for g in range(num_saved, num_groups)
    )
    return (
        f"The run was saved with {num_saved} group{'s' if num_saved > 1 else ''} and continues "
        f"with {num_groups}: {copies}."
    )
