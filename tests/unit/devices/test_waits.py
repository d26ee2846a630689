"""Waits for a GPU: what is counted, and whose time it is. On a simulated GPU."""

from types import SimpleNamespace

import pytest
import torch

from tianji.devices import waits
from tianji.devices.waits import Download, Waits, to_host

MS = 10**6


class FakeGpu:
    """Takes a while for everything that it was asked to do, one after the other."""

    def __init__(self):
        self.now_ns = self.free_ns = 0

    def ask(self, duration_ns):
        self.free_ns = max(self.free_ns, self.now_ns) + duration_ns


class FakeEvent:
    def __init__(self, gpu):
        self._gpu = gpu
        self.at_ns = 0

    def record(self):
        self.at_ns = max(self._gpu.free_ns, self._gpu.now_ns)

    def query(self):
        return self._gpu.now_ns >= self.at_ns

    def synchronize(self):
        self._gpu.now_ns = max(self._gpu.now_ns, self.at_ns)

    def elapsed_time(self, end):
        return (end.at_ns - self.at_ns) / 1e6


@pytest.fixture
def gpu(monkeypatch):
    gpu = FakeGpu()
    monkeypatch.setattr(waits, "make_event", lambda has_time=False: FakeEvent(gpu))
    monkeypatch.setattr(waits, "time", SimpleNamespace(monotonic_ns=lambda: gpu.now_ns))
    return gpu


def test_the_time_of_what_came_before_a_mark_is_told_apart(gpu):
    mine = Waits()
    gpu.ask(60 * MS)  # the updates
    mine.mark()
    gpu.ask(20 * MS)  # the copy of the policy
    mine.wait()
    assert (mine.count, mine.earlier_ns) == (1, 60 * MS)
    gpu.ask(20 * MS)
    mine.wait()
    assert mine.earlier_ns == 60 * MS, "a mark divides one wait"


def test_nothing_came_before_where_the_gpu_was_idle(gpu):
    mine = Waits()
    mine.mark()
    gpu.ask(20 * MS)
    mine.wait()
    assert mine.earlier_ns == 0


def test_an_event_that_has_happened_is_no_wait(gpu):
    mine, event = Waits(), FakeEvent(gpu)
    mine.wait_for(event)
    assert mine.count == 0
    gpu.ask(10 * MS)
    event.record()
    mine.wait_for(event)
    assert (mine.count, mine.num_complete) == (1, 0), "later work may still be under way"


def test_others_on_the_same_thread_are_not_counted_as_the_learner(gpu):
    before = waits.WAITS.count
    Waits().wait()
    assert waits.WAITS.count == before


def test_what_is_on_the_host_needs_no_wait():
    before = waits.WAITS.count
    tensor = torch.arange(3.0, dtype=torch.bfloat16)
    assert torch.equal(to_host({"x": tensor})["x"], tensor)
    assert Download(torch.arange(3)).read().tolist() == [0, 1, 2]
    assert waits.WAITS.count == before
