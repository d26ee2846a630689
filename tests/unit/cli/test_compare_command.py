"""`tianji compare`: what it prints, and how it ends."""

import json

import pytest

import tianji
from tests.fakes.comparison import contestant, run_figures
from tianji.cli.main import main
from tianji.cli.pages.compare import show_comparison
from tianji.comparison import compare as module
from tianji.comparison.report import style_figures
from tianji.comparison.words import notes, say_all


def comparison(runs, names=("tianji", "impala"), missing=(), target=475.0, command=None):
    contestants = [contestant(name, target_return=target) for name in names]
    styles = style_figures(contestants, runs)
    return {
        "command": command or "tianji compare cartpole-ppo --styles tianji,impala",
        "env": "CartPole-v1", "target_return": target, "reference": names[0], "seeds": [1, 2],
        "others_cores": 0.0, "missing": list(missing), "styles": styles,
        "says": say_all(styles, target), "notes": notes(styles, missing, target, 50, 0.0),
        "time": "2026-11-17T04:00:00", "commit": "abc", "machine": {"cpu": "a CPU", "cores": 2},
        "versions": {}, "run_dir": "runs/mine", "picture": "runs/mine/comparison.png",
        "settings": {}, "runs": runs,
    }  # fmt: skip


def runs(*styles, seeds=(1, 2), **changes):
    return [run_figures(style, seed, **changes) for style in styles for seed in seeds]


@pytest.fixture
def shown(capsys, monkeypatch):
    def show(report, columns=100):
        monkeypatch.setenv("COLUMNS", str(columns))
        outcome = show_comparison(report)
        return outcome.exit_code, capsys.readouterr().err

    return show


def test_every_style_has_a_row_of_what_it_reached_and_of_what_it_used(shown):
    code, text = shown(comparison(runs("tianji", "impala")), 120)
    assert code == 0
    rows = [" ".join(line.strip("│ ").split()) for line in text.splitlines()]
    assert "impala 2 of 2 2 60.0k 480 490 0.5" in rows
    assert "impala 30.0k 90.0k 1 1 90 % 90 %" in rows
    assert "[2, 2] [60.0k, 60.0k] [480, 480] [490, 490] [0.5, 0.5]" in rows


def test_the_share_of_the_bound_has_a_column_where_it_is_known(shown):
    bound = {"actors_alone": 9e4, "learner_alone": 4e4, "both_never_idle": 8e4}
    _, text = shown(comparison([*runs("tianji", bound=bound), *runs("impala")]))
    rows = [" ".join(line.strip("│ ").split()) for line in text.splitlines()]
    assert "tianji 30.0k 90.0k 1 1 90 % 90 % 0.75" in rows
    assert "impala 30.0k 90.0k 1 1 90 % 90 % -" in rows


def test_words_differences_notes_and_files_follow(shown):
    _, text = shown(comparison(runs("tianji", "impala")))
    flat = " ".join(text.replace("│", " ").split())
    assert "It reaches 475 after 2.0 s and 60.0k steps." in flat
    assert "What else differs" in flat and "Loss: that of impala." in flat
    assert "2 seeds cannot support a claim about returns" in flat
    assert "runs/mine/comparison.png" in flat
    assert "tianji status mine/impala-s2" in flat


def test_what_is_missing_can_be_continued(shown):
    code, text = shown(comparison(runs("tianji"), missing=["impala-s1", "impala-s2"]), 120)
    assert code == 130
    flat = " ".join(text.replace("│", " ").split())
    assert "tianji compare cartpole-ppo --styles tianji,impala --run mine" in flat
    assert "run the missing 2 runs" in flat and "No run of it has come to its end." in flat


def test_the_command_to_continue_names_the_folder_once(shown):
    command = "tianji compare cartpole-ppo --styles tianji,impala --run mine"
    _, text = shown(comparison(runs("tianji"), missing=["impala-s1"], command=command), 120)
    assert text.count("--run mine") == 1


