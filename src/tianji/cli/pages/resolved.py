"""The settings that a run learns with, as `tianji plan` shows them: each has the value that it has
before the run starts, and `auto` stays where roles decide when they start."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich.table import Table

from tianji.cli.pages.tables import fact_list
from tianji.config.schema import ALGORITHM, flat
from tianji.config.settings import ALGORITHM_NAME, value_text
from tianji.models.sizes import hidden_widths, memory_size, reward_clip
from tianji.planning.planned import Planned

OF_THE_RUN = ("num_envs", "max_lag")
GROUPS = (ALGORITHM, "model", "normalize")


def resolved_settings(planned: Planned) -> dict[str, Any]:
    """Return them by path: what was chosen by a rule, a preset, the planner or the person, and
    defaults for the rest."""
    config, spaces = planned.config, planned.probe.spaces
    values = config.model_dump(mode="json", include={*OF_THE_RUN, *GROUPS})
    found = {
        **flat({name: values[name] for name in (*OF_THE_RUN, *GROUPS)}),
        "model.hidden": list(hidden_widths(spaces, config)),
        "normalize.clip_rewards": reward_clip(spaces, config),
    }
    if config.model.memory == "none":
        del found["model.memory_size"]
    else:
        found["model.memory_size"] = memory_size(spaces, config)
    del found[ALGORITHM_NAME]
    return found


def settings_list(planned: Planned) -> Table:
    """List them for people, one line or more for each group."""
    name = planned.config.algorithm.name
    found = resolved_settings(planned).items()
    groups = groupby(((_group(path), path, value) for path, value in found), lambda one: one[0])
    titles = {"": "run", ALGORITHM: name}
    return fact_list({
        titles.get(group, group): "  ".join(_shown(listed)) for group, listed in groups
    })  # fmt: skip


def _group(path: str) -> str:
    return path.rpartition(".")[0]


def _shown(listed: Iterator[tuple[str, str, Any]]) -> Iterator[str]:
    for _, path, value in listed:
        yield f"{path.rpartition('.')[2]}={value_text(value)}"
