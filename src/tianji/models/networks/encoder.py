"""Observations of any supported space to one vector of features.

Numbers are normalised with statistics that are part of the published policy; images go through
convolutions.

B: rows, V: numbers of all leaves that are not images, F: features, C: channels, H and W: height and
width, D: features of an image.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from tianji.envs.spaces import Leaf
from tianji.models.networks.parts import in_parts
from tianji.models.sizes import (
    NUM_FEATURES,
    RESIDUAL_CHANNELS,
    convolutions,
    image_shape,
    is_image,
)
from tianji.models.tensors import Tensors
from tianji.types import Array

EPSILON = 1e-8


class ImageTorso(nn.Module):
    """The convolutions of Mnih et al. 2015 and their layer of 512, ReLU throughout.

    Images smaller than 36 x 36 get the same three layers with kernels of 3 and strides of 2, 2
    and 1, padded, which work down to 1 x 1. `scale` multiplies the pixels: 1/255 for bytes.
    """

    def __init__(self, shape: tuple[int, ...], scale: float) -> None:
        super().__init__()
        self.axes = image_shape(shape).axes
        self._scale = scale
        layers = [nn.Conv2d(*layer) for layer in convolutions(shape)]
        self.convolutions = nn.ModuleList(layers)
        with torch.no_grad():
            example = torch.zeros(1, *shape)
            num_flat = self._convolve(example).shape[1]
        self.dense = nn.Linear(num_flat, NUM_FEATURES)
        for weight in (*(layer.weight for layer in layers), self.dense.weight):
            nn.init.orthogonal_(weight, math.sqrt(2.0))
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, images: Tensor) -> Tensor:
        """[B, ...] with the axes that the space has, to [B, D]."""
        return F.relu(self.dense(self._convolve(images)), inplace=True)

    def _convolve(self, images: Tensor) -> Tensor:
        x_BCHW = to_pixels(images, self.axes, self._scale)
        for convolution in self.convolutions:
            x_BCHW = F.relu(convolution(x_BCHW), inplace=True)
        return x_BCHW.flatten(1)


CHANNELS_LAST_ROWS = 64
"""Rows from which a CPU trains faster if channels are last in memory, by 1.15 to 1.6 for batches of
256; inference on 8 rows is slower then."""


def to_pixels(images: Tensor, axes: str, scale: float) -> Tensor:
    """Return images as [B, C, H, W] in the precision of the network, bytes as 0 to 1.

    axes: those of one image, see `ImageShape`.
    """
    x_BCHW = _channels_first(images, axes)
    if images.is_cuda and torch.is_autocast_enabled("cuda"):
        # Half the bytes, and in the order in which tensor cores read them.
        x_BCHW = x_BCHW.to(torch.bfloat16, memory_format=torch.channels_last)
        return x_BCHW * scale
    # An export knows no number of rows, and must not fix one.
    if not torch.compiler.is_compiling() and len(images) >= CHANNELS_LAST_ROWS:
        x_BCHW = x_BCHW.to(torch.float32, memory_format=torch.channels_last)
        return x_BCHW * scale if images.is_floating_point() else x_BCHW.mul_(scale)
    return x_BCHW.float() * scale


def _channels_first(images: Tensor, axes: str) -> Tensor:
    if axes == "HW":
        return images[:, None]
    if axes == "HWC":
        return images.permute(0, 3, 1, 2)
    if axes == "KHWC":
        return images.permute(0, 1, 4, 2, 3).flatten(1, 2)
    return images.flatten(1, 2) if axes == "KCHW" else images


class ResidualTorso(nn.Module):
    """The residual network of Espeholt et al. 2018: three sections of 16, 32 and 32 channels.

    A section is a convolution, a pooling by 2, and two residual blocks of two convolutions.
    """

    def __init__(self, shape: tuple[int, ...], scale: float) -> None:
        super().__init__()
        self.axes, channels, _ = image_shape(shape)
        self._scale = scale
        widths = (channels, *RESIDUAL_CHANNELS)
        self.sections = nn.ModuleList(_Section(*pair) for pair in itertools.pairwise(widths))
        with torch.no_grad():
            num_flat = self._convolve(torch.zeros(1, *shape)).shape[1]
        self.dense = nn.Linear(num_flat, NUM_FEATURES)
        nn.init.orthogonal_(self.dense.weight, math.sqrt(2.0))
        nn.init.zeros_(self.dense.bias)

    def forward(self, images: Tensor) -> Tensor:
        """[B, ...] with the axes that the space has, to [B, D]."""
        return F.relu(self.dense(self._convolve(images)), inplace=True)

    def _convolve(self, images: Tensor) -> Tensor:
        x_BCHW = to_pixels(images, self.axes, self._scale)
        for section in self.sections:
            x_BCHW = section(x_BCHW)
        return F.relu(x_BCHW).flatten(1)


class _Section(nn.Module):
    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, padding=1)
        pairs = (nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.blocks = nn.ModuleList(pairs)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        x_BCHW = F.max_pool2d(self.first(x_BCHW), 3, stride=2, padding=1)
        for one, two in zip(self.blocks[::2], self.blocks[1::2], strict=True):
            x_BCHW = x_BCHW + two(F.relu(one(F.relu(x_BCHW))))
        return x_BCHW


TORSOS = {"nature": ImageTorso, "impala": ResidualTorso}


class Normalizer(nn.Module):
    """Computes (x - mean) * inverse deviation, cut to [-clip, clip]; some numbers keep 0 and 1.

    >>> Normalizer(torch.tensor([True, True, False]), clip=10.0)
    """

    mean_V: Tensor
    inverse_V: Tensor

    def __init__(self, changes_V: Tensor, clip: float) -> None:
        super().__init__()
        self.changes_V = changes_V.numpy()
        self.clip = clip
        self.register_buffer("mean_V", torch.zeros(len(changes_V)))
        self.register_buffer("inverse_V", torch.ones(len(changes_V)))

    def forward(self, x_BV: Tensor) -> Tensor:
        return ((x_BV - self.mean_V) * self.inverse_V).clamp(-self.clip, self.clip)

    def load(self, mean_V: Array, variance_V: Array) -> None:
        """Take over the learner's statistics, in place: views of the buffers stay valid."""
        inverse_V = 1.0 / np.sqrt(variance_V + EPSILON)
        self.mean_V.copy_(torch.from_numpy(np.where(self.changes_V, mean_V, 0.0)))
        self.inverse_V.copy_(torch.from_numpy(np.where(self.changes_V, inverse_V, 1.0)))


