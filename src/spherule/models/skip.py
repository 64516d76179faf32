"""What a network's branch is added to, and what of the sum is kept."""

import torch
from torch import Tensor

from spherule.distributed import Place, area_shares, summed
from spherule.grids import Grid
from spherule.models.config import NetworkConfig
from spherule.nn import Harmonics, Placed, SpectralMix, ZonalMix


class Skip(Placed):
    """The input, or a linear map of it, beside the branch; then truncation and means."""

    scale: Tensor
    """Of the branch beside a fitted skip, (out_channels,): what the linear map leaves to do."""
    weights: Tensor

    def __init__(
        self, config: NetworkConfig, grid: Grid, in_channels: int, out_channels: int
    ) -> None:
        super().__init__()
        self.kind, self.out_channels = config.skip, out_channels
        self.bandlimit, self.keep_mean = config.bandlimit, config.keep_mean
        self.mix: SpectralMix | ZonalMix | None = None
        self.truncate: Harmonics | None = None
        if config.fitted_skip:
            assert config.skip_lmax is not None
            sizes = (in_channels, out_channels, grid, config.skip_lmax)
            zonal = config.skip == "zonal"
            self.mix = ZonalMix(*sizes, reach=config.skip_reach) if zonal else SpectralMix(*sizes)
            self.register_buffer("scale", torch.ones(out_channels))
        elif config.bandlimit is not None:
            self.truncate = Harmonics(grid, config.bandlimit)
        self.place(grid)

    def place(self, grid: Place) -> None:
        super().place(grid)
        self.grid = grid
        if self.keep_mean:
            weights = torch.tensor(area_shares(grid), device="cpu").reshape(grid.shape)
            self.set_table("weights", weights.float())

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        kept = x[:, : self.out_channels]
        if self.mix is not None:
            branch = branch * self.scale.view(-1, *[1] * (x.ndim - 2)).to(branch.dtype)
            # With a band limit, one transform does both.
            y = self.mix(x) + branch if self.bandlimit is None else self.mix(x, branch)
        else:
            y = kept + branch if self.kind == "identity" else branch
        if self.truncate is not None:
            y = self.truncate(y)
        if self.keep_mean:
            missing = summed(((kept - y) * self.weights).flatten(2).sum(-1), self.grid)
            y = y + missing.to(y.dtype).view(*missing.shape, *[1] * (x.ndim - 2))
        return y

    def extra_repr(self) -> str:
        return f"{self.kind}, bandlimit={self.bandlimit}, keep_mean={self.keep_mean}"
