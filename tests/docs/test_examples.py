"""Every example, in its short form."""

from __future__ import annotations

import json
import runpy
import sys

import pytest

import tianji
from tests.docs.pages import EXAMPLES, NEW_ALGORITHM, train_inline
from tianji.cli.main import main

SCRIPTS = sorted(EXAMPLES.glob("*.py"))
SHORT = "4000"
MOST_LINES = 60


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [script.name, SHORT])
    if script != SCRIPTS[0]:
        monkeypatch.setattr(tianji, "train", train_inline)
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    assert "DIFFERENT" not in printed


def test_an_algorithm_in_one_folder_trains_and_is_used_by_name(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(NEW_ALGORITHM))
    words = ["--algorithm", "reinforce.spec:ALGORITHM", "--env", "CartPole-v1", "--run", "mine"]
    assert main(["train", *words, "--max-env-steps", "40000", "--num-envs", "16", "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    assert summary["env_steps"] >= 40_000
    assert summary["mean_return_100"] > 30, f"random actions reach about 20: {summary}"
    assert main(["eval", "mine", "--episodes", "2"]) == 0


def test_examples_are_short():
    files = [*SCRIPTS, *NEW_ALGORITHM.rglob("*.py")]
    lengths = {path.name: len(path.read_text().splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_every_example_is_there():
    assert [path.stem[:2] for path in SCRIPTS] == ["01", "02", "03", "05"]
    assert NEW_ALGORITHM.is_dir()
