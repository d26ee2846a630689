"""`tianji programs`, and --style where runs are trained and planned."""

import json

import pytest

from tianji.cli.main import main
from tianji.cli.pages.program import shorten
from tianji.programs.registry import STYLES


def told(capfd):
    return json.loads(capfd.readouterr().out)


def test_styles_are_listed_with_their_sentence(capfd):
    assert main(["programs", "--json"]) == 0
    styles = told(capfd)["styles"]
    assert [style["name"] for style in styles] == list(STYLES)
    assert {style["kind"] for style in styles} <= {"style", "ablation"}
    assert main(["programs"]) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert all(style["about"] in said for style in styles)


def test_styles_and_ablations_have_headings_of_their_own(capfd):
    assert main(["programs"]) == 0
    said = capfd.readouterr().err
    styles, ablations = said.split("Ablations: ")
    names = {
        kind: [n for n, s in STYLES.items() if s.kind == kind] for kind in ("style", "ablation")
    }
    assert all(f"\n{name} " in styles for name in names["style"])
    assert all(f"\n{name} " in ablations for name in names["ablation"])


def test_a_program_of_several_learners_says_which_one_is_shown(capfd):
    assert main(["programs", "gala"]) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert "Workers of cartpole-ppo on this machine: group 0 of 2, learner 0 of 2" in said
    assert "1/learner is learner 1" in said
    assert main(["programs", "gala", "--json"]) == 0
    assert told(capfd)["num_learners"] == 2
    assert main(["programs", "seed"]) == 0
    assert "learner 0" not in capfd.readouterr().err


def test_a_program_is_printed_with_its_workers_and_wires(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["programs", "seed"]) == 0
    said = capfd.readouterr().err
    assert "buffer, learner; second thread: inference" in said
    assert "slot, row; outputs, version" in said
    assert "Differences from tianji" in said


def test_a_program_is_that_of_the_preset(capfd):
    assert main(["programs", "apex", "--json"]) == 0
    assert told(capfd)["preset"] == "cartpole-dqn"
    assert main(["programs", "tianji", "--preset", "rennala-nigt", "--json"]) == 0
    wires = [wire["name"] for wire in told(capfd)["program"]["wires"]]
    assert "sum-0" in wires


@pytest.mark.parametrize("words", [["nothing"], ["impala", "--preset", "cartpole-dqn"]])
def test_what_does_not_fit_is_refused(words, capfd):
    assert main(["programs", *words, "--json"]) == 2
    assert "style" in told(capfd)["error"]


def test_a_run_is_planned_in_its_style(capfd):
    assert main(["plan", "cartpole-ppo", "--style", "serial", "--json"]) == 2
    assert "engine = inline: it runs in one process" in told(capfd)["error"]


def test_a_run_is_trained_in_its_style(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--style", "serial", "--max-env-steps", "1000", "--no-tensorboard", "--run", "one"]
    assert main(["train", "cartpole-ppo", *words, "--json"]) == 0
    assert told(capfd)["style"] == "serial"
    assert "style: serial" in (tmp_path / "runs/one/config.yaml").read_text()
    assert main(["resume", "one", "--engine", "local", "--json"]) == 2
    assert "style is 'serial', and engine is 'local'" in told(capfd)["error"]


def test_names_with_numbers_are_shortened():
    assert shorten(["actor-0", "actor-1"]) == "actor-0, actor-1"
    assert shorten(["actor-0", "actor-1", "actor-2", "buffer"]) == "actor-0 ... actor-2, buffer"
