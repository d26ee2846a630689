"""MuJoCo's tasks as Gymnasium has them, the old versions and the new."""

import pytest

from tianji.envs.build import build_world, make_rows, probe
from tianji.envs.timing import random_actions

pytest.importorskip("mujoco")

TASKS = {
    "Humanoid": ({4: 376, 5: 348}, 17, 1000),
    "Hopper": ({4: 11, 5: 11}, 3, 1000),
    "Walker2d": ({4: 17, 5: 17}, 6, 1000),
    "Reacher": ({4: 11, 5: 10}, 2, 50),
}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("task", TASKS)
def test_a_task_works_and_says_nothing_of_its_age(task, version, capfd, recwarn):
    observations, actions, limit = TASKS[task]
    env = f"{task}-v{version}"
    found = probe(env, {})
    assert found.spaces.observation.shape == (observations[version],)
    assert found.spaces.action.shape == (actions,)
    assert found.max_episode_steps == limit
    world = build_world(env, {}, 2)
    rows = make_rows(world, 3)
    world.reset(1, rows)
    for t, row in enumerate(random_actions(world, 3)):
        world.step(row, rows, t)
    world.close()
    assert rows["valid"].all() and rows["obs"].any()
    assert capfd.readouterr() == ("", "") and not recwarn.list
