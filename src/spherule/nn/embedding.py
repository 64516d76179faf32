"""Position embeddings: each adds something to a field (batch, channels, *grid.shape)."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from spherule.geometry.harmonics import legendre_rows
from spherule.grids import Grid


class _Embedding(nn.Module):
    embedding: Tensor

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        return x + self.embedding.to(x.dtype)


class SpectralEmbedding(_Embedding):
    """Channel k is the real spherical harmonic Y_lm with l = floor(sqrt k), m = k - l (l + 1)."""

    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        lmax = math.isqrt(max(channels - 1, 0))
        theta, phi = grid.point_theta, grid.point_phi
        harmonics = []
        for l, row in enumerate(legendre_rows(lmax, grid.theta)):
            p = np.repeat(row, grid.nphi, axis=-1)
            for m in range(-l, l + 1):
                wave = np.cos(m * phi) if m >= 0 else np.sin(-m * phi)
                scale = 1.0 if m == 0 else math.sqrt(2) * (-1) ** m
                harmonics.append(scale * p[abs(m)] * wave)
        table = np.stack(harmonics[:channels]).reshape(channels, *grid.shape)
        assert theta.size == table[0].size
        self.register_buffer(
            "embedding", torch.tensor(table, device="cpu").float(), persistent=False
        )


class LearnedEmbedding(_Embedding):
    """A Parameter a point and channel: bound to its grid."""

    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        self.embedding = nn.Parameter(0.02 * torch.randn(channels, *grid.shape))


class SequenceEmbedding(_Embedding):
    """Sines and cosines of the point's place in the sequence, at frequencies from 1 to 1e-4."""

    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        frequency = 1e4 ** (-2 * (np.arange(channels) // 2) / channels)
        angle = np.arange(grid.size) * frequency[:, None]
        table = np.where(np.arange(channels)[:, None] % 2, np.cos(angle), np.sin(angle))
        table = table.reshape(channels, *grid.shape)
        self.register_buffer(
            "embedding", torch.tensor(table, device="cpu").float(), persistent=False
        )
