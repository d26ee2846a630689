"""The styles a3c and gorila: which settings of a preset they keep, and what they refuse."""

import pytest

from tianji.config.overrides import make_config
from tianji.errors import UsageError
from tianji.programs.registry import find_style


def test_a3c_keeps_what_ppo_has_too_and_makes_an_update_of_each_short_unroll():
    ppo, a3c = make_config("cartpole-ppo"), make_config("cartpole-ppo", style="a3c")
    kept = ("gamma", "learning_rate", "learning_rate_final", "gae_lambda", "entropy", "value_loss")
    for name in (*kept, "max_grad_norm"):
        assert getattr(a3c.algorithm, name) == getattr(ppo.algorithm, name), name
    assert (a3c.algorithm.name, a3c.algorithm.optimizer) == ("a3c", "adam")
    assert a3c.algorithm.unroll_length == 20
    assert (a3c.max_lag, a3c.env, a3c.model) == (100, ppo.env, ppo.model)


def test_gorila_keeps_what_dqn_has_too_and_as_many_gradients_for_each_step():
    dqn = make_config("cartpole-dqn")
    gorila = make_config("cartpole-dqn", style="gorila", num_actors=4)
    kept = ("gamma", "learning_rate", "n_step", "batch_size", "replay_size", "double")
    for name in (*kept, "target_period_updates"):
        assert getattr(gorila.algorithm, name) == getattr(dqn.algorithm, name), name
    per_step = dqn.algorithm.updates_per_version / (dqn.num_envs * dqn.algorithm.unroll_length)
    assert 4 / (gorila.num_envs * gorila.algorithm.unroll_length) == per_step


def test_a_target_that_dqn_moves_a_little_each_time_is_copied_at_half_the_rate():
    dqn, gorila = (make_config("acrobot-dqn", style=style) for style in ("tianji", "gorila"))
    assert gorila.algorithm.target_period_updates == 2 / dqn.algorithm.target_tau


@pytest.mark.parametrize(("preset", "style"), [("cartpole-ppo", "a3c"), ("cartpole-dqn", "gorila")])
def test_what_the_person_gave_wins(preset, style):
    config = make_config(preset, style=style, max_lag=3, unroll_length=7)
    assert (config.max_lag, config.algorithm.unroll_length) == (3, 7)


@pytest.mark.parametrize("style", ["a3c", "gorila"])
def test_a_preset_of_the_algorithm_itself_is_left_as_it_is(style):
    plain, styled = (make_config(f"cartpole-{style}", style=s) for s in ("tianji", style))
    assert styled.model_copy(update={"style": "tianji"}) == plain


@pytest.mark.parametrize(
    ("preset", "values", "message"),
    [
        ("cartpole-dqn", {"style": "a3c"}, "algorithm is dqn.*ppo or a3c"),
        ("cartpole-ppo", {"style": "gorila"}, "algorithm is ppo.*dqn or gorila"),
        (
            "cartpole-ppo",
            {"style": "a3c", "normalize": {"observations": True}},
            "normalize.observations .*sees gradients and no steps",
        ),
        ("cartpole-ppo", {"style": "a3c", "num_groups": 2}, "num_groups is '2'.*one learner"),
        ("cartpole-dqn", {"style": "gorila", "balance": "free"}, "balance is 'free'"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(preset, values, message):
    with pytest.raises(UsageError, match=message):
        make_config(preset, **values)


@pytest.mark.parametrize("name", ["a3c", "gorila"])
def test_they_say_what_differs(name):
    style = find_style(name)
    assert any("Pacing" in difference for difference in style.differences)


def test_gorila_says_that_several_unplanned_actors_use_each_step_more_often():
    one, auto = (make_config("cartpole-dqn", style="gorila", num_actors=n) for n in (1, "auto"))
    assert auto.algorithm.unroll_length == one.algorithm.unroll_length
    (told,) = (one for one in find_style("gorila").differences if one.startswith("Ratio"))
    assert "Where num_actors is auto" in told and "times as often as by DQN" in told
