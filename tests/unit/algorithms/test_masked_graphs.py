"""Action masks where updates and inference run as they do on a GPU, on graphs that a CPU runs."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig, queue_batch
from tests.fakes.graphs import use_fake_graphs
from tianji.algorithms.accelerators.gpu import GpuRows
from tianji.algorithms.accelerators.lanes import GpuLanes, HostLanes
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.models.masks import IMPOSSIBLE
from tianji.models.optimizers import GpuOptimizer


@pytest.fixture
def on_gpu(monkeypatch):
    """Let updates run as on a GPU."""
    process = Preprocessor.process
    monkeypatch.setattr(
        Preprocessor,
        "process",
        lambda self, batch: dataclasses.replace(process(self, batch), is_padded=True),
    )
    for name in ("ppo", "impala"):
        monkeypatch.setattr(f"tianji.algorithms.{name}.update.build_optimizer", GpuOptimizer)
    use_fake_graphs(monkeypatch)


@pytest.mark.parametrize("name", ["ppo", "impala"])
@pytest.mark.parametrize("action", ["discrete", "multidiscrete"])
def test_updates_of_fixed_shapes_are_those_of_plain_ones(name, action, request):
    """GELU has no closed form: both differentiate the loss."""
    model = {"activation": "gelu"}
    plain = Rig(name, action=action, has_masks=True, model=model)
    unroll = plain.unroll(3)
    unroll["valid"][:] = True
    unroll["log_prob"] += 0.1
    expected = plain.train(queue_batch(unroll))
    request.getfixturevalue("on_gpu")
    graphed = Rig(name, action=action, has_masks=True, model=model)
    found = graphed.train(queue_batch(unroll))
    assert found == pytest.approx(expected, rel=1e-2, abs=1e-4)
    torch.testing.assert_close(graphed.parameters(), plain.parameters(), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("kind", [HostLanes, GpuLanes])
@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_server_leaves_out_illegal_actions(kind, name, request):
    rig = Rig(name, has_masks=True)
    unrolls = [rig.unroll(seed) for seed in range(3)]
    request.getfixturevalue("on_gpu")
    slots = {key: np.stack([unroll[key] for unroll in unrolls]) for key in unrolls[0]}
    space, network = rig.spaces.observation, rig.acting.network
    if kind is HostLanes:
        lanes = HostLanes(network, space, slots)
    else:
        lanes = GpuLanes(network, space, slots, 3, torch.device("cpu"))
    outputs = np.zeros((3, 4, 3), np.float32)
    lanes.evaluate([(0, 2, 1), (2, 0, 5)], outputs)
    for lane, slot, row in ((0, 2, 1), (2, 0, 5)):
        mask = slots["obs.action_mask"][slot, row]
        obs = {key: slots[key][slot, row] for key in ("obs", "obs.action_mask")}
        assert (outputs[lane][mask == 0] == np.float32(IMPOSSIBLE)).all()
        np.testing.assert_allclose(outputs[lane], rig.acting.evaluate(obs), rtol=1e-5, atol=1e-6)


def test_an_actor_on_a_gpu_leaves_out_illegal_actions(request):
    rig = Rig("ppo", has_masks=True)
    unroll = rig.unroll(0)
    request.getfixturevalue("on_gpu")
    rows = GpuRows(rig.acting.network.forward, rig.spaces.observation, torch.device("cpu"))
    rows.begin(unroll)
    outputs = np.zeros((4, 3), np.float32)
    for t in range(3):
        rows.submit(unroll, t)
        rows.collect(outputs)
        is_legal = unroll["obs.action_mask"][t] != 0
        assert (outputs[~is_legal] == np.float32(IMPOSSIBLE)).all()
        assert (np.abs(outputs[is_legal]) < 10).all()
