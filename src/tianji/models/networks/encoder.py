"""Observations of any supported space to one vector of features.

B: rows, V: numbers of all leaves that are not images, F: features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from gymnasium import spaces
from torch import Tensor, nn

from tianji.envs.spaces import Leaf
from tianji.models.networks.images import NUM_FEATURES, is_image
from tianji.models.networks.torso import ImageTorso
from tianji.models.normalize import Normalizer


class Encoder(nn.Module):
    """Numbers are flattened, choices one-hot, images go through convolutions; all side by side.

    >>> Encoder(observation_leaves(space), normalize=True, clip=10.0)({"": obs_B4})
    """

    def __init__(self, leaves: Sequence[Leaf], normalize: bool, clip: float) -> None:
        super().__init__()
        self.keys = [leaf.key for leaf in leaves]
        self._vectors = [_VectorLeaf(leaf) for leaf in leaves if not is_image(leaf)]
        self._image_keys = [leaf.key for leaf in leaves if is_image(leaf)]
        images = [leaf for leaf in leaves if is_image(leaf)]
        self.torsos = nn.ModuleList(ImageTorso(leaf.shape, _scale(leaf)) for leaf in images)
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

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Turn tensors [B, ...] by leaf key ("" for a plain space) into features [B, F]."""
        parts: list[Tensor] = []
        if self._vectors:
            x_BV = self.numbers(obs)
            parts.append(self.normalizer(x_BV) if self.normalizer is not None else x_BV)
        for key, torso in zip(self._image_keys, self.torsos, strict=True):
            parts.append(torso(obs[key]))
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
        columns = zip(torch.split(x, 1, 1), self._options, strict=True)
        return torch.cat([column == values.to(x.device) for column, values in columns], 1).float()


def _scale(leaf: Leaf) -> float:
    return 1.0 / 255.0 if isinstance(leaf.space, spaces.Box) and leaf.dtype == "uint8" else 1.0
