"""The wrapper of howto/action-masks.md, around an environment as MaskablePPO knows them."""

import gymnasium as gym
import numpy as np

from tests.docs import pages
from tianji.envs.build import build_world, make_rows, probe
from tianji.envs.masks import nth_legal


class ForMaskablePPO(gym.Env):
    """Its masks are lists, and only one action is legal at a time."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        assert self.action_masks()[int(action)]
        self.steps += 1
        return np.zeros(3, np.float32), 1.0, False, self.steps == 7, {}

    def action_masks(self) -> list[bool]:
        return [option == self.steps % 4 for option in range(4)]


def test_the_wrapper_finds_masks_that_are_lists():
    blocks = pages.blocks(pages.DOCS / "howto/action-masks.md")
    (snippet,) = (block.text for block in blocks if "class WithMasks" in block.text)
    names = {"gym": gym, "np": np}
    exec(snippet, names)

    def make():
        return names["WithMasks"](ForMaskablePPO())

    assert probe(make, {}).spaces.masked_by == "info"
    world = build_world(make, {}, 2, action_mask="info")
    rows = make_rows(world, 20)
    world.reset(0, rows)
    for t in range(20):
        world.step(nth_legal(np.zeros(2, np.int64), rows["obs.action_mask"][t]), rows, t)
