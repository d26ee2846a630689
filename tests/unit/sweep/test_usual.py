"""What `tianji sweep PRESET --trials N` searches without a word about it."""

import pytest

from tianji.config.files import list_presets
from tianji.config.overrides import make_config, resolve
from tianji.config.values import from_mapping
from tianji.sweep.request import make_request
from tianji.sweep.space import Choices, Range
from tianji.sweep.usual import usual_searches


def request(preset, **settings):
    return make_request(preset, (), from_mapping(settings), num_trials=3)


@pytest.mark.parametrize(
    ("preset", "names"),
    [
        ("cartpole-ppo", ["learning_rate", "gamma", "entropy"]),
        ("cartpole-impala", ["learning_rate", "gamma", "entropy"]),
        ("cartpole-a3c", ["learning_rate", "gamma", "entropy"]),
        ("lunarlander-dqn", ["learning_rate", "gamma", "target_tau"]),
        ("pendulum-sac", ["learning_rate", "gamma", "target_tau"]),
        ("rennala-nigt", ["learning_rate", "gamma"]),
    ],
)
def test_each_algorithm_says_what_is_searched(preset, names):
    assert [one.name for one in request(preset).searches] == names


def test_values_lie_around_those_of_the_preset():
    rate, gamma, _ = request("cartpole-ppo").searches
    assert rate == Range("algorithm.learning_rate", "learning_rate", 2e-4, 2e-2, is_log=True)
    assert request("pendulum-sac").searches[0].corners == ("0.0001", "0.01")
    rate, *_ = usual_searches(make_config(env="Any-v0", algorithm="sac"), given=[])
    assert rate.corners == ("3e-05", "0.003")
    assert gamma == Choices("algorithm.gamma", "gamma", ("0.95", "0.98", "0.99", "0.995", "0.999"))
    _, gamma, _ = usual_searches(
        resolve("cartpole-ppo", from_mapping({"gamma": 0.97})).config, given=[]
    )
    assert "0.97" in gamma.choices


def test_no_learning_rate_is_below_the_one_at_the_end_of_a_run():
    rate, *_ = request("cartpole-dqn", learning_rate_final=1e-3).searches
    assert (rate.low, rate.high) == (1e-3, 2e-2)


@pytest.mark.parametrize("final", [1.2345e-3, 1.9996e-3, 2e-3])
def test_a_range_has_all_digits_of_the_rate_at_the_end(final):
    rate, *_ = request("cartpole-dqn", learning_rate_final=final).searches
    assert (rate.low, rate.high) == (final, 2e-2)


@pytest.mark.parametrize("final", [3e-3, 2e-2, 0.5])
def test_a_rate_that_rises_in_a_run_is_searched_as_if_it_did_not(final):
    rate, *_ = request("cartpole-dqn", learning_rate_final=final).searches
    assert (rate.low, rate.high) == (2e-4, 2e-2)


def test_own_values_keep_all_their_digits():
    _, gamma, entropy = usual_searches(
        resolve("cartpole-ppo", from_mapping({"gamma": 0.9999999, "entropy": 0.0123456789})).config,
        given=[],
    )
    assert "0.9999999" in gamma.choices and "0.0123456789" in entropy.choices
    assert entropy.choices[0] == "0"


def test_what_a_person_has_set_is_not_searched_and_what_is_turned_off_neither():
    assert [one.name for one in request("cartpole-ppo", gamma=0.9).searches] == [
        "learning_rate", "entropy",
    ]  # fmt: skip
    copied = request("lunarlander-dqn", target_period_updates=100, target_tau=None)
    assert "target_tau" not in [one.name for one in copied.searches]


def test_the_search_is_told_before_it_starts():
    (note,) = request("pendulum-sac").notes
    assert note.startswith("Without --search, the usual settings are searched: learning_rate from")
    assert "learning_rate from 0.0001 to 0.01 by factors; gamma 0.95, 0.98" in note
    assert "target_tau 0.002, 0.005, 0.01, 0.02." in note
    asked = make_request("pendulum-sac", ["gamma=0.9:0.99"], (), num_trials=3)
    assert not asked.notes and [one.name for one in asked.searches] == ["gamma"]


def test_every_preset_can_be_swept_as_it_is():
    for preset in list_presets():
        assert request(preset).searches
