from __future__ import annotations

from pathlib import Path

import pytest

from tianji.algorithms.registry import load_algorithm
from tianji.config.files import list_presets, load_preset, save_config
from tianji.config.overrides import make_config
from tianji.errors import UsageError

PROMISED = {
    "cartpole-ppo",
    "cartpole-dqn",
    "cartpole-apex",
    "pong-dqn",
    "pong-apex",
    "cartpole-impala",
    "cartpole-a3c",
    "cartpole-gorila",
    "acrobot-ppo",
    "lunarlander-dqn",
    "hopper-ppo",
    "pendulum-sac",
    "halfcheetah-sac",
    "hopper-sac",
    "cartpole-memory-ppo",
    "rennala-nigt",
    "malenia-nigt",
    "sync-nigt",
    "afedpg",
    "rennala-pg",
    "acrobot-rennala-nigt",
    "hopper-rennala-nigt",
    "humanoid-rennala-nigt",
    "walker2d-rennala-nigt",
    "reacher-rennala-nigt",
    "hopper-malenia-nigt",
}


def test_the_promised_presets_are_there() -> None:
    assert set(list_presets()) >= PROMISED


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_resolves_and_says_what_it_learns(name: str) -> None:
    preset = load_preset(name)
    config = make_config(name)
    cadence = load_algorithm(config.algorithm.name).cadence(config)
    assert cadence.warmup_steps + cadence.steps_per_version < config.max_env_steps
    assert preset.name == name
    assert preset.about.endswith(".")
    assert str(config.algorithm.name) in name
    assert config.env_kwargs.get("id", config.env) in preset.about
    assert config.target_return is not None


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'cartpole-ppo'.*Known: .*lunarlander-dqn"):
        load_preset("cartpoleppo")


@pytest.mark.parametrize("name", ["Hopper-v5", "ALE/Pong-v5", "chase:Chase", "minigrid:Empty-v0"])
def test_an_environment_in_place_of_a_preset_is_answered_with_its_option(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_preset(name)
    told = str(raised.value)
    assert told.startswith(f"Unknown preset '{name}'. To train on an environment of this name: ")
    assert f": tianji train --env {name};" in told
    assert "cartpole-gorila" not in told, "the list of all presets would hide it"


def test_a_file_with_a_version_in_its_name_is_read(tmp_path: Path) -> None:
    preset = tmp_path / "mine-v2"
    preset.write_text("algorithm: ppo\nenv: Acrobot-v1\n")
    assert load_preset(str(preset)).config["env"] == "Acrobot-v1"


def test_a_file_of_ones_own_works_in_place_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("about: Mine.\nconfig: {env: Pendulum-v1, gamma: 9e-1, algorithm: ppo}\n")
    config = make_config(str(path), seed=4)
    assert (config.env, config.algorithm.gamma, config.seed) == ("Pendulum-v1", 0.9, 4)


def test_the_config_of_a_run_is_a_preset_too(tmp_path: Path) -> None:
    config = make_config("cartpole-dqn", seed=9)
    save_config(config, tmp_path / "config.yaml")
    assert make_config(str(tmp_path / "config.yaml")) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("config: {gama: 1}", "Preset '.*mine.yaml': Unknown setting 'gama'. Did you mean 'gamma'"),
        ("config: {gamma: 3}", "gamma = 3: must be a number from 0 to 1"),
        ("config: 3", "'config' of preset .* must be a mapping"),
        ("- a", "has no settings"),
        ("a: [", "Cannot read preset"),
        ("config: {}\nseed: 3", "keys other than name, about and config: seed"),
    ],
)
def test_mistakes_in_a_file_name_the_file_or_the_setting(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        make_config(str(path))


def test_a_missing_file_is_told() -> None:
    with pytest.raises(UsageError, match=r"Cannot read 'nowhere/mine.yaml'"):
        load_preset("nowhere/mine.yaml")
