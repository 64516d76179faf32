"""Normalizations of fields (batch, channels, *grid.shape)."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Place, area_shares
from spherule.distributed.shards import pooled
from spherule.grids import Grid
from spherule.nn.checks import flat_channels, flat_field, require_dtype
from spherule.nn.placed import Placed
from spherule.ops.norm import instance_norm, moments, standardize


class SphericalInstanceNorm(Placed):
    """Each channel of each sample to mean 0 and variance 1 over the sphere, then scaled and
    shifted.

    Mean and variance are integrals by the grid's weights, so that poles are not counted over and
    over.
    """

    weights: Tensor
    mask_argument: ClassVar[str] = "mask"

    @checks.arguments
    def __init__(self, channels: int, grid: Grid, *, eps: float = 1e-5) -> None:
        super().__init__()
        checks.integer("channels", channels, low=1)
        self.eps = checks.number("eps", eps, low=0)
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.place(grid)

    def place(self, grid: Place) -> None:
        self.grid = grid
        self.set_table("weights", torch.tensor(area_shares(grid), device="cpu").float())

    def forward(
        self, x: Float[Tensor, "batch channels ..."], mask: Bool[Tensor, "batch ..."] | None = None
    ) -> Float[Tensor, "batch channels ..."]:
        """With a mask `(batch, *grid.shape)`, mean and variance are those where it is True."""
        flat = flat_field(self, "x", x, self.weight.shape[0], self.grid)
        weights = self.weights
        if mask is not None:
            there = mask.flatten(1)
            weights = weights * there
            # What is not seen may be missing, and 0 times NaN is NaN.
            flat = flat.masked_fill(~(there[:, None] | flat.isfinite()), 0.0)
        if isinstance(self.grid, Grid):
            return instance_norm(flat, weights, self.weight, self.bias, self.eps).view_as(x)
        mean, variance = pooled(*moments(flat, weights), weights.sum(-1, keepdim=True), self.grid)
        scale = self.weight * (variance + self.eps).rsqrt()
        return standardize(flat, mean, scale, self.bias).view_as(x)


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels at each point of a channels-first field."""

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        flat = flat_channels(self, "x", x, self.normalized_shape[0]).mT
        require_dtype(self, "x", x)
        return F.layer_norm(
            flat, self.normalized_shape, self.weight, self.bias, self.eps
        ).mT.view_as(x)
