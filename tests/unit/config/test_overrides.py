"""One schema, three ways in: files, command line, Python."""

from __future__ import annotations

import logging
import re
import shlex
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from tianji.config.overrides import Resolved, make_config, resolve_tokens
from tianji.config.run import CheckpointConfig
from tianji.errors import UsageError


def resolve_line(line: str) -> Resolved:
    return resolve_tokens(shlex.split(line))


GOOD = [
    ("--gamma 0.9", "algorithm.gamma", 0.9),
    ("--gamma=0.9", "algorithm.gamma", 0.9),
    ("--algorithm.gamma 0.9", "algorithm.gamma", 0.9),
    ("--gamma 0.9 --gamma 0.8", "algorithm.gamma", 0.8),
    ("--learning-rate 1e-4", "algorithm.learning_rate", 1e-4),
    ("--learning_rate 1e-4", "algorithm.learning_rate", 1e-4),
    ("--hidden 32,16", "model.hidden", (32, 16)),
    ("--hidden [32,16]", "model.hidden", (32, 16)),
    ("--hidden=", "model.hidden", ()),
    ("--checkpoint.period-s 5", "checkpoint.period_s", 5.0),
    ("--keep-last 2", "checkpoint.keep_last", 2),
    ("--max-env-steps 1e6", "max_env_steps", 1_000_000),
    ("--max-env-steps 250_000", "max_env_steps", 250_000),
    ("--target-return -200", "target_return", -200.0),
    ("--target-return none", "target_return", None),
    ("--tensorboard", "observe.tensorboard", True),
    ("--no-tensorboard", "observe.tensorboard", False),
    ("--no-observe.tensorboard", "observe.tensorboard", False),
    ("--tensorboard false", "observe.tensorboard", False),
    ("--tensorboard=off", "observe.tensorboard", False),
    ("--checkpoint.replay", "checkpoint.replay", True),
    ("--no-checkpoint.replay", "checkpoint.replay", False),
    ("--checkpoint.replay auto", "checkpoint.replay", "auto"),
    ("--num-actors 3", "num_actors", 3),
    ("--num-actors auto", "num_actors", "auto"),
    ("--run 2024", "run", "2024"),
    ("--run none", "run", None),
    ("--env none", "env", "none"),
    ("--engine inline", "engine", "inline"),
    ("--hidden none", "model.hidden", ()),
    ("--env-kwargs.render-mode rgb_array", "env_kwargs", {"render_mode": "rgb_array"}),
    ("--env-kwargs.size 3 --env-kwargs.wind 1e-3", "env_kwargs", {"size": 3, "wind": 1e-3}),
    ("--env-kwargs.slippery", "env_kwargs", {"slippery": True}),
    ("--env-kwargs.map [a,b]", "env_kwargs", {"map": ["a", "b"]}),
    ("--env-kwargs '{size: 3}'", "env_kwargs", {"size": 3}),
]


@pytest.mark.parametrize(("line", "path", "value"), GOOD)
def test_the_command_line_sets(line: str, path: str, value: Any) -> None:
    config = resolve_line(f"cartpole-ppo {line}").config
    assert attrgetter(path)(config) == value


