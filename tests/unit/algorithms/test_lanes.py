"""Rows of several actors evaluated together give what each alone would give."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.fakes.graphs import Calls, FakeGraph, use_fake_graphs
from tianji.algorithms.accelerators.inference import HostRows, Network, build_inference
from tianji.algorithms.accelerators.lanes import GpuLanes, HostLanes
from tianji.devices.twins import TWINS
from tianji.envs.spaces import Frames, observation_leaves
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.stacked import StackedNet
from tianji.types import AGE, OBS, leaf_name

SLOTS, ROWS, ENVS, OUTPUTS, LANES = 5, 6, 3, 4, 3
FRAMES = Frames(4, (36, 36))
MIXED = spaces.Dict({"camera": FRAMES, "speed": spaces.Box(-1, 1, (2,), np.float32)})
VECTOR = spaces.Box(-1, 1, (3,), np.float32)


def make_slots(space):
    rng = np.random.default_rng(0)
    slots = {}
    for leaf in observation_leaves(space):
        history = max(0, leaf.num_frames - 1)
        shape = (SLOTS, history + ROWS + 1, ENVS, *leaf.shape[-2 if history else 0 :])
        whole = rng.integers(256, size=shape) if leaf.dtype == "uint8" else rng.random(shape)
        slots[leaf_name(OBS, leaf.key)] = whole.astype(leaf.dtype)
        if history:
            ages = rng.integers(5, size=(SLOTS, ROWS + 1, ENVS))
            slots[leaf_name(AGE, leaf.key)] = ages.astype(np.uint8)
    return slots


def make_network(space):
    torch.manual_seed(0)
    encoder = Encoder(observation_leaves(space), False, 10.0)
    return Network(StackedNet(encoder, (8,), "tanh", (OUTPUTS,), (1.0,)), 0, OUTPUTS)


def alone(network, space, slots, slot, row):
    rows = HostRows(build_inference(network.net, network.number), space)
    unroll, out_NA = {name: x[slot] for name, x in slots.items()}, np.empty((ENVS, OUTPUTS), "f4")
    rows.begin(unroll)
    rows.submit(unroll, row)
    rows.collect(out_NA)
    return out_NA


def make_lanes(kind, network, space, slots):
    if kind is HostLanes:
        return HostLanes(network, space, slots)
    return GpuLanes(network, space, slots, LANES, torch.device("cpu"))


@pytest.mark.parametrize("space", [FRAMES, MIXED, VECTOR], ids=["frames", "mixed", "vector"])
@pytest.mark.parametrize("kind", [HostLanes, GpuLanes])
def test_lanes_compute_what_each_actor_would(space, kind):
    network, slots = make_network(space), make_slots(space)
    lanes = make_lanes(kind, network, space, slots)
    out_LNA = np.zeros((LANES, ENVS, OUTPUTS), np.float32)
    for requests in (
        [(0, 3, 0), (1, 1, 2), (2, 0, 5)],
        [(1, 1, 3)],
        [(0, 3, 1), (1, 1, 4)],
        [(1, 4, 0), (2, 0, 6)],
    ):
        lanes.evaluate(requests, out_LNA)
        for lane, slot, row in requests:
            expected = alone(network, space, slots, slot, row)
            np.testing.assert_allclose(out_LNA[lane], expected, rtol=1e-5, atol=1e-6)


def test_a_row_is_uploaded_once_and_a_slot_that_begins_anew_as_a_whole():
    network, slots = make_network(FRAMES), make_slots(FRAMES)
    lanes = make_lanes(GpuLanes, network, FRAMES, slots)
    out_LNA, row_bytes = np.zeros((LANES, ENVS, OUTPUTS), np.float32), ENVS * 36 * 36
    sizes = []
    for slot, row in [(2, 0), (2, 1), (2, 2), (2, 0), (3, 1), (3, 2)]:
        before = lanes.uploaded_bytes
        lanes.evaluate([(0, slot, row)], out_LNA)
        sizes.append((lanes.uploaded_bytes - before) // row_bytes)
    assert sizes == [4, 1, 1, 4, 5, 1]


def test_what_an_actor_wrote_anew_is_seen():
    """An actor that takes over fills the same slot with other frames."""
    network, slots = make_network(FRAMES), make_slots(FRAMES)
    lanes = make_lanes(GpuLanes, network, FRAMES, slots)
    out_LNA = np.zeros((LANES, ENVS, OUTPUTS), np.float32)
    lanes.evaluate([(0, 2, 3)], out_LNA)
    slots["obs"][2] = 255 - slots["obs"][2]
    lanes.evaluate([(0, 2, 0)], out_LNA)
    expected = alone(network, FRAMES, slots, 2, 0)
    np.testing.assert_allclose(out_LNA[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("space", [FRAMES, MIXED, VECTOR], ids=["frames", "mixed", "vector"])
def test_the_twin_gets_the_rows_that_were_asked_for_and_no_others(space, monkeypatch):
    """Graphs have sizes of 1, 2 and 4: the rows that fill them up must not be written."""
    use_fake_graphs(monkeypatch)
    network, slots = make_network(space), make_slots(space)
    lanes = make_lanes(GpuLanes, network, space, slots)
    names = [leaf_name(OBS, leaf.key) for leaf in observation_leaves(space)]
    twins = {name: TWINS.of(slots[name][0])[0] for name in names}
    for twin in twins.values():
        twin.tensor.fill_(77)
    out_LNA = np.zeros((LANES, ENVS, OUTPUTS), np.float32)
    wanted = {name: twin.tensor.clone() for name, twin in twins.items()}
    for requests in ([(0, 3, 0), (1, 1, 2), (2, 4, 5)], [(1, 1, 3)], [(0, 3, 1), (2, 0, 0)]):
        lanes.evaluate(requests, out_LNA)
        for lane, slot, row in requests:
            expected = alone(network, space, slots, slot, row)
            np.testing.assert_allclose(out_LNA[lane], expected, rtol=1e-5, atol=1e-6)
            for name, twin in twins.items():
                end = slots[name].shape[1] - ROWS - 1 + row + 1
                wanted[name][slot, :end] = torch.from_numpy(slots[name][slot, :end])
                assert (twin.ready[slot], twin.num_rows[slot]) == (None, end)
    for name, twin in twins.items():
        assert torch.equal(twin.tensor, wanted[name])


@pytest.mark.parametrize("count", [1, 3])
def test_an_evaluation_is_a_copy_a_graph_and_a_copy(count, monkeypatch):
    use_fake_graphs(monkeypatch)
    network, slots = make_network(FRAMES), make_slots(FRAMES)
    lanes = make_lanes(GpuLanes, network, FRAMES, slots)
    out_LNA = np.zeros((LANES, ENVS, OUTPUTS), np.float32)
    for row in range(2):
        lanes.evaluate([(lane, lane, row) for lane in range(count)], out_LNA)
    FakeGraph.num_launches = 0
    with Calls() as calls:
        lanes.evaluate([(lane, lane, 2) for lane in range(count)], out_LNA)
    assert (FakeGraph.num_launches, calls.count) == (1, 2)
