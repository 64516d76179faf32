"""The layers that a config chooses."""

from typing import Any, TypeVar, cast

from torch import Tensor, nn

from spherule.distributed import Place
from spherule.geometry.filters import default_cutoff
from spherule.grids import Grid
from spherule.models.config import GeometryConfig, NetworkConfig
from spherule.nn import (
    Block,
    ChannelNorm,
    DiscoConv,
    LearnedEmbedding,
    PlainInstanceNorm,
    PlanarAttention,
    PlanarConv,
    PlanarResample,
    Resample,
    SequenceEmbedding,
    SpectralEmbedding,
    SphericalAttention,
    SphericalInstanceNorm,
)

AnyPlace = TypeVar("AnyPlace", bound=Place)


def coarser(grid: AnyPlace) -> AnyPlace:
    """Half the resolution; the coarsest grid of a family stays what it is."""
    return grid if grid.coarsest else cast(AnyPlace, grid.coarsen())


def filter_cutoff(config: GeometryConfig, grid: Grid, *out_grids: Grid) -> float | None:
    """The default radius of filters from `grid` to each of the others; none on the plane."""
    if config.convolution == "planar":
        return None
    return default_cutoff(grid, *out_grids, radii=config.radii, angles=config.angles)


def attention_cutoff(config: GeometryConfig, grid: Grid) -> float | None:
    """The default radius of local attention; none on the plane or where it is global."""
    local = config.local and config.attention == "spherical"
    return grid.cutoff(config.window) if local else None


def make_position(kind: str, channels: int, grid: Grid) -> nn.Module:
    """A position embedding."""
    embeddings: dict[str, Any] = {
        "spectral": SpectralEmbedding,
        "learned": LearnedEmbedding,
        "sequence": SequenceEmbedding,
        "none": nn.Identity,
    }
    return embeddings[kind](channels, grid)


def make_norm(kind: str, channels: int, grid: Grid) -> nn.Module:
    """A normalization with weight and bias."""
    norms = {
        "instance": lambda: SphericalInstanceNorm(channels, grid),
        "plain_instance": lambda: PlainInstanceNorm(channels),
        "layer": lambda: ChannelNorm(channels),
    }
    return norms[kind]()


def make_attention(
    config: GeometryConfig, channels: int, grid: Grid, heads: int, cutoff: float | None
) -> nn.Module:
    """Global or local attention, on the sphere or on the plane."""
    # Only global attention forms weights that could be dropped.
    dropout = 0.0 if config.local else config.dropout
    kinds = {
        "spherical": lambda: SphericalAttention(
            channels,
            grid,
            heads=heads,
            cutoff=cutoff,
            edge_width=config.edge_width,
            qk_norm=config.qk_norm,
            dropout=dropout,
        ),
        "planar": lambda: PlanarAttention(
            channels,
            grid,
            heads=heads,
            window=config.window if config.local else None,
            out_bias=config.local,
            dropout=dropout,
        ),
    }
    return kinds[config.attention]()


def make_convolution(
    config: GeometryConfig,
    in_channels: int,
    out_channels: int,
    grid: Grid,
    out_grid: Grid,
    *,
    cutoff: float | None,
    kernel: int,
    groups: int = 1,
) -> nn.Module:
    """A convolution without bias from one grid to another."""
    kinds = {
        "spherical": lambda: DiscoConv(
            in_channels,
            out_channels,
            grid,
            out_grid,
            radii=config.radii,
            angles=config.angles,
            cutoff=cutoff,
            groups=groups,
        ),
        "planar": lambda: PlanarConv(
            in_channels, out_channels, grid, out_grid, kernel=kernel, groups=groups
        ),
    }
    return kinds[config.convolution]()


def reach(convolution: nn.Module, mask: Tensor | None) -> Tensor | None:
    """A mask of what comes out of a convolution; planar ones know none."""
    if mask is None or not isinstance(convolution, DiscoConv):
        return None
    return convolution.reach(mask)


def make_upsampling(config: GeometryConfig, grid: Grid, out_grid: Grid) -> nn.Module:
    """Bilinear interpolation onto a finer grid."""
    kinds = {"spherical": Resample, "planar": PlanarResample}
    return kinds[config.upsampling or config.convolution](grid, out_grid)


def make_block(
    config: NetworkConfig,
    channels: int,
    grid: Grid,
    *,
    attention: nn.Module,
    feed_forward: nn.Module,
    drop_path: float,
) -> Block:
    """A pre-norm block."""
    return Block(
        make_norm(config.norm, channels, grid),
        attention,
        make_norm(config.norm, channels, grid),
        feed_forward,
        drop_path=drop_path,
    )


def drop_path_rates(config: NetworkConfig, blocks: int) -> list[float]:
    """From 0 for the first block to the config's rate for the last, which may be the only one."""
    last = blocks - 1
    return [config.drop_path * i / last for i in range(last)] + [config.drop_path]
