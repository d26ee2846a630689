"""Actors on a CPU choose actions in bfloat16 where that is fast and nothing else was asked for."""

import pytest
import torch

from tests.fakes.specs import make_spec
from tianji.engines.assembly import model as assembly
from tianji.models.tensors import flatten

PIXELS = "tianji.envs.worlds:Pixels"
VECTOR = "tianji.envs.worlds:Counting"


def outputs(tmp_path, monkeypatch, is_fast, env=PIXELS, algorithm="ppo", precision="auto"):
    monkeypatch.setattr(assembly, "is_bfloat16_fast", lambda: is_fast)
    spec = make_spec(tmp_path, env, algorithm={"name": algorithm}, model={"precision": precision})
    model = assembly.acting_model(spec)
    assert flatten(model).vector_P.dtype == torch.float32
    torch.manual_seed(1)
    shape = (8, *spec.spaces.observation.shape)
    obs = torch.randint(256, shape, dtype=torch.uint8) if env == PIXELS else torch.rand(shape)
    with torch.no_grad():
        return model.net.one({"": obs}, 0)


def test_bfloat16_changes_the_outputs_by_its_rounding(tmp_path, monkeypatch):
    slow = outputs(tmp_path, monkeypatch, is_fast=False)
    fast = outputs(tmp_path, monkeypatch, is_fast=True)
    assert fast.dtype == torch.float32
    assert not torch.equal(fast, slow)
    torch.testing.assert_close(fast, slow, rtol=0.05, atol=0.02 * float(slow.abs().max()))


@pytest.mark.parametrize(
    "values",
    [{"precision": "float32"}, {"env": VECTOR}, {"algorithm": "rennala-pg"}],
    ids=["asked for", "no images", "gradients in the actors"],
)
def test_float32_stays_where_it_must(tmp_path, monkeypatch, values):
    slow = outputs(tmp_path, monkeypatch, is_fast=False, **values)
    assert torch.equal(outputs(tmp_path, monkeypatch, is_fast=True, **values), slow)


def test_the_learner_stays_in_float32(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "is_bfloat16_fast", lambda: True)
    spec = make_spec(tmp_path, PIXELS, algorithm={"name": "ppo"})
    assert not assembly.on_device(assembly.build_model(spec), spec, "cpu").net.is_bfloat16
    assert assembly.acting_model(spec).net.is_bfloat16
