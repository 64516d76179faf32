"""The Vision Transformer as it is used on images: patches, learned positions, global attention."""

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from spherule.grids import Grid
from spherule.models.base import Model, ModelConfig
from spherule.models.parts import drop_path_rates, make_block, make_position
from spherule.nn import Mlp, Projection


@dataclass(frozen=True)
class VisionTransformerConfig(ModelConfig):
    """2x2 patches, learned positions; the grid must be regular and of even size."""

    convolution: Literal["spherical", "planar"] = "planar"
    attention: Literal["spherical", "planar"] = "planar"
    local: bool = False
    position: Literal["spectral", "learned", "sequence", "none"] = "learned"
    norm: Literal["instance", "plain_instance", "layer"] = "layer"
    patch: int = 2
    width: int = 128
    depth: int = 4
    heads: int = 1
    mlp_ratio: float = 2.0


class VisionTransformer(Model):
    """Patches in, blocks, patches out."""

    Config = VisionTransformerConfig

    def __init__(self, config: VisionTransformerConfig) -> None:
        super().__init__(config)
        shape, patch = self.grid.shape, config.patch
        if len(shape) != 2 or any(n % patch for n in shape):
            raise ValueError(
                f"VisionTransformer: grid={config.grid!r}: rows and columns must be multiples of "
                f"patch={patch}"
            )
        # The patches' own grid, for the positions: the same family where it halves, else equal
        # cells.
        latent = self.grid.coarsen() if patch == 2 else Grid.fejer(*(n // patch for n in shape))
        self.encoder = Projection(config.in_channels * patch**2, config.width)
        self.position = make_position(config.position, config.width, latent)
        hidden = round(config.width * config.mlp_ratio)
        self.blocks = nn.ModuleList(
            make_block(
                config,
                config.width,
                latent,
                config.heads,
                cutoff=None,
                feed_forward=Mlp(config.width, hidden, dropout=config.dropout),
                drop_path=rate,
            )
            for rate in drop_path_rates(config, config.depth)
        )
        self.decoder = Projection(config.width, config.out_channels * patch**2)
        self.latent_shape = latent.shape

    def predict(self, x: Tensor) -> Tensor:
        patches = self.encoder(F.pixel_unshuffle(x, self.config.patch).flatten(2))
        latent = self.run_blocks(
            self.blocks, self.position, patches.unflatten(-1, self.latent_shape)
        )
        decoded = self.decoder(latent.flatten(2)).unflatten(-1, self.latent_shape)
        return F.pixel_shuffle(decoded, self.config.patch)