BAD = [
    ("--gama 0.9", "Unknown setting '--gama'. Did you mean '--gamma'? `tianji train --help`"),
    ("--lr 1e-3", "Unknown setting '--lr'. Did you mean '--learning-rate'?"),
    ("--total-timesteps 1000", "Did you mean '--max-env-steps'?"),
    ("--timesteps 1000", "Did you mean '--max-env-steps'?"),
    ("--n-envs 4", "Did you mean '--num-envs'?"),
    ("--n-steps 128", "Did you mean '--unroll-length'?"),
    ("--num-steps 128", "Did you mean '--unroll-length'?"),
    ("--batch-size 64", "Did you mean '--minibatch-size'?"),
    ("--ent-coef 0.01", "Did you mean '--entropy'?"),
    ("--clip-range 0.1", "Did you mean '--clip'?"),
    ("--n-epochs 4", "Did you mean '--epochs'?"),
    ("--policy MlpPolicy", "Did you mean '--hidden'?"),
    ("--check-point.period-s 9", "Did you mean '--checkpoint.period-s'?"),
    ("--period-s 9", "'--checkpoint.period-s', '--evaluate.period-s', '--observe.period-s'"),
    ("--checkpoint 9", "'--checkpoint.period-s', '--checkpoint.keep-last', '--checkpoint.replay'"),
    ("--gamma 1.5", "gamma = 1.5: must be a number from 0 to 1."),
    ("--gamma nan", "gamma = nan: must be a number from 0 to 1."),
    ("--gamma", "'--gamma' needs a value: --algorithm.gamma must be a number from 0 to 1."),
    ("--gamma --seed 1", "'--gamma' needs a value"),
    ("--learning-rate inf", "learning_rate = inf: must be a number above 0."),
    ("--num-envs 0", "num_envs = 0: must be a whole number of at least 1, or 'auto'."),
    ("--num-envs 2.5", "num_envs = 2.5: must be a whole number of at least 1, or 'auto'."),
    ("--num-actors no", "num_actors = no: must be a whole number of at least 1, or 'auto'."),
    ("--hidden 64,0", "hidden = 64,0: must be values separated by commas (each a whole number"),
    ("--engine dask", "engine = dask: must be one of 'local', 'inline', 'virtual', 'ray', 'mpi'."),
    ("--tensorboard maybe", "tensorboard = maybe: must be true or false."),
    ("--no-tensorboard true", "'--no-tensorboard' takes no value, but 'true' follows it."),
    ("--no-gamma", "Unknown setting '--no-gamma'."),
    ("--algorithm pppo", "Unknown algorithm 'pppo'."),
    ("--env-kwargs 3", "env_kwargs = 3: must be a mapping"),
    ("--env-kwargs.a [1", "Cannot read the value of '--env-kwargs.a'"),
    ("lunarlander-dqn", "here 'cartpole-ppo', but 'lunarlander-dqn' belongs to no option."),
    ("gamma=0.9", "but 'gamma=0.9' belongs to no option. gamma=0.9: write --gamma 0.9."),
    ("--seed 3 learning_rate=1", "write --learning-rate 1."),
    ("--env-kwargs.x=3 y=4", "but 'y=4' belongs to no option. y=4: write --env-kwargs.y 4."),
    ("--env-kwargs a=1 b=2", "but 'b=2' belongs to no option. b=2: write --env-kwargs.b 2."),
    ("--search gamma=0.9:1 epochs=4:20", "epochs=4:20: write --search epochs=4:20."),
    ("--hidden 64 64", "but '64' belongs to no option. Lists have no spaces: --hidden 64,64"),
    ("--hidden=64 64 8", "but '64', '8' belong to no option. Lists have no spaces: --hidden 64,64"),
    ("--styles tianji, serial", "'serial' belongs to no option. Lists have no spaces: --styles t"),
    ("--seed 3 4", "but '4' belongs to no option. Settings are written --key value."),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_a_mistake_is_told_in_one_sentence(line: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        resolve_line(f"cartpole-ppo {line}")
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_preset_that_comes_last_is_not_called_the_extra_word() -> None:
    with pytest.raises(UsageError, match=r"here 'cartpole-ppo', but 'gamma=0\.9' belongs"):
        resolve_line("gamma=0.9 cartpole-ppo")
    with pytest.raises(UsageError, match=r"Lists have no spaces: --hidden 64,32$"):
        resolve_line("--hidden 64, 32 cartpole-ppo")


def test_a_repeated_option_is_told() -> None:
    found = resolve_line("cartpole-ppo --style tianji --seed 1 --style serial --keep_last=3")
    assert found.config.style == "serial"
    assert found.notes == ("--style is given 2 times; the last one counts: serial.",)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "--learning-rate 1e-3 --algorithm.learning_rate 2e-3",
            "--learning-rate and --algorithm.learning_rate are one setting; the last one counts: "
            "2e-3.",
        ),
        (
            "--no-normalize.rewards --normalize.rewards",
            "--no-normalize.rewards and --normalize.rewards are one setting; the last one counts: "
            "--normalize.rewards.",
        ),
        ("--decoupled --decoupled", "--decoupled is given 2 times; the last one counts."),
        ("--env-kwargs.a 1 --env-kwargs.a 2", "--env-kwargs.a is given 2 times; the last one cou"),
    ],
)
def test_two_options_for_one_setting_are_told(line: str, note: str) -> None:
    (found,) = resolve_line(f"cartpole-ppo {line}").notes
    assert found.startswith(note)


def test_keywords_of_an_environment_are_put_together_without_a_note() -> None:
    found = resolve_line(
        "cartpole-ppo --env-kwargs.c 3 --env-kwargs '{a: 1}' --env-kwargs '{b: 2}'"
    )
    assert found.config.env_kwargs == {"c": 3, "a": 1, "b": 2}
    assert found.notes == ()


def test_a_word_with_an_equals_sign_is_no_preset() -> None:
    told = "'gamma=0.9', 'seed=1' belong to no option. gamma=0.9: write --gamma 0.9. seed=1: write"
    with pytest.raises(UsageError, match=f"^{re.escape(told)}"):
        resolve_line("--env CartPole-v1 gamma=0.9 seed=1")
    with pytest.raises(UsageError, match=r"^'gamma=0\.9' belongs to no option"):
        resolve_line("gamma=0.9")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(UsageError) as told:
        resolve_line("--gama 1 --seed -1 --num-envs 0 --num-actors x --period-s 3")
    text = str(told.value)
    assert text.startswith("5 mistakes")
    assert all(name in text for name in ("--gama", "seed", "num_envs", "num_actors", "--period-s"))


def test_an_unknown_algorithm_hides_no_other_mistake() -> None:
    with pytest.raises(UsageError) as told:
        resolve_line("--algorithm pppo --setting-of-pppo 3 --num-envs 0 --engine")
    text = str(told.value)
    assert text.startswith("3 mistakes")
    assert all(part in text for part in ("'pppo'", "num_envs = 0", "'--engine' needs a value"))
    assert "--setting-of-pppo" not in text


