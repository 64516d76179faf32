"""The choices of a config, made into layers."""

from typing import Any

from torch import nn

from spherule.geometry.filters import default_cutoff
from spherule.grids import Grid
from spherule.models.base import ModelConfig
from spherule.nn import (
    Block,
    ChannelNorm,
    DiscoConv,
    LearnedEmbedding,
    PlainInstanceNorm,
    PlanarAttention,
    PlanarConv,
    SequenceEmbedding,
    SpectralEmbedding,
    SphericalAttention,
    SphericalInstanceNorm,
)


def coarser(grid: Grid) -> Grid:
    """Half the resolution; the coarsest grid of a family stays what it is."""
    return grid if grid.coarsest else grid.coarsen()


def filter_cutoff(config: ModelConfig, grid: Grid, *out_grids: Grid) -> float | None:
    """The default radius of filters from `grid` to each of the others; none on the plane."""
    if config.convolution == "planar":
        return None
    return default_cutoff(grid, *out_grids, radii=config.radii, angles=config.angles)


def make_position(kind: str, channels: int, grid: Grid) -> nn.Module:
    """A position embedding."""
    embeddings: dict[str, Any] = {
        "spectral": SpectralEmbedding,
        "learned": LearnedEmbedding,
        "sequence": SequenceEmbedding,
    }
    return nn.Identity() if kind == "none" else embeddings[kind](channels, grid)


def make_norm(kind: str, channels: int, grid: Grid) -> nn.Module:
    """A normalisation with weight and bias."""
    if kind == "instance":
        return SphericalInstanceNorm(channels, grid)
    return PlainInstanceNorm(channels) if kind == "plain_instance" else ChannelNorm(channels)


def make_attention(
    config: ModelConfig, channels: int, grid: Grid, heads: int, cutoff: float | None
) -> nn.Module:
    """Global or local attention, on the sphere or on the plane."""
    # Only global attention forms weights that could be dropped.
    dropout = 0.0 if config.local else config.dropout
    if config.attention == "planar":
        window = config.window if config.local else None
        return PlanarAttention(
            channels, grid, heads=heads, window=window, out_bias=config.local, dropout=dropout
        )
    return SphericalAttention(
        channels,
        grid,
        heads=heads,
        cutoff=cutoff if config.local else None,
        edge_width=config.edge_width if config.local else 0.0,
        qk_norm=config.qk_norm,
        dropout=dropout,
    )


def make_convolution(
    config: ModelConfig,
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
    if config.convolution == "planar":
        return PlanarConv(in_channels, out_channels, grid, out_grid, kernel=kernel, groups=groups)
    return DiscoConv(
        in_channels,
        out_channels,
        grid,
        out_grid,
        radii=config.radii,
        angles=config.angles,
        cutoff=cutoff,
        groups=groups,
    )


def make_block(
    config: ModelConfig,
    channels: int,
    grid: Grid,
    heads: int,
    *,
    cutoff: float | None,
    feed_forward: nn.Module,
    drop_path: float,
) -> Block:
    """A pre-norm block."""
    return Block(
        make_norm(config.norm, channels, grid),
        make_attention(config, channels, grid, heads, cutoff),
        make_norm(config.norm, channels, grid),
        feed_forward,
        drop_path=drop_path,
    )


def drop_path_rates(config: ModelConfig, blocks: int) -> list[float]:
    """From 0 for the first block to the config's rate for the last."""
    return [config.drop_path * i / max(blocks - 1, 1) for i in range(blocks)]
