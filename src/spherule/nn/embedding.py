"""Position embeddings: each adds something to a field (batch, channels, *grid.shape)."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from spherule.geometry.harmonics import legendre_rows
from spherule.grids import Grid
from spherule.nn.placed import Bound, Placed


class _Embedding(Placed):
    embedding: Tensor

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        return x + self.embedding.to(x.dtype)


class SpectralEmbedding(_Embedding):
    """Channel k is the real spherical harmonic Y_lm with l = floor(sqrt k), m = k - l (l + 1)."""

    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        self.channels = channels
        self.place(grid)

    def place(self, grid: Grid) -> None:
        lmax = math.isqrt(max(self.channels - 1, 0))
        phi = grid.point_phi
        harmonics = []
        for l, row in enumerate(legendre_rows(lmax, grid.theta)):
            p = np.repeat(row, grid.nphi, axis=-1)
            for m in range(-l, l + 1):
                wave = np.cos(m * phi) if m >= 0 else np.sin(-m * phi)
                scale = 1.0 if m == 0 else math.sqrt(2) * (-1) ** m
                harmonics.append(scale * p[abs(m)] * wave)
        table = np.stack(harmonics[: self.channels]).reshape(self.channels, *grid.shape)
        self.set_table("embedding", torch.tensor(table, device="cpu").float())


class LearnedEmbedding(Bound, _Embedding):
    """A Parameter a point and channel: bound to its grid."""

    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        self.embedding = nn.Parameter(0.02 * torch.randn(channels, *grid.shape))


class SequenceEmbedding(Bound, _Embedding):
    """Sines and cosines of the point's place in the sequence, at frequencies from 1 to 1e-4."""

    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        frequency = 1e4 ** (-2 * (np.arange(channels) // 2) / channels)
        angle = np.arange(grid.size) * frequency[:, None]
        table = np.where(np.arange(channels)[:, None] % 2, np.cos(angle), np.sin(angle))
        table = table.reshape(channels, *grid.shape)
        self.set_table("embedding", torch.tensor(table, device="cpu").float())
