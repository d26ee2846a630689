"""`auto` for numbers of the algorithm: they stay numbers, and the planner is told."""

import pytest

from tianji.config.files import load_config, save_config
from tianji.config.overrides import make_config, resolve_tokens
from tianji.config.run import RunConfig
from tianji.config.schema import load_algorithm_config, open_paths
from tianji.errors import UsageError


def test_a_number_left_to_the_planner_has_its_default_and_is_listed():
    config = make_config("cartpole-dqn", num_envs="auto", batch_size="auto", seed=3)
    assert config.plan.choose == ("num_envs", "algorithm.batch_size")
    assert (config.num_envs, config.algorithm.batch_size) == (8, 128)
    assert config.algorithm.updates_per_version == 16, "the preset's"


def test_each_algorithm_opens_its_own_numbers():
    found = {name: open_paths(RunConfig, load_algorithm_config(name)) for name in ("ppo", "dqn")}
    assert found["ppo"] == dict.fromkeys(
        ("num_envs", "algorithm.unroll_length", "algorithm.minibatch_size"), "tried"
    )
    assert found["dqn"] == {
        "num_envs": "tried", "algorithm.unroll_length": "tried", "algorithm.batch_size": "tried",
        "algorithm.updates_per_version": "filled",
    }  # fmt: skip


def test_the_default_is_that_of_the_algorithm():
    lengths = {
        name: RunConfig(algorithm={"name": name, "unroll_length": "auto"}).algorithm.unroll_length
        for name in ("ppo", "impala", "dqn")
    }
    assert lengths == {"ppo": 256, "impala": 20, "dqn": 4}


def test_what_was_listed_by_hand_starts_from_its_value_and_is_listed_once():
    plan = {"choose": ("num_envs", "algorithm.unroll_length")}
    config = RunConfig(algorithm={"name": "ppo", "unroll_length": 16}, num_envs="auto", plan=plan)
    assert config.plan.choose == plan["choose"]
    assert (config.num_envs, config.algorithm.unroll_length) == (8, 16)


def test_shares_of_the_machine_are_auto_in_their_own_way():
    assert make_config("cartpole-ppo", num_actors="auto").plan.choose == ()


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["--epochs", "auto"], "epochs = auto: must be a whole number of at least 1."),
        (["--num-envs", "many"], "must be a whole number of at least 1, or 'auto'."),
        (["--plan.choose", "gamma"], "plan.choose names 'gamma': the planner can choose num_envs,"),
    ],
)
def test_a_number_that_the_planner_cannot_choose_is_refused(tokens, words):
    with pytest.raises(UsageError) as told:
        resolve_tokens(["cartpole-ppo", *tokens])
    assert words in str(told.value)


def test_the_list_is_saved_with_the_run(tmp_path):
    config = make_config("cartpole-ppo", num_envs="auto")
    save_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
