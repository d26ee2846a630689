"""The pool store: a batch is drawn from the unrolls of the newest batches."""

import pytest

from tests.fakes.scripted import scripted_layout
from tianji.buffer.stores.pool import Pool
from tianji.channels.inproc import InprocStream
from tianji.types import Stamp

ROWS, ENVS, PER_BATCH, BATCHES = 3, 2, 4, 3


class Rig:
    def __init__(self, seed=0):
        layout = scripted_layout(ROWS, ENVS)
        self.stream = InprocStream(layout, PER_BATCH * (BATCHES + 1), num_lanes=1)
        self.pool = Pool(self.stream, layout.env_axes(), PER_BATCH * BATCHES, PER_BATCH, seed)
        self.num_put = 0

    def put_batch(self, version=0):
        for _ in range(PER_BATCH):
            slot = self.stream._free.pop()
            self.stream.arrays["reward"][slot] = self.num_put
            assert self.pool.put(slot, Stamp(0, self.num_put, version, version, 5, 0, 0)) == 1
            self.num_put += 1

    def take(self, version=0):
        """The numbers of the unrolls in the next batch, and its steps that were used first."""
        batch = self.pool.take(version)
        self.pool.finish(batch)
        return [stamp.round for stamp in batch.stamps], batch.unique_steps


def test_the_first_batch_is_all_there_is():
    rig = Rig()
    rig.put_batch()
    assert rig.take() == ([0, 1, 2, 3], PER_BATCH * 5)


def test_a_batch_holds_the_bytes_of_the_unrolls_that_its_stamps_name():
    rig = Rig()
    rig.put_batch()
    rig.put_batch()
    batch = rig.pool.take(0)
    numbers = [stamp.round for stamp in batch.stamps for _ in range(ENVS)]
    assert batch.arrays["reward"][0].tolist() == numbers
    assert (batch.num_items, batch.num_steps) == (PER_BATCH, PER_BATCH * 5)


def test_no_unroll_is_twice_in_a_batch_and_all_kept_ones_are_drawn_from():
    rig = Rig()
    for _ in range(BATCHES):
        rig.put_batch()
    drawn = [rig.take()[0] for _ in range(100)]
    assert all(len(set(batch)) == PER_BATCH for batch in drawn)
    assert {number for batch in drawn for number in batch} == set(range(PER_BATCH * BATCHES))


def test_the_oldest_are_pushed_out_and_their_slots_come_back():
    rig = Rig()
    for _ in range(5 * BATCHES):  # far more than there are slots
        rig.put_batch()
    assert rig.pool.num_held() == PER_BATCH * BATCHES
    drawn = {number for _ in range(100) for number in rig.take()[0]}
    assert min(drawn) == rig.num_put - PER_BATCH * BATCHES


def test_steps_count_as_unique_only_the_first_time_they_are_used():
    rig = Rig()
    seen = set()
    for _ in range(BATCHES):
        rig.put_batch()
        numbers, unique_steps = rig.take()
        assert unique_steps == 5 * len(set(numbers) - seen)
        seen |= set(numbers)


def test_a_slot_that_comes_back_with_another_unroll_is_fresh_again():
    rig = Rig()
    for _ in range(40):
        rig.put_batch()
        rig.take()
    assert rig.pool._unused <= {slot for slot, _ in rig.pool._held}


def test_the_age_of_what_was_used_stays_until_something_is_used():
    rig = Rig()
    rig.put_batch(version=3)
    rig.take(version=7)
    assert rig.pool.metrics() == {"age_versions": 4.0, "fill": pytest.approx(1 / BATCHES)}
    assert rig.pool.metrics()["age_versions"] == 4.0  # nothing was used since


def test_draws_go_on_where_they_were_after_a_resume():
    rigs = Rig(seed=1), Rig(seed=2)
    for rig in rigs:
        for _ in range(BATCHES):
            rig.put_batch()
    rigs[0].take()
    rigs[1].pool.load_state(rigs[0].pool.state())
    assert rigs[1].take()[0] == rigs[0].take()[0]