def test_a_setting_of_another_algorithm_says_whose_it_is() -> None:
    with pytest.raises(UsageError, match=r"\(ppo has it; this run uses dqn\.\)"):
        resolve_line("--algorithm dqn --gae-lambda 0.9")


def test_python_takes_flat_nested_and_dotted_names() -> None:
    flat = make_config("cartpole-ppo", gamma=0.9, keep_last=7)
    nested = make_config("cartpole-ppo", algorithm={"gamma": 0.9}, checkpoint={"keep_last": 7})
    dotted = make_config("cartpole-ppo", **{"algorithm.gamma": 0.9, "checkpoint.keep_last": 7})
    assert flat == nested == dotted
    assert (flat.algorithm.gamma, flat.checkpoint.keep_last) == (0.9, 7)


def test_python_takes_records() -> None:
    checkpoint = CheckpointConfig(keep_last=9)
    assert make_config(None, checkpoint=checkpoint).checkpoint == checkpoint


def test_python_and_the_command_line_agree() -> None:
    line = "cartpole-ppo --gamma 0.97 --hidden 8,8 --seed 5 --env-kwargs.a 1"
    assert resolve_line(line).config == make_config(
        "cartpole-ppo", gamma=0.97, hidden=(8, 8), seed=5, env_kwargs={"a": 1}
    )


def test_python_names_are_suggested_as_python_writes_them() -> None:
    with pytest.raises(UsageError, match="Did you mean 'learning_rate'"):
        make_config(None, learning_rat=1)
    with pytest.raises(UsageError, match="algorithm = 3: must be text"):
        make_config(None, algorithm=3)


def test_nested_environment_keywords_stay_as_they_are() -> None:
    keywords = {"goal": {"x-y": 1}, "size": 3}
    assert make_config(None, env_kwargs=keywords).env_kwargs == keywords


def test_objects_are_refused_as_environment_keywords() -> None:
    with pytest.raises(UsageError, match="env_kwargs: goal is an object; numbers, text"):
        make_config(None, env_kwargs={"goal": object()})


def test_no_arguments_mean_ppo_on_cartpole() -> None:
    assert resolve_line("").config == make_config("cartpole-ppo")
    assert make_config(None, gamma=0.5) == make_config("cartpole-ppo", gamma=0.5)


def test_an_algorithm_alone_means_its_cartpole_preset() -> None:
    resolved = resolve_line("--algorithm dqn")
    assert resolved.config == make_config("cartpole-dqn")
    assert resolved.notes == ()


def test_another_environment_alone_starts_from_the_schema() -> None:
    config = make_config(None, env="MountainCar-v0")
    assert (config.algorithm.name, config.target_return) == ("ppo", None)
    assert config.num_envs == type(config).model_fields["num_envs"].default


def test_another_algorithm_drops_the_numbers_of_the_preset_and_says_so() -> None:
    resolved = resolve_line("cartpole-ppo --algorithm dqn --learning-rate 0.5")
    defaults = type(resolved.config.algorithm)(name="dqn", learning_rate=0.5)
    assert resolved.config.algorithm == defaults
    assert resolved.config.target_return == make_config("cartpole-ppo").target_return
    assert "'cartpole-ppo' are for ppo and are dropped" in resolved.notes[0]


def test_another_environment_drops_the_target_of_the_preset_and_says_so() -> None:
    resolved = resolve_line("cartpole-ppo --env MountainCar-v0")
    assert resolved.config.target_return is None
    assert resolved.config.algorithm == make_config("cartpole-ppo").algorithm
    assert (
        "Preset 'cartpole-ppo' is for CartPole-v1: its target_return is not used"
        in resolved.notes[0]
    )


def test_a_preset_that_fits_is_named() -> None:
    assert "tianji train acrobot-ppo" in resolve_line("--env Acrobot-v1").notes[0]


def test_notes_reach_people_who_call_from_python(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tianji"):
        make_config("cartpole-ppo", algorithm="dqn")
    assert "are dropped" in caplog.text


def test_a_list_of_environments_takes_the_place_of_the_one_of_the_preset() -> None:
    found = resolve_line("malenia-nigt --envs A-v1,B-v1")
    assert found.config.tasks == ("A-v1", "B-v1")
    assert found.config.target_return is None, "it was CartPole's"
    assert any("A-v1, B-v1" in note for note in found.notes)


def test_one_environment_takes_the_place_of_the_list_of_a_preset(tmp_path: Path) -> None:
    preset = tmp_path / "two.yaml"
    preset.write_text("algorithm: malenia-nigt\nenvs: [A-v1, B-v1]\nenv_kwargs: {id: C-v1}\n")
    assert resolve_line(str(preset)).config.tasks == ("A-v1", "B-v1")
    found = resolve_line(f"{preset} --env D-v1").config
    assert (found.tasks, found.env_kwargs) == (("D-v1",), {})


def test_an_algorithm_that_has_a_preset_of_its_name_starts_from_it() -> None:
    assert resolve_line("--algorithm rennala-nigt").config == resolve_line("rennala-nigt").config
    alone = resolve_line("--algorithm rennala-nigt --envs A-v1,B-v1").config
    assert alone.target_return is None
