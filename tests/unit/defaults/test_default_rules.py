"""The rules for defaults: facts of made-up environments in, settings out."""

from dataclasses import replace

import pytest

from tianji.config.overrides import make_config
from tianji.defaults.facts import Facts
from tianji.defaults.rules import ALGORITHMS, SLOW_STEP_S, suggest
from tianji.envs.rewards import LEAST_STEPS, RewardLook

PLAIN = Facts(
    actions="choices",
    sees_images=False,
    num_agents=1,
    step_s=2e-5,
    rewards=RewardLook(num_steps=30, depend_on_state=True),
)
ROBOT = replace(PLAIN, actions="bounded")
SILENT = RewardLook(num_steps=2000, depend_on_state=False)


@pytest.mark.parametrize("facts", [PLAIN, ROBOT, replace(PLAIN, step_s=None)])
def test_an_ordinary_environment_gets_the_defaults_of_ppo(facts):
    suggestion = suggest(facts)
    assert suggestion.values == {"algorithm.name": "ppo"}
    assert len(suggestion.choices) == 1 and suggestion.choices[0].because.startswith(
        "Algorithm ppo: "
    )


def test_nothing_is_said_of_step_times_that_are_unknown():
    assert "a step takes" in suggest(ROBOT).choices[0].because
    assert "step" not in suggest(replace(ROBOT, step_s=None)).choices[0].because


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"actions": "choices"}, "trains only with bounded numbers as actions."),
        ({"actions": "unbounded"}, "trains only with bounded numbers as actions."),
        ({"sees_images": True}, "is chosen only where it was compared: one agent, no images."),
        ({"num_agents": 2}, "is chosen only where it was compared: one agent, no images."),
    ],
)
def test_ppo_says_why_a_slow_environment_does_not_get_sac(other, reason):
    because = suggest(replace(ROBOT, step_s=SLOW_STEP_S, **other)).choices[0].because
    assert because.startswith("Algorithm ppo: a step takes 10 ms, but sac, which learns more")
    assert because.endswith(reason)


def test_slow_environments_with_bounded_actions_get_sac():
    slow = replace(ROBOT, step_s=SLOW_STEP_S)
    assert suggest(slow).values["algorithm.name"] == "sac"
    assert "10 ms" in suggest(slow).choices[0].because
    assert suggest(replace(slow, step_s=0.9 * SLOW_STEP_S)).values["algorithm.name"] == "ppo"


@pytest.mark.parametrize(
    "other",
    [{"actions": "choices"}, {"actions": "unbounded"}, {"sees_images": True}, {"num_agents": 2}],
)
def test_slow_environments_that_sac_was_not_compared_on_get_ppo(other):
    slow = replace(ROBOT, step_s=1.0, **other)
    assert suggest(slow).values["algorithm.name"] == "ppo"


@pytest.mark.parametrize(
    ("step_s", "told"),
    [(2e-5, "0.02 ms"), (0.0123, "12 ms"), (0.0996, "100 ms"), (0.51, "510 ms"), (1.25, "1.2 s")],
)
def test_step_times_are_told_without_exponents(step_s, told):
    (choice, *_) = suggest(replace(PLAIN, step_s=step_s)).choices
    assert f"a step takes {told}" in choice.because


def test_the_algorithm_that_a_person_names_is_not_argued_with():
    suggestion = suggest(replace(ROBOT, step_s=1.0), "ppo")
    assert suggestion.values == {"algorithm.name": "ppo"}
    assert suggestion.choices == ()


@pytest.mark.parametrize(("num_agents", "num_envs"), [(3, 9), (4, 8), (5, 10), (20, 20)])
def test_agents_come_in_whole_environments(num_agents, num_envs):
    suggestion = suggest(replace(PLAIN, num_agents=num_agents))
    assert suggestion.values["num_envs"] == num_envs
    assert f"of {num_agents} agents" in suggestion.choices[1].because


def test_noise_persists_where_rewards_say_nothing_about_the_state():
    suggestion = suggest(replace(ROBOT, rewards=SILENT))
    assert suggestion.values["algorithm.noise_color"] == 1.0
    assert "2,000 random steps" in suggestion.choices[1].because


@pytest.mark.parametrize(
    "facts",
    [
        replace(PLAIN, rewards=SILENT),
        replace(ROBOT, rewards=None),
        replace(ROBOT, rewards=RewardLook(LEAST_STEPS - 1, depend_on_state=False)),
        replace(ROBOT, rewards=RewardLook(2000, depend_on_state=True)),
    ],
)
def test_noise_is_independent_where_nothing_speaks_against_it(facts):
    assert "algorithm.noise_color" not in suggest(facts).values


def test_a_rule_counts_only_for_algorithms_that_have_its_settings():
    silent = replace(ROBOT, rewards=SILENT, num_agents=3)
    assert suggest(silent, "impala").values.keys() == {
        "algorithm.name",
        "algorithm.noise_color",
        "num_envs",
    }
    assert suggest(silent, "sac").values.keys() == {"algorithm.name", "num_envs"}


def test_whatever_is_suggested_is_a_valid_config():
    worst = Facts("bounded", True, 3, 1.0, SILENT)
    for name in (None, *ALGORITHMS, "dqn", "impala", "rennala-nigt"):
        suggestion = suggest(worst, name)
        config = make_config(env="Any-v0", **suggestion.values)
        assert config.algorithm.name == suggestion.algorithm
