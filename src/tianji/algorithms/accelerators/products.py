"""Batched products of matrices, by whichever of torch's two libraries is fast here.

    add_product(bias_K1N, a_KMI, b_KIN, out_KMN)      # out = bias + a b
    multiply(a_KMI, b_KIN, out_KMN)                   # out = a b

Torch multiplies float32 with MKL, which is slow on processors that are not Intel's: 256 x 256 x 256
takes 0.30 ms on one core of an AMD EPYC, and 0.15 ms with oneDNN, which torch brings too. oneDNN
looks its kernel up in every call, for some 10 us, so small products stay with MKL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from tianji.devices.processor import INTEL, vendor

LARGE = 1 << 22
"""Multiplications of one product from which oneDNN is faster there: 64 x 256 x 256. At 128 x 128 x
128 it gains a quarter or loses one, depending on which factor is transposed."""


@functools.cache
def has_slow_mkl() -> bool:
    """Return whether torch has MKL on a processor for which oneDNN is faster. It depends on nothing
    that varies, so that a run can be repeated."""
    has_mkl: Callable[[], bool] = torch.backends.mkl.is_available
    has_one_dnn = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return has_mkl() and has_one_dnn and vendor() not in ("", INTEL)


def add_product(bias_K1N: Tensor, a_KMI: Tensor, b_KIN: Tensor, out_KMN: Tensor) -> None:
    """Write a b plus the bias of each network."""
    if not (is_large(a_KMI, b_KIN) and has_slow_mkl()):
        torch.baddbmm(bias_K1N, a_KMI, b_KIN, out=out_KMN)
        return
    biases = bias_K1N[:, 0].unbind(0)
    _multiply_each(a_KMI, b_KIN, out_KMN, biases)


def multiply(a_KMI: Tensor, b_KIN: Tensor, out_KMN: Tensor) -> None:
    """Write a b."""
    if not (is_large(a_KMI, b_KIN) and has_slow_mkl()):
        torch.bmm(a_KMI, b_KIN, out=out_KMN)
        return
    _multiply_each(a_KMI, b_KIN, out_KMN, [None] * len(out_KMN))


def is_large(a_KMI: Tensor, b_KIN: Tensor) -> bool:
    """Return whether each product is so large that finding a kernel costs little beside it."""
    _, num_rows, num_inner = a_KMI.shape
    return num_rows * num_inner * b_KIN.shape[2] >= LARGE


def _multiply_each(
    a_KMI: Tensor, b_KIN: Tensor, out_KMN: Tensor, biases: tuple[Tensor, ...] | list[None]
) -> None:
    """Multiply with oneDNN, one network after the other."""
    linear = torch.ops.mkldnn._linear_pointwise
    factors = zip(a_KMI.unbind(0), b_KIN.mT.unbind(0), biases, out_KMN.unbind(0), strict=True)
    for a_MI, b_NI, bias_N, out_MN in factors:
        out_MN.copy_(linear(a_MI, b_NI, bias_N, "none", [], ""))
