"""The picture of a learning curve."""

import json

import matplotlib.image
import pytest

from tianji.config.files import save_config
from tianji.config.run import RunConfig
from tianji.display.curve import draw_curve, to_points


def record(env_steps, mean_return):
    return {"env_steps": env_steps, "wall_s": env_steps / 1000, "mean_return_100": mean_return}


@pytest.fixture
def make_run(tmp_path):
    def make(*records):
        algorithm = {"name": "tests.fakes.linear:ALGORITHM"}
        save_config(RunConfig(algorithm=algorithm, target_return=475), tmp_path / "config.yaml")
        lines = "".join(f"{json.dumps(r)}\n" for r in records)
        (tmp_path / "metrics.jsonl").write_text(lines)
        return tmp_path

    return make


def test_a_curve_is_drawn_into_the_run_folder(make_run):
    path = draw_curve(make_run(record(1000, None), record(2000, 20.0), record(3000, 300.0)))
    assert path.name == "curve.png"
    picture = matplotlib.image.imread(path)
    assert picture.shape[1] > 1000 and picture[..., :3].std() > 0.05


@pytest.mark.parametrize("records", [[], [record(1000, None)]], ids=["no lines", "no episode"])
def test_a_run_without_finished_episodes_has_no_curve(make_run, records):
    run = make_run(*records)
    assert draw_curve(run) is None and not list(run.glob("*.png"))


def test_what_a_resumed_run_did_twice_is_drawn_once():
    steps = [1000, 2000, 3000, 2000, 2500]
    points = to_points([record(s, float(i)) for i, s in enumerate(steps)])
    assert [(p.env_steps, p.mean_return) for p in points] == [(1000, 0.0), (2000, 3.0), (2500, 4.0)]
