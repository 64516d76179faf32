"""The Transformer of the paper: a convolution to half the resolution, blocks of attention, and
back.

On the sphere the convolutions are DISCO and the attention has quadrature weights; on the plane both
take the grid for an image. Which is which is a matter of the config, so the mixed variants of the
ablation are configs too.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Place
from spherule.grids import Grid
from spherule.grids.serial import as_grid
from spherule.models.config import GeometryConfig, check_cutoff, check_width
from spherule.models.layers import (
    attention_cutoff,
    coarser,
    drop_path_rates,
    filter_cutoff,
    make_attention,
    make_block,
    make_convolution,
    make_position,
    make_upsampling,
    reach,
)
from spherule.models.network import Network
from spherule.nn import DiscoConv, Mlp, place
from spherule.nn.masks import call


@dataclass(frozen=True)
class TransformerConfig(GeometryConfig):
    """531,968 parameters from 3 channels to 1, global or local; the planar counterpart has 3x3
    convolutions, 7x7 windows and 532,480 (local).
    """

    PLANAR: ClassVar[dict[str, Any]] = {
        "convolution": "planar",
        "attention": "planar",
        "norm": "plain_instance",
    }

    latent_grid: str | None = None
    """Where attention runs; by default the model's grid coarsened once."""
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

    def check(self) -> None:
        super().check()
        check_width("width", self.width, self.heads)
        checks.integer("depth", self.depth, low=1)
        checks.number("mlp_ratio", self.mlp_ratio, low=1 / self.width)
        check_cutoff("cutoff", self.cutoff)
        check_cutoff("convolution_cutoff", self.convolution_cutoff)

    def resolved(self, grid: Grid) -> "TransformerConfig":
        latent = coarser(grid) if self.latent_grid is None else Grid.from_name(self.latent_grid)
        return replace(
            super().resolved(grid),
            upsampling=self.upsampling or self.convolution,
            latent_grid=latent.name,
            cutoff=attention_cutoff(self, latent) if self.cutoff is None else self.cutoff,
            convolution_cutoff=(
                filter_cutoff(self, grid, latent, grid)
                if self.convolution_cutoff is None
                else self.convolution_cutoff
            ),
        )


class Transformer(Network):
    """Encoder, blocks, decoder.

    Args:
        config: the architecture.
        grid: of input and output, or its name.
        in_channels: of the input.
        out_channels: of the output.

    >>> import torch, spherule as sph
    >>> config = sph.models.TransformerConfig(width=16, depth=2, heads=2)
    >>> model = sph.models.Transformer(config, "gauss:16x32", 3, 1)
    >>> tuple(model(torch.randn(2, 3, 16, 32)).shape)
    (2, 1, 16, 32)
    """

    Config = TransformerConfig
    config: TransformerConfig

    def __init__(
        self, config: TransformerConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__(config, grid, in_channels, out_channels)
        config, grid = self.config, as_grid(grid)
        assert config.latent_grid is not None
        latent = Grid.from_name(config.latent_grid)
        width, cutoff = config.width, config.convolution_cutoff
        self.encoder = make_convolution(
            config, in_channels, width, grid, latent, cutoff=cutoff, kernel=3
        )
        self.position = make_position(config.position, width, latent)
        self.blocks = nn.ModuleList(
            make_block(
                config,
                width,
                latent,
                feed_forward=Mlp(width, round(width * config.mlp_ratio), dropout=config.dropout),
                attention=make_attention(config, width, latent, config.heads, config.cutoff),
                drop_path=rate,
            )
            for rate in drop_path_rates(config, config.depth)
        )
        self.upsample = make_upsampling(config, latent, grid)
        self.decoder = make_convolution(
            config, width, out_channels, grid, grid, cutoff=cutoff, kernel=3
        )
        self.end_in(self.decoder)

    def branch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        encoded = call(self.encoder, x, mask)
        latent = self.run_blocks(self.blocks, self.position, encoded, reach(self.encoder, mask))
        if isinstance(self.decoder, DiscoConv):
            return self.decoder.after(self.upsample, latent)
        return self.decoder(self.upsample(latent))

    def place(self, grid: Place, latent_grid: Place | None = None) -> None:
        latent = coarser(grid) if latent_grid is None else latent_grid
        self.grid, self.config = grid, replace(self.config, latent_grid=latent.name)
        place(self.encoder, grid, latent)
        place(self.position, latent)
        place(self.blocks, latent)
        place(self.upsample, latent, grid)
        place(self.decoder, grid)
        place(self.skip, grid)
