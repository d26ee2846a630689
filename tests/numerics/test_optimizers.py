"""Flat optimisers against torch.optim."""

import pytest
import torch
from torch import nn

from tianji.errors import TrainingDiverged
from tianji.models.optimizers import Adam, GpuOptimizer, Optimizer, RMSProp, explain_divergence
from tianji.models.tensors import flatten

RULES = {
    "adam": (lambda flat: Adam(flat, 1e-5), lambda p: torch.optim.Adam(p, eps=1e-5)),
    "rmsprop": (
        lambda flat: RMSProp(flat, 1e-3, 0.9),
        lambda p: torch.optim.RMSprop(p, alpha=0.9, eps=1e-3),
    ),
}


def networks():
    mine, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.load_state_dict(mine.state_dict())
    return mine, flatten(mine), theirs


def no_suspects():
    return {}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("max_norm", [0.5, 1e9])
def test_steps_are_torchs_with_the_norm_clipped(rule, max_norm):
    build, build_torch = RULES[rule]
    mine, flat, theirs = networks()
    optimizer, reference = Optimizer(flat, build(flat), max_norm), build_torch(theirs.parameters())
    for step in range(5):
        torch.manual_seed(step)
        flat.gradient_P.normal_()
        for parameter, source in zip(theirs.parameters(), mine.parameters(), strict=True):
            parameter.grad = source.grad.clone()
        expected_norm = nn.utils.clip_grad_norm_(theirs.parameters(), max_norm)
        for group in reference.param_groups:
            group["lr"] = 0.01 * (step + 1)
        reference.step()
        norm = optimizer.step(0.01 * (step + 1), no_suspects)
        assert norm == pytest.approx(float(expected_norm))
    expected = nn.utils.parameters_to_vector(theirs.parameters())
    torch.testing.assert_close(flat.vector_P, expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_is_refused_and_changes_nothing(bad):
    _, flat, _ = networks()
    optimizer = Optimizer(flat, Adam(flat, 1e-5), 0.5)
    flat.gradient_P.fill_(1.0)
    optimizer.step(0.1, no_suspects)
    parameters, state = flat.vector_P.clone(), optimizer.state()
    flat.gradient_P[3] = bad
    suspects = {"observations": torch.ones(2), "rewards": torch.tensor([1.0, bad])}
    with pytest.raises(TrainingDiverged, match=r"at update 2;.* rewards.* lower learning rate"):
        optimizer.step(0.1, lambda: suspects)
    torch.testing.assert_close(flat.vector_P, parameters, rtol=0, atol=0)
    torch.testing.assert_close(optimizer.state(), state, rtol=0, atol=0)


@pytest.mark.parametrize("rule", RULES)
def test_state_is_a_copy_and_continues_exactly(rule):
    build, _ = RULES[rule]
    _, flat, _ = networks()
    optimizer = Optimizer(flat, build(flat), 0.5)

    def step():
        flat.gradient_P.copy_(torch.linspace(-1, 1, 8))
        optimizer.step(0.1, no_suspects)

    step()
    saved, parameters = optimizer.state(), flat.vector_P.clone()
    step()
    expected = flat.vector_P.clone()
    flat.vector_P.copy_(parameters)
    optimizer = Optimizer(flat, build(flat), 0.5)
    optimizer.load_state(saved)
    step()
    torch.testing.assert_close(flat.vector_P, expected, rtol=0, atol=0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kinds", [(Optimizer, GpuOptimizer), (GpuOptimizer, Optimizer)])
def test_a_checkpoint_moves_between_the_optimizers_of_cpu_and_gpu(rule, kinds):
    build, _ = RULES[rule]
    _, flat, _ = networks()
    first, other = (kind(flat, build(flat), 0.5) for kind in kinds)

    def step(optimizer):
        flat.gradient_P.copy_(torch.linspace(-1, 1, 8))
        return float(optimizer.step(0.1, no_suspects))

    step(first)
    step(first)
    saved, parameters = first.state(), flat.vector_P.clone()
    norm, expected = step(first), flat.vector_P.clone()
    flat.vector_P.copy_(parameters)
    other.load_state(saved)
    assert step(other) == pytest.approx(norm)
    torch.testing.assert_close(flat.vector_P, expected, rtol=1e-6, atol=1e-7)
    mine, theirs = first.state(), other.state()
    assert {n: (x.shape, x.dtype) for n, x in mine.items()} == {
        n: (x.shape, x.dtype) for n, x in theirs.items()
    }
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("rule", RULES)
def test_the_optimizer_of_a_gpu_leaves_out_a_bad_step_and_finds_it_later(rule):
    build, _ = RULES[rule]
    _, flat, _ = networks()
    optimizer = GpuOptimizer(flat, build(flat), 0.5)
    flat.gradient_P.fill_(1.0)
    optimizer.step(0.1, no_suspects)
    parameters, state = flat.vector_P.clone(), optimizer.state()
    flat.gradient_P[3] = float("nan")
    suspects = {"observations": torch.ones(2), "rewards": torch.tensor([1.0, torch.nan])}
    optimizer.step(0.1, no_suspects)
    torch.testing.assert_close(flat.vector_P, parameters, rtol=0, atol=0)
    torch.testing.assert_close(optimizer.state(), state, rtol=0, atol=0)
    figures = {name: float(value) for name, value in optimizer.flags().items()}
    with pytest.raises(TrainingDiverged, match=r"in 1 of the updates up to 2;.* rewards"):
        optimizer.check(figures, lambda: suspects)


@pytest.mark.parametrize(
    ("suspect", "advice"),
    [
        ("observations", "Check with `tianji doctor` that the environment never returns NaN"),
        ("rewards, in the targets of the values", "Check with `tianji doctor` that"),
        ("values", "Try a lower learning rate, and check"),
    ],
)
def test_the_advice_begins_with_the_likely_cause(suspect, advice):
    told = explain_divergence("is nan", {suspect: torch.tensor(float("nan"))})
    assert f"The first quantity to go wrong: {suspect}. {advice}" in told
