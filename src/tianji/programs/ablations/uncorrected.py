"""The same losses without their correction for lag."""

from __future__ import annotations

from typing import Any

from tianji.config.schema import ALGORITHM, load_algorithm_config
from tianji.config.settings import ALGORITHM_NAME
from tianji.config.values import Values
from tianji.errors import UsageError
from tianji.programs.style import Given, Style, fix
from tianji.programs.styles import tianji

OFF: dict[str, Any] = {"decoupled": False, "correction": "none"}
"""The settings of algorithms that correct for lag, and the values that switch it off."""
WHY = "it does not correct for lag."


def settings(values: Values, given: Given) -> Values:
    """Switch off whichever correction the algorithm has."""
    name = values[ALGORITHM_NAME]
    off = {
        f"{ALGORITHM}.{field}": value
        for field, value in OFF.items()
        if field in load_algorithm_config(name).model_fields
    }
    if not off:
        raise UsageError(
            f"style is 'uncorrected', and the algorithm is {name}, which has no correction for lag "
            "to switch off. Use a preset or an --algorithm such as ppo or impala, or another "
            "--style."
        )
    return fix("uncorrected", values, given, WHY, **off)


STYLE = Style(
    name="uncorrected",
    about="The loss treats old experience as new: nothing corrects for the lag of the actors.",
    settings=settings,
    program=tianji.program,
    differences=(
        "Loss: PPO clips relative to the policy that acted, without a decoupled objective; IMPALA "
        "learns without the truncated weights of V-trace.",
    ),
    kind="ablation",
)
