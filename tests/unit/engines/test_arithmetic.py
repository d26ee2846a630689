"""Numbers too small for the format are zero while a run goes on, and only then."""

import pytest
import torch

from tianji.engines.arithmetic import arithmetic_of_a_run


@pytest.fixture
def one_thread():
    """Threads that torch started before keep their own arithmetic."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def is_flushing():
    return bool((torch.full((1,), 1e-40) * 1.0 == 0.0).item())


def test_the_averages_of_a_unit_without_gradients_decay_to_zero(one_thread):
    weight = torch.nn.Parameter(torch.ones(64))
    adam = torch.optim.Adam([weight], lr=1e-3, fused=True)
    with arithmetic_of_a_run():
        weight.grad = torch.ones(64)
        adam.step()
        weight.grad = torch.zeros(64)
        for _ in range(1000):
            adam.step()
    assert adam.state[weight]["exp_avg"].abs().max() == 0.0


def test_the_caller_gets_its_own_arithmetic_back():
    before = torch.get_num_threads()
    for was_flushing in (True, False):
        torch.set_flush_denormal(was_flushing)
        with arithmetic_of_a_run():
            assert is_flushing()
            torch.set_num_threads(before + 1)
        assert is_flushing() is was_flushing
        assert torch.get_num_threads() == before