class Encoder(nn.Module):
    """Numbers are flattened, choices one-hot, images go through convolutions; all side by side.

    >>> Encoder(observation_leaves(space), normalize=True, clip=10.0)({"": obs_B4})
    """

    def __init__(
        self, leaves: Sequence[Leaf], normalize: bool, clip: float, torso: str = "nature"
    ) -> None:
        super().__init__()
        self.keys = [leaf.key for leaf in leaves]
        self._vectors = [_VectorLeaf(leaf) for leaf in leaves if not is_image(leaf)]
        self._image_keys = [leaf.key for leaf in leaves if is_image(leaf)]
        images = [leaf for leaf in leaves if is_image(leaf)]
        build = TORSOS[torso]
        self.torsos = nn.ModuleList(build(leaf.shape, _pixel_scale(leaf)) for leaf in images)
        num_numbers = sum(leaf.size for leaf in self._vectors)
        self.num_features = num_numbers + NUM_FEATURES * len(images)
        self.normalizer: Normalizer | None = None
        if normalize and num_numbers:
            changes = [torch.full((leaf.size,), leaf.is_numbers) for leaf in self._vectors]
            self.normalizer = Normalizer(torch.cat(changes), clip)

    @property
    def is_learned(self) -> bool:
        """Return whether there are parameters, so that features change with every update."""
        return bool(self.torsos)

    @property
    def is_plain(self) -> bool:
        """Return whether the features are the observation's own float32 numbers, unchanged."""
        if len(self.keys) != 1 or not self._vectors or self.normalizer is not None:
            return False
        return self._vectors[0].is_plain

    def numbers(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return all leaves but images, before normalisation: [B, V]."""
        parts = [leaf.encode(obs[leaf.key]) for leaf in self._vectors]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def arranged(self, obs: Tensors) -> Tensors:
        """Return observations that are used several times, with images in the order in which a CPU
        reads them."""
        found = dict(obs)
        for key, torso in zip(self._image_keys, self.torsos, strict=True):
            x_BCHW = obs[key]
            is_used = x_BCHW.device.type == "cpu" and len(x_BCHW) >= CHANNELS_LAST_ROWS
            if is_used and torso.axes == "CHW":
                found[key] = x_BCHW.contiguous(memory_format=torch.channels_last)
        return found

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Turn tensors [B, ...] by leaf key ("" for a plain space) into features [B, F]."""
        parts: list[Tensor] = []
        if self._vectors:
            x_BV = self.numbers(obs)
            parts.append(self.normalizer(x_BV) if self.normalizer is not None else x_BV)
        for key, torso in zip(self._image_keys, self.torsos, strict=True):
            parts.append(in_parts(torso, obs[key]))
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


class _VectorLeaf:
    """One leaf that is not an image."""

    def __init__(self, leaf: Leaf) -> None:
        self.key = leaf.key
        self.is_numbers = isinstance(leaf.space, spaces.Box)
        self.is_plain = self.is_numbers and leaf.dtype == "float32"
        self._scale = _scale(leaf)
        self._options: list[Tensor] = []
        if isinstance(leaf.space, spaces.Discrete):
            self._options = [int(leaf.space.start) + torch.arange(int(leaf.space.n))]
        elif isinstance(leaf.space, spaces.MultiDiscrete):
            pairs = zip(leaf.space.start.flat, leaf.space.nvec.flat, strict=True)
            self._options = [int(start) + torch.arange(int(n)) for start, n in pairs]
        options = sum(len(values) for values in self._options)
        self.size = options if self._options else math.prod(leaf.shape)

    def encode(self, x: Tensor) -> Tensor:
        x = x.reshape(len(x), -1)
        if not self._options:
            return x.float() * self._scale if self._scale != 1.0 else x.float()
        if self._options[0].device != x.device:  # once: a CUDA graph cannot copy from the host
            self._options = [values.to(x.device) for values in self._options]
        columns = zip(torch.split(x, 1, 1), self._options, strict=True)
        return torch.cat([column == values for column, values in columns], 1).float()


def _scale(leaf: Leaf) -> float:
    return 1.0 / 255.0 if isinstance(leaf.space, spaces.Box) and leaf.dtype == "uint8" else 1.0


LARGEST_PIXEL = 2**16 - 1
"""Larger bounds are those of a type, and say nothing about pixels."""


def _pixel_scale(leaf: Leaf) -> float:
    """Return the factor that brings pixels to 0 to 1 (or -1 to 1), by the bounds of the space."""
    assert isinstance(leaf.space, spaces.Box)
    largest = float(np.maximum(np.abs(leaf.space.low), np.abs(leaf.space.high)).max())
    return 1.0 / largest if 0.0 < largest <= LARGEST_PIXEL else 1.0
