"""Help pages, and the other pages that only tell."""

from __future__ import annotations

import json

import pytest

from tianji.cli.main import main


def test_help_in_json_lists_every_setting(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "cartpole-dqn", "--help", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    options = {row["option"]: row for row in report["settings"]}
    assert options["--algorithm"]["default"] == "dqn"
    assert options["--gamma"]["allowed"] == "a number from 0 to 1"
    assert options["--[no-]tensorboard"]["path"] == "observe.tensorboard"
    assert "--env-kwargs.KEY" in options


def test_help_shows_what_a_preset_would_use(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "acrobot-ppo", "--help"]) == 0
    assert "default: Acrobot-v1" in capfd.readouterr().out


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
