"""Both ends of the experiment in one process, over either stream, watched by a third party."""

from tests.unit.channels.ends import make_bell, make_bells
from tianji.bench import point as bench_point
from tianji.bench.message import PAYLOAD, make_layout
from tianji.bench.receiving import VirtualBuffer
from tianji.bench.sender import VirtualActor
from tianji.channels.inproc import InprocStream
from tianji.channels.shm import ShmReceiver, ShmSender, StreamMemory

SIZE = 64


def keep_few(monkeypatch):
    """16 slots of that size instead of 64 MB: the oldest give way soon."""
    monkeypatch.setattr(bench_point, "REGION_BYTES", 16 * SIZE)
    monkeypatch.setattr(bench_point, "WINDOW_BYTES", 4 * SIZE)


def inproc_ends(point):
    stream = InprocStream(make_layout(point.size_bytes), point.num_slots, point.num_actors)
    return stream, [stream.sender(lane) for lane in range(point.num_actors)]


def shm_ends(point):
    memory = StreamMemory.create(make_layout(point.size_bytes), point.num_slots, point.num_actors)
    receiver = ShmReceiver(memory, make_bells(point.num_actors))
    bell = make_bell()
    return receiver, [ShmSender(memory, lane, bell) for lane in range(point.num_actors)]


ENDS = {"inproc": inproc_ends, "shm": shm_ends}


class Watched:
    """A receiver that notes what is asked of it, and that kept messages stay as they came."""

    def __init__(self, receiver):
        self._receiver = receiver
        self.arrays, self.num_lanes = receiver.arrays, receiver.num_lanes
        self.stamp, self.is_attached = receiver.stamp, receiver.is_attached
        self.kept = {}
        """The bytes of every message by its slot, the oldest first."""
        self.seen = []
        self.granted = [0] * self.num_lanes
        self.expected = []

    def bytes_in(self, slot):
        return self.arrays[PAYLOAD][slot].tobytes()

    def take(self):
        slot = self._receiver.take()
        if slot is not None:
            assert slot not in self.kept, "a slot that is kept was written"
            self.kept[slot] = self.bytes_in(slot)
            self.seen.append(self.kept[slot])
        return slot

    def release(self, slot):
        assert slot == next(iter(self.kept)), "not the oldest gives way"
        assert self.kept.pop(slot) == self.bytes_in(slot), "a kept message was altered"
        self._receiver.release(slot)

    def grant(self, lane, round_number, count=1):
        granted = self._receiver.grant(lane, round_number, count)
        assert granted == count, "a sender starves"
        self.granted[lane] += granted
        return granted

    def expect(self, count):
        self.expected.append((count, len(self.seen)))
        self._receiver.expect(count)


def run_through(point, ends):
    """The whole experiment; what the watcher saw, the buffer and the actors."""
    receiver, senders = ENDS[ends](point)
    watched = Watched(receiver)
    buffer = VirtualBuffer(point, watched)
    actors = [VirtualActor(point, lane, sender) for lane, sender in enumerate(senders)]
    for num_messages in (point.num_warmup, point.num_messages):
        buffer.collect(num_messages)
        for _ in range(num_messages):
            for actor in actors:
                actor.tick()
            buffer.tick()
            if buffer.is_complete():
                break
    assert buffer.is_complete()
    return watched, buffer, actors
