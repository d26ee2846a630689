"""The queue store: everything once, whole, side by side."""

import numpy as np

from tests.fakes.scripted import scripted_layout
from tianji.buffer.stores.queue import Queue
from tianji.channels.inproc import InprocStream
from tianji.types import Field, Stamp

ROWS, ENVS = 3, 2


class Rig:
    def __init__(self, more=()):
        layout = scripted_layout(ROWS, ENVS, more=more)
        self.stream = InprocStream(layout, 4, num_lanes=1)
        self.queue = Queue(self.stream, layout.env_axes())

    def put(self, number):
        slot = self.stream._free.pop()
        for array in self.stream.arrays.values():
            array[slot] = number
        stamp = Stamp(0, number, 0, 0, 5 + number, 0, 0)
        assert self.queue.put(slot, stamp) == 1
        return slot


def test_unrolls_stand_side_by_side_in_the_order_they_were_put():
    rig = Rig()
    for number in (1, 0, 2):
        rig.put(number)
    batch = rig.queue.take(0)
    assert batch.arrays["reward"].shape == (ROWS, 3 * ENVS)
    assert batch.arrays["obs"].shape == (ROWS + 1, 3 * ENVS, 3)
    assert batch.arrays["reward"][0].tolist() == [1, 1, 0, 0, 2, 2]
    assert [stamp.round for stamp in batch.stamps] == [1, 0, 2]
    assert (batch.num_items, batch.num_steps) == (3, 18)


def test_a_single_unroll_is_read_where_it_lies():
    rig = Rig()
    slot = rig.put(1)
    batch = rig.queue.take(0)
    assert np.shares_memory(batch.arrays["obs"], rig.stream.arrays["obs"][slot])
    assert batch.arrays["reward"].shape == (ROWS, ENVS)


def test_times_of_rows_follow_one_another_because_they_belong_to_no_environment():
    rig = Rig()
    rig.put(1)
    rig.put(2)
    assert rig.queue.take(0).arrays["row_ns"].tolist() == [1, 1, 1, 2, 2, 2]


def test_a_value_for_a_whole_unroll_stands_side_by_side_too():
    rig = Rig(more=(Field("memory", "float32", (5,), "unroll"),))
    rig.put(1)
    rig.put(2)
    memory = rig.queue.take(0).arrays["memory"]
    assert memory.shape == (2 * ENVS, 5)
    assert memory[:, 0].tolist() == [1, 1, 2, 2]


def test_what_was_used_gives_its_slots_back_and_counts_its_steps():
    rig = Rig()
    slots = [rig.put(1), rig.put(2)]
    free = len(rig.stream._free)
    batch = rig.queue.take(0)
    assert batch.unique_steps == 6 + 7
    rig.queue.finish(batch)
    assert rig.queue.num_held() == 0
    assert list(rig.stream._free)[free:] == slots
    rig.put(3)
    assert rig.queue.take(1).num_items == 1


def test_nothing_is_saved_because_a_resumed_run_makes_it_anew():
    rig = Rig()
    rig.put(1)
    assert rig.queue.state() == {}
    other = Rig()
    other.queue.load_state({})
    assert other.queue.num_held() == 0
