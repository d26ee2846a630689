import torch

from tianji.algorithms.actor_critic.experience import approximate_kl


def test_approximate_kl_is_close_to_the_true_one():
    old, new = torch.tensor([0.5, 0.5]), torch.tensor([0.55, 0.45])
    log_ratio = (new / old).log()
    draws = log_ratio.repeat(1000)
    true = (old * (old / new).log()).sum()
    torch.testing.assert_close(approximate_kl(draws), true, rtol=1e-3, atol=0)
