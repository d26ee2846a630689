"""The style reverb: tianji with a rate limiter in place of its balance."""

import pytest

from tianji.config.overrides import make_config
from tianji.errors import UsageError


@pytest.mark.parametrize(
    "preset", ["cartpole-ppo", "cartpole-dqn", "cartpole-impala", "pendulum-sac"]
)
def test_only_what_keeps_both_sides_in_step_differs(preset):
    plain, limited = (
        make_config(preset, style=style).model_dump() for style in ("tianji", "reverb")
    )
    different = {name for name in plain if plain[name] != limited[name]}
    assert different == {"style", "balance"}
    assert limited["balance"] == "limiter"


def test_settings_of_the_limiter_are_kept():
    config = make_config("cartpole-dqn", style="reverb", limiter={"error_buffer": 5000.0})
    assert config.limiter.error_buffer == 5000.0


def test_another_balance_is_refused():
    with pytest.raises(UsageError, match="style is 'reverb', and balance is 'paced'"):
        make_config("cartpole-ppo", style="reverb", balance="paced")
