from __future__ import annotations

from pathlib import Path

import pytest

from tianji.config.files import load_config, parse_yaml, save_config
from tianji.config.overrides import make_config
from tianji.errors import UsageError


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    config = make_config(
        "cartpole-ppo", hidden=(8, 4), env_kwargs={"b": (1, 2.5), "c": {"d": None}}, max_wall_s=3
    )
    save_config(config, tmp_path / "config.yaml")
    assert load_config(tmp_path / "config.yaml") == config
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_every_default_is_written_down(tmp_path: Path) -> None:
    save_config(make_config(None), tmp_path / "config.yaml")
    data = parse_yaml((tmp_path / "config.yaml").read_text(), "config")
    assert data["checkpoint"]["keep_last"] == 3
    assert data["algorithm"]["max_grad_norm"] > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [("algorithm: ppo\nfoo: 1", "is not a valid config of a run: foo"), ("[1]", "YAML mapping")],
)
def test_a_config_that_does_not_fit_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        load_config(path)


def test_numbers_in_scientific_notation_are_numbers() -> None:
    assert parse_yaml("[1e-3, 2E6, -1e+2, .5e1]", "a list") == [1e-3, 2e6, -100.0, 5.0]


def test_yaml_builds_no_objects() -> None:
    with pytest.raises(UsageError, match="Cannot read"):
        parse_yaml("!!python/object/apply:os.getcwd []", "a trap")
