"""Products by oneDNN against torch.bmm, for the shapes that a closed form multiplies."""

import pytest
import torch

from tianji.algorithms.accelerators import products

SIZES = [(1, 64, 256, 256), (2, 256, 256, 256), (2, 300, 230, 70)]
needs_one_dnn = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="this torch has no oneDNN"
)


@pytest.fixture
def one_dnn(monkeypatch):
    """Multiply with oneDNN on every processor; fail where it was not asked."""
    asked, multiply = [], products._multiply_each
    monkeypatch.setattr(products, "has_slow_mkl", lambda: True)
    monkeypatch.setattr(products, "LARGE", 0)
    monkeypatch.setattr(
        products, "_multiply_each", lambda *args: (asked.append(1), multiply(*args))
    )
    yield
    assert asked


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@needs_one_dnn
@pytest.mark.parametrize(("nets", "rows", "inner", "width"), SIZES)
def test_layers_with_a_bias(one_dnn, nets, rows, inner, width):
    x, weight, bias = random(nets, rows, inner), random(nets, inner, width), random(nets, 1, width)
    out = torch.empty(nets, rows, width)
    products.add_product(bias, x, weight, out)
    torch.testing.assert_close(out, torch.baddbmm(bias, x, weight), rtol=1e-4, atol=1e-3)


@needs_one_dnn
@pytest.mark.parametrize(("nets", "rows", "inner", "width"), SIZES)
def test_gradients_of_weights_and_inputs_whose_factors_are_transposed(
    one_dnn, nets, rows, inner, width
):
    shared = random(rows, inner).expand(nets, -1, -1)  # features, the same for all networks
    e, weight = random(nets, rows, width), random(nets, inner, width)
    by_weights, by_inputs = torch.empty(nets, inner, width), torch.empty(nets, rows, inner)
    products.multiply(shared.mT, e, by_weights)
    products.multiply(e, weight.mT, by_inputs)
    torch.testing.assert_close(by_weights, shared.mT @ e, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(by_inputs, e @ weight.mT, rtol=1e-4, atol=1e-3)


@needs_one_dnn
def test_some_rows_of_a_layer(one_dnn):
    whole, weight = random(2, 96, 32), random(2, 32, 48)
    out = torch.empty(2, 40, 48)
    products.multiply(whole[:, :40], weight, out)
    torch.testing.assert_close(out, whole[:, :40] @ weight, rtol=1e-4, atol=1e-4)


@needs_one_dnn
@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch has no MKL")
def test_large_products_go_to_one_dnn_on_other_processors(monkeypatch):
    asked = []
    monkeypatch.setattr(products, "_multiply_each", lambda *args: asked.append(args[2].shape))
    monkeypatch.setattr(products, "vendor", lambda: "AuthenticAMD")
    products.has_slow_mkl.cache_clear()
    x, rows = random(2, 256, 256), random(2, 64, 256)
    products.multiply(x, x, torch.empty_like(x))
    products.add_product(x[:, :1], rows, x, torch.empty_like(rows))
    products.has_slow_mkl.cache_clear()
    assert asked == [(2, 256, 256), (2, 64, 256)]


@pytest.mark.parametrize(("vendor", "size"), [("GenuineIntel", 256), ("AuthenticAMD", 64)])
def test_intel_processors_and_small_products_stay_with_mkl(monkeypatch, vendor, size):
    def fail(*_):
        raise AssertionError("oneDNN was asked")

    monkeypatch.setattr(products, "_multiply_each", fail)
    monkeypatch.setattr(products, "vendor", lambda: vendor)
    products.has_slow_mkl.cache_clear()
    x = random(1, size, size)
    products.multiply(x, x, torch.empty_like(x))
    products.add_product(x[:, :1], x, x, torch.empty_like(x))
    products.has_slow_mkl.cache_clear()
