"""V-trace in place of the loss of a preset, with the settings of both carried over."""

from __future__ import annotations

from tianji.algorithms.actor_critic.settings import ActorCriticConfig
from tianji.config.schema import ALGORITHM
from tianji.programs.style import Given, Values, of_family, with_algorithm

NO_UNROLLS = "V-trace learns from unrolls of a policy with action probabilities."
ONLY_V_TRACE = "its lag is not bounded, so it learns with V-trace."
EXAMPLES = "ppo or impala"
_HALF_SQUARED = 2.0
"""The value loss of PPO is a squared error, that of V-trace half of one."""


def with_v_trace(style: str, values: Values, given: Given) -> Values:
    """Return the settings with the algorithm `impala`; UsageError for other kinds of algorithms.

    A batch has the same steps as before, in unrolls of the same total length, and an update as many
    of them, as far as they divide evenly.
    """
    of_family(style, values, ActorCriticConfig, NO_UNROLLS, EXAMPLES)
    changed = with_algorithm(style, values, given, "impala", ONLY_V_TRACE)
    if changed is values:
        return values
    length = values[f"{ALGORITHM}.unroll_length"] * values[f"{ALGORITHM}.unrolls_per_batch"]
    parts = -(-length * values["num_envs"] // values[f"{ALGORITHM}.minibatch_size"])
    return {
        **changed,
        f"{ALGORITHM}.unroll_length": length,
        f"{ALGORITHM}.minibatches": _divisor_near(parts, values["num_envs"]),
        f"{ALGORITHM}.value_loss": _HALF_SQUARED * values[f"{ALGORITHM}.value_loss"],
        f"{ALGORITHM}.trace_lambda": values[f"{ALGORITHM}.gae_lambda"],
    }


def _divisor_near(most: int, count: int) -> int:
    """Return the largest number of equal parts, at most `most`, that `count` can be divided in."""
    return max(parts for parts in range(1, count + 1) if count % parts == 0 and parts <= most)
