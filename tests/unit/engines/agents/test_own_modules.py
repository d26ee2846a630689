"""Which modules are shipped to other hosts."""

import pytest

from tianji.config.run import RunConfig
from tianji.engines.agents.modules import copy_modules, own_modules


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_maze_file.py").write_text("def make(): ...\n")
    package = tmp_path / "my_maze_package" / "inner"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "__pycache__").mkdir()
    return tmp_path


@pytest.mark.parametrize("env", ["CartPole-v1", "ALE/Pong-v5", "tianji.envs.worlds:Counting"])
def test_what_is_installed_stays(env):
    assert own_modules(RunConfig(env=env, algorithm="ppo")) == []


def test_files_and_packages_beside_the_command_are_shipped(folder, tmp_path_factory):
    config = RunConfig(
        env="my_maze_file:make", model={"factory": "my_maze_package.inner:build"}, algorithm="ppo"
    )
    found = own_modules(config)
    assert found == [folder / "my_maze_file.py", folder / "my_maze_package"]
    there = tmp_path_factory.mktemp("there")
    copy_modules(found, there)
    copied = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert copied == {
        "my_maze_file.py", "my_maze_package/__init__.py", "my_maze_package/inner/__init__.py",
    }  # fmt: skip


def test_a_module_that_is_missing_is_named_by_whoever_needs_it():
    assert own_modules(RunConfig(env="no_such_module_here:make", algorithm="ppo")) == []
