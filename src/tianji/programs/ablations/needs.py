"""What several ablations need of a run, checked before anything starts."""

from __future__ import annotations

from tianji.algorithms.interface import Cadence, QueueCadence, ReplayCadence
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.config.schema import nested
from tianji.config.settings import ALGORITHM_NAME
from tianji.config.values import Values
from tianji.errors import UsageError
from tianji.programs.style import Given, fix, refusal

EXAMPLES: dict[type[Cadence], tuple[str, ...]] = {
    QueueCadence: ("ppo", "impala"),
    ReplayCadence: ("dqn", "apex"),
}


def learns_from(style: str, values: Values, *kinds: type[Cadence], why: str) -> None:
    """Raise UsageError unless the algorithm learns from one of these: a queue of unrolls, or a
    replay store."""
    config = RunConfig.model_validate(nested(values))
    if isinstance(load_algorithm(config.algorithm.name).cadence(config), kinds):
        return
    *others, last = (name for kind in kinds for name in EXAMPLES[kind])
    fitting = f"{', '.join(others)} or {last}"
    raise UsageError(
        f"style is '{style}', and the algorithm is {values[ALGORITHM_NAME]}: {why} Use a preset or "
        f"an --algorithm such as {fitting}, or another --style."
    )


def sends_items(style: str, values: Values) -> None:
    """Raise UsageError for algorithms whose actors send gradients."""
    why = "its actors send gradients and wait for the next version in any case."
    learns_from(style, values, QueueCadence, ReplayCadence, why=why)


def on_one_machine(style: str, values: Values, given: Given) -> Values:
    """Return the settings without actors on other hosts; UsageError if the person gave some, or an
    engine with other channels."""
    if values["engine"] not in ("local", "inline"):
        why = "its actors wait on shared memory, which this engine has not between all roles."
        raise refusal(style, values, "engine", why, "local")
    why = "its actors wait on the shared memory of one machine."
    return fix(style, values, given, why, actor_hosts=0)
