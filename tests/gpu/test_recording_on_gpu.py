"""Recording CUDA graphs in a process that has others to throw away."""

import pytest
import torch

from tianji.devices.graphs import Recorded

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_garbage_with_graphs_does_not_spoil_a_recording(monkeypatch):
    monkeypatch.setattr("tianji.devices.graphs.WARM_UPS", 0)  # the first call is the recording
    x = torch.ones(4, device="cuda")
    old = Recorded(lambda x: x + 1)
    old(x)
    old.itself = old  # a cycle: only the garbage collector frees its graph
    held = [old]
    del old

    def add_one(x):
        held.clear()
        parts = [[x] for _ in range(100_000)]  # so many new objects start the collector
        return parts[-1][0] + 1

    assert torch.equal(Recorded(add_one)(x), x + 1)
