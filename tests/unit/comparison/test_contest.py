"""Who takes part in a comparison, and in which order."""

import json

import pytest

import tianji
from tests.fakes.comparison import contest
from tianji.cli.main import main
from tianji.comparison.contest import refusal
from tianji.comparison.styles import NUM_SEEDS, style_contest
from tianji.config.values import from_mapping
from tianji.errors import UsageError
from tianji.programs.registry import STYLES


def styles(*names, preset="cartpole-ppo", num_seeds=2, **asked):
    return style_contest(preset, names, num_seeds, from_mapping(asked), "tianji compare ...")


def test_every_contestant_has_one_turn_for_each_seed():
    turns = contest("a", "b", "c", seeds=(1, 2, 3)).turns
    assert [turn.config.seed for turn in turns] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    for place in (0, 3, 6):
        assert {turn.contestant for turn in turns[place : place + 3]} == {"a", "b", "c"}


def test_contestants_do_not_always_come_in_the_same_order():
    turns = contest("a", "b", "c", seeds=tuple(range(1, 9))).turns
    orders = {tuple(turn.contestant for turn in turns[i : i + 3]) for i in range(0, 24, 3)}
    assert len(orders) > 1


def test_the_folder_of_a_run_names_contestant_and_seed():
    assert {turn.name for turn in contest("a", "b", seeds=(4,)).turns} == {"a-s4", "b-s4"}
    assert all(turn.config.run == turn.name for turn in contest("a", "b").turns)


def test_a_mistake_of_all_contestants_is_told_once():
    assert str(refusal({"a": "No.", "b": "No."}, 2)) == "No."
    assert str(refusal({"a": "No.", "b": "Never."}, 2)) == "a: No.\nb: Never."
    assert str(refusal({"a": "No."}, 2)) == "a: No."


def test_only_the_style_changes_between_contestants():
    found = styles("tianji", "serial", gamma=0.9, seed=7).contest
    assert [one.config.style for one in found.contestants] == ["tianji", "serial"]
    assert [one.config.algorithm.gamma for one in found.contestants] == [0.9, 0.9]
    assert found.reference.name == "tianji" and found.seeds == (7, 8)
    tianji, serial = found.contestants
    assert tianji.differences == STYLES["tianji"].differences
    assert serial.differences[:-1] == STYLES["serial"].differences


def test_an_environment_without_its_version_gets_the_newest_and_a_note():
    found = styles("tianji", "serial", env="Acrobot")
    assert {one.config.env for one in found.contest.contestants} == {"Acrobot-v1"}
    assert "'Acrobot-v1'" in found.notes[0]


def test_settings_that_are_not_those_of_the_reference_are_listed():
    def told(**asked):
        *_, settings = styles("tianji", "gala", **asked).contest.contestants[1].differences
        return settings

    assert told().startswith("Settings, with those of tianji in brackets: num_groups 2 (1), comb")
    assert told().endswith("and num_envs 16 (32).")
    groups = told(num_groups=2)
    assert "combine gossip (gradients)" in groups and "num_envs" not in groups
    assert "num_groups 2 (1)" in told(num_envs=7) and "num_envs" not in told(num_envs=7)
    same = styles("tianji", "unplanned", **{"plan.source": "rule"}).contest.contestants[1]
    assert "plan.source" not in " ".join(same.differences), "it has the same value"


def test_settings_of_the_algorithm_that_are_not_those_of_the_reference_are_listed():
    *_, told = styles("tianji", "a3c").contest.contestants[1].differences
    assert "algorithm.unroll_length 20 (" in told


def test_enough_seeds_for_a_claim_are_the_default():
    assert NUM_SEEDS == 5


@pytest.mark.parametrize(
    ("names", "preset", "told"),
    [
        (("tianji", "impalla"), "cartpole-ppo", "Unknown style 'impalla'. Did you mean 'impala'"),
        (("tianji",), "cartpole-ppo", "names only tianji, and a comparison needs at least two"),
        ((), "cartpole-ppo", "names no style, and a comparison needs at least two"),
        (("tianji", "serial", "tianji"), "cartpole-ppo", "names tianji more than once"),
        (("tianji", "serial"), "cartpole-pqo", "Unknown preset 'cartpole-pqo'. Did you mean"),
        (("tianji", "serial"), None, "Name a preset to compare styles with"),
        (("tianji", "apex"), "cartpole-ppo", "apex: style is 'apex', and the algorithm is ppo"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(names, preset, told):
    with pytest.raises(UsageError, match=told):
        styles(*names, preset=preset)


def test_a_style_beside_the_styles_is_refused():
    with pytest.raises(UsageError, match="--styles names those to compare"):
        styles("tianji", "serial", style="impala")


def test_refusals_come_before_any_folder_is_made(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words = ["compare", "cartpole-ppo", "--styles", "tianji,serial", "--env", "No-Such-Env-v0"]
    assert main([*words, "--json"]) == 2
    told = json.loads(capfd.readouterr().out)["error"]
    assert "No-Such-Env-v0" in told and told.count("No-Such-Env") == told.count("No-Such-Env-v0")
    assert not told.startswith("tianji:"), "all styles have the same mistake"
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_is_refused(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    words = ["compare", "cartpole-ppo", "--styles", "tianji,impala", "--engine", "ray"]
    assert main([*words, "--json"]) == 2
    assert "a comparison runs on this machine" in json.loads(capfd.readouterr().out)["error"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"styles": ["tianji", "serial"], "seeds": 0}, "seeds is 0"),
        ({"styles": "tianji,serial"}, "name the styles in a list"),
    ],
)
def test_mistakes_of_a_call_from_python_are_told_in_words(given, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=told):
        tianji.compare("cartpole-ppo", **given)
    assert list(tmp_path.iterdir()) == []
