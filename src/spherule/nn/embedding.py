"""Position embeddings: each adds something to a field (batch, channels, *grid.shape)."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Place, own
from spherule.geometry.harmonics import real_harmonics
from spherule.grids import Grid
from spherule.nn.checks import flat_field
from spherule.nn.placed import Bound, Placed


class _Embedding(Placed):
    embedding: Tensor
    channels: int
    grid: Place

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        flat_field(self, "x", x, self.channels, self.grid)
        return x + self.embedding.to(x.dtype)


class SpectralEmbedding(_Embedding):
    """Channel k is the real spherical harmonic Y_lm with l = floor(sqrt k), m = k - l (l + 1)."""

    @checks.arguments
    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        self.channels = checks.integer("channels", channels, low=1)
        self.place(grid)

    def place(self, grid: Place) -> None:
        self.grid = grid
        table = real_harmonics(self.channels, own(grid)).reshape(self.channels, *grid.shape)
        self.set_table("embedding", torch.tensor(table, device="cpu").float())


class LearnedEmbedding(Bound, _Embedding):
    """A Parameter a point and channel: bound to its grid."""

    @checks.arguments
    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        self.channels, self.grid = checks.integer("channels", channels, low=1), grid
        self.embedding = nn.Parameter(0.02 * torch.randn(channels, *grid.shape))


class SequenceEmbedding(Bound, _Embedding):
    """Sines and cosines of the point's place in the sequence, at frequencies from 1 to 1e-4."""

    @checks.arguments
    def __init__(self, channels: int, grid: Grid) -> None:
        super().__init__()
        self.channels, self.grid = checks.integer("channels", channels, low=1), grid
        frequency = 1e4 ** (-2 * (np.arange(channels) // 2) / channels)
        angle = np.arange(grid.size) * frequency[:, None]
        table = np.where(np.arange(channels)[:, None] % 2, np.cos(angle), np.sin(angle))
        table = table.reshape(channels, *grid.shape)
        self.set_table("embedding", torch.tensor(table, device="cpu").float())
