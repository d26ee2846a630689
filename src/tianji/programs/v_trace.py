"""V-trace behind a bounded queue, in place of the loss and the pacing of a preset."""

from __future__ import annotations

from tianji.algorithms.actor_critic.settings import ActorCriticConfig
from tianji.algorithms.impala.config import ImpalaConfig
from tianji.config.schema import ALGORITHM
from tianji.config.values import Values
from tianji.programs.style import Given, fix, of_family, with_algorithm

NO_UNROLLS = "V-trace learns from unrolls of a policy with action probabilities."
ONLY_V_TRACE = "its lag is not bounded, so it learns with V-trace."
BOUNDED = "its pacing is a queue of fixed size, which makes actors wait when it is full."
EXAMPLES = "ppo or impala"
LOSS = (
    "Loss: V-trace, one pass over each unroll. Settings that PPO has too are kept, but "
    "unroll_length is that of a whole batch, value_loss is twice as large, because the error that "
    f"it multiplies is half as large, and entropy is {ImpalaConfig().entropy:g} where PPO has none."
)
PACING = "Pacing: a bounded queue, which makes actors wait when it is full; max_lag bounds nothing."
MINIBATCHES = 2
"""Updates of each batch. One is too few with the learning rates of PPO, which makes dozens; updates
as small as those of PPO are too noisy without its clip (docs/decisions/0028-styles.md)."""
_HALF_SQUARED = 2.0
"""The value loss of PPO is a squared error, that of V-trace half of one."""


def with_v_trace(style: str, values: Values, given: Given) -> Values:
    """Return the settings with the algorithm `impala` and a queue that makes actors wait when it is
    full; UsageError for other kinds of algorithms.

    A batch has the same steps as before, in one unroll of every environment. Without an entropy
    bonus a policy that nothing clips becomes deterministic too early, so there is always one.
    """
    of_family(style, values, ActorCriticConfig, NO_UNROLLS, EXAMPLES)
    changed = with_algorithm(style, values, given, "impala", ONLY_V_TRACE)
    if changed is not values:
        changed |= _carried_over(values)
    return fix(style, changed, given, BOUNDED, balance="blocking")


def _carried_over(values: Values) -> Values:
    """Return the settings of V-trace that follow from others of PPO."""
    old = {path.removeprefix(f"{ALGORITHM}."): value for path, value in values.items()}
    new = {
        "unroll_length": old["unroll_length"] * old.get("unrolls_per_batch", 1),
        "minibatches": MINIBATCHES if values["num_envs"] % MINIBATCHES == 0 else 1,
        "value_loss": _HALF_SQUARED * old["value_loss"],
        "entropy": old["entropy"] or ImpalaConfig().entropy,
    }
    return {f"{ALGORITHM}.{name}": value for name, value in new.items()}
