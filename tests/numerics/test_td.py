import pytest
import torch
import torch.nn.functional as F

from tianji.ops.td import dueling, dueling_gradient, q_target, td_gradient, td_loss


def test_double_target_values_the_online_networks_choice():
    online = torch.tensor([[1.0, 5.0], [2.0, 4.0]])
    target = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    reward, discount = torch.tensor([1.0, 1.0]), torch.tensor([0.5, 0.0])
    assert q_target(reward, discount, target, online).tolist() == [16.0, 1.0]


def test_plain_target_takes_the_targets_own_best():
    target = torch.tensor([[10.0, 20.0], [30.0, 40.0]])
    got = q_target(torch.zeros(2), torch.ones(2), target, None)
    assert got.tolist() == [30.0, 40.0]


@pytest.mark.parametrize("loss", ["huber", "mse"])
def test_loss_and_gradient_are_torchs(loss):
    error = torch.linspace(-3, 3, 13, requires_grad=True)
    kind = F.huber_loss if loss == "huber" else lambda x, y, reduction: 0.5 * (x - y) ** 2
    expected = kind(error, torch.zeros(13), reduction="none")
    torch.testing.assert_close(td_loss(error, loss), expected)
    (gradient,) = torch.autograd.grad(expected.sum(), error)
    torch.testing.assert_close(td_gradient(error.detach(), loss), gradient)


def test_dueling_centres_advantages_and_passes_its_gradient_back():
    advantage = torch.randn(3, 5, requires_grad=True)
    value = torch.randn(1, 5, requires_grad=True)
    q = dueling(advantage, value)
    torch.testing.assert_close(q.mean(0), value[0])
    weight = torch.randn(3, 5)
    expected = torch.autograd.grad((q * weight).sum(), (advantage, value))
    for got, wanted in zip(dueling_gradient(weight), expected, strict=True):
        torch.testing.assert_close(got, wanted)
