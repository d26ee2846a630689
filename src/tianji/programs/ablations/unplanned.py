"""The machine shared without a plan: as many actors as cores, as many threads as torch takes."""

from __future__ import annotations

from tianji.config.machine import read_machine
from tianji.config.values import Values
from tianji.programs.style import Given, Style, fix
from tianji.programs.styles import tianji

WHY = "its processes and threads are not planned."


def settings(values: Values, given: Given) -> Values:
    """Give each process all cores, as torch does by itself. What the person gave is kept: another
    number of actors is as arbitrary as this one."""
    num_cores = len(read_machine().cores)
    arbitrary = {
        "num_actors": _most_actors(values["num_envs"], num_cores),
        "actor_threads": num_cores,
        "learner_threads": num_cores,
    }
    mine = {path: value for path, value in arbitrary.items() if path not in given}
    rule = {"plan.source": "rule", "plan.pin": False, "plan.replan": False}
    return fix("unplanned", {**values, **mine}, given, WHY, **rule)


def _most_actors(num_envs: int, num_cores: int) -> int:
    """Return the largest number of actors, at most one for each core, with equally many
    environments."""
    return max(count for count in range(1, num_cores + 1) if num_envs % count == 0)


STYLE = Style(
    name="unplanned",
    about="The cores are not planned: one actor for each, and no process has cores of its own.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Cores: every process may use all of them, with as many threads, and none is pinned; "
        "tianji measures what each role needs, budgets threads and pins processes.",
    ),
    kind="ablation",
)
