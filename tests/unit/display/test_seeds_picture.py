"""The picture of several seeds."""

import json

import numpy as np
import pytest

from tianji.config.overrides import make_config
from tianji.display.curve import Point, draw_seeds, on_one_grid


def test_curves_meet_at_common_steps_and_ended_seeds_keep_their_last_value():
    short = [Point(10, 0.0, 1.0), Point(20, 0.0, 2.0)]
    long = [Point(0, 0.0, 0.0), Point(110, 0.0, 11.0)]
    steps, returns = on_one_grid([short, long])
    assert (steps[0], steps[-1]) == (10, 110)
    assert returns[0][-1] == 2.0 and returns[1][0] == pytest.approx(1.0)
    np.testing.assert_allclose(returns[1], steps / 10)


@pytest.mark.parametrize("num_seeds", [1, 3, 6])
def test_a_picture_is_drawn_for_those_that_have_a_curve(tmp_path, num_seeds):
    folders = [tmp_path / f"seed-{seed}" for seed in range(num_seeds + 1)]
    for number, folder in enumerate(folders[:-1]):
        folder.mkdir()
        lines = [
            json.dumps({"env_steps": step, "wall_s": 1.0, "mean_return_100": step / (number + 1)})
            for step in (10, 20, 30 + number)
        ]
        (folder / "metrics.jsonl").write_text("\n".join(lines))
    assert draw_seeds(make_config("cartpole-ppo"), folders) == tmp_path / "curve.png"
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    assert draw_seeds(make_config("cartpole-ppo"), folders[-1:]) is None
