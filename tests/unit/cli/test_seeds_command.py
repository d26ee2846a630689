"""`tianji train --seeds N`."""

import json
from pathlib import Path

import pytest

from tianji.cli.main import main
from tianji.cli.pages import closing as module
from tianji.cli.pages.closing import show_seeds, take_seeds
from tianji.config.run import RunConfig
from tianji.config.values import split_tokens
from tianji.observe.summary import build_summary
from tianji.seeds.summary import sum_up


def summary_of(seed, **facts):
    config = RunConfig(algorithm="ppo", seed=seed, target_return=475.0)
    cause = {"first_cause": "actor-0: it broke"}
    return build_summary(config, Path(f"runs/five/seed-{seed}"), {**facts, **cause})


REACHED = {
    "stopped_because": "target_reached", "mean_return_100": 480.2, "time_to_target_s": 2.5,
    "wall_s": 2.6, "env_steps": 41_000, "checkpoint": "c",
}  # fmt: skip


def shown(report, capsys):
    outcome = show_seeds(report)
    return outcome.exit_code, " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_every_seed_has_a_row_and_the_whole_a_median(capsys):
    runs = [summary_of(1, **REACHED), summary_of(2, **{**REACHED, "mean_return_100": 490.0})]
    code, text = shown(sum_up(runs, [], Path("runs/five"), 9.0), capsys)
    assert code == 0
    assert "1 target reached 480.2 41,000 2.5 s 2.6 s" in text
    assert "median 485.1, from 480.2 to 490 (2 seeds)" in text
    assert "tianji eval five/seed-2 evaluate the best seed" in text


def test_a_failed_seed_is_told_and_the_others_are_not_lost(capsys):
    runs = [summary_of(1, **REACHED), summary_of(2, stopped_because="failed")]
    code, text = shown(sum_up(runs, [], Path("runs/five"), 9.0), capsys)
    assert code == 1
    assert "seed 2 failed actor-0: it broke" in text and "480.2" in text


def test_an_interrupted_command_names_what_to_resume_and_what_never_started(capsys):
    interrupted = {**REACHED, "stopped_because": "interrupted"}
    code, text = shown(sum_up([summary_of(1, **interrupted)], [2, 3], Path("r/f"), 9.0), capsys)
    assert code == 130
    assert "tianji resume five/seed-1 continue seed 1" in text
    assert "not started seed 2, 3" in text


@pytest.mark.parametrize("verb", ["plan", "simulate", "resume"])
def test_other_commands_say_that_seeds_belong_to_train(verb, capfd):
    assert main([verb, "--seeds", "3", "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert (
        "--seeds is an option of `tianji train` and `tianji compare`" in error
        and "mean" not in error
    )


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", ""])
def test_a_number_of_seeds_must_be_one(value, capfd):
    assert main(["train", f"--seeds={value}", "--json"]) == 2
    assert "must be a whole number from 1 to 1000" in json.loads(capfd.readouterr().out)["error"]


def test_the_option_is_taken_from_the_settings(monkeypatch, capfd):
    _, asked = split_tokens(["--seeds", "5", "--seed", "3"])
    num_seeds, others = take_seeds(asked)
    assert num_seeds == 5 and [a.written for a in others] == ["--seed"]
    report = sum_up([summary_of(1, **REACHED)], [], Path("runs/five"), 1.0)
    asked_for = []

    def train_seeds(config, num_seeds, screen, on_accepted):
        asked_for.append((config.seed, num_seeds))
        return report

    monkeypatch.setattr("tianji.seeds.train.train_seeds", train_seeds)
    assert main(["train", "cartpole-ppo", "--seeds", "2", "--seed", "7", "--json"]) == 0
    assert asked_for == [(7, 2)]
    assert json.loads(capfd.readouterr().out) == report
    assert module.OPTION == "seeds"


def test_a_folder_with_a_space_is_quoted_in_the_commands_to_try(capsys):
    run = {
        **summary_of(1, **{**REACHED, "stopped_because": "interrupted"}),
        "run_dir": "runs/a b/s",
    }
    _, text = shown(sum_up([run], [], Path("runs/a b"), 9.0), capsys)
    assert "tianji eval 'a b/s'" in text and "tianji resume 'a b/s'" in text


def test_a_narrow_terminal_still_shows_seed_result_and_whole_paths(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "44")
    folder = Path("runs") / ("a-very-long-name-" * 4)
    _, text = shown(sum_up([summary_of(7, **REACHED)], [], folder, 9.0), capsys)
    assert "7 target reached 480.2" in text and "…" not in text


@pytest.mark.parametrize("words", [["--seeds"], ["--seeds", "100000000"]])
def test_no_number_and_far_too_many_seeds_are_refused(words, capfd):
    assert main(["train", *words, "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert "a whole number from 1 to 1000" in error and "None" not in error