def test_a_failure_is_told_with_its_cause(shown):
    broken = run_figures("impala", 1, stopped_because="failed", first_cause="actor-0: it broke")
    code, text = shown(comparison([*runs("tianji"), broken], missing=["impala-s1"]))
    assert code == 1
    assert "impala-s1 failed" in text and "actor-0: it broke" in text


def test_without_a_target_no_row_speaks_of_one(shown):
    ran = runs("tianji", "impala", time_to_target_s=None, steps_to_target=None)
    _, text = shown(comparison(ran, target=None))
    rows = [" ".join(line.strip("│ ").split()) for line in text.splitlines()]
    assert "impala 480 490 0.5" in rows and "target" not in text.partition("steps/s")[0]


def uneven(style, **changes):
    """Runs whose intervals have ends with many digits."""
    return [
        run_figures(
            style, seed, time_to_target_s=seed * 11.111, steps_to_target=seed * 13_579,
            mean_return_100=seed * 101.23, **changes,
        )
        for seed in (1, 2, 3)
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("target", [475.0, None])
def test_nothing_is_cut_on_a_narrow_terminal(shown, columns, target):
    bound = {"actors_alone": 9e4, "learner_alone": 4e4, "both_never_idle": 8e4}
    ran = [run for style in ("tianji", "sample-factory") for run in uneven(style, bound=bound)]
    _, text = shown(comparison(ran, ("tianji", "sample-factory"), target=target), columns)
    assert "…" not in text
    assert ("202.5" in text) == (target is None or columns == 120), "the final return"


@pytest.mark.parametrize(("columns", "is_told"), [(80, False), (120, True)])
def test_returns_that_have_no_column_are_not_explained(shown, columns, is_told):
    _, text = shown(comparison(runs("tianji", "impala")), columns)
    flat = " ".join(text.replace("│", " ").split())
    assert ("greedy returns are those of" in flat) == is_told
    assert ("their final returns say little" in flat) == is_told


def test_a_target_that_nobody_reached_has_no_times(shown):
    ran = runs("tianji", "impala", time_to_target_s=None, stopped_because="max_wall")
    _, text = shown(comparison(ran), 80)
    rows = [" ".join(line.strip("│ ").split()) for line in text.splitlines()]
    assert "impala 0 of 2 480 490 0.5" in rows


def test_the_json_is_the_report(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    report, asked = comparison(runs("tianji", "impala")), []

    def run_comparison(contest, _screen, name):
        asked.append((contest, name))
        return report

    monkeypatch.setattr(module, "run_comparison", run_comparison)
    words = ["compare", "cartpole-ppo", "--styles", "tianji, impala", "--seeds", "3"]
    assert main([*words, "--run", "mine", "--max-env-steps", "1e5", "--json"]) == 0
    ((contest, name),) = asked
    assert name == "mine" and contest.seeds == (1, 2, 3)
    assert [one.name for one in contest.contestants] == ["tianji", "impala"]
    assert {one.config.max_env_steps for one in contest.contestants} == {100_000}
    assert contest.command == (
        "tianji compare cartpole-ppo --styles 'tianji, impala' --seeds 3 --run mine "
        "--max-env-steps 1e5"
    )
    assert json.loads(capfd.readouterr().out)["reference"] == "tianji"


def test_python_compares_the_same(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "run_comparison", lambda *given: asked.append(given) or "report")
    options = {"max_env_steps": 100, "run": "mine"}
    found = tianji.compare("cartpole-ppo", styles=("tianji", "serial"), seeds=2, **options)
    ((contest, _screen, name),) = asked
    assert (found, name, contest.seeds) == ("report", "mine", (1, 2))
    assert contest.command == (
        "tianji.compare('cartpole-ppo', styles=['tianji', 'serial'], seeds=2, max_env_steps=100, "
        "run='mine')"
    )


def test_help_lists_the_styles_and_the_settings(capfd):
    assert main(["compare", "cartpole-ppo", "--help", "--json"]) == 0
    page = json.loads(capfd.readouterr().out)
    assert "tianji, serial, impala" in page["help"]
    assert "--max-env-steps" in [row["option"] for row in page["settings"]]
