"""The wheel holds what a run needs and works from an empty folder."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--wheel-dir", str(folder), str(ROOT)],
        check=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "tianji/py.typed" in names
    presets = {Path(name).name for name in names if name.startswith("tianji/presets/")}
    assert {p.name for p in (ROOT / "src/tianji/presets").glob("*.yaml")} <= presets
    figures = {Path(name).name for name in names if name.startswith("tianji/figures/data/")}
    assert {p.name for p in (ROOT / "src/tianji/figures/data").glob("*.json")} == figures
    assert "tianji/zoo/results.json" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"tianji"}


def test_the_wheel_trains_from_an_empty_folder(wheel, tmp_path):
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    zipfile.ZipFile(wheel).extractall(installed)
    done = subprocess.run(
        [sys.executable, "-m", "tianji", "train", "cartpole-ppo", "--max-env-steps", "2000",
         "--json"],
        cwd=empty, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped_because"] == "max_env_steps"
    assert (empty / "runs" / "cartpole-v1-ppo-s1" / "summary.json").exists()
