import numpy as np
import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import IMAGE, VECTOR
from tianji.algorithms.accelerators.inference import (
    NumpyInference,
    ObservationReader,
    TorchInference,
    build_inference,
)
from tianji.envs.spaces import observation_leaves
from tianji.models.networks.encoder import Encoder
from tianji.models.networks.stacked import StackedNet
from tianji.models.statistics import ObservationStatistics
from tianji.models.tensors import flatten

MIXED = spaces.Dict({"x": spaces.Box(-1, 1, (2, 2), np.float32), "m": spaces.Discrete(3)})


def net(space, activation="tanh", normalize=False, hidden=(8, 6)):
    torch.manual_seed(0)
    encoder = Encoder(observation_leaves(space), normalize, 10.0)
    return StackedNet(encoder, hidden, activation, (3, 1), (1.0, 1.0))


def arrays(space, rows=5):
    batch = [space.sample() for _ in range(rows)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([x[key] for x in batch]) for key in space}
    return {"": np.stack(batch)}


def run(inference, obs, rows=5):
    out = np.full((rows, 3), np.nan, np.float32)
    inference.refresh()
    inference(obs, out)
    return out


@pytest.mark.parametrize("space", [VECTOR, MIXED])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("hidden", [(), (8, 6)])
def test_numpy_computes_what_the_module_computes(space, activation, normalize, hidden):
    made = net(space, activation, normalize, hidden)
    seen = {key: torch.from_numpy(x) * 3 for key, x in arrays(space, 50).items()}
    ObservationStatistics(made).update(seen)
    inference = build_inference(made, 0)
    assert isinstance(inference, NumpyInference)
    obs = arrays(space)
    expected = made({key: torch.from_numpy(x) for key, x in obs.items()})[0]
    np.testing.assert_allclose(run(inference, obs), expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("space", "activation"), [(IMAGE, "tanh"), (VECTOR, "gelu")])
def test_other_networks_run_in_torch(space, activation):
    made = net(space, activation)
    inference = build_inference(made, 0)
    assert isinstance(inference, TorchInference)
    obs = arrays(space)
    expected = made({key: torch.from_numpy(x) for key, x in obs.items()})[0]
    np.testing.assert_allclose(run(inference, obs), expected.detach(), rtol=1e-4, atol=1e-5)


def test_new_parameters_are_seen_at_once_and_moved_ones_after_refresh():
    made = net(VECTOR)
    inference = build_inference(made, 0)
    obs = arrays(VECTOR)
    before = run(inference, obs)
    flat = flatten(made)
    after_move = run(inference, obs)
    np.testing.assert_array_equal(after_move, before)
    flat.vector_P.zero_()
    out = np.empty((5, 3), np.float32)
    inference(obs, out)
    assert not out.any()


def test_the_number_of_rows_may_change():
    inference = build_inference(net(VECTOR), 0)
    obs = arrays(VECTOR, 9)
    whole = run(inference, obs, 9)
    np.testing.assert_allclose(run(inference, {"": obs[""][:2]}, 2), whole[:2], rtol=1e-5)


def test_a_reader_finds_leaves_by_name_and_type():
    reader = ObservationReader(MIXED)
    unroll = {"obs.x": np.zeros((4, 2, 2, 2), np.float32), "obs.m": np.arange(8).reshape(4, 2)}
    assert reader.row(unroll, 1)["m"].tolist() == [2, 3]
    given = reader.batch({"obs.x": np.zeros((1, 2, 2), np.float64), "obs.m": np.array([1])})
    assert given["x"].dtype == np.float32
