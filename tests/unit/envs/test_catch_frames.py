"""Catch seen as stacks of frames: stored frame by frame or whole, policies see the same."""

import numpy as np

from tianji.envs.build import build_world, make_rows
from tianji.envs.frames import ObservationReader

CATCH = "tianji.envs.catch_frames:CatchFrames"
NUM_ENVS, NUM_STEPS = 3, 40


def play(**kwargs):
    world = build_world(CATCH, kwargs, NUM_ENVS)
    rows = make_rows(world, NUM_STEPS)
    world.reset(5, rows)
    for t, actions in enumerate(np.random.default_rng(0).integers(3, size=(NUM_STEPS, NUM_ENVS))):
        world.step(actions, rows, t)
    world.close()
    return world, rows


def test_policies_see_the_same_stacks_however_they_are_stored():
    (frame_world, frames), (whole_world, whole) = play(), play(whole_stacks=True)
    assert (~frames["valid"]).any(), "no game ended: the test shows nothing about resets"
    seen, also_seen = (
        ObservationReader(world.spaces.observation) for world in (frame_world, whole_world)
    )
    for t in range(NUM_STEPS + 1):
        stack = seen.row(frames, t)[""]
        np.testing.assert_array_equal(stack, also_seen.row(whole, t)[""])
        assert stack.shape == (NUM_ENVS, 4, 36, 36)
    for name in ("reward", "terminated", "truncated", "valid"):
        np.testing.assert_array_equal(frames[name], whole[name])
    assert {*np.unique(frames["reward"])} == {-1.0, 0.0, 1.0}


def test_a_stack_begins_with_zeros_after_a_reset_and_then_grows():
    _, whole = play(whole_stacks=True)
    reset_t, env = np.argwhere(~whole["valid"])[0]
    stacks = whole["obs"][reset_t + 1 : reset_t + 4, env]
    assert [int(stack.any((1, 2)).sum()) for stack in stacks] == [1, 2, 3]
    np.testing.assert_array_equal(stacks[2][1:3], stacks[1][2:])


def test_whole_stacks_take_four_times_the_bytes_of_frames():
    (_, frames), (_, whole) = play(), play(whole_stacks=True)
    history = 3
    assert whole["obs"].nbytes == 4 * frames["obs"][history:].nbytes
