"""What --search says, and what is wrong with it."""

import pytest

from tianji.config.overrides import resolve
from tianji.config.schema import load_algorithm_config
from tianji.config.settings import list_settings
from tianji.config.values import Assignment, from_mapping
from tianji.errors import UsageError
from tianji.sweep.request import make_request
from tianji.sweep.space import Choices, Range, parse_search

SETTINGS = list_settings(load_algorithm_config("ppo"))


def request(*searched, **settings):
    return make_request("cartpole-ppo", searched, from_mapping(settings), num_trials=3)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "learning_rate=1e-4:1e-2:log",
            Range("algorithm.learning_rate", "learning_rate", 1e-4, 1e-2, is_log=True),
        ),
        ("--epochs=4:20", Range("algorithm.epochs", "epochs", 4, 20, is_whole=True)),
        ("gamma=0.9,0.99", Choices("algorithm.gamma", "gamma", ("0.9", "0.99"))),
        ("activation=tanh,relu", Choices("model.activation", "activation", ("tanh", "relu"))),
        ("hidden=64,64/256,256", Choices("model.hidden", "hidden", ("64,64", "256,256"))),
        ("rewards=true,false", Choices("normalize.rewards", "rewards", ("true", "false"))),
    ],
)
def test_ranges_and_choices_are_read_by_the_type_of_the_setting(text, found):
    assert parse_search(text, SETTINGS) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("learning_rat=1:2", r"Unknown setting '--learning.rat'. Did you mean"),
        ("learning_rate", "has no values. Write --search key=low:high"),
        ("learning_rate=a:b", "both ends must be numbers"),
        ("learning_rate=1:2:lin", "only 'log' may follow"),
        ("learning_rate=2:1", "the first end must be below the second"),
        ("learning_rate=0:1:log", "begins above 0"),
        ("epochs=1.5:3", "epochs must be a whole number of at least 1"),
        ("activation=tanh", "at least two different values"),
        ("normalize.rewards=0:1", "rewards must be true or false"),
        ("seed=1:9", "seed is the same in all trials"),
        ("max_env_steps=1000:2000", "max_env_steps is the same in all trials"),
    ],
)
def test_what_cannot_be_searched_is_told(text, says):
    with pytest.raises(UsageError, match=says):
        parse_search(text, SETTINGS)


def test_values_that_a_run_would_refuse_are_found_before_anything_starts():
    with pytest.raises(UsageError) as caught:
        request("gamma=0.9:1.5", "activation=tanh,rellu", "epochs=2:4")
    assert "gamma = 1.5: must be a number from 0 to 1" in str(caught.value)
    assert "activation = rellu: must be one of 'tanh', 'relu'" in str(caught.value)
    assert "epochs" not in str(caught.value)


def test_a_setting_is_either_set_or_searched_and_only_once():
    with pytest.raises(UsageError, match="gamma is both set and searched"):
        request("gamma=0.9:0.99", gamma=0.95)
    with pytest.raises(UsageError, match="gamma is searched twice"):
        request("gamma=0.9:0.99", "algorithm.gamma=0.5,0.6")


def test_a_sweep_needs_something_to_search_on_this_machine():
    with pytest.raises(UsageError, match="Nothing is searched: what is searched without"):
        request(learning_rate=1e-3, gamma=0.9, entropy=0.01)
    with pytest.raises(UsageError, match="a sweep runs on this machine"):
        request("gamma=0.9:0.99", engine="ray")


def test_the_config_of_a_trial_is_that_of_the_same_settings_in_train():
    values = {"algorithm.epochs": "7", "model.hidden": "32,32", "model.activation": "relu"}
    found = request("epochs=4:20", "hidden=64,64/32,32", "activation=tanh,relu").with_values(values)
    words = [Assignment(f"--{path}", text, is_text=True) for path, text in values.items()]
    assert found == resolve("cartpole-ppo", words).config
    assert (found.algorithm.epochs, found.model.hidden) == (7, (32, 32))


def test_trials_have_the_environment_that_the_note_names():
    request = make_request("cartpole-ppo", [], from_mapping({"env": "Acrobot"}), num_trials=3)
    assert any("'Acrobot-v1'" in note for note in request.notes)
    assert request.with_values({}).env == request.config.env == "Acrobot-v1"
