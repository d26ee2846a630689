"""Queues of fixed size: one makes actors wait when it is full, one drops its oldest item."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.buffer.rig import LAYOUT, Rig, turns
from tianji.buffer.bounded import BlockingQueue, DroppingQueue, QueuePlan
from tianji.buffer.role import Buffer
from tianji.buffer.stores.queue import Queue

PER_VERSION = 2
SIZE = 4
AT_HAND = 2  # slots of an actor beside the dropping queue
EVENTS = st.lists(st.sampled_from(["actor-0", "actor-1", "learner", "death"]), max_size=60)


class QueueRig(Rig):
    """Two actors, versions of two unrolls, and a queue of four."""

    gate = BlockingQueue
    num_slots = SIZE + PER_VERSION + 2

    def __init__(self, state=None):
        super().__init__(num_slots=self.num_slots)
        self.sent = []
        self.taken = []
        if state is not None:
            self.buffer.load_state(state)
        self.buffer.tick()

    def make_buffer(self, point, max_lag, first_row=0, replay=False):
        plan = QueuePlan(PER_VERSION, SIZE, AT_HAND)
        store = Queue(self.stream, LAYOUT.env_axes())
        return Buffer(self.gate(plan, self.stream, self.rows), store, self.progress, first_row)

    def send_if_granted(self, actor):
        """Return whether the actor had a place for the unroll that it sends."""
        if not self.granted()[actor]:
            return False
        self.sent.append((self.granted()[actor][0], actor))
        self.send(actor)
        self.buffer.tick()
        return True

    def make_version_if_due(self):
        """Return whether a batch was there."""
        batch = self.take()
        if batch is None:
            return False
        self.taken += turns(batch)
        self.finish(batch)
        return True


class DroppingRig(QueueRig):
    gate = DroppingQueue
    num_slots = SIZE + PER_VERSION + 2 * (AT_HAND + 1)


def play(rig, events):
    """Actors send where they can and die, the learner takes what is there, in any order."""
    for event in events:
        if event == "learner":
            rig.make_version_if_due()
        elif event == "death":
            rig.replace(0)
            rig.buffer.tick()
        else:
            rig.send_if_granted(int(event[-1]))


def test_actors_start_as_many_unrolls_as_the_queue_has_places():
    rig = QueueRig()
    assert rig.granted() == [[0, 1], [0, 1]]


def test_a_full_queue_makes_actors_wait_until_a_batch_is_taken():
    rig = QueueRig()
    for actor in (0, 1, 0, 1):
        assert rig.send_if_granted(actor)
    assert rig.granted() == [[], []]
    batch = rig.take()
    assert turns(batch) == [(0, 0), (0, 1)], "the oldest first"
    assert rig.granted() == [[2], [2]], "places are free before the learner is done"
    rig.finish(batch)
    assert rig.granted() == [[2], [2]]


def test_the_learner_takes_a_batch_as_soon_as_its_unrolls_are_there():
    rig = QueueRig()
    rig.send_if_granted(0)
    assert not rig.make_version_if_due()
    rig.send_if_granted(0)
    assert rig.make_version_if_due(), "whichever actors they come from"


def test_what_is_old_is_taken_all_the_same_and_its_lag_is_counted():
    rig = QueueRig()
    for actor in (0, 1, 0, 1):
        rig.send_if_granted(actor)
    rig.make_version_if_due()
    rig.make_version_if_due()
    assert rig.buffer.lag.counts() == [2, 2]
    assert rig.buffer.discarded == 0


@given(EVENTS)
def test_blocking_loses_nothing_takes_nothing_twice_and_never_holds_too_much(events):
    rig = QueueRig()
    play(rig, events)
    while rig.make_version_if_due():
        pass
    assert max(Counter(rig.taken).values(), default=1) == 1
    assert len(rig.sent) - len(rig.taken) in (0, 1), "fewer than a batch are left"
    assert set(rig.taken) <= set(rig.sent)
    assert rig.buffer.discarded == 0
    assert sum(map(len, rig.granted())) + len(rig.sent) - len(rig.taken) == SIZE


def test_a_full_queue_drops_its_oldest_unroll_and_counts_it():
    rig = DroppingRig()
    for actor in (0, 1, 0, 1, 0):
        assert rig.send_if_granted(actor), "nobody waits"
    assert rig.buffer.discarded == 1
    rig.make_version_if_due()
    rig.make_version_if_due()
    assert rig.taken == [(0, 1), (1, 0), (1, 1), (2, 0)]


def test_the_oldest_is_dropped_in_whatever_order_lanes_are_read():
    rig = DroppingRig()
    for _ in range(SIZE):
        rig.send_if_granted(1)
    rig.send(0, oldest=-1)
    rig.buffer.tick()
    assert rig.buffer.discarded == 1
    rig.make_version_if_due()
    assert all(actor == 1 for _, actor in rig.taken)


@given(EVENTS)
def test_dropping_never_makes_an_actor_wait_and_counts_all_that_it_drops(events):
    rig = DroppingRig()
    for event in events:
        play(rig, [event])
        assert [len(granted) for granted in rig.granted()] == [AT_HAND, AT_HAND]
    while rig.make_version_if_due():
        pass
    assert max(Counter(rig.taken).values(), default=1) == 1
    assert len(rig.sent) - len(rig.taken) - rig.buffer.discarded in (0, 1)


def test_unrolls_that_wait_are_made_again_after_a_resume():
    for made in (QueueRig, DroppingRig):
        rig = made()
        for actor in (0, 1, 0):
            rig.send_if_granted(actor)
        rig.make_version_if_due()
        state = rig.buffer.state()
        assert state["rounds"] == [1, 1]
        assert [granted[0] for granted in made(state).granted()] == [1, 1]
