"""Vector environments that are not Gymnasium's own."""

import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from tianji.envs.build import build_world, make_rows
from tianji.envs.vector import NextStepWorld, SameStepWorld, adapt_vector, autoreset_mode
from tianji.errors import TianjiError


class Native(VectorEnv):
    """Two counters, ending after 2 and 3 steps, that reuse every array they return."""

    def __init__(self, mode, final="batch", space=None):
        self.metadata = {} if mode is None else {"autoreset_mode": mode}
        self.num_envs, self.final = 2, final
        self.single_observation_space = space or Discrete(100)
        self.single_action_space = Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, 2)
        self.action_space = batch_space(self.single_action_space, 2)
        self.counts = np.zeros(2, np.int64)
        self.terminated, self.truncated = np.zeros(2, bool), np.zeros(2, bool)

    def observe(self, counts):
        return {"n": counts} if isinstance(self.single_observation_space, Dict) else counts

    def reset(self, *, seed=None, options=None):
        mask = (options or {}).get("reset_mask", np.ones(2, bool))
        self.counts[mask] = 0
        return self.observe(np.where(mask, 0, -7)), {}

    def step(self, actions):
        self.counts += 1
        self.terminated[:] = [self.counts[0] == 2, False]
        self.truncated[:] = [False, self.counts[1] == 3]
        ended, infos = self.terminated | self.truncated, {}
        if ended.any() and self.metadata.get("autoreset_mode") is AutoresetMode.SAME_STEP:
            infos = self.final_infos(ended)
            self.counts[ended] = 0
        elif self.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED:
            self.counts[self.counts > [2, 3]] = 0
        return self.observe(self.counts), np.ones(2), self.terminated, self.truncated, infos

    def final_infos(self, ended):
        if self.final == "batch":
            return {"final_obs": self.observe(self.counts.copy()), "_final_obs": ended}
        if self.final == "objects":
            each = np.full(2, None, object)
            for i in np.flatnonzero(ended):
                each[i] = self.observe(self.counts[i])
            return {"final_obs": each, "_final_obs": ended}
        return {}


def run(world, num_rows=7):
    rows = make_rows(world, num_rows)
    world.reset(1, rows)
    for t in range(num_rows):
        world.step(np.zeros(2, np.int64), rows, t)
    return rows


@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP, "NextStep"])
def test_next_step_rows_are_cleared_even_if_the_environment_rewards_them(mode):
    world = adapt_vector(Native(mode))
    assert isinstance(world, NextStepWorld)
    rows = run(world)
    assert rows["obs"].T.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 2, 3, 0, 1, 2, 3]]
    assert rows["valid"].T.tolist() == [[1, 1, 0, 1, 1, 0, 1], [1, 1, 1, 0, 1, 1, 1]]
    np.testing.assert_array_equal(rows["reward"], rows["valid"])


NAMED = Dict({"n": Discrete(100)})


@pytest.mark.parametrize("final", ["batch", "objects"])
@pytest.mark.parametrize(("space", "leaf"), [(None, ""), (NAMED, ".n")])
def test_same_step_takes_final_observations_in_either_layout(final, space, leaf):
    world = adapt_vector(Native(AutoresetMode.SAME_STEP, final, space))
    assert isinstance(world, SameStepWorld)
    check_rows_of_same_step(run(world), leaf)


@pytest.mark.parametrize(("space", "leaf"), [(None, ""), (NAMED, ".n")])
def test_disabled_is_reset_by_us_at_once_and_only_where_it_ended(space, leaf):
    check_rows_of_same_step(run(adapt_vector(Native(AutoresetMode.DISABLED, "", space))), leaf)


def check_rows_of_same_step(rows, leaf):
    assert rows["obs" + leaf].T.tolist() == [[0, 1, 0, 1, 0, 1, 0, 1], [0, 1, 2, 0, 1, 2, 0, 1]]
    assert rows["final_obs" + leaf].T.tolist() == [[0, 2, 0, 2, 0, 2, 0], [0, 0, 3, 0, 0, 3, 0]]
    assert rows["terminated"].T.tolist() == [[0, 1, 0, 1, 0, 1, 0], [0] * 7]
    assert rows["truncated"].T.tolist() == [[0] * 7, [0, 0, 1, 0, 0, 1, 0]]
    assert rows["valid"].all()


def test_same_step_without_final_observations_is_an_error_that_says_what_to_do():
    world = adapt_vector(Native(AutoresetMode.SAME_STEP, final="none"))
    with pytest.raises(TianjiError, match=r"infos\['final_obs'\] is missing.*NEXT_STEP"):
        run(world)


def test_without_a_word_next_step_is_assumed():
    assert autoreset_mode(Native(None)) is AutoresetMode.NEXT_STEP


@pytest.mark.parametrize(("mode", "period"), [("NextStep", 16), ("SameStep", 15)])
def test_ale_ends_and_goes_on_in_both_of_its_modes(mode, period):
    pytest.importorskip("ale_py")
    small = {"img_height": 16, "img_width": 16, "noop_max": 1, "max_num_frames_per_episode": 60}
    world = build_world("ALE/Breakout-v5", {**small, "autoreset_mode": mode}, 2)
    rows = run(world, num_rows=40)
    ends = np.flatnonzero(rows["truncated"][:, 0])
    assert set(np.diff(ends)) == {period}
    np.testing.assert_array_equal(
        np.flatnonzero(~rows["valid"][:, 0]), ends + 1 if period == 16 else []
    )
    final = rows["final_obs"][ends, 0] if world.keeps_final else rows["obs"][ends + 1, 0]
    np.testing.assert_array_equal(final[:, :3], rows["obs"][ends, 0, 1:])  # stacked frames move on
