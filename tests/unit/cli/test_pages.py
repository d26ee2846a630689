"""Help pages, and the other pages that only tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tianji.cli.main import main
from tianji.config.files import save_config
from tianji.config.run import RunConfig


def test_help_in_json_lists_every_setting(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "cartpole-dqn", "--help", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    options = {row["option"]: row for row in report["settings"]}
    assert options["--algorithm"]["value"] == "dqn"
    assert options["--gamma"]["allowed"] == "a number from 0 to 1"
    assert options["--[no-]tensorboard"]["path"] == "observe.tensorboard"
    assert "--env-kwargs.KEY" in options


def test_help_shows_what_a_preset_would_use(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "acrobot-ppo", "--help"]) == 0
    assert "value: Acrobot-v1" in capfd.readouterr().out


def test_help_shows_the_values_that_this_command_would_use(
    capfd: pytest.CaptureFixture[str],
) -> None:
    command = ["train", "--env", "Acrobot-v1", "--gamma", "0.5", "--seeds", "3", "--help", "--json"]
    assert main(command) == 0
    rows = {row["path"]: row for row in json.loads(capfd.readouterr().out)["settings"]}
    assert rows["algorithm.gamma"]["value"] == 0.5
    assert rows["algorithm.gamma"]["default"] == 0.99
    assert rows["normalize.observations"]["value"] is True


def test_other_json_help_and_version_are_one_object_too(capfd: pytest.CaptureFixture[str]) -> None:
    for words, key in ((["--help"], "help"), (["--version"], "version"), ([], "help")):
        assert main([*words, "--json"]) == 0
        assert list(json.loads(capfd.readouterr().out)) == [key]


def test_presets_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    out, err = capfd.readouterr()
    names = [preset["name"] for preset in json.loads(out)["presets"]]
    assert "cartpole-ppo" in names
    assert all(name in err for name in names)


def test_help_of_resume_shows_the_values_of_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_config(RunConfig(algorithm="dqn", max_wall_s=77), tmp_path / "config.yaml")
    command = ["resume", str(tmp_path), "--target-return", "9", "--help", "--json"]
    assert main(command) == 0
    rows = {row["path"]: row for row in json.loads(capfd.readouterr().out)["settings"]}
    assert rows["max_wall_s"]["value"] == 77 and rows["target_return"]["value"] == 9
    assert "seed" not in rows
    assert main(["resume", "no-such-run", "--help"]) == 2


def test_an_empty_list_is_none_in_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    assert "value: ;" not in capfd.readouterr().out


def test_a_narrow_terminal_shows_whole_names_of_presets(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert main(["presets"]) == 0
    names = "".join(line[:15].strip() for line in capfd.readouterr().err.splitlines())
    assert "acrobot-rennala-nigt" in names
