"""A run folder that is deleted, moved or replaced while the run goes on."""

import fcntl
import shutil

import pytest

from tianji.config.files import load_config, save_config
from tianji.config.overrides import make_config
from tianji.errors import TianjiError, UsageError
from tianji.run_folder.folder import RunFolder

CONFIG = make_config("cartpole-ppo")


class PlanFile:
    def __init__(self, path):
        self.path = path

    def save(self):
        self.path.write_text("{}")


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "runs" / "run"
    path.mkdir(parents=True)
    save_config(CONFIG, path / "config.yaml")
    with RunFolder(path) as folder:
        yield folder


def look(folder):
    return folder.look(CONFIG, PlanFile(folder.path / "plan.json"))


def is_whole(folder):
    names = {path.name for path in folder.path.iterdir()}
    return names >= {"config.yaml", "plan.json", ".lock"} and (
        load_config(folder.path / "config.yaml") == CONFIG
    )


def test_nothing_is_said_of_a_folder_that_is_there(run):
    assert look(run) == ""
    (run.path / "other.txt").write_text("")
    assert look(run) == ""


@pytest.mark.parametrize("what", ["run", "runs"])
def test_a_deleted_folder_is_made_again_whole_and_locked(run, what):
    shutil.rmtree(run.path if what == "run" else run.path.parent)
    assert f"The run folder {run.path} was deleted. It was recreated" in look(run)
    assert is_whole(run)
    assert look(run) == ""
    with pytest.raises(UsageError, match="is already running"), RunFolder(run.path):
        pass


def test_a_moved_folder_is_named_and_let_go(run, tmp_path):
    there = tmp_path / "elsewhere"
    run.path.rename(there)
    assert f"was moved to {there}. It was recreated" in look(run)
    assert is_whole(run)
    with RunFolder(there):
        pass


@pytest.mark.parametrize("gone", [["config.yaml"], ["config.yaml", ".lock"]], ids=str)
def test_a_folder_that_was_half_deleted_is_mended(run, gone):
    for name in gone:
        (run.path / name).unlink()
    assert f"Files in the run folder {run.path} were deleted." in look(run)
    assert is_whole(run)


def test_a_copy_in_its_place_is_as_good(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    shutil.rmtree(run.path)
    (tmp_path / "copy").rename(run.path)
    assert "was deleted. It was recreated" in look(run)
    assert run.is_ours and is_whole(run)


def test_another_run_in_its_place_is_left_alone(run, tmp_path):
    run.path.rename(tmp_path / "elsewhere")
    run.path.mkdir()
    other = CONFIG.model_copy(update={"seed": 7})
    save_config(other, run.path / "config.yaml")
    with pytest.raises(TianjiError, match=r"was moved to .*elsewhere\. Another run uses"):
        look(run)
    assert not run.is_ours
    assert look(run) == "", "it is said once"
    assert load_config(run.path / "config.yaml") == other
    assert [path.name for path in run.path.iterdir()] == ["config.yaml"]


def test_the_same_run_started_again_in_its_place_is_left_alone(run):
    shutil.rmtree(run.path)
    run.path.mkdir()
    save_config(CONFIG, run.path / "config.yaml")
    with RunFolder(run.path):
        with pytest.raises(TianjiError, match="Another run uses its path now"):
            look(run)
        assert not run.is_ours
        assert not (run.path / "plan.json").exists()


def test_a_folder_that_is_deleted_while_it_is_made_again_is_made_later(run, monkeypatch):
    shutil.rmtree(run.path)
    flock = fcntl.flock

    def delete_then_lock(file, operation):
        shutil.rmtree(run.path)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", delete_then_lock)
    assert "was deleted. It cannot be recreated: " in look(run)
    monkeypatch.undo()
    assert "was deleted. It was recreated" in look(run)
    assert is_whole(run)


def test_a_folder_that_cannot_be_made_again_is_told_once_and_tried_again(run):
    shutil.rmtree(run.path)
    run.path.write_text("in the way")
    assert "was deleted. It cannot be recreated: " in look(run)
    assert look(run) == ""
    run.path.unlink()
    assert "It was recreated" in look(run)
    assert is_whole(run)
