"""The Vision Transformer as it is used on images: patches, learned positions, global attention."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from spherule import checks
from spherule.grids import Grid
from spherule.models.config import NetworkConfig, check_width
from spherule.models.layers import drop_path_rates, make_block, make_position
from spherule.models.network import Network
from spherule.nn import Mlp, PlanarAttention, Projection
from spherule.nn.checks import require_dtype


@dataclass(frozen=True)
class VisionTransformerConfig(NetworkConfig):
    """2x2 patches, learned positions; the grid must be regular and of even size."""

    position: Literal["spectral", "learned", "sequence", "none"] = "learned"
    norm: Literal["instance", "plain_instance", "layer"] = "layer"
    patch: int = 2
    width: int = 128
    depth: int = 4
    heads: int = 1
    mlp_ratio: float = 2.0

    def check(self) -> None:
        super().check()
        check_width("width", self.width, self.heads)
        self.refuse_harmonics("a VisionTransformer")
        checks.integer("patch", self.patch, low=1)
        checks.integer("depth", self.depth, low=1)
        checks.number("mlp_ratio", self.mlp_ratio, low=1 / self.width)


class VisionTransformer(Network):
    """Patches in, blocks, patches out."""

    Config = VisionTransformerConfig
    config: VisionTransformerConfig

    def __init__(
        self, config: VisionTransformerConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__(config, grid, in_channels, out_channels)
        shape, patch, width = self.grid.shape, config.patch, config.width
        if len(shape) != 2 or any(n % patch for n in shape):
            raise ValueError(
                f"VisionTransformer: grid={self.grid!r}: rows and columns must be multiples of "
                f"patch={patch}"
            )
        # The patches' own grid, for the positions: the same family where it halves, else equal
        # cells.
        latent = self.grid.coarsen() if patch == 2 else Grid.fejer(*(n // patch for n in shape))
        self.encoder = Projection(in_channels * patch**2, width)
        self.position = make_position(config.position, width, latent)
        self.blocks = nn.ModuleList(
            make_block(
                config,
                width,
                latent,
                feed_forward=Mlp(width, round(width * config.mlp_ratio), dropout=config.dropout),
                attention=PlanarAttention(
                    width, latent, heads=config.heads, dropout=config.dropout
                ),
                drop_path=rate,
            )
            for rate in drop_path_rates(config, config.depth)
        )
        self.decoder = Projection(width, out_channels * patch**2)
        self.latent_shape = latent.shape

    def branch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        require_dtype(self, "x", x)
        patches = self.encoder(self._to_patches(x))
        latent = self.run_blocks(
            self.blocks, self.position, patches.unflatten(-1, self.latent_shape)
        )
        return self._from_patches(self.decoder(latent.flatten(2)))

    # As torch's pixel_unshuffle and pixel_shuffle, which take no empty batch.
    def _to_patches(self, x: Tensor) -> Tensor:
        patch, (rows, columns) = self.config.patch, self.latent_shape
        x = x.reshape(*x.shape[:2], rows, patch, columns, patch).permute(0, 1, 3, 5, 2, 4)
        return x.reshape(x.shape[0], x.shape[1] * patch**2, rows * columns)

    def _from_patches(self, x: Tensor) -> Tensor:
        patch, (rows, columns) = self.config.patch, self.latent_shape
        x = x.reshape(x.shape[0], self.out_channels, patch, patch, rows, columns)
        return x.permute(0, 1, 4, 2, 5, 3).reshape(*x.shape[:2], rows * patch, columns * patch)
