"""PPO's updates as graphs over memory that every launch uses again, on graphs that a CPU runs."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.fakes.experience import Rig, queue_batch
from tests.fakes.graphs import Calls, FakeGraph, use_fake_graphs
from tests.unit.algorithms.test_padded import ENVS, ROWS, SPACES, make_batch
from tianji.algorithms.actor_critic.preprocessor import Preprocessor
from tianji.algorithms.registry import load_algorithm
from tianji.config.run import RunConfig
from tianji.errors import TrainingDiverged
from tianji.models.optimizers import GpuOptimizer
from tianji.models.tensors import flatten
from tianji.types import PLACE, Batch, Parts, Stamp

SETTINGS = {"epochs": 3, "minibatch_size": 7, "unroll_length": ROWS, "learning_rate": 3e-3}
NUM_UPDATES = 3 * 4


@pytest.fixture
def on_gpu(monkeypatch):
    """Let updates run as on a GPU."""
    process = Preprocessor.process
    monkeypatch.setattr(
        Preprocessor,
        "process",
        lambda self, batch: dataclasses.replace(process(self, batch), is_padded=True),
    )
    monkeypatch.setattr("tianji.algorithms.ppo.update.build_optimizer", GpuOptimizer)
    use_fake_graphs(monkeypatch)


def build(**more):
    config = RunConfig(num_envs=ENVS, algorithm={"name": "ppo", **SETTINGS, **more})
    torch.manual_seed(0)
    algorithm = load_algorithm("ppo")
    model = algorithm.build_model(SPACES, config)
    return model, algorithm.build_update(model, SPACES, config)


def train(update, batches, max_updates=None):
    found = []
    for batch in batches:
        for number, minibatch in enumerate(update.minibatches(batch, 0.0)):
            if number == max_updates:
                break
            minibatch.gradient()
            minibatch.step()
        found.append(update.metrics())
    return found


def in_parts(batch):
    """Return the batch as two unrolls whose frames are left in their slots."""
    slots = tuple(np.ascontiguousarray(x) for x in np.split(batch.arrays["obs"], 2, 1))
    return Batch({**batch.arrays, "obs": Parts(slots, 1)}, batch.stamps, 2, batch.num_steps)


@pytest.mark.parametrize("max_updates", [None, 5])
@pytest.mark.parametrize("is_in_parts", [False, True])
def test_versions_are_those_of_plain_updates(is_in_parts, max_updates, request):
    """All rows are valid, so that minibatches are the same. A version that is cut short has drawn
    other orders, so that the next one differs."""
    batches = [make_batch(seed, 1.0) for seed in range(1 if max_updates else 3)]
    plain_model, plain = build()
    expected = train(plain, batches, max_updates)
    request.getfixturevalue("on_gpu")
    model, update = build()
    given = [in_parts(batch) for batch in batches] if is_in_parts else batches
    found = train(update, given, max_updates)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-2, abs=1e-4)
    torch.testing.assert_close(
        flatten(model).vector_P, flatten(plain_model).vector_P, rtol=1e-2, atol=1e-4
    )
    assert torch.equal(update.state()["generator"], plain.state()["generator"]) or max_updates


def test_advantages_go_on_from_one_unroll_to_the_next(request):
    """Columns 2 and 3 are the first two environments, one unroll later."""
    batch = make_batch(0, 1.0)
    stamps = tuple(Stamp(0, round_, 0, 0, 0, 0, 0) for round_ in range(2))
    place = np.repeat([[0, 0, ROWS], [0, ROWS, ROWS]], 2, 0)
    joined = Batch({**batch.arrays, PLACE: place}, stamps, 2, batch.num_steps)
    (alone,) = train(build()[1], [batch])
    plain_model, plain = build()
    (expected,) = train(plain, [joined])
    assert expected != pytest.approx(alone, rel=1e-2, abs=1e-4)
    request.getfixturevalue("on_gpu")
    model, update = build()
    assert train(update, [joined])[0] == pytest.approx(expected, rel=1e-2, abs=1e-4)
    torch.testing.assert_close(
        flatten(model).vector_P, flatten(plain_model).vector_P, rtol=1e-2, atol=1e-4
    )


def test_an_early_stop_draws_no_orders_that_are_not_used(request):
    batch, more = make_batch(0, 1.0), {"target_kl": 1e-9, "epochs": 4}
    _, plain = build(**more)
    expected = train(plain, [batch])
    request.getfixturevalue("on_gpu")
    _, update = build(**more)
    assert train(update, [batch])[0] == pytest.approx(expected[0], rel=1e-2, abs=1e-4)
    assert torch.equal(update.state()["generator"], plain.state()["generator"])


def test_the_calls_of_a_version_do_not_grow_with_its_rows(on_gpu):
    """Each update is two launches. What else is called is called once for the whole batch."""
    _, update = build()
    train(update, [make_batch(0, 0.8)])
    FakeGraph.num_launches = 0
    with Calls() as calls:
        train(update, [in_parts(make_batch(1, 0.8))])
    assert FakeGraph.num_launches == 2 * NUM_UPDATES + 2
    assert calls.count < 30, "views of arrays count too"


@pytest.mark.parametrize(("field", "name"), [("reward", "rewards"), ("log_prob", "policy outputs")])
def test_a_gradient_that_is_not_finite_is_found_and_changes_nothing(field, name, on_gpu):
    model, update = build(normalize_advantage=False, decoupled=False)
    train(update, [make_batch(0, 1.0)])
    before = flatten(model).vector_P.clone()
    batch = make_batch(1, 1.0)
    batch.arrays[field][:] = np.nan
    with pytest.raises(TrainingDiverged, match=f"first quantity to go wrong: {name}"):
        train(update, [batch])
    assert torch.equal(flatten(model).vector_P, before)


@pytest.mark.parametrize("observation", ["vector", "image", "tree"])
@pytest.mark.parametrize("action", ["discrete", "multidiscrete", "box"])
@pytest.mark.parametrize("keeps_final", [False, True])
def test_all_kinds_of_observations_and_actions(observation, action, keeps_final, request):
    """Plain updates leave out rows that are not valid; here they have weight 0."""
    more = {"epochs": 1, "minibatch_size": 64}
    kind = {"observation": observation, "action": action, "settings": more}
    kind["keeps_final"] = keeps_final
    plain = Rig("ppo", model={"activation": "gelu"}, **kind)
    batches = [queue_batch(plain.unroll(seed)) for seed in range(2)]
    expected = [plain.train(batch) for batch in batches]
    request.getfixturevalue("on_gpu")
    rig = Rig("ppo", model={"activation": "gelu"}, **kind)
    for batch, metrics in zip(batches, expected, strict=True):
        assert rig.train(batch) == pytest.approx(metrics, rel=1e-2, abs=1e-4)
