"""A buffer in a worker of its own, with both ends in this process: a wait lets the buffer work."""

import os

import numpy as np
import pytest

from tests.unit.buffer.rig import Rig, turns
from tianji.buffer.remote import RemoteBuffer, ServedBuffer, Told
from tianji.channels.gauges import GAUGE_WORDS
from tianji.channels.messages import MessageReceiver, MessageSender
from tianji.config.run import RunConfig
from tianji.learner.progress import Progress


class Bell:
    def __init__(self, work):
        self._work = work

    def arm(self):
        pass

    def wait(self, timeout_s):
        self._work()


def stream(capacity):
    slots = [os.memfd_create("messages") for _ in range(capacity)]
    return MessageSender(slots, lambda: None), MessageReceiver(slots)


class Split(Rig):
    """The rig's buffer behind messages; `progress` is what the learner was told."""

    def __init__(self, **values):
        super().__init__(**values)
        self.served_buffer, told = self.buffer, Told()
        self.served_buffer._episodes._progress = told
        batches, feedback, answers = stream(1), stream(4), stream(1)
        self.served = ServedBuffer(self.buffer, told, batches[0], feedback[1], answers[0])
        self.progress = Progress(RunConfig(algorithm="ppo"))
        row = memoryview(bytearray(8 * GAUGE_WORDS)).cast("q")
        ends = batches[1], feedback[0], answers[1], Bell(self.served.tick), row
        self.buffer = RemoteBuffer(self.progress, *ends)

    def begin(self, version=0):
        self.buffer.continue_at(version)
        self.work()
        return self

    def work(self):
        while self.served.tick():
            pass

    def take(self):
        batch = self.buffer.take()
        self.work()
        return batch or self.buffer.take()


def test_nothing_happens_before_the_learner_begins():
    rig = Split()
    rig.work()
    assert rig.granted() == [[], []]
    rig.begin()
    assert rig.granted() != [[], []]


@pytest.mark.parametrize("replay", [False, True])
def test_batches_are_those_of_a_buffer_in_the_same_process(replay):
    one, other = Rig(replay=replay), Split(replay=replay).begin()
    one.buffer.tick()
    for number in range(4):
        batches = []
        for rig in (one, other):
            for actor in (0, 1):
                rig.stream.arrays["reward"][:] = number
                rig.send(actor, episodes=[(3, 1, float(number), 4, number)])
            batches.append(rig.take())
        here, there = batches
        for name, array in here.arrays.items():
            assert np.array_equal(array, there.arrays[name]), name
        for name in ("stamps", "num_items", "num_steps", "unique_steps"):
            assert getattr(here, name) == getattr(there, name)
        assert np.array_equal(here.keys, there.keys) if replay else there.keys is None
        assert one.progress.record(0) == other.progress.record(0)
        one.finish(here)
        other.finish(there)
        other.work()
    assert one.granted() == other.granted()
    assert one.buffer.record() == other.buffer.record()
    assert _plain(one.buffer.state()) == _plain(other.buffer.state())


def _plain(state):
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def test_a_batch_is_taken_only_when_the_learner_wants_one():
    rig = Split().begin()
    for actor in (0, 1):
        rig.send(actor)
    rig.work()
    assert rig.buffer.record()["items_taken"] == 0
    assert turns(rig.take()) == [(0, 0), (0, 1)]
    assert rig.buffer.record()["items_taken"] == 2


def test_a_state_comes_back_whole():
    rig = Split(replay=True).begin()
    rig.make_version(0, 1)
    state = rig.buffer.state()
    other = Split(replay=True)
    other.buffer.load_state(state)
    other.begin(1)
    assert _plain(other.buffer.state()) == _plain(state)
    assert other.served_buffer._gate.version == 1


def test_a_wish_is_withdrawn_unless_the_batch_is_on_its_way():
    rig = Split().begin()
    assert rig.buffer.withdraw(), "nothing was wanted"
    assert rig.take() is None
    assert rig.buffer.withdraw()
    for actor in (0, 1):
        rig.send(actor)
    rig.work()
    assert rig.buffer.record()["items_taken"] == 0, "not wanted any more"
    assert rig.buffer.take() is None
    rig.work()
    assert not rig.buffer.withdraw(), "it must be used"
    assert rig.buffer.take() is not None


def test_priorities_reach_the_store():
    rig = Split(replay=True).begin()
    seen = []
    rig.served_buffer._store.finish = lambda batch, priorities: seen.append((batch, priorities))
    for actor in (0, 1):
        rig.send(actor)
    batch = rig.take()
    rig.buffer.finish(batch, 1, np.arange(len(batch.keys), dtype=np.float32))
    rig.work()
    ((given, priorities),) = seen
    assert given.keys.tolist() == batch.keys.tolist()
    assert priorities.tolist() == list(range(len(batch.keys)))


def test_news_come_once_even_when_an_answer_is_awaited():
    rig = Split().begin()
    news = [["actor-1 is back"]]
    rig.served_buffer.news = lambda: news.pop() if news else []
    rig.work()
    assert rig.buffer.record()["items_put"] == 0, "the answer has its room once the news are read"
    assert rig.buffer.news() == ["actor-1 is back"]
    assert rig.buffer.news() == []


def test_the_buffer_ends_when_the_learner_says_so():
    rig = Split().begin()
    assert not rig.served.is_over
    rig.buffer.end()
    rig.work()
    assert rig.served.is_over
