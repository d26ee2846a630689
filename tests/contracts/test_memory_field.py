"""A field with one value per environment travels from the actor to the batch (recurrent states)."""

import numpy as np

from tests.fakes.scripted import ScriptedWorld, scripted_layout
from tests.unit.actor.rig import Rig
from tianji.buffer.stores.queue import Queue
from tianji.types import Field

MEMORY = Field("memory", "float32", (2,), "unroll")


def test_what_acting_remembers_at_the_start_of_an_unroll_is_in_its_batch():
    world = ScriptedWorld()
    layout = scripted_layout(4, world.num_envs, more=(MEMORY,))
    rig = Rig(length=4, world=world, layout=layout)
    begin = rig.acting.begin

    def remember(rng, unroll, first_row, steps_before):
        begin(rng, unroll, first_row, steps_before)
        unroll["memory"][:] = world.made[:, None]  # steps that each environment has made

    rig.actor._inference.begin = remember
    rig.publish(0)
    queue = Queue(rig.stream, layout.env_axes())
    for number in range(2):
        rig.grant(number)
        while (slot := rig.stream.take()) is None:
            assert rig.actor.tick()
        queue.put(slot, rig.stream.stamp(slot))
    arrays = queue.take(0).arrays
    assert arrays["memory"].shape == (2 * world.num_envs, 2)
    assert np.array_equal(arrays["memory"][:, 0], arrays["obs"][0, :, 1])
