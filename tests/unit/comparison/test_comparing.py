"""Running a comparison, stopping it, and continuing it."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.fakes.comparison import contest
from tianji.comparison import compare as module
from tianji.comparison import folder as folders
from tianji.comparison import greedy, picture
from tianji.comparison import provenance as origins
from tianji.comparison.compare import run_comparison
from tianji.comparison.folder import set_aside
from tianji.errors import UsageError
from tianji.observe.summary import build_summary, write_summary
from tianji.run_folder.folder import RunFolder
from tianji.seeds.screen import make_screen


class Runner:
    """Stands in for run_all(): every run ends at once, as `endings` says."""

    def __init__(self, endings=()):
        self.endings, self.started = dict(endings), []

    def __call__(self, children, shares, screen, title, folder):
        assert len(shares) == 1, "one run at a time, with all cores"
        for child in children:
            because = self.endings.get(child.label, "max_env_steps")
            if because == "not started":
                continue
            if because == "killed":
                raise KeyboardInterrupt
            self.started.append(child.label)
            child.folder.mkdir()
            line = {"wall_s": 1.0, "env_steps": 256, "mean_return_100": 3.0}
            (child.folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
            facts = {"stopped_because": because, "first_cause": "it broke", "checkpoint": "saved"}
            if because == "unsaved":
                facts |= {"stopped_because": "max_env_steps", "checkpoint": None}
            write_summary(child.folder, build_summary(child.config, child.folder, facts, line))
            child._process = Ended()


class Ended:
    returncode = 0

    def poll(self):
        return 0


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Compare in a folder of its own; returns the report and what was run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(picture, "draw", lambda _report, path: path.touch())
    monkeypatch.setattr("tianji.trained.evaluate.evaluate_run", lambda *_, **__: {"mean": 5.0})

    def compare(asked=None, endings=(), name="mine"):
        runner = Runner(endings)
        monkeypatch.setattr(module, "run_all", runner)
        report = run_comparison(asked or contest(), make_screen("off"), name, tmp_path)
        return report, runner.started

    return compare


def test_every_style_runs_with_every_seed_in_one_folder(run, tmp_path):
    report, started = run()
    assert sorted(started) == ["impala-s1", "impala-s2", "tianji-s1", "tianji-s2"]
    assert report["missing"] == [] and report["reference"] == "tianji"
    assert [one["seeds"] for one in report["styles"]] == [[1, 2], [1, 2]]
    assert json.loads((tmp_path / "mine" / "comparison.json").read_text()) == report
    assert report["picture"] == str(tmp_path / "mine" / "comparison.png")


def test_the_report_names_machine_commit_command_and_all_raw_figures(run):
    report, _ = run()
    assert report["command"].startswith("tianji compare")
    assert report["machine"]["cores"] >= 1 and report["machine"]["cpu"]
    assert report["commit"] and report["versions"]["numpy"]
    assert [run["env_steps"] for run in report["runs"]] == [256] * 4
    assert report["settings"]["impala"]["max_env_steps"] == 256


def test_a_comparison_that_is_whole_runs_nothing_again(run):
    run()
    assert run()[1] == []


def test_a_comparison_that_was_stopped_continues_with_what_is_missing(run, tmp_path):
    stopped = {"tianji-s2": "interrupted", "impala-s2": "not started"}
    report, _ = run(endings=stopped)
    assert sorted(report["missing"]) == ["impala-s2", "tianji-s2"]
    assert [one["seeds"] for one in report["styles"]] == [[1], [1]]
    report, started = run()
    assert sorted(started) == ["impala-s2", "tianji-s2"]
    assert report["missing"] == []
    assert (tmp_path / "mine" / "tianji-s2-unfinished-1").is_dir(), "nothing is deleted"


def test_the_last_policy_of_every_run_plays_without_exploration_once(run, monkeypatch):
    played = []

    def evaluate(run_dir, episodes, seed, checkpoint):
        assert checkpoint == "latest" and episodes == greedy.EPISODES
        played.append(run_dir.name)
        return {"mean": 10.0 * seed}

    monkeypatch.setattr("tianji.trained.evaluate.evaluate_run", evaluate)
    stopped = {"tianji-s2": "interrupted", "impala-s1": "unsaved"}
    report, _ = run(endings=stopped)
    found = {Path(one["run_dir"]).name: one["greedy_return"] for one in report["runs"]}
    assert found == {"tianji-s1": 10, "impala-s1": None, "impala-s2": 20, "tianji-s2": None}
    report, _ = run()
    assert sorted(played) == ["impala-s2", "tianji-s1", "tianji-s2"], "each once"
    assert report["styles"][0]["greedy_return"]["value"] == 15


def test_a_comparison_of_before_policies_were_played_goes_on(run, tmp_path, monkeypatch):
    run()
    path = tmp_path / "mine" / "comparison.json"
    report = json.loads(path.read_text())
    for one in report["runs"]:
        del one["greedy_return"]
    for settings in report["settings"].values():
        del settings["combine_max_age"]  # a setting that has come since
    path.write_text(json.dumps(report))
    monkeypatch.setattr("tianji.trained.evaluate.evaluate_run", lambda *_, **__: {"mean": 7.0})
    report, _ = run()
    assert [one["greedy_return"] for one in report["runs"]] == [7.0] * 4


def test_a_policy_that_was_not_played_since_the_comparison_was_broken_off_plays_later(
    run, monkeypatch
):
    def break_off(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tianji.trained.evaluate.evaluate_run", break_off)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(endings={"tianji-s2": "interrupted"})
    monkeypatch.setattr("tianji.trained.evaluate.evaluate_run", lambda *_, **__: {"mean": 7.0})
    report, _ = run()
    assert [one["greedy_return"] for one in report["runs"]] == [7.0] * 4


def test_a_run_that_failed_is_told_and_tried_again(run):
    report, _ = run(endings={"impala-s1": "failed"})
    assert report["missing"] == ["impala-s1"]
    (failed,) = [figures for figures in report["runs"] if "first_cause" in figures]
    assert failed["first_cause"] == "it broke"
    assert run()[1] == ["impala-s1"]


def test_more_seeds_and_styles_can_be_added_later(run):
    run()
    assert sorted(run(contest(seeds=(1, 2, 3)))[1]) == ["impala-s3", "tianji-s3"]
    report, started = run(contest("tianji", "impala", "serial"))
    assert sorted(started) == ["serial-s1", "serial-s2"]
    assert set(report["settings"]) == {"tianji", "impala", "serial"}


def test_runs_with_other_settings_are_not_mixed(run):
    run()
    told = r"has runs of tianji with other settings: max_env_steps was 256, and is 512 now"
    with pytest.raises(UsageError, match=told):
        run(contest(max_env_steps=512))


def test_the_display_may_change(run):
    run()
    quiet = {"display": "plain", "tensorboard": False}
    assert run(contest(observe=quiet))[1] == []


def test_runs_of_two_machines_are_not_mixed(run, monkeypatch):
    run()
    monkeypatch.setattr(folders, "describe_machine", lambda: {"cpu": "another", "cores": 64})
    with pytest.raises(UsageError, match=r"has runs on another machine .*cannot be compared"):
        run()


def test_a_folder_of_something_else_is_left_alone(run, tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="'mine' exists"):
        run()


def test_a_broken_file_is_told(run, tmp_path):
    run()
    (tmp_path / "mine" / "comparison.json").write_text("{}")
    with pytest.raises(UsageError, match="broken"):
        run()


def test_the_same_command_continues_what_was_broken_off_and_repeats_what_has_ended(run, tmp_path):
    folders = [Path(run(name=None, endings={"tianji-s2": "interrupted"})[0]["run_dir"]).name]
    report, started = run(name=None)
    assert started == ["tianji-s2"]
    folders += [Path(report["run_dir"]).name, Path(run(name=None)[0]["run_dir"]).name]
    assert folders == ["compare-counting", "compare-counting", "compare-counting-2"]


def test_other_contestants_or_settings_have_a_folder_of_their_own(run):
    run(name=None, endings={"tianji-s2": "interrupted"})
    others = (
        contest("tianji", "impala", "serial"),
        contest(max_env_steps=512),
        contest(seeds=(100, 101)),
        contest("impala", "tianji"),
    )
    folders = [Path(run(asked, name=None)[0]["run_dir"]).name for asked in others]
    assert folders == [f"compare-counting-{number}" for number in (2, 3, 4, 5)]
    assert run(name=None)[1] == ["tianji-s2"], "the first one goes on"


def test_a_folder_that_holds_no_comparison_or_is_in_use_is_left_alone(run, tmp_path):
    (tmp_path / "compare-counting").mkdir()
    folder = Path(run(name=None, endings={"tianji-s2": "interrupted"})[0]["run_dir"])
    assert folder.name == "compare-counting-2"
    with RunFolder(folder):
        assert Path(run(name=None)[0]["run_dir"]).name == "compare-counting-3"


def test_seeds_beyond_the_largest_are_refused(run, tmp_path):
    with pytest.raises(UsageError, match=r"the last one must be below .* Use a smaller --seed"):
        run(contest(seeds=(2**63, 2**63 + 1)))
    assert not (tmp_path / "mine").exists()


def test_what_no_style_can_run_is_refused_before_anything_starts(run, tmp_path):
    with pytest.raises(UsageError, match="No-Such-Env"):
        run(contest(env="No-Such-Env-v0"))
    assert not (tmp_path / "mine").exists()


def test_a_second_unfinished_try_gets_another_name(tmp_path):
    for _ in range(2):
        (tmp_path / "a-s1").mkdir()
        set_aside(tmp_path / "a-s1")
    set_aside(tmp_path / "a-s1")
    assert {path.name for path in tmp_path.iterdir()} == {"a-s1-unfinished-1", "a-s1-unfinished-2"}


def test_runs_keep_the_commit_that_made_them_when_the_comparison_is_continued(run, monkeypatch):
    def report_at(commit, endings=()):
        monkeypatch.setattr(origins, "package_commit", lambda: commit)
        return run(endings=endings)[0]

    first = report_at("old", endings={"impala-s2": "not started"})
    assert first["commit"] == "old"
    second = report_at("new")
    assert second["commit"] == "old, new"
    assert any("several commits: old, new" in note for note in second["notes"])
    assert report_at("newest")["commit"] == "old, new", "nothing was run"
    made_by = {name: origin["commit"] for name, origin in second["origins"].items()}
    assert made_by == {
        "tianji-s1": "old",
        "impala-s1": "old",
        "tianji-s2": "old",
        "impala-s2": "new",
    }


def test_a_comparison_continued_with_other_libraries_says_so(run, monkeypatch):
    def report_with(torch, endings=()):
        found = {"torch": torch, "gymnasium": "1.2", "numpy": "2.2"}
        monkeypatch.setattr(origins, "metadata", SimpleNamespace(version=found.get))
        return run(endings=endings)[0]

    first = report_with("2.6.0", endings={"impala-s2": "not started"})
    assert not any("several" in note for note in first["notes"])
    second = report_with("2.7.1")
    assert second["versions"]["torch"] == "2.6.0, 2.7.1"
    assert any("several versions of torch: 2.6.0, 2.7.1" in note for note in second["notes"])
    assert second["origins"]["tianji-s1"]["versions"]["torch"] == "2.6.0"
    assert second["origins"]["impala-s2"]["versions"]["torch"] == "2.7.1"


def test_a_run_that_ended_before_its_session_was_killed_keeps_its_origin(run, monkeypatch):
    *ended, last = (turn.name for turn in contest().turns)
    monkeypatch.setattr(origins, "package_commit", lambda: "old")
    with pytest.raises(KeyboardInterrupt):
        run(endings={last: "killed"})
    monkeypatch.setattr(origins, "package_commit", lambda: "new")
    report, started = run()
    assert started == [last] and report["commit"] == "old, new"
    assert {report["origins"][name]["commit"] for name in ended} == {"old"}
