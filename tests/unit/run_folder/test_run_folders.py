from __future__ import annotations

import os
from pathlib import Path

import pytest

from tianji.config.overrides import make_config
from tianji.errors import UsageError
from tianji.run import train_config
from tianji.run_folder import paths
from tianji.run_folder.paths import (
    check_name_is_free,
    default_run_name,
    find_run,
    list_runs,
    new_run_dir,
    newest_run,
)


def make_run(base: Path, name: str, age_s: int = 0) -> Path:
    folder = base / name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("")
    os.utime(folder / "config.yaml", (1e9 - age_s, 1e9 - age_s))
    return folder


def test_a_run_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    folder = make_run(tmp_path, "first")
    assert find_run("first", tmp_path) == folder
    assert find_run(str(folder), tmp_path / "elsewhere") == folder


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    make_run(tmp_path, "old", age_s=9)
    make_run(tmp_path, "new", age_s=1)
    assert list_runs(tmp_path) == ["new", "old"]
    with pytest.raises(UsageError, match=r"Did you mean 'new'.*newest first: new, old"):
        find_run("neww", tmp_path)


def test_the_newest_run_is_the_one_that_was_written_to_last(tmp_path: Path) -> None:
    make_run(tmp_path, "resumed", age_s=5)  # a resume has written its settings again
    training = make_run(tmp_path, "training", age_s=9)
    (training / "metrics.jsonl").write_text("")
    os.utime(training / "metrics.jsonl", (1e9, 1e9))
    assert list_runs(tmp_path) == ["training", "resumed"]
    assert newest_run(tmp_path) == "training"


def test_a_run_that_is_deleted_while_runs_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, "stays")
    found = [*tmp_path.glob("*/config.yaml"), tmp_path / "gone/config.yaml"]
    monkeypatch.setattr(Path, "glob", lambda self, pattern: found)
    monkeypatch.setattr(paths, "_IN_FOLDERS", ())
    assert list_runs(tmp_path) == ["stays"]


def test_no_runs_at_all_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Start one with `tianji train`"):
        find_run("first", tmp_path)


def test_a_folder_without_config_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the folder of a run"):
        find_run(str(tmp_path), tmp_path / "runs")


def test_new_runs_get_names_of_their_own(tmp_path: Path) -> None:
    config = make_config("cartpole-ppo", seed=3)
    names = [new_run_dir(config, tmp_path / "runs").name for _ in range(3)]
    assert names == ["cartpole-v1-ppo-s3", "cartpole-v1-ppo-s3-2", "cartpole-v1-ppo-s3-3"]


@pytest.mark.parametrize(
    ("env", "name"),
    [("ALE/Pong-v5", "ale-pong-v5-ppo-s1"), ("my.module:MyWorld", "myworld-ppo-s1")],
)
def test_names_are_fit_for_folders(env: str, name: str) -> None:
    assert default_run_name(make_config(None, env=env)) == name


def test_a_given_name_is_never_used_twice(tmp_path: Path) -> None:
    config = make_config(None, run="mine")
    assert new_run_dir(config, tmp_path) == tmp_path / "mine"
    with pytest.raises(UsageError, match="`tianji resume mine`"):
        new_run_dir(config, tmp_path)


def test_a_name_that_is_taken_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path, "mine")
    monkeypatch.setattr("tianji.run.plan_groups", pytest.fail)
    with pytest.raises(UsageError, match=r"Run 'mine' exists\. .*tianji resume mine"):
        train_config(make_config("cartpole-ppo", run="mine"), base=tmp_path)


@pytest.mark.parametrize("name", ["", "..", "a/b"])
def test_a_path_is_no_name(tmp_path: Path, name: str) -> None:
    config = make_config(None, run=name)
    for refuse in (new_run_dir, check_name_is_free):
        with pytest.raises(UsageError, match="must be the name of a folder"):
            refuse(config, tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(UsageError, match="Cannot make the run folder"):
        new_run_dir(make_config(None), tmp_path / "runs")


@pytest.mark.parametrize("run", [None, "mine"])
def test_a_runs_folder_that_is_a_dangling_link_does_not_spin(
    tmp_path: Path, run: str | None
) -> None:
    (tmp_path / "runs").symlink_to(tmp_path / "gone")
    with pytest.raises(
        UsageError, match=r"'.*runs' is a symbolic link to '.*gone', which does not"
    ):
        new_run_dir(make_config(None, run=run), tmp_path / "runs")


def test_a_dangling_link_in_place_of_a_named_run_is_not_a_run_to_resume(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"is a symbolic link to .* Choose another name"):
        new_run_dir(make_config(None, run="mine"), tmp_path)


@pytest.mark.parametrize(
    ("envs", "words", "name"),
    [
        (("A-v1", "B-v1"), "A-v1 + B-v1", "a-v1-b-v1-malenia-nigt-s1"),
        (("m.n:one", "m.n:two"), "m.n:one + m.n:two", "one-two-malenia-nigt-s1"),
        (("A-v1", "B-v1", "A-v1"), "A-v1 + B-v1", "a-v1-b-v1-malenia-nigt-s1"),
        (("A-v1", "B-v1", "C-v1"), "A-v1 + 2 others", "a-v1-2-others-malenia-nigt-s1"),
    ],
)
def test_a_run_of_several_environments_is_named_after_a_few(
    envs: tuple[str, ...], words: str, name: str
) -> None:
    config = make_config(None, envs=envs, algorithm="malenia-nigt")
    assert config.env_name == words
    assert default_run_name(config) == name


def test_runs_that_share_a_folder_are_listed_too(tmp_path):
    for name in ("one", "three/seed-1", "styles/impala-s2"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").touch()
    assert sorted(list_runs(tmp_path)) == ["one", "styles/impala-s2", "three/seed-1"]
    with pytest.raises(UsageError, match=r"contains 1 run\..*such as 'styles/impala-s2'"):
        find_run("styles", tmp_path)
