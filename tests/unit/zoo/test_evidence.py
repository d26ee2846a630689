"""What people read of the results that come with the package."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tianji.cli.main import main
from tianji.cli.pages.zoo import COLUMNS, zoo_page
from tianji.config.files import list_presets, load_preset
from tianji.errors import TianjiError
from tianji.zoo.evidence import (
    Reached,
    Row,
    WallTime,
    count_verdicts,
    estimate_text,
    evidence_of,
    expectation,
    read_zoo,
    return_text,
)

OURS: Reached = {
    "seeds": 3, "returns": [1.0, 2.0, 3.0], "mean": 2.0, "iqm": 2.0, "low": 1.0, "high": 3.0,
    "trained_steps": 20_000, "train_s": 4.0, "machines": ["AMD EPYC"],
}  # fmt: skip
ROW: Row = {
    "preset": "cartpole-ppo", "env": "CartPole-v1", "algorithm": "ppo", "env_steps": 20_000,
    "random": 0.0, "doing_nothing": None, "tianji": OURS, "sb3": None, "verdict": None,
    "wall_time": None,
}  # fmt: skip


def test_a_sentence_says_what_to_expect_on_how_many_seeds() -> None:
    assert expectation(ROW) == (
        "Preset 'cartpole-ppo' has reached 2.00 (1.00 to 3.00) after 20,000 steps (interquartile "
        "mean of 3 seeds with its 95 % interval, greedy actions)."
    )


def test_one_seed_has_no_interval() -> None:
    one: Row = {**ROW, "tianji": {**OURS, "seeds": 1, "low": None, "high": None}}
    assert "has reached 2.00 after 20,000 steps (1 seed, greedy actions)" in expectation(one)


def test_verdicts_are_counted() -> None:
    rows: list[Row] = [ROW, {**ROW, "verdict": "passed"}, {**ROW, "verdict": "not passed"}]
    assert count_verdicts(rows) == "Of 2 rows with a peer: 1 passed, 1 not passed."
    assert count_verdicts([ROW]) == "Of 0 rows with a peer: none."


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (12.34, "12.3"), (0.954, "0.95"), (-0.001, "0.00")]
)
def test_returns_have_three_digits(value: float, text: str) -> None:
    assert return_text(value) == text


@pytest.mark.parametrize("row", read_zoo()["rows"], ids=lambda row: str(row["preset"]))
def test_every_row_is_about_a_preset_that_exists(row: Row) -> None:
    config = load_preset(row["preset"]).config
    assert (config["env"], config["algorithm"]["name"]) == (row["env"], row["algorithm"])
    assert len(row["tianji"]["returns"]) == row["tianji"]["seeds"]


def test_the_zoo_is_printed_for_people_and_for_programs(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["zoo", "--json"]) == 0
    out, err = capfd.readouterr()
    rows = json.loads(out)["rows"]
    assert "cartpole-ppo" in [row["preset"] for row in rows]
    assert all(row["preset"] in err for row in rows), "no name is cut"
    assert all(estimate_text(row["tianji"]) in err for row in rows), "no number is cut"


def test_the_presets_that_are_named_are_shown_alone(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "hopper-sac", "cartpole-ppo", "--json"]) == 0
    out, err = capfd.readouterr()
    assert [row["preset"] for row in json.loads(out)["rows"]] == ["hopper-sac", "cartpole-ppo"]
    assert "hopper-sac" in err and "acrobot-ppo" not in err


def test_a_preset_that_the_zoo_does_not_have_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "hoper-sac"]) == 2
    told = capfd.readouterr().err
    assert "The zoo has no preset 'hoper-sac'. Did you mean 'hopper-sac'? It has: " in told


def printed(row: Row) -> str:
    console = Console(file=StringIO(), width=120)
    with console.capture() as captured:
        console.print(zoo_page({**read_zoo(), "rows": [row]}))
    return captured.get()


def test_the_time_of_a_row_is_our_seconds_over_those_of_the_peer() -> None:
    time: WallTime = {
        "env_steps": 20_000, "turns": 3, "tianji_s": 2.0, "sb3_s": 8.0,
        "tianji_whole_s": 3.0, "sb3_whole_s": 9.0,
    }  # fmt: skip
    row: Row = {**ROW, "sb3": OURS, "verdict": "passed", "wall_time": time}
    assert " 0.25 " in printed(row)


@pytest.mark.parametrize(("doing_nothing", "shown"), [(None, "-51.2"), (994.87, "995")])
def test_a_row_shows_what_a_policy_has_to_exceed(doing_nothing: float | None, shown: str) -> None:
    row: Row = {**ROW, "random": -51.24, "doing_nothing": doing_nothing}
    header, line, *_ = printed(row).splitlines()
    assert line.split()[header.split().index("baseline")] == shown


def test_no_two_columns_have_the_same_name() -> None:
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert "  3, 5  " in printed({**ROW, "sb3": {**OURS, "seeds": 5}})


def test_presets_show_their_evidence(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    out, err = capfd.readouterr()
    evidence = {one["name"]: one["evidence"] for one in json.loads(out)["presets"]}
    assert evidence["cartpole-ppo"]["tianji"]["seeds"] >= 1
    assert evidence["cartpole-gorila"] is None
    assert "has reached" in err


@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        (["cartpole-ppo", "--gamma", "0.9"], True),
        (["--env", "CartPole-v1"], True),
        (["cartpole-gorila"], False),
    ],
)
def test_a_run_says_what_to_expect_where_there_is_evidence(
    words: list[str],
    is_told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    row = evidence_of("cartpole-ppo")
    assert row is not None

    told: list[str] = []

    def train_config(*_: Any, expectation: str, **__: Any) -> None:
        told.append(expectation)  # it says so once it has accepted the config
        raise TianjiError("not trained here")

    monkeypatch.setattr("tianji.run.train_config", train_config)
    assert main(["train", *words]) == 1
    assert "has reached" not in capfd.readouterr().err
    assert (expectation(row) in told[0]) == bool(told[0]) == is_told


def test_all_presets_of_the_zoo_are_listed() -> None:
    assert {row["preset"] for row in read_zoo()["rows"]} <= set(list_presets())
