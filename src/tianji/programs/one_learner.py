"""One learner that applies the gradients of all actors, each when it arrives: A3C and Gorila."""

from __future__ import annotations

from tianji.config.values import Values
from tianji.programs.style import Given, fix

NO_STEPS = "its learner sees gradients and no steps, so that it has nothing to normalise by."
ONE_LEARNER = "one learner applies the gradients of all actors."
EVERY_GRADIENT = (
    "each gradient makes a version when it arrives, so that there is no queue or ratio to hold."
)


def with_one_learner(style: str, values: Values, given: Given, **no_steps: bool) -> Values:
    """Return the settings with one learner. no_steps: what it would need steps for."""
    held = {"balance": "paced", "lag_target": "auto"}
    values = fix(style, values, given, NO_STEPS, **no_steps)
    values = fix(style, values, given, EVERY_GRADIENT, **held)
    return fix(style, values, given, ONE_LEARNER, num_groups=1, learners_per_group=1)
