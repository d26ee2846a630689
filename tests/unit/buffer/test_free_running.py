"""The free balance: whatever happens in whatever order, neither side has to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.replay import make_replay
from tests.unit.buffer.rig import LAYOUT, STEPS, Rig
from tianji.buffer.free_running import FreePlan, FreeRunning
from tianji.buffer.role import Buffer

SLOTS = 3


class FreeRig(Rig):
    def __init__(self, num_actors=2, first_unrolls=2, **rest):
        self.first_unrolls = first_unrolls
        super().__init__(num_actors=num_actors, num_slots=(SLOTS + 1) * num_actors, **rest)

    def make_buffer(self, point, max_lag, first_row=0, replay=False):
        plan = FreePlan(self.first_unrolls, SLOTS)
        self.gate = FreeRunning(plan, self.stream, self.rows)
        warmup = max(0, self.first_unrolls - self.stream.num_lanes)
        store = make_replay(
            self.stream, LAYOUT, 12, warmup=warmup, updates_per_batch=3, keeps_ratio=False
        )
        return Buffer(self.gate, store, self.progress, first_row)


def test_actors_hold_all_their_slots_from_the_start():
    rig = FreeRig()
    rig.buffer.tick()
    assert rig.granted() == [[0, 1, 2], [0, 1, 2]]


def test_the_learner_waits_for_the_warm_up_and_then_never():
    rig = FreeRig(first_unrolls=3)
    rig.buffer.tick()
    for actor in (0, 1):
        rig.send(actor)
        assert rig.take() is None
    rig.send(1)
    for _ in range(5):
        rig.finish(rig.take())
    assert rig.buffer.items_taken == 5 * 3 * 16, "all batches are of the same size"


@given(st.lists(st.sampled_from(["actor-0", "actor-1", "learner", "death"]), max_size=60))
def test_neither_side_ever_waits(events):
    """Actors send and die, the learner takes, in any order; a buffer's tick comes between."""
    rig = FreeRig()
    rig.buffer.tick()
    sent = [0, 0]
    for actor in (0, 1):
        rig.send(actor)
        sent[actor] += 1
    rig.buffer.tick()
    for event in events:
        if event == "learner":
            batch = rig.take()
            assert batch is not None, "the learner waited"
            rig.finish(batch)
        elif event == "death":
            rig.replace(0)
        else:
            actor = int(event[-1])
            rig.send(actor)
            sent[actor] += 1
        rig.buffer.tick()
        for granted in rig.granted():
            assert len(granted) == SLOTS, "an actor had to wait"
    assert rig.buffer.discarded == 0
    assert rig.buffer.items_put == sum(sent) * STEPS


def test_lag_is_counted_when_an_unroll_enters_the_store():
    rig = FreeRig()
    rig.buffer.tick()
    for actor in (0, 1):
        rig.send(actor)
    first = rig.take()
    rig.send(0, oldest=0)
    rig.buffer.tick()  # while version 1 is made
    rig.finish(first)
    rig.send(1, oldest=0)
    rig.finish(rig.take())
    rig.send(1, oldest=0)
    rig.take()
    assert rig.buffer.lag.counts() == [3, 1, 1]


def test_steps_of_a_store_from_before_count_for_the_warm_up():
    rig = FreeRig(first_unrolls=4)
    rig.gate.starts_with(3)
    rig.buffer.tick()
    assert rig.take() is None
    rig.send(0)
    assert rig.take() is not None


def test_progress_and_rounds_are_saved():
    rig = FreeRig()
    rig.buffer.tick()
    for actor in (0, 1, 1):
        rig.send(actor, episodes=[(1, 0, 5.0, 2, 9)])
    rig.finish(rig.take())
    state = rig.buffer.state()
    assert state["rounds"] == [1, 2]
    other = FreeRig()
    other.buffer.load_state(state)
    other.buffer.tick()
    assert other.granted() == [[1, 2, 3], [2, 3, 4]]
    assert rig.progress.env_steps == pytest.approx(3 * STEPS)
