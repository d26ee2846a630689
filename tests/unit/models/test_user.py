import pytest
import torch
from gymnasium import spaces

from tests.fakes.experience import TREE, VECTOR
from tianji.envs.interface import Spaces
from tianji.errors import UsageError
from tianji.models.networks.build import build_user_net

HERE = "tests.unit.models.user_networks"
PLAIN = Spaces(VECTOR, spaces.Discrete(3))


@pytest.mark.parametrize("name", ["ActorCritic", "WithPolicy"])
def test_outputs_are_brought_into_columns(name):
    net = build_user_net(f"{HERE}:{name}", PLAIN, (3, 1))
    obs = {"": torch.randn(5, 4)}
    outputs, value = net(obs)
    assert outputs.shape == (5, 3)
    assert value.shape == (5, 1)
    torch.testing.assert_close(net.one(obs, 0), outputs)


def test_actors_use_the_networks_own_policy_where_there_is_one():
    net = build_user_net(f"{HERE}:WithPolicy", PLAIN, (3, 1))
    net.module.was_asked = False
    net.one({"": torch.randn(5, 4)}, 0)
    assert net.module.was_asked


def test_dictionaries_of_leaves_arrive_as_dictionaries():
    net = build_user_net(f"{HERE}:Dictionary", Spaces(TREE, spaces.Discrete(3)), (3, 1))
    assert net({"arm.angle": torch.zeros(2, 3)})[1].shape == (2, 1)


def test_a_q_network_gives_one_tensor():
    assert len(build_user_net(f"{HERE}:q_values", PLAIN, (3,))({"": torch.zeros(2, 4)})) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "'nowhere'; it must be 'module:name'"),
        ("no.such.module:net", "No module named"),
        (f"{HERE}:missing", "has no attribute 'missing'"),
        (f"{HERE}:no_module", "returned a str, not a torch.nn.Module"),
        (f"{HERE}:fails", r"fails on observations \(3, 4\) torch.float32: RuntimeError"),
        (f"{HERE}:too_wide", r"shapes \(3, 9\) .*needs \[\(3, 3\), \(3, 1\)\].*policy outputs"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(name, message):
    with pytest.raises(UsageError, match=message):
        build_user_net(name, PLAIN, (3, 1))
