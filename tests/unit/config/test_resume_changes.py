from __future__ import annotations

import pytest

from tianji.config.overrides import make_config, resume_changes, with_changes
from tianji.config.values import Assignment, from_mapping, split_tokens
from tianji.errors import UsageError


def from_line(line: str) -> list[Assignment]:
    return split_tokens(line.split())[1]


def test_limits_and_what_is_shown_may_change() -> None:
    config = make_config("cartpole-ppo")
    line = "--max-env-steps 2e6 --target-return none --engine inline --keep-last 9 --no-tensorboard"
    changes = resume_changes(config, from_line(line))
    assert changes == {
        "max_env_steps": 2_000_000,
        "target_return": None,
        "engine": "inline",
        "checkpoint": {"keep_last": 9},
        "observe": {"tensorboard": False},
    }
    changed = with_changes(config, changes)
    assert changed.max_env_steps == 2_000_000
    assert changed.checkpoint.keep_last == 9
    assert changed.checkpoint.period_s == config.checkpoint.period_s
    assert changed.algorithm == config.algorithm


def test_a_run_may_move_to_another_machine() -> None:
    line = "--device cpu --inference actor-cpu --emulator-threads 2"
    changes = resume_changes(make_config("cartpole-ppo"), from_line(line))
    assert changes == {"device": "cpu", "inference": "actor-cpu", "emulator_threads": 2}
    config = make_config("cartpole-dqn")
    changes = resume_changes(config, from_line("--replay-on gpu"))
    assert with_changes(config, changes).algorithm == config.algorithm.model_copy(
        update={"replay_on": "gpu"}
    )


def test_only_settings_of_the_algorithm_are_offered() -> None:
    for preset, is_offered in (("cartpole-ppo", False), ("cartpole-dqn", True)):
        with pytest.raises(UsageError) as told:
            resume_changes(make_config(preset), from_line("--gamma 0.5"))
        assert ("algorithm.replay_on" in str(told.value)) == is_offered


def test_python_changes_by_the_same_rules() -> None:
    config = make_config("cartpole-ppo")
    asked = from_mapping({"target_return": 300, "checkpoint": {"keep_last": 9}})
    assert resume_changes(config, asked) == {
        "target_return": 300.0,
        "checkpoint": {"keep_last": 9},
    }


def test_no_changes_are_fine() -> None:
    config = make_config("cartpole-ppo")
    assert resume_changes(config, []) == {}
    assert with_changes(config, {}) == config


def test_what_makes_it_another_run_is_refused_with_all_other_mistakes() -> None:
    asked = from_line("--gamma 0.5 --max-env-steps 0 --targt-return 3")
    with pytest.raises(UsageError) as told:
        resume_changes(make_config("cartpole-ppo"), asked)
    text = str(told.value)
    assert "algorithm.gamma cannot change when a run is resumed" in text
    assert "max_env_steps = 0: must be" in text
    assert "Did you mean '--target-return'" in text
