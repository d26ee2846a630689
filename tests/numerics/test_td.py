import pytest
import torch
import torch.nn.functional as F

from tianji.algorithms.dqn.loss import td_loss


@pytest.mark.parametrize("loss", ["huber", "mse"])
def test_loss_is_torchs(loss):
    error = torch.linspace(-3, 3, 13)
    kind = F.huber_loss if loss == "huber" else lambda x, y, reduction: 0.5 * (x - y) ** 2
    expected = kind(error, torch.zeros(13), reduction="none")
    torch.testing.assert_close(td_loss(error, loss), expected)
