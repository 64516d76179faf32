"""The Transformer of the paper: a convolution to half the resolution, blocks of attention, and
back.

On the sphere the convolutions are DISCO and the attention has quadrature weights; on the plane both
take the grid for an image. Which is which is a matter of the config, so the mixed variants of the
ablation are configs too.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from spherule.grids import Grid
from spherule.models.base import Model, ModelConfig
from spherule.models.parts import (
    coarser,
    drop_path_rates,
    filter_cutoff,
    make_block,
    make_convolution,
    make_position,
)
from spherule.nn import DiscoConv, Mlp, Resample


@dataclass(frozen=True)
class SphericalTransformerConfig(ModelConfig):
    """531,968 parameters with one output channel, global or local."""

    latent_grid: str | None = None
    """Where attention runs; by default `grid` coarsened once."""
    width: int = 128
    depth: int = 4
    heads: int = 1
    mlp_ratio: float = 2.0
    cutoff: float | None = None
    """Radius of local attention in radians; by default that of `window` cells of the latent grid.
    """
    convolution_cutoff: float | None = None
    """Radius of the encoder's and the decoder's filters; by default 3 spacings of the latent grid,
    or what it takes to find points under every hat."""


@dataclass(frozen=True)
class PlanarTransformerConfig(SphericalTransformerConfig):
    """The planar counterpart: 3x3 convolutions, 7x7 windows. 532,480 parameters (local)."""

    convolution: Literal["spherical", "planar"] = "planar"
    attention: Literal["spherical", "planar"] = "planar"
    norm: Literal["instance", "plain_instance", "layer"] = "layer"


class SphericalTransformer(Model):
    """Encoder, blocks, decoder."""

    Config = SphericalTransformerConfig

    def __init__(self, config: SphericalTransformerConfig) -> None:
        super().__init__(config)
        grid = self.grid
        latent = coarser(grid) if config.latent_grid is None else Grid.from_name(config.latent_grid)
        config = dataclasses.replace(
            config,
            latent_grid=latent.name,
            cutoff=latent.cutoff(config.window) if config.cutoff is None else config.cutoff,
            convolution_cutoff=(
                filter_cutoff(config, grid, latent, grid)
                if config.convolution_cutoff is None
                else config.convolution_cutoff
            ),
        )
        self.config = config
        width, cutoff = config.width, config.convolution_cutoff
        self.encoder = make_convolution(
            config, config.in_channels, width, grid, latent, cutoff=cutoff, kernel=3
        )
        self.position = make_position(config.position, width, latent)
        self.blocks = nn.ModuleList(
            make_block(
                config,
                width,
                latent,
                config.heads,
                cutoff=config.cutoff,
                feed_forward=Mlp(width, round(width * config.mlp_ratio), dropout=config.dropout),
                drop_path=rate,
            )
            for rate in drop_path_rates(config, config.depth)
        )
        self.upsample = Resample(latent, grid)
        self.decoder = make_convolution(
            config, width, config.out_channels, grid, grid, cutoff=cutoff, kernel=3
        )

    def predict(self, x: Tensor) -> Tensor:
        latent = self.run_blocks(self.blocks, self.position, self.encoder(x))
        if isinstance(self.decoder, DiscoConv):
            return self.decoder.after(self.upsample, latent)
        return self.decoder(self.upsample(latent))

    def moved(self, grid: str) -> ModelConfig:
        return dataclasses.replace(self.config, grid=grid, latent_grid=None)


class PlanarTransformer(SphericalTransformer):
    """The same with planar convolutions and attention."""

    Config = PlanarTransformerConfig
