"""Convolutions for images.

B: rows, C: channels, H and W: height and width, D: features.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tianji.models.networks.images import NUM_FEATURES, convolutions, is_channels_last


class ImageTorso(nn.Module):
    """The convolutions of Mnih et al. 2015 and their layer of 512, ReLU throughout.

    Images smaller than 36 x 36 get the same three layers with kernels of 3 and strides of 2, 2
    and 1, padded, which work down to 1 x 1. `scale` multiplies the pixels: 1/255 for bytes.
    """

    def __init__(self, shape: tuple[int, ...], scale: float) -> None:
        super().__init__()
        self._channels_last = is_channels_last(shape)
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
        """[B, H, W, C] or [B, C, H, W], as the space has it, to [B, D]."""
        return F.relu(self.dense(self._convolve(images)))

    def _convolve(self, images: Tensor) -> Tensor:
        x_BCHW = images.permute(0, 3, 1, 2) if self._channels_last else images
        x_BCHW = x_BCHW.float() * self._scale
        for convolution in self.convolutions:
            x_BCHW = F.relu(convolution(x_BCHW))
        return x_BCHW.flatten(1)
